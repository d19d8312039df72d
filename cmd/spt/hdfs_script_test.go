package main

import (
	"fmt"
	"path/filepath"
	"sync/atomic"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// configuredSecret is a secret in the configuration of Hadoop.
const configuredSecret = "secret-of-another-store"

// TestHDFSScripts runs testdata/hdfs against a NameNode and a DataNode. Each script has a
// directory of its own, $HDFS, which is $VIEW by the mount table of a viewfs:. In addition to
// the verbs of TestScripts there is
//
//	hdfs ARG…   run hdfs dfs
//
// No output may have a secret of the configuration.
func TestHDFSScripts(t *testing.T) {
	testenv.Long(t, "starts a NameNode and a DataNode")
	server := servertest.StartHDFS(t, t.TempDir(), servertest.HDFSOptions{Core: map[string]string{
		"fs.viewfs.mounttable.cluster.link./view": "hdfs:///scripts",
		"fs.s3a.secret.key":                       configuredSecret,
	}})
	fixtures, err := filepath.Abs("../../testdata/savepoints")
	if err != nil {
		t.Fatal(err)
	}
	p := scriptParams("testdata/hdfs", fixtures)
	setup := p.Setup
	var n atomic.Int64
	p.Setup = func(e *testscript.Env) error {
		i := n.Add(1)
		e.Setenv("HADOOP_CONF_DIR", server.Conf)
		e.Setenv("NAMENODE", server.URI)
		e.Setenv("HDFS", fmt.Sprintf("%s/scripts/%d", server.URI, i))
		e.Setenv("VIEW", fmt.Sprintf("viewfs://cluster/view/%d", i))
		e.Setenv("NOWHERE", fmt.Sprintf("hdfs://127.0.0.1:%d", servertest.Port(t)))
		return setup(e)
	}
	p.Cmds["hdfs"] = func(ts *testscript.TestScript, _ bool, args []string) { ts.Check(server.Shell(args...)) }
	withoutSecrets(t, p, "no mount table other", configuredSecret)
}
