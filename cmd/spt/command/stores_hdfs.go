package command

import (
	"github.com/savepoint-tools/spt/storage/hdfs"
	"github.com/savepoint-tools/spt/storage/route"
)

// hdfsDriver is the driver of HDFS. It has no flags: programs of Hadoop find it by
// HADOOP_CONF_DIR and HADOOP_USER_NAME, and Flink by its configuration.
func hdfsDriver() driver {
	return driver{schemes: []string{"hdfs", "viewfs"}, open: openHDFS}
}

func openHDFS(env *Env) (route.Scheme, error) {
	flink, err := env.flinkConf()
	if err != nil {
		return nil, err
	}
	s, err := hdfs.New(hdfs.Options{Flink: flink, Getenv: env.Getenv, Retried: env.retried()})
	if err != nil {
		return nil, usagef("%v", err)
	}
	return s.Resolve, nil
}
