package command

import (
	"github.com/savepoint-tools/spt/storage/gcs"
	"github.com/savepoint-tools/spt/storage/route"
)

// gcsDriver opens objects of Google Cloud Storage.
func gcsDriver() driver {
	return driver{schemes: []string{"gs"}, open: func(env *Env) (route.Scheme, error) {
		flink, hadoop, err := env.configurations()
		if err != nil {
			return nil, err
		}
		s, err := gcs.New(gcs.Options{Anonymous: env.s3.anonymous, Flink: flink, Hadoop: hadoop.Properties, Getenv: env.Getenv, Retried: env.retried()})
		if err != nil {
			return nil, err
		}
		return s.Resolve, nil
	}}
}
