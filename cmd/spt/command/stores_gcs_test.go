package command

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// A savepoint goes to Google Cloud Storage, is read and edited there, and comes back.
func TestGoogleCloudStorage(t *testing.T) {
	server := servertest.StartFakeGCS(t)
	server.Bucket(t, "bucket")
	in := filepath.Join(testenv.ModuleRoot(t), "testdata", "savepoints", "sp-009")
	back := filepath.Join(t.TempDir(), "back")
	for _, c := range []struct {
		code int
		args []string
		says string
	}{
		{exitOK, []string{"convert", in, "gs://bucket/a/sp", "--inline-threshold", "100B"}, "written"},
		{exitUsage, []string{"convert", in, "gs://bucket/a/sp"}, "it exists"},
		{exitOK, []string{"inspect", "gs://bucket/a/sp"}, "savepoint"},
		{exitOK, []string{"verify", "gs://bucket/a/sp/"}, "sound"},
		{exitOK, []string{"ls", "GS://bucket/"}, "bucket/a/sp"},
		{exitOK, []string{"drop", "gs://bucket/a/sp", "gs://bucket/b/sp", "--operator", "lists", "--state", "alpha", "--inline-threshold", "100B"}, "written"},
		{exitFindings, []string{"diff", "gs://bucket/a/sp", "gs://bucket/b/sp"}, "alpha"},
		{exitOK, []string{"verify", "gs://bucket/b/sp"}, "sound"},
		{exitOK, []string{"convert", "gs://bucket/a/sp", "gs://bucket/one.spt"}, "written"},
		{exitOK, []string{"convert", "gs://bucket/one.spt", back}, "written"},
		{exitOK, []string{"diff", in, back}, "same"},
		{exitInput, []string{"inspect", "gs://bucket/nothing"}, "does not exist"},
		{exitInput, []string{"inspect", "gs://missing/sp"}, "does not exist"},
		{exitInput, []string{"ls", "gs://missing/"}, "check the name of the bucket"},
		{exitUnsupported, []string{"inspect", "gs://Bucket/sp"}, "expected gs://BUCKET/KEY"},
	} {
		var out, errs bytes.Buffer
		env := OSEnv()
		env.Stdout, env.Stderr, env.stdoutFile, env.stderrFile = &out, &errs, nil, nil
		env.Getenv = func(name string) string {
			return map[string]string{"STORAGE_EMULATOR_HOST": strings.TrimPrefix(server.URL, "http://")}[name]
		}
		code := Main(t.Context(), c.args, env)
		if said := out.String() + errs.String(); code != c.code || !strings.Contains(said, c.says) {
			t.Errorf("%q: exit code %d, expected %d with %q\n%s", c.args, code, c.code, c.says, said)
		}
	}
}

// No output has the key of the credentials: here one that cannot be used, so that
// commands report it.
func TestGoogleCloudStorageSecrets(t *testing.T) {
	const secret = "c2VjcmV0IG9mIHRoZSBhY2NvdW50"
	file := filepath.Join(t.TempDir(), "credentials.json")
	account := `{"type":"service_account","client_email":"spt@project.iam.gserviceaccount.com","token_uri":"http://127.0.0.1:1/token",` +
		`"private_key":"-----BEGIN PRIVATE KEY-----\n` + secret + `\n-----END PRIVATE KEY-----\n"}`
	if err := os.WriteFile(file, []byte(account), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"inspect gs://bucket/sp", "ls gs://bucket/ -o json", "doctor gs://bucket/sp", "orphans gs://bucket/sp", "verify gs://bucket/sp -o jsonl"} {
		var out, errs bytes.Buffer
		env := OSEnv()
		env.Stdout, env.Stderr, env.stdoutFile, env.stderrFile = &out, &errs, nil, nil
		env.Getenv = func(name string) string {
			return map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file}[name]
		}
		code := Main(t.Context(), strings.Fields(line), env)
		said := out.String() + errs.String()
		if code == exitOK || !strings.Contains(said, "GOOGLE_APPLICATION_CREDENTIALS") || strings.Contains(said, secret) {
			t.Errorf("%s: exit code %d\n%s", line, code, said)
		}
	}
}
