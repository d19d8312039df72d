package servertest

import (
	"bytes"
	"fmt"
	"net/http"
	"os/exec"
	"strings"
	"testing"
)

// FakeGCS is a server that acts like Google Cloud Storage.
type FakeGCS struct {
	*Process
	URL string // "http://127.0.0.1:1234"
}

// StartFakeGCS starts fake-gcs-server, with everything in memory. It accepts requests
// through any port of 127.0.0.1, so also through a proxy.
//
// It is not Google's in these respects: it accepts any credentials; reads ignore
// preconditions; a rewrite is done in one request and ignores preconditions; of a
// resumable upload, it appends whatever comes, completes the object when it is asked
// how much it has, and forgets the session then; an upload that is cancelled stays.
func StartFakeGCS(t testing.TB) *FakeGCS {
	t.Helper()
	binary := Tool(t, "github.com/fsouza/fake-gcs-server")
	port := Port(t)
	url := fmt.Sprintf("http://127.0.0.1:%d", port)
	cmd := exec.Command(binary, "-scheme", "http", "-host", "127.0.0.1", "-port", fmt.Sprint(port), "-public-host", "127.0.0.1", "-backend", "memory", "-data", "", "-log-level", "warn")
	cmd.Dir = t.TempDir()
	p := Start(t, cmd, func() error {
		resp, err := http.Get(url + "/_internal/healthcheck")
		if err != nil {
			return err
		}
		defer resp.Body.Close() //nolint:errcheck // nothing was written
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	})
	return &FakeGCS{p, url}
}

// Bucket creates a bucket.
func (f *FakeGCS) Bucket(t testing.TB, name string) {
	t.Helper()
	resp, err := http.Post(f.URL+"/storage/v1/b?project=test", "application/json", strings.NewReader(fmt.Sprintf(`{"name":%q}`, name)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	if resp.StatusCode != http.StatusOK {
		var text bytes.Buffer
		_, _ = text.ReadFrom(resp.Body)
		t.Fatalf("bucket %s: status %d: %s", name, resp.StatusCode, &text)
	}
}
