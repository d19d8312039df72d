package s3_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/s3"
)

// options reach a server of the test.
func options(server *servertest.S3Server) s3.Options {
	env := server.Env()
	return s3.Options{Getenv: func(name string) string { return env[name] }, Pause: time.Millisecond}
}

func open(t testing.TB, o s3.Options) *s3.Store {
	t.Helper()
	s, err := s3.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestS3(t *testing.T) {
	server := servertest.VersityGW(t)
	t.Run("Suite", func(t *testing.T) {
		s, bucket := open(t, options(server)), server.Bucket(t)
		var n atomic.Int64
		storetest.Run(t, func(t *testing.T) (storage.Storage, string) {
			return s, fmt.Sprintf("s3://%s/t%d/", bucket, n.Add(1))
		})
	})
	_ = context.Background
}
