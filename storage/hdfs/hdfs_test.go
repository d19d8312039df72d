package hdfs_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/hdfs"
)

var ctx = context.Background()

// open returns a store for a server.
func open(t testing.TB, h *servertest.HDFS, o hdfs.Options) *hdfs.Store {
	t.Helper()
	if o.Getenv == nil {
		o.Getenv = func(name string) string {
			if name == "HADOOP_CONF_DIR" {
				return h.Conf
			}
			return ""
		}
	}
	s, err := hdfs.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestServer(t *testing.T) {
	testenv.Long(t, "starts a NameNode and a DataNode")
	h := servertest.StartHDFS(t, t.TempDir(), servertest.HDFSOptions{})
	s := open(t, h, hdfs.Options{})
	t.Run("Suite", func(t *testing.T) {
		var n atomic.Int64
		storetest.Run(t, func(t *testing.T) (storage.Storage, string) {
			return s, fmt.Sprintf("%s/suite/%d/", h.URI, n.Add(1))
		})
	})
	_ = os.Getenv
	_ = errors.Is
	_ = strings.Contains
	_ = time.Now
}
