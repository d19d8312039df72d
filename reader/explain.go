package reader

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// This file explains why something is not a snapshot, and what to do.

// advised is an error with remedies.
type advised struct {
	error
	remedies []finding.Remedy
}

func (e *advised) Unwrap() error              { return e.error }
func (e *advised) Remedies() []finding.Remedy { return e.remedies }

// advise adds remedies in words to an error.
func advise(err error, words string) error { return &advised{err, finding.Words(words)} }

// Remedies returns the remedies of an error of this package, of a package that
// builds on it, or of a store.
func Remedies(err error) []finding.Remedy {
	if all := finding.RemediesOf(err); all != nil {
		return all
	}
	var s *storage.Error
	if errors.As(err, &s) && s.Hint != "" {
		return finding.Words(s.Hint)
	}
	return nil
}

// hasSecrets reports whether a location is a URL with a part that can hold secrets.
func hasSecrets(location string) bool {
	return strings.Contains(location, "://") && (&storage.Error{Name: location}).SafeName() != location && strings.ContainsAny(location, "?@")
}

// quote escapes a name for a one-line message, without the secrets that a URL can have.
func quote(s string) string {
	if hasSecrets(s) {
		return (&storage.Error{Name: s}).SafeName()
	}
	if strings.ContainsFunc(s, func(r rune) bool { return !strconv.IsPrint(r) || r == ' ' }) || s == "" {
		return strconv.Quote(s)
	}
	return s
}

// notThere returns the error for a location at which there is nothing.
func notThere(location string, locations []string, first error) error {
	err := &kinded{fmt.Errorf("%s does not exist", quote(location)), storage.ErrNotExist}
	if len(locations) > 1 {
		return &advised{err, []finding.Remedy{{Words: "a bare name is also tried with .spt and in the directories", Action: finding.SearchPath}}}
	}
	if all := Remedies(first); all != nil {
		return &advised{err, all}
	}
	return err
}

// notSnapshot returns the error for a location that is not a file and has no
// _metadata. It returns err if there is nothing.
func notSnapshot(ctx context.Context, o Options, store storage.Storage, name, location string, err error) error {
	if objpath.Base(name) == MetadataName {
		return err // the file itself was named
	}
	l, lerr := list(ctx, store, name)
	if lerr != nil || len(l.files)+len(l.directories) == 0 {
		if _, serr := store.Stat(ctx, name); serr != nil && !errors.Is(serr, storage.ErrNotExist) {
			return serr
		}
		if lerr == nil && isDirectory(ctx, store, name) {
			return refuse(location, "it is an empty directory")
		}
		return err
	}
	// From here on, the directory exists and is not a snapshot.
	if l.looksLikeRocksDB() {
		return advise(refuse(location, "it is a RocksDB working directory, which has no _metadata"),
			"a snapshot is what Flink wrote to the checkpoint or savepoint directory; take a savepoint, or look in that directory")
	}
	for _, f := range l.files {
		base := objpath.Base(f.Name)
		if strings.HasPrefix(base, "._metadata.inprogress") || strings.HasPrefix(base, "_metadata.inprogress") || tempname.Is(base) && strings.HasSuffix(base, "-"+MetadataName) {
			return advise(refuse(location, "its _metadata was never finished (%s)", quote(base)), "the writer was interrupted; use an earlier snapshot")
		}
	}
	candidates, cerr := candidatesIn(ctx, store, name, l)
	if cerr != nil {
		return cerr
	}
	if len(candidates) > 0 {
		return parentOf(ctx, o, location, candidates)
	}
	if n := countSPT(l); n > 0 {
		return &advised{refuse(location, "it has no _metadata"), []finding.Remedy{instead(fmt.Sprintf("it holds %s, for example", plural(n, ".spt file")), objpath.Join(location, firstSPT(l)))}}
	}
	if slices.Contains(l.directories, "shared") || slices.Contains(l.directories, "taskowned") {
		return refuse(location, "it is the directory of a job without any complete checkpoint")
	}
	return &advised{refuse(location, "it has no _metadata"), []finding.Remedy{{Words: "give the directory that holds _metadata, the _metadata itself or an .spt file"},
		{Words: "find them", Also: true, Action: finding.List, Locations: []string{location}}}}
}

func refuse(location, why string, args ...any) error {
	return &kinded{fmt.Errorf("%s is not a snapshot: %s", quote(location), fmt.Sprintf(why, args...)), errNotSnapshot}
}

// errNotSnapshot: something exists, but it is not a snapshot.
var errNotSnapshot = fmt.Errorf("%w: not a snapshot", format.ErrCorrupt)

// isDirectory reports whether a directory exists. Object stores have no empty
// directories.
func isDirectory(ctx context.Context, store storage.Storage, name string) bool {
	l, err := list(ctx, store, objpath.Dir(name))
	return err == nil && slices.Contains(l.directories, objpath.Base(name))
}

func (l listing) looksLikeRocksDB() bool {
	manifest, sst := false, false
	for _, f := range l.files {
		base := objpath.Base(f.Name)
		manifest = manifest || strings.HasPrefix(base, "MANIFEST-")
		sst = sst || strings.HasSuffix(base, ".sst")
	}
	return l.has("CURRENT") && manifest || l.has("IDENTITY") && sst
}

// candidate is a snapshot below a directory that is not a snapshot itself.
type candidate struct {
	path      string // relative to the directory
	info      storage.Info
	described bool // it has a _metadata
}

// candidatesIn finds snapshots one level below a directory, or two levels if the
// level between is a job's (32 hex digits).
func candidatesIn(ctx context.Context, store storage.Storage, dir string, l listing) ([]candidate, error) {
	var all []candidate
	for _, sub := range l.directories {
		if tempname.Is(sub) { // being written, or the writer was interrupted
			continue
		}
		path := objpath.Join(dir, sub)
		info, err := store.Stat(ctx, objpath.Join(path, MetadataName))
		switch {
		case err == nil:
			all = append(all, candidate{path: sub, info: info, described: info.Size > 0})
		case !errors.Is(err, storage.ErrNotExist):
			return nil, err
		case isJobID(sub):
			below, err := list(ctx, store, path)
			if err != nil {
				return nil, err
			}
			deeper, err := candidatesIn(ctx, store, path, below)
			if err != nil {
				return nil, err
			}
			for _, c := range deeper {
				c.path = sub + "/" + c.path
				all = append(all, c)
			}
		case strings.HasPrefix(sub, "chk-") || strings.HasPrefix(sub, "savepoint-"):
			all = append(all, candidate{path: sub})
		}
	}
	slices.SortFunc(all, func(a, b candidate) int {
		return cmp.Or(b.info.ModTime.Compare(a.info.ModTime), cmp.Compare(checkpointNumber(b.path), checkpointNumber(a.path)), cmp.Compare(a.path, b.path))
	})
	return all, nil
}

func isJobID(name string) bool {
	_, ok := format.ParseOperatorID(name)
	return ok
}

// checkpointNumber returns N of chk-N, or -1.
func checkpointNumber(path string) int64 {
	if n, ok := strings.CutPrefix(objpath.Base(path), "chk-"); ok {
		if v, err := strconv.ParseInt(n, 10, 64); err == nil {
			return v
		}
	}
	return -1
}

// looked is the number of candidates opened to find a complete one.
const looked = 5

func parentOf(ctx context.Context, o Options, location string, all []candidate) error {
	var described []candidate
	for _, c := range all {
		if c.described {
			described = append(described, c)
		}
	}
	word := "snapshot"
	if !slices.ContainsFunc(all, func(c candidate) bool { return checkpointNumber(c.path) < 0 }) {
		word = "checkpoint"
	}
	err := refuse(location, "it has no _metadata")
	if len(described) == 0 {
		return advise(err, fmt.Sprintf("it holds %s, none of them complete", plural(len(all), word)))
	}
	for _, c := range described[:min(len(described), looked)] {
		e := Entry{Path: objpath.Join(objpath.Clean(location), c.path)}
		if err := e.open(ctx, ListOptions{Options: o}); err != nil {
			return err
		}
		if e.State != Complete && !e.NotLooked {
			continue
		}
		text := fmt.Sprintf("it holds %s; the newest complete one is %s", plural(len(described), word), quote(c.path))
		if len(described) == 1 {
			text = fmt.Sprintf("it holds one complete %s, %s", word, quote(c.path))
		}
		return &advised{err, []finding.Remedy{instead(text, e.Path)}}
	}
	if len(described) == 1 {
		return &advised{err, []finding.Remedy{{Words: fmt.Sprintf("it holds one %s, %s, which is not complete", word, quote(described[0].path)), Action: finding.List, Locations: []string{location}}}}
	}
	return &advised{err, []finding.Remedy{{Words: fmt.Sprintf("it holds %s; the newest are not complete", plural(len(described), word)), Action: finding.List, Locations: []string{location}}}}
}

// instead returns the remedy to open another location.
func instead(words, location string) finding.Remedy {
	return finding.Remedy{Words: words, Action: finding.Open, Locations: []string{location}}
}

// isSPT reports whether a file name is that a finished .spt file has.
func isSPT(f storage.Info) bool {
	return strings.HasSuffix(f.Name, Extension) && !tempname.Is(f.Name)
}

func countSPT(l listing) (n int) {
	for _, f := range l.files {
		if isSPT(f) {
			n++
		}
	}
	return n
}

func firstSPT(l listing) string {
	for _, f := range l.files {
		if isSPT(f) {
			return objpath.Base(f.Name)
		}
	}
	return ""
}

func plural(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// wrappings are the formats in which a file may still be packed or damaged.
var wrappings = []struct {
	at     int
	magic  string
	what   string
	advice string
}{
	{0, "\x1f\x8b", "still compressed with gzip", "unpack it first:  gzip -d"},
	{0, "\x28\xb5\x2f\xfd", "still compressed with zstd", "unpack it first:  zstd -d"},
	{0, "\xfd7zXZ\x00", "still compressed with xz", "unpack it first:  xz -d"},
	{0, "BZh", "still compressed with bzip2", "unpack it first:  bzip2 -d"},
	{0, "\x04\x22\x4d\x18", "still compressed with lz4", "unpack it first:  lz4 -d"},
	{0, "\xff\x06\x00\x00sNaPpY", "a snappy stream", "state files can be compressed like that, _metadata never is: give the directory of the snapshot"},
	{0, "PK\x03\x04", "a zip archive", "unpack it first:  unzip"},
	{257, "ustar", "a tar archive", "unpack it first:  tar -xf"},
	{0, "version https://git-lfs", "a Git LFS pointer, not the file itself", "fetch it:  git lfs pull"},
	{0, "\xef\xbb\xbf", "text with a byte order mark: it went through a text conversion", "copy it again in binary mode"},
	{0, "\xff\xfe", "UTF-16 text: it went through a text conversion, as a shell redirection on Windows does", "copy it again in binary mode"},
	{0, "<", "HTML or XML, perhaps the error page of a download", "look at it in a text editor, and download again"},
	{0, "{", "JSON text", "give the directory of a snapshot, its _metadata or an .spt file"},
}

// sptMagic starts an .spt file.
const sptMagic = "\x89SPT\r\n\x1a\n"

// notOurs returns an error that says what a file is that is neither _metadata nor
// .spt.
func (f *found) notOurs(ctx context.Context) error {
	if f.info.Size == 0 {
		return advise(&kinded{fmt.Errorf("%s is empty (0 bytes)", quote(f.name)), format.ErrTruncated},
			"the upload or the checkpoint did not finish; compare sizes with the original, or use an earlier snapshot")
	}
	for _, w := range wrappings {
		if len(f.head) > w.at && bytes.HasPrefix(f.head[w.at:], []byte(w.magic)) {
			return advise(refuse(f.name, "it is %s", w.what), w.advice)
		}
	}
	if bytes.HasPrefix(flinkMagic, f.head) || bytes.HasPrefix([]byte(sptMagic), f.head) {
		return advise(&kinded{fmt.Errorf("%s is cut short: it has %d bytes", quote(f.name), len(f.head)), format.ErrTruncated}, "copy it again and compare sizes")
	}
	if bytes.HasPrefix(f.head, []byte("\xef\xbf\xbdSPT")) { // spt.Open recognizes others
		return advise(refuse(f.name, "it is an .spt file that went through a text-mode transfer"), "copy it again in binary mode")
	}
	err := refuse(f.name, "it starts with %x: neither Flink's _metadata nor .spt", f.head[:min(len(f.head), 8)])
	if objpath.Base(f.name) == MetadataName {
		return err
	}
	if _, serr := f.store.Stat(ctx, objpath.Join(objpath.Dir(f.name), MetadataName)); serr == nil {
		return &advised{err, []finding.Remedy{instead("it is next to a _metadata; give the directory", f.location)}}
	}
	return err
}

// explain adds advice to an error of the _metadata decoder.
func (f *found) explain(err error, p format.Bytes) error {
	if !errors.Is(err, format.ErrCorrupt) || errors.Is(err, format.ErrChanged) {
		return err
	}
	if how := textMode(p); how != "" {
		return advise(err, fmt.Sprintf("it went through a text-mode transfer (%s): copy it again in binary mode", how))
	}
	if errors.Is(err, format.ErrTruncated) {
		return &advised{err, []finding.Remedy{{Words: "copy it again and compare sizes: an object store shows the length of the original"},
			{Words: "list what precedes the cut", Also: true, Action: finding.Salvage}}}
	}
	return err
}

func (f *found) explainSPT(err error) error {
	switch {
	case !bytes.HasPrefix(f.head, []byte(sptMagic)) && len(f.head) >= len(sptMagic):
		return advise(err, "copy it again in binary mode")
	case errors.Is(err, format.ErrTruncated):
		return advise(err, "it was not sealed, or was cut: if a writer was interrupted, write it again; if it was copied, compare sizes")
	}
	return err
}

// textMode recognizes a file that was damaged by a text-mode conversion: a
// carriage return precedes every line feed, or bytes that are not text were
// replaced.
func textMode(p format.Bytes) (how string) {
	_ = p.View(func(b []byte) error {
		b = b[:min(len(b), 4<<20)]
		lf, crlf := bytes.Count(b, []byte("\n")), bytes.Count(b, []byte("\r\n"))
		switch {
		case lf >= 4 && lf == crlf:
			how = "every line feed has a carriage return before it"
		case bytes.Count(b, []byte("\xef\xbf\xbd")) >= 4:
			how = "bytes were replaced by U+FFFD"
		}
		return nil
	})
	return how
}
