package s3_test

import (
	"fmt"
	"testing"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/s3"
)

// TestSecondServer runs the suite on another implementation of the protocol.
func TestSecondServer(t *testing.T) {
	server := servertest.RcloneS3(t)
	env := server.Env()
	store, err := s3.New(s3.Options{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	prefixes := 0
	storetest.Run(t, func(*testing.T) (storage.Storage, string) {
		prefixes++
		return store, fmt.Sprintf("s3://%s/dir-%d/", servertest.RcloneBucket, prefixes)
	})
}
