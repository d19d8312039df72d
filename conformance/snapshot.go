package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Snapshot is a snapshot for Flink to restore. Dir is never changed: Flink works on
// a copy at At.
type Snapshot struct {
	Dir     string  // the directory to copy to At
	Path    string  // of _metadata's directory within Dir; "." for a savepoint
	At      string  // its location for Flink, which absolute paths and Flink's order of blocks depend on
	Options Options // of the job that made it
	Known   string  // the directory with truth.json and the other records, if any
}

// OpenSnapshot opens a directory with the layout of the known corpus.
func OpenSnapshot(dir string) (Snapshot, error) {
	var about struct {
		Snapshot string  `json:"snapshot"`
		Options  Options `json:"options"`
	}
	if err := readJSON(filepath.Join(dir, "about.json"), &about); err != nil {
		return Snapshot{}, err
	}
	path, err := filepath.Rel("savepoint", about.Snapshot)
	if err != nil || strings.HasPrefix(path, "..") {
		return Snapshot{}, fmt.Errorf("%s: snapshot %q is not in savepoint/", dir, about.Snapshot)
	}
	return Snapshot{
		Dir:     filepath.Join(dir, "savepoint"),
		Path:    path,
		At:      about.Options.At,
		Options: about.Options,
		Known:   dir,
	}, nil
}

// Rewritten returns the snapshot of the same job that another program wrote to
// dir, with _metadata directly in it. Flink restores it from the location of the
// original, so that the order of elements can be compared.
func (s Snapshot) Rewritten(dir string) Snapshot {
	s.Dir, s.Path = dir, "."
	return s
}

// Truth is what the job held when the snapshot was taken.
func (s Snapshot) Truth() (Content, error) {
	var content Content
	return content, readJSON(filepath.Join(s.Known, "truth.json"), &content)
}

// locks has a lock for each location: an original and its rewritten copies are
// restored there one after the other, also by different versions.
var locks sync.Map

// inPlace copies the snapshot to At and calls f with the path for Flink and the
// directory in which its files are stored.
func (s Snapshot) inPlace(f func(path, at string) error) error {
	at, err := storedAt(s.At)
	if err != nil {
		return err
	}
	lock, _ := locks.LoadOrStore(s.At, new(sync.Mutex))
	lock.(*sync.Mutex).Lock()
	defer lock.(*sync.Mutex).Unlock()
	if err := os.RemoveAll(at); err != nil {
		return err
	}
	defer os.RemoveAll(at) //nolint:errcheck // ours, and the next use of it removes it first
	if err := copyTree(s.Dir, at); err != nil {
		return err
	}
	return f(filepath.Join(s.At, s.Path), at)
}

func readJSON(file string, into any) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	if err := json.Unmarshal(text, into); err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	return nil
}
