package conformance

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
)

// Snapshot is a snapshot that Flink can be asked to restore. Dir is never
// changed: while Flink works on it, a copy stands at At.
type Snapshot struct {
	Dir     string  // the folder to be copied to At
	Path    string  // of _metadata's folder within Dir; "." for a savepoint
	At      string  // where it is for Flink: absolute paths and Flink's order of blocks depend on it
	Options Options // of the job that made it
	Known   string  // the folder with truth.json and the like, if it has one
}

// OpenSnapshot opens a folder in the form of the known corpus.
func OpenSnapshot(folder string) (Snapshot, error) {
	var about struct {
		Snapshot string  `json:"snapshot"`
		Options  Options `json:"options"`
	}
	if err := readJSON(filepath.Join(folder, "about.json"), &about); err != nil {
		return Snapshot{}, err
	}
	path, err := filepath.Rel("savepoint", about.Snapshot)
	if err != nil || strings.HasPrefix(path, "..") {
		return Snapshot{}, fmt.Errorf("%s: snapshot %q is not in savepoint/", folder, about.Snapshot)
	}
	return Snapshot{
		Dir:     filepath.Join(folder, "savepoint"),
		Path:    path,
		At:      about.Options.At,
		Options: about.Options,
		Known:   folder,
	}, nil
}

// Rewritten is the same job's snapshot as something else wrote it into dir,
// with _metadata directly there. It is for Flink where the original does,
// so that the order of what is restored can be compared.
func (s Snapshot) Rewritten(dir string) Snapshot {
	s.Dir, s.Path = dir, "."
	return s
}

// Truth is what the job held when the snapshot was taken.
func (s Snapshot) Truth() (Content, error) {
	var content Content
	return content, readJSON(filepath.Join(s.Known, "truth.json"), &content)
}

// placeLocks has a lock for each place: an original and what was made of it are put
// there one after the other, also where two versions restore them.
var placeLocks sync.Map

// inPlace puts a copy in its place and calls f with the path that Flink is given,
// and the directory in which the place is stored.
func (s Snapshot) inPlace(f func(path, at string) error) error {
	at, err := storedAt(s.At)
	if err != nil {
		return err
	}
	place, _ := placeLocks.LoadOrStore(s.At, new(sync.Mutex))
	place.(*sync.Mutex).Lock()
	defer place.(*sync.Mutex).Unlock()
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
