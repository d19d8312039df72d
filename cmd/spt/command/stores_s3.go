package command

import (
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/conf"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/storage/s3"
)

// s3Flags are how S3 is reached, with the names of the AWS command line.
type s3Flags struct {
	endpoint, region, profile string
	anonymous, lookFirst      bool
	addressing                string
}

func (f *s3Flags) addFlags(fs *pflag.FlagSet) {
	fs.StringVar(&f.endpoint, "endpoint-url", "", "`URL` of the S3 service (also AWS_ENDPOINT_URL_S3; default: from the profile or --flink-conf, else AWS)")
	fs.StringVar(&f.region, "region", "", "`REGION` of S3 (also AWS_REGION; default: from the profile or --flink-conf, else us-east-1 or what the service names)")
	fs.StringVar(&f.profile, "profile", "", "use the profile `NAME` of the shared files of AWS (also AWS_PROFILE)")
	fs.BoolVar(&f.anonymous, "no-sign-request", false, "send requests to S3, Google Cloud Storage and Azure without credentials")
	fs.StringVar(&f.addressing, "s3-addressing", "auto", "put the bucket into the path or the host of an S3 address: `auto|path|host`")
	fs.BoolVar(&f.lookFirst, "s3-look-first", false, "for S3 services that refuse conditional writes: look for an object before it is created; another writer can come in between")
}

// s3Drivers are the drivers of S3 and of the services like it.
func s3Drivers() []driver {
	return []driver{
		{schemes: []string{"s3", "s3a", "s3p"}, open: func(env *Env) (route.Scheme, error) { return openS3(env, false) }, flags: func(env *Env, fs *pflag.FlagSet) { env.s3.addFlags(fs) }},
		{schemes: []string{"oss"}, open: func(env *Env) (route.Scheme, error) { return openS3(env, true) }},
	}
}

func openS3(env *Env, oss bool) (route.Scheme, error) {
	f := &env.s3
	addressing, ok := map[string]s3.Addressing{"auto": s3.Auto, "path": s3.Path, "host": s3.Host}[f.addressing]
	if !ok {
		return nil, usagef("--s3-addressing %s: must be auto, path or host", f.addressing)
	}
	flink, hadoop, err := env.configurations()
	if err != nil {
		return nil, err
	}
	o := s3.Options{
		Region: f.region, Profile: f.profile, Anonymous: f.anonymous, Addressing: addressing, OSS: oss, LookFirst: f.lookFirst,
		Endpoint: f.endpoint, Getenv: env.Getenv, Flink: flink, Hadoop: hadoop.Properties, Retried: env.retried(),
	}
	s, err := s3.New(o)
	if err != nil {
		return nil, err
	}
	return s.Resolve, nil
}

// flinkConf returns the configuration of Flink, if one is named.
func (e *Env) flinkConf() (map[string]string, error) {
	name, by := e.common.flinkConf, "--flink-conf"
	if name == "" {
		name, by = e.Getenv("FLINK_CONF_DIR"), "FLINK_CONF_DIR"
	}
	if name == "" {
		return nil, nil
	}
	all, err := conf.Flink(name)
	if err != nil {
		return nil, usagef("%s: %v", by, err)
	}
	return all, nil
}

// configurations returns the configuration of Flink, if one is named, and the one of
// Hadoop that the environment or Flink's configuration names; an empty one if neither
// does.
func (e *Env) configurations() (flink map[string]string, hadoop *conf.FoundHadoop, err error) {
	if flink, err = e.flinkConf(); err != nil {
		return nil, nil, err
	}
	if hadoop, err = conf.HadoopOf(e.Getenv, flink); err != nil {
		return nil, nil, usagef("%v", err)
	}
	if hadoop == nil {
		hadoop = &conf.FoundHadoop{}
	}
	return flink, hadoop, nil
}
