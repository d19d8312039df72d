package command

import (
	"cmp"
	"strings"

	"github.com/savepoint-tools/spt/storage/azure"
	"github.com/savepoint-tools/spt/storage/route"
)

// azureDriver opens objects of Azure Blob Storage and Data Lake Storage.
func azureDriver() driver {
	return driver{schemes: azure.Schemes, open: func(env *Env) (route.Scheme, error) {
		flink, hadoop, err := env.configurations()
		if err != nil {
			return nil, err
		}
		o := azure.Options{Anonymous: env.s3.anonymous, Getenv: env.Getenv, Retried: env.retried()}
		if flink != nil {
			o.Config = append(o.Config, azure.Config{Name: cmp.Or(env.common.flinkConf, env.Getenv("FLINK_CONF_DIR")), Values: flink})
		}
		if len(hadoop.Properties) > 0 {
			o.Config = append(o.Config, azure.Config{Name: strings.Join(hadoop.From, ", "), Values: hadoop.Properties})
		}
		return azure.New(o).Resolve, nil
	}}
}
