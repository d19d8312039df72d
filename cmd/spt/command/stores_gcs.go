package command

import (
	"github.com/savepoint-tools/spt/storage/gcs"
	"github.com/savepoint-tools/spt/storage/route"
)

// gcsDriver opens objects of Google Cloud Storage.
func gcsDriver() driver {
	return driver{[]string{"gs"}, func(env *Env) (route.Scheme, error) {
		s, err := gcs.New(gcs.Options{Getenv: env.Getenv})
		if err != nil {
			return nil, err
		}
		return s.Resolve, nil
	}}
}
