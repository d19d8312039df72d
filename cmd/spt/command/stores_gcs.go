package command

import (
	"cmp"

	"github.com/savepoint-tools/spt/storage/gcs"
	"github.com/savepoint-tools/spt/storage/route"
)

// gcsDriver opens objects of Google Cloud Storage.
func gcsDriver() driver {
	return driver{schemes: []string{"gs"}, open: func(env *Env) (route.Scheme, error) {
		flink, err := env.flinkConf()
		if err != nil {
			return nil, err
		}
		o := gcs.Options{Anonymous: env.s3.anonymous, Getenv: env.Getenv, Retried: env.retried()}
		if flink != nil {
			o.Config = append(o.Config, gcs.Config{Name: cmp.Or(env.common.flinkConf, env.Getenv("FLINK_CONF_DIR")), Values: flink})
		}
		s, err := gcs.New(o)
		if err != nil {
			return nil, err
		}
		return s.Resolve, nil
	}}
}
