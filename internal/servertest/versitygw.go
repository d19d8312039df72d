package servertest

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// S3Server is a running versitygw: a server of the S3 protocol that keeps objects as
// files. It checks signatures, the clock of requests and their region.
type S3Server struct {
	Endpoint  string // "http://127.0.0.1:7070"
	AccessKey string
	SecretKey string
	Region    string
	Dir       string // of its buckets, each a directory; objects are files below it

	t       testing.TB
	binary  string
	port    int
	mu      sync.Mutex
	process *Process
	buckets atomic.Int64
}

// VersityGW starts a versitygw that is stopped when the test ends. Call it in a parent
// test, and share it with its subtests.
func VersityGW(t testing.TB) *S3Server {
	t.Helper()
	base := t.TempDir()
	s := &S3Server{
		AccessKey: "AKIDSPTTESTACCESSKEY", SecretKey: "spt+test/secret-key-7d1f", Region: "us-east-1",
		Dir: filepath.Join(base, "buckets"),
		t:   t, binary: Tool(t, "github.com/versity/versitygw/cmd/versitygw"), port: Port(t),
	}
	s.Endpoint = fmt.Sprintf("http://127.0.0.1:%d", s.port)
	for _, dir := range []string{s.Dir, filepath.Join(base, "iam")} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	s.Restart()
	return s
}

// Restart starts the server after Kill, on the same port and with the same data.
func (s *S3Server) Restart() {
	s.t.Helper()
	cmd := exec.Command(s.binary, "-q", "--keep-alive", "--region", s.Region, "--health", "/health", "--virtual-domain", "s3.localhost",
		"--port", fmt.Sprintf("127.0.0.1:%d", s.port), "--iam-dir", filepath.Join(filepath.Dir(s.Dir), "iam"), "posix", s.Dir)
	cmd.Dir = filepath.Dir(s.Dir)
	cmd.Env = append(os.Environ(), "ROOT_ACCESS_KEY="+s.AccessKey, "ROOT_SECRET_KEY="+s.SecretKey)
	p := Start(s.t, cmd, func() error { return healthy(s.Endpoint + "/health") })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.process = p
}

// Kill ends the server as a crash would.
func (s *S3Server) Kill() { s.running().Kill() }

// Log returns what the server printed since it was started last.
func (s *S3Server) Log() string { return s.running().Log() }

func (s *S3Server) running() *Process {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.process
}

// Bucket creates an empty bucket and returns its name.
func (s *S3Server) Bucket(t testing.TB) string {
	t.Helper()
	name := fmt.Sprintf("bucket-%d", s.buckets.Add(1))
	if err := os.Mkdir(filepath.Join(s.Dir, name), 0o755); err != nil {
		t.Fatal(err)
	}
	return name
}

// User creates a user that may do nothing until it is permitted, and returns its
// secret key.
func (s *S3Server) User(t testing.TB, accessKey string) string {
	t.Helper()
	secret := "secret-of-" + accessKey
	if _, err := run(s.Dir, nil, s.binary, "admin", "-a", s.AccessKey, "-s", s.SecretKey, "-er", s.Endpoint,
		"create-user", "--access", accessKey, "--secret", secret, "--role", "user"); err != nil {
		t.Fatal(err)
	}
	return secret
}

// Env returns the environment variables by which a program of the test reaches the
// server.
func (s *S3Server) Env() map[string]string {
	return map[string]string{
		"AWS_ACCESS_KEY_ID": s.AccessKey, "AWS_SECRET_ACCESS_KEY": s.SecretKey, "AWS_REGION": s.Region,
		"AWS_ENDPOINT_URL_S3": s.Endpoint, "AWS_EC2_METADATA_DISABLED": "true",
	}
}

// healthy asks whether a server answers a GET with 200.
func healthy(url string) error {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return err
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		return err
	}
	if err := res.Body.Close(); err != nil {
		return err
	}
	if res.StatusCode != http.StatusOK {
		return fmt.Errorf("%s: %s", url, res.Status)
	}
	return nil
}
