package conf_test

import (
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/conf"
)

func write(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestFlink(t *testing.T) {
	const nested = `# comment
s3:
  access-key: AKIA  # of the job
  secret-key: "a/b+c#d"
  path.style.access: true
  bucket:
    other:
      region: eu-west-1
s3.endpoint: http://minio:9000
env.java.opts.all: "--add-exports=java.base/sun.net.util=ALL-UNNAMED -Dx=1"
state.empty:
pipeline.jars: [a.jar, b.jar]
`
	dir := t.TempDir()
	write(t, dir, "flink-conf.yaml", "s3.access-key: old\nbroken\n  s3.secret-key:  x: y   # why\n: no\n#s3.region: no\ns3.none:\n")
	got, err := conf.Flink(dir)
	if want := map[string]string{"s3.access-key": "old", "s3.secret-key": "x: y"}; err != nil || !maps.Equal(got, want) {
		t.Errorf("%v, %v, expected %v", got, err, want)
	}
	write(t, dir, "config.yaml", nested) // wins
	want := map[string]string{
		"s3.access-key": "AKIA", "s3.secret-key": "a/b+c#d", "s3.path.style.access": "true", "s3.bucket.other.region": "eu-west-1", "s3.endpoint": "http://minio:9000",
		"env.java.opts.all": "--add-exports=java.base/sun.net.util=ALL-UNNAMED -Dx=1", "pipeline.jars": "a.jar;b.jar",
	}
	for _, name := range []string{dir, filepath.Join(dir, "config.yaml")} {
		if got, err = conf.Flink(name); err != nil || !maps.Equal(got, want) {
			t.Errorf("%s: %v, %v, expected %v", name, got, err, want)
		}
	}
}

func TestFlinkWrong(t *testing.T) {
	for text, expected := range map[string]string{
		"s3:\n  secret-key: [hunter2": "expected YAML",
		"hunter2":                     "expected keys and values",
		"a: &x {b: *x}":               "nested too deeply",
	} {
		path := write(t, t.TempDir(), "config.yaml", text)
		if _, err := conf.Flink(path); err == nil || !strings.Contains(err.Error(), expected) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%q: %v, expected %q", text, err, expected)
		}
	}
	if _, err := conf.Flink(t.TempDir()); err == nil || !strings.Contains(err.Error(), "flink-conf.yaml") {
		t.Errorf("an empty directory: %v", err)
	}
	if _, err := conf.Flink(filepath.Join(t.TempDir(), "none")); err == nil {
		t.Error("a missing file is read")
	}
}
