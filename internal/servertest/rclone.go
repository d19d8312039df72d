package servertest

import (
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// Rclone returns the path of rclone: another implementation of the S3 protocol, as a
// server and as a client.
func Rclone(t testing.TB) string {
	t.Helper()
	return toolOf(t, "rclone", "github.com/rclone/rclone")
}

// RcloneBucket is the bucket of RcloneS3, which does not notice new ones.
const RcloneBucket = "shared"

// RcloneS3 starts "rclone serve s3", a second server of the S3 protocol: a client that
// was tested with one server only knows that one. It is stopped when the test ends.
func RcloneS3(t testing.TB) *S3Server {
	t.Helper()
	base := t.TempDir()
	s := &S3Server{
		AccessKey: "AKIDSPTRCLONEKEY", SecretKey: "spt+test/rclone-secret-2c9a", Region: "us-east-1",
		Dir: filepath.Join(base, "buckets"),
		t:   t, binary: Rclone(t), port: Port(t),
	}
	if err := os.MkdirAll(filepath.Join(s.Dir, RcloneBucket), 0o755); err != nil {
		t.Fatal(err)
	}
	address := fmt.Sprintf("127.0.0.1:%d", s.port)
	s.Endpoint = "http://" + address
	cmd := exec.Command(s.binary, "serve", "s3", "--config", filepath.Join(base, "none.conf"), "--cache-dir", filepath.Join(base, "cache"),
		"--addr", address, "--auth-key", s.AccessKey+","+s.SecretKey, s.Dir)
	cmd.Dir = base
	s.process = Start(t, cmd, func() error {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	})
	return s
}
