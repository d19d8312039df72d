package conformance

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// Fixture is a snapshot that other tests need without a JVM. It is kept in
// testdata/savepoints.
type Fixture struct {
	Name     string // of its directory; also of the directory below /spt-fixtures that the files name
	Version  Version
	Options  Options
	Restores []int // the parallelisms for which restored-pN.json is kept
}

// Fixtures lists what `go run ./conformance/makefixtures` makes. They are small:
// far below 10 MB in total.
func Fixtures() []Fixture {
	var all []Fixture
	for _, v := range Versions() {
		add := func(name string, options Options, restores ...int) {
			all = append(all, Fixture{Name: "flink-" + string(v) + "-" + name, Version: v, Options: options, Restores: restores})
		}
		add("operator", Options{Shape: "operator", Seed: 201}, 2, 3)
		add("operator-files-compressed", Options{Shape: "operator", Parallelism: 3, States: 7, Compress: true, InlineThreshold: Bytes(0), Seed: 202}, 3, 2)
		add("union-inflated", Options{Shape: "union-inflated", Elements: 10, Restores: 2, Seed: 203}, 2, 4)
		add("tutorial", Options{Shape: "tutorial", Elements: 20, Seed: 204}, 2, 4)
		add("keyed-native", Options{Shape: "keyed", Format: "native", InlineThreshold: Bytes(0), Seed: 205}, 2, 3)
		add("keyed-rocksdb", Options{Shape: "keyed", Backend: "rocksdb", KeyType: "pojo", Seed: 206}, 2, 3)
		add("counts-incremental", Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, Checkpoints: 2, InlineThreshold: Bytes(900), Seed: 207}, 2, 3)
		add("counts-file-merging", Options{Shape: "counts", Backend: "rocksdb", Checkpoint: true, Incremental: true, FileMerging: true, InlineThreshold: Bytes(0), Seed: 208}, 2)
		add("source", Options{Shape: "source", Parallelism: 3, Elements: 7, Seed: 209}, 3, 2)
		if v == V1_20 {
			add("list-checkpointed", Options{Shape: "list-checkpointed", Seed: 210}, 2, 3)
			continue
		}
		add("keyed-forst", Options{Shape: "keyed", Backend: "forst", Checkpoint: true, Incremental: true, Checkpoints: 2, KeyType: "string", Seed: 211}, 2, 3)
		if v == V2_3 { // 2.0 does not record the serializer of map keys
			add("keyed-async", Options{Shape: "keyed", Backend: "forst", Asynchronous: true, Checkpoint: true, Incremental: true, Checkpoints: 2, KeyType: "string", Seed: 212}, 2, 3)
		}
	}
	return all
}

// ErrExists reports that a fixture exists.
var ErrExists = errors.New("exists")

// MakeFixture makes a fixture below dir, with the layout of the known corpus: the
// complete directory or nothing. An existing fixture is ErrExists.
func (f *Flink) MakeFixture(fixture Fixture, dir string) (Snapshot, error) {
	target := filepath.Join(dir, fixture.Name)
	if _, err := os.Lstat(target); !errors.Is(err, fs.ErrNotExist) {
		return Snapshot{}, fmt.Errorf("%s: %w", target, errors.Join(ErrExists, err))
	}
	fixture.Options.At = named + "/" + fixture.Name
	work, err := os.MkdirTemp(dir, ".making-")
	if err != nil {
		return Snapshot{}, err
	}
	defer os.RemoveAll(work) //nolint:errcheck // a leftover is recognizable by its name
	s, err := f.Make(fixture.Options, work)
	if err != nil {
		return Snapshot{}, err
	}
	for _, parallelism := range fixture.Restores {
		restored, err := f.restore(s, Choices{Parallelism: parallelism})
		if err != nil {
			return Snapshot{}, err
		}
		var text bytes.Buffer
		if err := json.Indent(&text, restored, "", " "); err != nil {
			return Snapshot{}, err
		}
		text.WriteByte('\n')
		if err := os.WriteFile(filepath.Join(work, fmt.Sprintf("restored-p%d.json", parallelism)), text.Bytes(), 0o644); err != nil {
			return Snapshot{}, err
		}
	}
	if err := os.Chmod(work, 0o755); err != nil {
		return Snapshot{}, err
	}
	if err := os.Rename(work, target); err != nil {
		return Snapshot{}, err
	}
	return OpenSnapshot(target)
}
