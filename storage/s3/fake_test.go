package s3_test

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/s3"
)

// fake answers requests as services do that the server of the tests is not.
func fake(t *testing.T, answer http.HandlerFunc) s3.Options {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	env := map[string]string{"AWS_ACCESS_KEY_ID": "AKIDFAKE", "AWS_SECRET_ACCESS_KEY": "fake-secret-key", "AWS_ENDPOINT_URL": server.URL}
	return s3.Options{Getenv: func(name string) string { return env[name] }, Pause: time.Millisecond, Retries: 3}
}

func refuse(w http.ResponseWriter, status int, code, more string) {
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	fmt.Fprintf(w, `<?xml version="1.0" encoding="UTF-8"?><Error><Code>%s</Code><Message>Text of the service.</Message>%s</Error>`, code, more)
}

func object(w http.ResponseWriter, data string) {
	w.Header().Set("ETag", `"0f343b0931126a20f133d67c2b018a3b"`)
	w.Header().Set("Last-Modified", "Mon, 30 Nov 2026 10:00:00 GMT")
	io.WriteString(w, data) //nolint:errcheck // of a test
}

// Both times of a clock that is wrong are in the error.
func TestSkewed(t *testing.T) {
	s := open(t, fake(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusForbidden, "RequestTimeTooSkewed", "<RequestTime>20261130T120000Z</RequestTime><ServerTime>2026-11-30T12:20:00Z</ServerTime>")
	}))
	_, err := s.Stat(ctx, "s3://bucket/x")
	var of *storage.Error
	if !errors.As(err, &of) || of.Setting != storage.SettingClock || !strings.Contains(err.Error(), "20261130T120000Z") || !strings.Contains(err.Error(), "2026-11-30T12:20:00Z") {
		t.Errorf("%v", err)
	}
}

func TestExpired(t *testing.T) {
	n := 0
	o := fake(t, func(w http.ResponseWriter, _ *http.Request) {
		n++
		refuse(w, http.StatusBadRequest, "ExpiredToken", "")
	})
	_, err := open(t, o).Stat(ctx, "s3://bucket/x")
	var of *storage.Error
	if !errors.Is(err, storage.ErrPermission) || !errors.As(err, &of) || of.Setting != storage.SettingCredentials || !strings.Contains(of.Hint, "expired") || n != 1 {
		t.Errorf("%v after %d requests", err, n)
	}
}

// Credentials of a program are asked for again when they have expired.
func TestRenewed(t *testing.T) {
	dir := t.TempDir()
	count := filepath.Join(dir, "count")
	script := fmt.Sprintf(`#!/bin/sh
echo x >>%s
echo '{"Version":1,"AccessKeyId":"AKID'$(wc -l <%s | tr -d ' ')'","SecretAccessKey":"secret-of-program","SessionToken":"token-of-program"}'
`, count, count)
	program := filepath.Join(dir, "program")
	if err := os.WriteFile(program, []byte(script), 0o700); err != nil {
		t.Fatal(err)
	}
	config := filepath.Join(dir, "config")
	if err := os.WriteFile(config, []byte("[profile p]\ncredential_process = sh "+program+"\nregion = eu-west-3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var keys []string
	o := fake(t, func(w http.ResponseWriter, r *http.Request) {
		_, key, _ := strings.Cut(r.Header.Get("Authorization"), "Credential=")
		key, _, _ = strings.Cut(key, "/s3/")
		keys = append(keys, key)
		if strings.HasPrefix(key, "AKID1/") {
			refuse(w, http.StatusBadRequest, "ExpiredToken", "")
			return
		}
		if r.URL.Query().Has("list-type") {
			io.WriteString(w, `<ListBucketResult></ListBucketResult>`) //nolint:errcheck // of a test
			return
		}
		object(w, "x")
	})
	get := o.Getenv
	o.Getenv = func(name string) string {
		switch name {
		case "AWS_CONFIG_FILE":
			return config
		case "AWS_ENDPOINT_URL":
			return get(name)
		}
		return ""
	}
	o.Profile = "p"
	s := open(t, o)
	if _, err := s.Stat(ctx, "s3://bucket/x"); err != nil {
		t.Fatal(err)
	}
	day := time.Now().UTC().Format("20060102")
	if expected := []string{"AKID1/" + day + "/eu-west-3", "AKID2/" + day + "/eu-west-3"}; !slices.Equal(keys, expected) {
		t.Errorf("keys %q, expected %q", keys, expected)
	}
	a, err := s.Access(ctx, "s3://bucket/")
	if err != nil || a.Credentials != "profile p of "+config+" (credential_process)" || a.Identity != "access key AKID2" {
		t.Errorf("%+v, %v", a, err)
	}
}

// A redirect to another region is followed once.
func TestRedirected(t *testing.T) {
	var regions []string
	here := "ap-south-1"
	o := fake(t, func(w http.ResponseWriter, r *http.Request) {
		for _, region := range []string{"us-east-1", "ap-south-1", "eu-north-1"} {
			if strings.Contains(r.Header.Get("Authorization"), "/"+region+"/") {
				regions = append(regions, region)
				if region != here {
					w.Header().Set("X-Amz-Bucket-Region", map[string]string{"us-east-1": "ap-south-1", "ap-south-1": "eu-north-1"}[region])
					refuse(w, http.StatusMovedPermanently, "PermanentRedirect", "<Endpoint>elsewhere</Endpoint>")
					return
				}
			}
		}
		object(w, "x")
	})
	s := open(t, o)
	for range 2 {
		if _, err := s.Stat(ctx, "s3://bucket/x"); err != nil {
			t.Fatal(err)
		}
	}
	if expected := []string{"us-east-1", "ap-south-1", "ap-south-1"}; !slices.Equal(regions, expected) {
		t.Errorf("regions %q, expected %q", regions, expected)
	}
	here, regions = "none", nil
	_, err := open(t, o).Stat(ctx, "s3://bucket/x")
	var of *storage.Error
	if !errors.As(err, &of) || of.Setting != storage.SettingRegion || !strings.Contains(of.Hint, `"eu-north-1"`) || len(regions) != 2 {
		t.Errorf("%v, %+v, %q", err, of, regions)
	}
}

// services keep objects, as far as a writer needs them.
type service struct {
	mu         sync.Mutex
	objects    map[string]string // nonces
	requests   []string
	conditions int  // the status of conditional writes; 0: they are ignored
	failCopies bool // in the body of an answer of 200
}

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	io.Copy(io.Discard, r.Body) //nolint:errcheck // of a test
	q := r.URL.Query()
	nonce, there := s.objects[r.URL.Path]
	conditional := r.Header.Get("If-None-Match") != "" || r.Header.Get("If-Match") != ""
	s.requests = append(s.requests, r.Method+" "+r.URL.Path+map[bool]string{true: " conditional"}[conditional])
	if conditional && r.Method != http.MethodGet && r.Method != http.MethodHead && s.conditions != 0 {
		refuse(w, s.conditions, map[int]string{501: "NotImplemented", 409: "ConditionalRequestConflict"}[s.conditions], "")
		return
	}
	switch {
	case r.Method == http.MethodDelete && q.Has("uploadId"):
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case r.Method == http.MethodPost && q.Has("uploads"):
		s.objects["upload "+r.URL.Path] = r.Header.Get("X-Amz-Meta-Spt-Write")
		io.WriteString(w, `<InitiateMultipartUploadResult><UploadId>u1</UploadId></InitiateMultipartUploadResult>`) //nolint:errcheck // of a test
	case r.Method == http.MethodPost:
		s.objects[r.URL.Path] = s.objects["upload "+r.URL.Path]
		io.WriteString(w, `<CompleteMultipartUploadResult><Bucket>b</Bucket><ETag>"e"</ETag></CompleteMultipartUploadResult>`) //nolint:errcheck // of a test
	case r.Method == http.MethodPut && r.Header.Get("X-Amz-Copy-Source") != "":
		if s.failCopies {
			io.WriteString(w, `<?xml version="1.0"?><Error><Code>InternalError</Code><Message>We encountered an internal error.</Message></Error>`) //nolint:errcheck // of a test
			return
		}
		if !q.Has("uploadId") {
			s.objects[r.URL.Path] = r.Header.Get("X-Amz-Meta-Spt-Write")
		}
		io.WriteString(w, `<CopyObjectResult><ETag>"e"</ETag><LastModified>2026-11-30T10:00:00.000Z</LastModified></CopyObjectResult>`) //nolint:errcheck // of a test
	case r.Method == http.MethodPut:
		if !q.Has("uploadId") {
			s.objects[r.URL.Path] = r.Header.Get("X-Amz-Meta-Spt-Write")
		}
		w.Header().Set("ETag", `"e"`)
	case !there && r.Method == http.MethodHead:
		w.WriteHeader(http.StatusNotFound)
	case !there:
		refuse(w, http.StatusNotFound, "NoSuchKey", "")
	default:
		w.Header().Set("X-Amz-Meta-Spt-Write", nonce)
		object(w, "x")
	}
}

// seen returns the requests since the last call.
func (s *service) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	r := s.requests
	s.requests = nil
	return r
}

// A service that refuses conditional writes: nothing is written, and the caller can
// choose to look first.
func TestUnconditionalService(t *testing.T) {
	service := &service{objects: map[string]string{}, conditions: http.StatusNotImplemented}
	o := fake(t, service.ServeHTTP)
	o.PartSize = part
	s := open(t, o)
	for _, data := range [][]byte{[]byte("small"), noise(part + 1)} {
		_, err := write(s, "s3://bucket/x", data, storage.CreateOptions{IfAbsent: true})
		var of *storage.Error
		if !errors.Is(err, storage.ErrUnsupported) || !errors.As(err, &of) || of.Setting != storage.SettingConditions || of.Hint == "" {
			t.Errorf("%v, %+v", err, of)
		}
	}
	if _, there := service.objects["/bucket/x"]; there {
		t.Error("it was written")
	}
	if r := service.seen(); !slices.Contains(r, "DELETE /bucket/x") {
		t.Errorf("the upload was not aborted: %q", r)
	}
	o.LookFirst = true
	s = open(t, o)
	if s.AtomicConditions("s3://bucket/x") || !open(t, s3.Options{}).AtomicConditions("s3://bucket/x") {
		t.Error("AtomicConditions")
	}
	for i, data := range [][]byte{[]byte("small"), noise(part + 1)} {
		name := fmt.Sprintf("s3://bucket/look%d", i)
		if _, err := write(s, name, data, storage.CreateOptions{IfAbsent: true}); err != nil {
			t.Fatal(err)
		}
		if _, err := write(s, name, data, storage.CreateOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
			t.Errorf("%v, expected ErrExist", err)
		}
		if _, err := write(s, name, data, storage.CreateOptions{Replace: "another"}); !errors.Is(err, storage.ErrChanged) {
			t.Errorf("%v, expected ErrChanged", err)
		}
	}
	for _, r := range service.seen() {
		if strings.HasSuffix(r, "conditional") {
			t.Errorf("%s", r)
		}
	}
}

// A service that ignores the condition of a copy: the conditional request is another.
func TestUnconditionalCopies(t *testing.T) {
	service := &service{objects: map[string]string{"/bucket/src": ""}}
	s := open(t, fake(t, service.ServeHTTP))
	info := storage.Info{Size: 1, Version: "e"}
	for i := range 2 {
		service.seen()
		if err := copyTo(s, fmt.Sprintf("s3://bucket/x%d", i), "s3://bucket/src", info, storage.CreateOptions{IfAbsent: true, Size: 1}); err != nil {
			t.Fatal(err)
		}
		all := service.seen()
		if expected := []string{"POST /bucket/x%d", "PUT /bucket/x%d", "POST /bucket/x%d conditional"}; i == 1 {
			for i := range expected {
				expected[i] = fmt.Sprintf(expected[i], 1)
			}
			if !slices.Equal(all, expected) {
				t.Errorf("%q, expected %q", all, expected)
			}
		}
	}
}

// A copy can fail in the body of an answer of 200.
func TestCopyFails(t *testing.T) {
	service := &service{objects: map[string]string{"/bucket/src": ""}, failCopies: true}
	s := open(t, fake(t, service.ServeHTTP))
	for _, o := range []storage.CreateOptions{{Size: 1}, {Size: 1, IfAbsent: true}} {
		if err := copyTo(s, "s3://bucket/x", "s3://bucket/src", storage.Info{Size: 1, Version: "e"}, o); !errors.Is(err, storage.ErrUnavailable) || !strings.Contains(err.Error(), "InternalError") {
			t.Errorf("%v, expected ErrUnavailable", err)
		}
	}
	if _, there := service.objects["/bucket/x"]; there {
		t.Error("it was written")
	}
}

// 409 is an answer to a conditional write that another one disturbs.
func TestConflict(t *testing.T) {
	service := &service{objects: map[string]string{}, conditions: http.StatusConflict}
	s := open(t, fake(t, service.ServeHTTP))
	if _, err := write(s, "s3://bucket/x", []byte("x"), storage.CreateOptions{IfAbsent: true}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("%v, expected ErrUnavailable", err)
	}
	service.objects["/bucket/x"] = "of another"
	if _, err := write(s, "s3://bucket/x", []byte("x"), storage.CreateOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
		t.Errorf("%v, expected ErrExist", err)
	}
}

// Alibaba Cloud OSS: addresses by host, no conditions.
func TestOSS(t *testing.T) {
	service := &service{objects: map[string]string{}, conditions: http.StatusNotImplemented}
	var hosts []string
	o := fake(t, func(w http.ResponseWriter, r *http.Request) {
		hosts = append(hosts, r.Host)
		service.ServeHTTP(w, r)
	})
	server := o.Getenv("AWS_ENDPOINT_URL")
	_, address, _ := strings.Cut(server, "//")
	o.Getenv = func(name string) string {
		return map[string]string{"OSS_ACCESS_KEY_ID": "LTAIFAKE", "OSS_ACCESS_KEY_SECRET": "fake-oss-secret", "AWS_PROFILE": "ignored"}[name]
	}
	o.OSS = true
	if _, err := open(t, o).Stat(ctx, "oss://bucket/x"); err == nil || !strings.Contains(err.Error(), "endpoint") {
		t.Errorf("without an endpoint: %v", err)
	}
	o.Flink = map[string]string{"fs.oss.endpoint": "http://oss-eu-central-1.aliyuncs.com"}
	o.Transport = &http.Transport{Proxy: nil, DialContext: dialOnly(address)}
	s := open(t, o)
	store, name, err := s.Resolve(ctx, "oss://bucket/a/_metadata")
	if err != nil || name != "oss://bucket/a/_metadata" {
		t.Fatal(name, err)
	}
	if _, err := write(store, name, []byte("x"), storage.CreateOptions{IfAbsent: true}); err != nil {
		t.Fatal(err)
	}
	if _, err := write(store, name, []byte("x"), storage.CreateOptions{IfAbsent: true}); !errors.Is(err, storage.ErrExist) {
		t.Errorf("%v, expected ErrExist", err)
	}
	for _, h := range hosts {
		if h != "bucket.oss-eu-central-1.aliyuncs.com" {
			t.Errorf("host %s", h)
		}
	}
	a, err := s.Access(ctx, name)
	if err != nil || a.Service != "Alibaba Cloud OSS" || a.Region != "oss-eu-central-1" || a.Credentials != "OSS_ACCESS_KEY_ID in the environment" || s.AtomicConditions(name) {
		t.Errorf("%+v, %v", a, err)
	}
}

// Objects are encrypted as the configuration says, whichever way they are written.
func TestEncryption(t *testing.T) {
	service := &service{objects: map[string]string{"/bucket/src": ""}}
	var kinds, keys []string
	o := fake(t, func(w http.ResponseWriter, r *http.Request) {
		if q := r.URL.Query(); r.Method == http.MethodPut && !q.Has("uploadId") || q.Has("uploads") {
			kinds = append(kinds, r.Header.Get("X-Amz-Server-Side-Encryption"))
			keys = append(keys, r.Header.Get("X-Amz-Server-Side-Encryption-Aws-Kms-Key-Id"))
		}
		service.ServeHTTP(w, r)
	})
	o.PartSize = part
	for _, c := range []struct {
		conf      map[string]string
		kind, key string
	}{
		{nil, "", ""},
		{map[string]string{"s3.sse.type": "none"}, "", ""},
		{map[string]string{"s3.sse.type": "sse-s3"}, "AES256", ""},
		{map[string]string{"s3.sse.type": "sse-kms", "s3.sse.kms.key-id": "alias/k"}, "aws:kms", "alias/k"},
		{map[string]string{"fs.s3a.encryption.algorithm": "SSE-KMS", "fs.s3a.encryption.key": "arn"}, "aws:kms", "arn"},
	} {
		kinds, keys, o.Flink = nil, nil, c.conf
		s := open(t, o)
		for i, data := range [][]byte{[]byte("small"), noise(part + 1)} {
			if _, err := write(s, fmt.Sprintf("s3://bucket/x%d", i), data, storage.CreateOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		if err := copyTo(s, "s3://bucket/y", "s3://bucket/src", storage.Info{Size: 1, Version: "e"}, storage.CreateOptions{Size: 1}); err != nil {
			t.Fatal(err)
		}
		if expected := []string{c.kind, c.kind, c.kind}; !slices.Equal(kinds, expected) || !slices.Equal(keys, []string{c.key, c.key, c.key}) {
			t.Errorf("%v: %q, %q, expected %q, %q", c.conf, kinds, keys, c.kind, c.key)
		}
	}
	o.Flink = map[string]string{"s3.sse.type": "sse-c"}
	s := open(t, o)
	if _, err := s.Stat(ctx, "s3://bucket/src"); err != nil {
		t.Errorf("reading: %v", err)
	}
	if _, err := s.Create(ctx, "s3://bucket/x", storage.CreateOptions{}); !errors.Is(err, storage.ErrUnsupported) || !strings.Contains(err.Error(), `"sse-c"`) {
		t.Errorf("%v, expected ErrUnsupported", err)
	}
}
