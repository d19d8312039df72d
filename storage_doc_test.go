package spt_test

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/savepoint-tools/spt/cmd/spt/command"
	"github.com/savepoint-tools/spt/internal/servertest"
)

const storageDoc = "docs/storage.md"

// TestStorageExamples runs the examples of docs/storage.md on a server of S3.
func TestStorageExamples(t *testing.T) {
	server := servertest.VersityGW(t)
	if err := os.Mkdir(filepath.Join(server.Dir, "flink"), 0o755); err != nil {
		t.Fatal(err)
	}
	upload(t, server, "testdata/savepoints/sp-007", "flink", "savepoints/sp-007")
	uploadCheckpoints(t, server)
	home := t.TempDir()
	if err := os.Mkdir(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	profile := fmt.Sprintf("[prod]\naws_access_key_id = %s\naws_secret_access_key = %s\nendpoint_url = %s\nregion = us-east-1\n", server.AccessKey, server.SecretKey, server.Endpoint)
	if err := os.WriteFile(filepath.Join(home, ".aws", "credentials"), []byte(profile), 0o600); err != nil {
		t.Fatal(err)
	}
	doc, err := filepath.Abs(storageDoc)
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(doc)
	if err != nil {
		t.Fatal(err)
	}
	env := osEnv(map[string]string{"HOME": home, "USERPROFILE": home, "AWS_EC2_METADATA_DISABLED": "true"})
	hide := strings.NewReplacer(server.Endpoint, "https://s3.example.org", home, "/home/ada", filepath.FromSlash("/.aws/"), "/.aws/", server.AccessKey, "AKIAIOSFODNN7EXAMPLE")
	runBlocks(t, doc, string(text), env, hide)
}

// uploadCheckpoints makes flink/checkpoints: two jobs with the checkpoints that Flink 2.3
// retained. One also has the shared state of an older checkpoint, which is not there.
func uploadCheckpoints(t *testing.T, server *servertest.S3Server) {
	t.Helper()
	const shared = "00000000000000000000000000000015/shared"
	upload(t, server, "testdata/savepoints/flink-2.0-counts-incremental/savepoint/"+shared, "flink", "checkpoints/"+shared)
	for _, fixture := range []string{"flink-2.3-counts-incremental", "flink-2.3-counts-file-merging"} {
		upload(t, server, "testdata/savepoints/"+fixture+"/savepoint", "flink", "checkpoints")
	}
	at := time.Date(2025, 1, 2, 3, 0, 0, 0, time.UTC)
	err := filepath.WalkDir(filepath.Join(server.Dir, "flink", "checkpoints"), func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		return os.Chtimes(file, at, at)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// osEnv returns environments that have these variables and no others.
func osEnv(vars map[string]string) newEnv {
	return func(stdout, stderr io.Writer) *command.Env {
		env := command.OSEnv()
		env.Stdout, env.Stderr = stdout, stderr
		env.Getenv = func(name string) string { return vars[name] }
		return env
	}
}

func client(t *testing.T, server *servertest.S3Server) *minio.Client {
	t.Helper()
	c, err := minio.New(strings.TrimPrefix(server.Endpoint, "http://"), &minio.Options{
		Creds: credentials.NewStaticV4(server.AccessKey, server.SecretKey, ""), Region: server.Region, BucketLookup: minio.BucketLookupPath,
	})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// upload puts the files of a directory into a bucket.
func upload(t *testing.T, server *servertest.S3Server, dir, bucket, prefix string) {
	t.Helper()
	c := client(t, server)
	err := filepath.WalkDir(dir, func(file string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		rel, err := filepath.Rel(dir, file)
		if err == nil {
			_, err = c.FPutObject(context.Background(), bucket, path.Join(prefix, filepath.ToSlash(rel)), file, minio.PutObjectOptions{})
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// TestStoragePolicies: the policies in docs/storage.md are enough, and no more is
// permitted by the one to read.
func TestStoragePolicies(t *testing.T) {
	text, err := os.ReadFile(storageDoc)
	if err != nil {
		t.Fatal(err)
	}
	blocks := regexp.MustCompile("(?s)```json\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	if len(blocks) != 2 {
		t.Fatalf("%d policies, expected one to read and one to write", len(blocks))
	}
	server := servertest.VersityGW(t)
	const user = "operator"
	secret := server.User(t, user)
	vars := server.Env()
	vars["AWS_ACCESS_KEY_ID"], vars["AWS_SECRET_ACCESS_KEY"] = user, secret
	env := osEnv(vars)
	large := t.TempDir()
	if err := os.CopyFS(large, os.DirFS("testdata/savepoints/flink-2.3-keyed-native/savepoint")); err != nil {
		t.Fatal(err)
	}
	for i, reads := range []bool{true, false} {
		// Made by a request, so that it has an ACL: without one, versitygw 1.8.0 answers
		// copies of users with an internal error.
		bucket := fmt.Sprintf("policy-%d", i)
		if err := client(t, server).MakeBucket(context.Background(), bucket, minio.MakeBucketOptions{Region: server.Region}); err != nil {
			t.Fatal(err)
		}
		upload(t, server, "testdata/savepoints/sp-007", bucket, "sp")
		upload(t, server, large, bucket, "jobs/native")
		c := client(t, server)
		if err := c.SetBucketPolicy(context.Background(), bucket, bucketPolicy(t, blocks[i][1], bucket, user)); err != nil {
			t.Fatal(err)
		}
		at := "s3://" + bucket
		for _, line := range []struct {
			args   []string
			writes bool
		}{
			{[]string{"inspect", at + "/sp"}, false},
			{[]string{"verify", at + "/jobs/native"}, false},
			{[]string{"ls", at + "/"}, false},
			{[]string{"orphans", at + "/"}, false},
			{[]string{"doctor", at + "/sp"}, false},
			{[]string{"convert", at + "/jobs/native", at + "/jobs/copy"}, true},
			{[]string{"prune-union", at + "/sp", at + "/pruned", "--keep", "distinct"}, true},
			{[]string{"prune-union", at + "/sp", at + "/pruned.spt", "--keep", "distinct"}, true},
			{[]string{"doctor", at + "/", "--write"}, true},
			{[]string{"clean", at + "/", "--uploads", "--older-than", "0s"}, true},
		} {
			var out bytes.Buffer
			code := command.Main(context.Background(), line.args, env(&out, &out))
			denied := strings.Contains(out.String(), "AccessDenied")
			if line.args[0] == "orphans" && reads {
				// It needs more for unfinished uploads, and says that it did not look.
				if denied = false; !strings.Contains(out.String(), "unfinished uploads were not looked for: AccessDenied") {
					t.Errorf("orphans does not say what it may not look for:\n%s", out.String())
				}
			}
			if denied != (reads && line.writes) || !denied && code != 0 {
				t.Errorf("policy %d: spt %s: exit code %d\n%s", i, strings.Join(line.args, " "), code, out.String())
			}
		}
	}
}

// bucketPolicy makes a policy of a user one of a bucket.
func bucketPolicy(t *testing.T, text, bucket, user string) string {
	t.Helper()
	var policy map[string]any
	if err := json.Unmarshal([]byte(strings.ReplaceAll(text, "BUCKET", bucket)), &policy); err != nil {
		t.Fatal(err)
	}
	for _, s := range policy["Statement"].([]any) {
		s.(map[string]any)["Principal"] = map[string]any{"AWS": user}
	}
	out, err := json.Marshal(policy)
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
