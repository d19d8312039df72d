package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/storage/s3"
)

// wrongSecret is a secret key that belongs to nobody.
const wrongSecret = "wrong/secret+key-of-the-scripts"

// TestS3Scripts runs testdata/s3 against a server of S3: each script has a bucket of
// its own, $BUCKET, whose objects are files in $DIR. The server is also at
// $UNCONDITIONAL, where it refuses conditional writes. In addition to the verbs of
// TestScripts there are
//
//	mkunion N DST    make a savepoint of N bytes of union state, all in its _metadata
//	killed spt …     run spt, and kill it when it has sent the parts of an object and before it ends them
//
// No output may have a secret.
func TestS3Scripts(t *testing.T) {
	server := servertest.VersityGW(t)
	stalling := stall(t, server.Endpoint)
	refusing := between(t, server.Endpoint, func(w http.ResponseWriter, r *http.Request) bool {
		if r.Header.Get("If-None-Match") == "" {
			return false
		}
		w.WriteHeader(http.StatusNotImplemented)
		io.WriteString(w, `<Error><Code>NotImplemented</Code><Message>A header you provided implies functionality that is not implemented.</Message></Error>`)
		return true
	})
	fixtures, err := filepath.Abs("../../testdata/savepoints")
	if err != nil {
		t.Fatal(err)
	}
	p := scriptParams("testdata/s3", fixtures)
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		bucket := server.Bucket(t)
		for name, value := range server.Env() {
			e.Setenv(name, value)
		}
		e.Setenv("HOME", e.WorkDir)
		e.Setenv("BUCKET", bucket)
		e.Setenv("DIR", filepath.Join(server.Dir, bucket))
		e.Setenv("ENDPOINT", server.Endpoint)
		e.Setenv("UNCONDITIONAL", refusing)
		e.Setenv("WRONG_SECRET", wrongSecret)
		e.Setenv("NOWHERE", fmt.Sprintf("http://127.0.0.1:%d", servertest.Port(t)))
		return setup(e)
	}
	p.Cmds["mkunion"] = func(ts *testscript.TestScript, _ bool, args []string) {
		dir := ts.MkAbs(args[1])
		ts.Check(os.MkdirAll(dir, 0o777))
		f, err := os.Create(filepath.Join(dir, "_metadata"))
		ts.Check(err)
		ts.Check(sptest.WriteUnion(f, sptest.UnionOfSize(int64(number(ts, args[0], 1<<30)))))
		ts.Check(f.Close())
	}
	p.Cmds["killed"] = func(ts *testscript.TestScript, _ bool, args []string) { killed(ts, stalling, args) }
	withoutSecrets(t, p, "SignatureDoesNotMatch", server.SecretKey, wrongSecret)
}

// killed runs spt against a server that never answers the request which makes an
// object of its parts.
func killed(ts *testscript.TestScript, endpoint string, args []string) {
	if len(args) < 1 || args[0] != "spt" {
		ts.Fatalf("usage: killed spt …")
	}
	s, err := s3.New(s3.Options{Getenv: ts.Getenv})
	ts.Check(err)
	cmd, stderr := start(ts, args)
	for _, name := range []string{"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_REGION"} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	cmd.Env = append(cmd.Env, "AWS_ENDPOINT_URL_S3="+endpoint)
	ts.Check(cmd.Start())
	for deadline := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		var sent int64
		for l, err := range s.Leftovers(context.Background(), "s3://"+ts.Getenv("BUCKET")+"/", 100) {
			ts.Check(err)
			sent += l.Bytes
		}
		if sent > 0 {
			break
		}
		if time.Now().After(deadline) {
			_ = cmd.Process.Kill()
			ts.Fatalf("no part was sent; %s", stderr)
		}
	}
	ts.Check(cmd.Process.Kill())
	_ = cmd.Wait() // killed
}

// stall starts a proxy that forwards all but the requests that make an object of its
// parts, and returns its URL.
func stall(t *testing.T, target string) string {
	t.Helper()
	over := make(chan struct{})
	url := between(t, target, func(_ http.ResponseWriter, r *http.Request) bool {
		if r.Method != http.MethodPost || !r.URL.Query().Has("uploadId") {
			return false
		}
		select {
		case <-r.Context().Done():
		case <-over:
		}
		panic(http.ErrAbortHandler)
	})
	t.Cleanup(func() { close(over) }) // before the proxy waits for its requests
	return url
}

// between starts a proxy that forwards what answer does not answer, and returns its
// URL.
func between(t *testing.T, target string, answer func(http.ResponseWriter, *http.Request) bool) string {
	t.Helper()
	u, err := url.Parse(target)
	if err != nil {
		t.Fatal(err)
	}
	forward := &httputil.ReverseProxy{
		Rewrite:      func(r *httputil.ProxyRequest) { r.Out.URL.Scheme, r.Out.URL.Host = u.Scheme, u.Host },
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !answer(w, r) {
			forward.ServeHTTP(w, r)
		}
	}))
	t.Cleanup(server.Close)
	return server.URL
}
