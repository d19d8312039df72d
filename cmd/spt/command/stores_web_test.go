package command

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// webSecret is the password, and a part of the query strings, of these tests.
const webSecret = "SECRET-5ba1"

// webServer serves the snapshots of testdata: below /user for a user with a password,
// below /signed for a query string.
func webServer(t *testing.T) *httptest.Server {
	t.Helper()
	root := filepath.Join(testenv.ModuleRoot(t), "testdata", "savepoints")
	files := http.FileServer(http.Dir(root))
	mux := http.NewServeMux()
	mux.Handle("/user/", http.StripPrefix("/user", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if user, password, _ := r.BasicAuth(); user != "me" || password != webSecret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		if strings.HasSuffix(r.URL.Path, "/") { // no listing
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})))
	mux.Handle("/signed/", http.StripPrefix("/signed", http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Query().Get("sig") != webSecret {
			w.WriteHeader(http.StatusForbidden)
			return
		}
		if info, err := os.Stat(filepath.Join(root, filepath.FromSlash(r.URL.Path))); err != nil || info.IsDir() {
			http.NotFound(w, r)
			return
		}
		files.ServeHTTP(w, r)
	})))
	server := httptest.NewServer(mux)
	t.Cleanup(server.Close)
	return server
}

// Commands read snapshots of a web server, and print no secret of its URLs.
func TestWebServer(t *testing.T) {
	server := webServer(t)
	user := strings.Replace(server.URL, "//", "//me:"+webSecret+"@", 1) + "/user"
	signed := func(name string) string { return server.URL + "/signed/" + name + "?sig=" + webSecret }
	const checkpoint = "/sp-003/000000000000000000000000005b706e/chk-3"
	out := filepath.Join(t.TempDir(), "out")
	for _, c := range []struct {
		code int
		args []string
		says string // in stdout and stderr
	}{
		{exitOK, []string{"inspect", user + "/sp-002"}, "savepoint"},
		{exitOK, []string{"inspect", "-o", "json", user + "/sp-002/_metadata"}, server.URL + `/user/sp-002/_metadata"`},
		{exitOK, []string{"inspect", signed("sp-002/_metadata")}, "savepoint"},
		{exitOK, []string{"inspect", "-o", "json", signed("sp-012.spt")}, server.URL + `/signed/sp-012.spt"`},
		{exitOK, []string{"verify", user + "/sp-002"}, "sound"},
		{exitOK, []string{"verify", signed("sp-012.spt")}, "sound"},
		{exitOK, []string{"check", user + "/sp-009"}, "/user/sp-009: no obstacle"},
		{exitOK, []string{"cat", user + "/sp-002"}, "SourceReaderState"},
		{exitFindings, []string{"diff", signed("sp-012.spt"), signed("sp-013.spt")}, "different"},
		{exitOK, []string{"ls", signed("sp-012.spt")}, "sp-012.spt"},
		{exitUnsupported, []string{"ls", user}, "no listing"},
		{exitOK, []string{"convert", signed("sp-012.spt"), out, "--to", "flink"}, "written"},
		{exitUnsupported, []string{"convert", user + "/sp-009", user + "/out?" + webSecret}, "only read"},
		{exitInput, []string{"inspect", signed("sp-002")}, "address of one file"},
		{exitInput, []string{"inspect", signed("nothing")}, "address of one file"},
		{exitFailed, []string{"inspect", strings.Replace(user, "me:", "you:", 1) + "/sp-002"}, "401"},
		{exitUsage, []string{"merge", user + "/sp-002", "--from", signed("sp-012.spt"), "--operator", "*"}, "merging"},
		{exitOK, []string{"relocate", user + checkpoint, "--map", sp003Base + "=" + user + "/sp-003"}, server.URL + "/user/sp-003"},
		{exitOK, []string{"inspect", user + checkpoint, "--follow", user + "/x", "--map", "file:/x=" + user}, "incremental"},
		{exitInput, []string{"inspect", "--names", signed("uids"), user + "/sp-002"}, "404"},
		{exitUnsupported, []string{"inspect", "https://me:" + webSecret + "/x@host/sp"}, ""},
		{exitUnsupported, []string{"clean", user + "/sp-002"}, ""},
		{exitFindings, []string{"orphans", user + "/"}, "no listing"},
	} {
		code, stdout, stderr := runAll(t, c.args)
		said := stdout + stderr
		if strings.Contains(said, webSecret) || strings.Contains(said, "me:") {
			t.Errorf("%q prints a secret:\n%s", c.args, said)
		}
		if !strings.Contains(said, c.says) {
			t.Errorf("%q: no %q in\n%s", c.args, c.says, said)
		}
		if code != c.code {
			t.Errorf("%q: exit code %d, expected %d\n%s", c.args, code, c.code, said)
		}
	}
	if written, err := os.ReadDir(out); err != nil || !slices.ContainsFunc(written, func(e os.DirEntry) bool { return e.Name() == "_metadata" }) {
		t.Errorf("convert wrote %v, %v", written, err)
	}
}

// A uid may look like a URL: it stays as it is.
func TestWebUIDs(t *testing.T) {
	uid := "https://me:" + webSecret + "@host/x?y"
	if code, stdout, _ := runAll(t, []string{"hash", uid}); code != exitOK || !strings.Contains(stdout, uid) {
		t.Errorf("exit code %d: %s", code, stdout)
	}
}

// A snapshot that is read through HTTP is written as it is read from a disk.
func TestWebConvert(t *testing.T) {
	server := webServer(t)
	user := strings.Replace(server.URL, "//", "//me:"+webSecret+"@", 1) + "/user"
	dir := t.TempDir()
	for _, in := range []string{"sp-002", "sp-009"} {
		var files [2][]byte
		for i, from := range []string{filepath.Join(testenv.ModuleRoot(t), "testdata", "savepoints"), user} {
			out := filepath.Join(dir, in+[]string{"-disk", "-web"}[i]+".spt")
			if code, _, stderr := runAll(t, []string{"convert", from + "/" + in, out, "--to", "spt"}); code != exitOK {
				t.Fatalf("exit code %d: %s", code, stderr)
			}
			var err error
			if files[i], err = os.ReadFile(out); err != nil {
				t.Fatal(err)
			}
		}
		if !bytes.Equal(files[0], files[1]) {
			t.Errorf("%s: %d bytes from the disk, %d other bytes from the web", in, len(files[0]), len(files[1]))
		}
	}
}
