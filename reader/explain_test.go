package reader_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/klauspost/compress/gzip"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

func utf16(p string) string {
	b := []byte("\xff\xfe")
	for _, r := range p {
		b = append(b, byte(r), byte(r>>8))
	}
	return string(b)
}

// The usual mistakes: what is said, what is advised, and of which kind it is.
func TestMistakes(t *testing.T) {
	flink := string(encode(t, model(list(inline("hello"), 0))))
	own := string(pack(t, model(list(inline("hello"), 0))))
	var zipped bytes.Buffer
	z := gzip.NewWriter(&zipped)
	if _, err := z.Write([]byte(flink)); err != nil || z.Close() != nil {
		t.Fatal(err)
	}
	tar := make([]byte, 1024)
	copy(tar[257:], "ustar")
	corrupt := []error{format.ErrCorrupt}
	truncated := []error{format.ErrTruncated}
	absent := []error{storage.ErrNotExist}
	const job = "0123456789abcdef0123456789abcdef"
	tests := []struct {
		name          string
		files         map[string]string
		open          string
		message, hint string
		kinds         []error
	}{
		{"nothing", nil, "{}/none", "none does not exist", "", absent},
		{"nothing by a bare name", nil, "no-such-snapshot", "no-such-snapshot does not exist", "(search-path)", absent},
		{"no _metadata", map[string]string{"sp/x": "1"}, "{}/sp/_metadata", "_metadata does not exist", "", absent},
		{"no .spt", nil, "{}/x.spt", "x.spt does not exist", "", absent},
		{"empty folder", map[string]string{"sp/": ""}, "{}/sp", "is not a snapshot: it is an empty directory", "", corrupt},
		{"folder of something else", map[string]string{"sp/x": "1"}, "{}/sp", "is not a snapshot: it has no _metadata", "find them (list {}/sp)", corrupt},
		{"folder called .spt", map[string]string{"x.spt/y": "1"}, "{}/x.spt", "is not a snapshot: it has no _metadata", "find them (list {}/x.spt)", corrupt},
		{"parent folder", map[string]string{"job/chk-7/_metadata": flink, "job/chk-10/_metadata": flink, "job/chk-11/x": "1"}, "{}/job",
			"job is not a snapshot: it has no _metadata", "it holds 2 checkpoints; the newest complete one is chk-10 (open {}/job/chk-10)", corrupt},
		{"parent with one", map[string]string{"job/chk-7/_metadata": flink, "job/shared/x": "1"}, "{}/job/",
			"it has no _metadata", "it holds one complete checkpoint, chk-7 (open {}/job/chk-7)", corrupt},
		{"parent whose newest is cut", map[string]string{"job/chk-7/_metadata": flink, "job/chk-10/_metadata": flink[:len(flink)-3]}, "{}/job",
			"job is not a snapshot: it has no _metadata", "it holds 2 checkpoints; the newest complete one is chk-7 (open {}/job/chk-7)", corrupt},
		{"parent of cut ones", map[string]string{"job/chk-7/_metadata": flink[:40], "job/chk-10/_metadata": flink[:40]}, "{}/job",
			"job is not a snapshot: it has no _metadata", "it holds 2 checkpoints; the newest are not complete (list {}/job)", corrupt},
		{"parent of a cut one", map[string]string{"job/chk-7/_metadata": flink[:40]}, "{}/job",
			"job is not a snapshot: it has no _metadata", "it holds one checkpoint, chk-7, which is not complete (list {}/job)", corrupt},
		{"parent with none complete", map[string]string{"job/chk-7/x": "1", "job/chk-8/_metadata": ""}, "{}/job",
			"it has no _metadata", "it holds 2 checkpoints, none of them complete", corrupt},
		{"folder of savepoints", map[string]string{"all/savepoint-1/_metadata": flink, "all/mine/_metadata": flink}, "{}/all",
			"it has no _metadata", "it holds 2 snapshots; the newest complete one is", corrupt},
		{"folder of jobs", map[string]string{"all/" + job + "/chk-3/_metadata": flink, "all/" + job + "/shared/x": "1"}, "{}/all",
			"it has no _metadata", "chk-3 (open {}/all/" + job + "/chk-3)", corrupt},
		{"job without a checkpoint", map[string]string{"job/shared/x": "1", "job/taskowned/y": "1"}, "{}/job",
			"is not a snapshot: it is the directory of a job without any complete checkpoint", "", corrupt},
		{"folder of .spt files", map[string]string{"all/a.spt": own, "all/b.spt": own}, "{}/all", "it has no _metadata", "it holds 2 .spt files, for example (open {}/all/a.spt)", corrupt},
		{"RocksDB", map[string]string{"db/CURRENT": "MANIFEST-000005\n", "db/MANIFEST-000005": "x", "db/000012.sst": "x"}, "{}/db",
			"is not a snapshot: it is a RocksDB working directory", "take a savepoint", corrupt},
		{"never finished", map[string]string{"sp/._metadata.inprogress.123": "x", "sp/y": "1"}, "{}/sp", "its _metadata was never finished", "use an earlier snapshot", corrupt},
		{"never finished by spt", map[string]string{"sp/.spt-tmp-0123456789ab-_metadata": "x"}, "{}/sp", "its _metadata was never finished", "use an earlier snapshot", corrupt},
		{"empty", map[string]string{"sp/_metadata": ""}, "{}/sp", "_metadata is empty (0 bytes)", "use an earlier snapshot", truncated},
		{"empty .spt", map[string]string{"x.spt": ""}, "{}/x.spt", "x.spt is empty (0 bytes)", "did not finish", truncated},
		{"gzip", map[string]string{"sp/_metadata": zipped.String()}, "{}/sp", "it is still compressed with gzip", "gzip -d", corrupt},
		{"gzipped .spt", map[string]string{"x.spt": zipped.String()}, "{}/x.spt", "it is still compressed with gzip", "gzip -d", corrupt},
		{"gzip of another name", map[string]string{"sp.tar.gz": zipped.String()}, "{}/sp.tar.gz", "it is still compressed with gzip", "gzip -d", corrupt},
		{"zstd", map[string]string{"x": "\x28\xb5\x2f\xfdmore"}, "{}/x", "it is still compressed with zstd", "zstd -d", corrupt},
		{"xz", map[string]string{"x": "\xfd7zXZ\x00more"}, "{}/x", "it is still compressed with xz", "xz -d", corrupt},
		{"bzip2", map[string]string{"x": "BZh91AY"}, "{}/x", "it is still compressed with bzip2", "bzip2 -d", corrupt},
		{"lz4", map[string]string{"x": "\x04\x22\x4d\x18more"}, "{}/x", "it is still compressed with lz4", "lz4 -d", corrupt},
		{"zip", map[string]string{"x": "PK\x03\x04more"}, "{}/x", "it is a zip archive", "unzip", corrupt},
		{"tar", map[string]string{"x": string(tar)}, "{}/x", "it is a tar archive", "tar -xf", corrupt},
		{"snappy state file", map[string]string{"x": "\xff\x06\x00\x00sNaPpYmore"}, "{}/x", "it is a snappy stream", "give the directory", corrupt},
		{"HTML", map[string]string{"x": "<html>no</html>"}, "{}/x", "HTML or XML", "download again", corrupt},
		{"LFS pointer", map[string]string{"sp/_metadata": "version https://git-lfs.github.com/spec/v1\noid sha256:1\n"}, "{}/sp", "Git LFS pointer", "git lfs pull", corrupt},
		{"JSON", map[string]string{"x": `{"a":1}`}, "{}/x", "JSON text", "give the directory", corrupt},
		{"UTF-16", map[string]string{"sp/_metadata": utf16(flink)}, "{}/sp", "UTF-16", "binary mode", corrupt},
		{"byte order mark", map[string]string{"sp/_metadata": "\xef\xbb\xbfI"}, "{}/sp", "byte order mark", "binary mode", corrupt},
		{"state file beside _metadata", map[string]string{"sp/_metadata": flink, "sp/0a1b": "\x01\x02\x03\x04\x05\x06\x07\x08\x09"}, "{}/sp/0a1b",
			"it starts with 0102030405060708: neither Flink's _metadata nor .spt", "it is next to a _metadata; give the directory (open {}/sp)", corrupt},
		{"something else", map[string]string{"x": "\x01\x02\x03"}, "{}/x", "it starts with 010203: neither", "", corrupt},
		{"_metadata that is a folder", map[string]string{"sp/_metadata/x": "1"}, "{}/sp/_metadata", "does not exist", "this is a directory", absent},
		{"CRLF .spt", map[string]string{"x.spt": strings.ReplaceAll(own, "\n", "\r\n")}, "{}/x.spt", "text-mode transfer", "binary mode", corrupt},
		{"LF .spt", map[string]string{"x.spt": strings.ReplaceAll(own, "\r\n", "\n")}, "{}/x.spt", "text-mode transfer", "binary mode", corrupt},
		{"UTF-8 .spt", map[string]string{"x.spt": strings.ToValidUTF8(own, "\uFFFD")}, "{}/x.spt", "text-mode transfer", "binary mode", corrupt},
		{"unsealed .spt", map[string]string{"x.spt": own[:len(own)-40]}, "{}/x.spt", "", "was not sealed, or was cut", []error{spt.ErrNotSealed, format.ErrTruncated}},
		{"control characters", map[string]string{"\x1b[31mred": "\x01\x02\x03"}, "{}/\x1b[31mred", "", "", corrupt},
		{"control characters, not there", nil, "{}/\x1b[31mred", `\x1b[31mred`, "", absent},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, tt.files)
			at := time.Now().Truncate(time.Second)
			for name := range tt.files { // of the same age, so that numbers decide
				if filepath.Base(name) == "_metadata" {
					if err := os.Chtimes(filepath.Join(dir, name), at, at); err != nil {
						t.Fatal(err)
					}
				}
			}
			fill := func(s string) string { return strings.ReplaceAll(s, "{}", dir) }
			_, err := reader.Open(ctx, fill(tt.open), new(options()))
			is(t, err, fill(tt.message), fill(tt.hint), tt.kinds...)
		})
	}
}

// The newest is that of the latest time, whatever its number.
func TestNewestCandidate(t *testing.T) {
	flink := string(encode(t, model(list(inline("hello"), 0))))
	dir := write(t, map[string]string{"chk-9/_metadata": flink, "chk-10/_metadata": flink})
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(dir+"/chk-10/_metadata", old, old); err != nil {
		t.Fatal(err)
	}
	_, err := reader.Open(ctx, dir, new(options()))
	is(t, err, "", "the newest complete one is chk-9", format.ErrCorrupt)
}

// Cut at every offset: cut short, with advice, or, where enough stands before
// the cut, the same snapshot.
func TestCutAtEveryOffset(t *testing.T) {
	sp := model(list(inline("hello"), 0, 2), list(inline("world"), 1))
	for name, whole := range map[string][]byte{"_metadata": encode(t, sp), "x.spt": pack(t, sp)} {
		dir := t.TempDir()
		for cut := range len(whole) {
			put(t, dir+"/"+name, string(whole[:cut]))
			_, err := reader.Open(ctx, dir+"/"+name, new(options()))
			if !errors.Is(err, format.ErrTruncated) || reader.Remedies(err) == nil || !strings.Contains(err.Error(), name) {
				t.Fatalf("%s cut at %d of %d: %v (%s)", name, cut, len(whole), err, remedies(err))
			}
		}
		t.Logf("%s: %d cuts", name, len(whole))
	}
}

// A text-mode transfer of _metadata is recognised on real files.
func TestTextModeMetadata(t *testing.T) {
	var seen, said, opened, unharmed int
	for _, dir := range testenv.Snapshots(t) {
		p, err := os.ReadFile(dir + "/_metadata")
		if err != nil {
			t.Fatal(err)
		}
		for how, spoiled := range map[string][]byte{
			"crlf": bytes.ReplaceAll(p, []byte("\n"), []byte("\r\n")),
			"utf8": bytes.ToValidUTF8(p, []byte("\uFFFD")),
		} {
			if bytes.Equal(p, spoiled) {
				unharmed++
				continue
			}
			seen++
			store := inMemory(t, map[string]string{"sp/_metadata": string(spoiled)})
			_, err := reader.Open(ctx, "mem://sp", new(options("mem", store)))
			if err == nil {
				opened++
				continue // nothing but state was hit: it has the same length only by accident
			}
			if strings.Contains(remedies(err), "text-mode transfer") {
				said++
			} else if how == "utf8" || bytes.Count(p, []byte("\n")) >= 4 { // fewer line feeds may be a coincidence
				t.Errorf("%s %s: %v (%s)", dir, how, err, remedies(err))
			}
		}
	}
	t.Logf("%d of %d spoiled files are recognised; %d of them opened (%d had nothing to spoil)", said, seen, opened, unharmed)
}

// What stands in the way is told apart from what is not there.
func TestTroubleOfTheStore(t *testing.T) {
	store := inMemory(t, map[string]string{"sp/_metadata": "x"})
	for _, cause := range []error{storage.ErrPermission, storage.ErrUnavailable} {
		for _, when := range []string{"read", "list", "stat"} {
			h := hooked{store, func(op, _ string) error {
				if op == when {
					return cause
				}
				return nil
			}}
			_, err := reader.Open(ctx, "mem://other", new(options("mem", h)))
			if when == "read" && !errors.Is(err, cause) {
				t.Errorf("%v at %s: %v", cause, when, err)
			}
			if err == nil || errors.Is(err, format.ErrCorrupt) {
				t.Errorf("%v at %s: %v", cause, when, err)
			}
		}
	}
}

func TestRemediesOfPlainErrors(t *testing.T) {
	if got := remedies(fmt.Errorf("x")); got != "" {
		t.Errorf("%q", got)
	}
	if got := remedies(fmt.Errorf("y: %w", &storage.Error{Op: "read", Err: storage.ErrExist, Hint: "do this"})); got != "do this" {
		t.Errorf("%q", got)
	}
}
