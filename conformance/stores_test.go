package conformance

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/storage/s3"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/transform/orphans"
	"github.com/savepoint-tools/spt/writer"
)

// service is an object store or a file system on a server that runs for a test, as
// Flink and spt reach it.
type service struct {
	systems []FileSystem // of Flink, that reach the same objects
	stores  storage.Resolver
	bucket  func(t *testing.T) string // a new one, as URI
}

// s3Service is a server of the S3 protocol, which each of Flink's file systems for it
// reaches.
func s3Service(t *testing.T) *service {
	server := servertest.VersityGW(t)
	env := server.Env()
	store, err := s3.New(s3.Options{Getenv: func(name string) string { return env[name] }})
	if err != nil {
		t.Fatal(err)
	}
	r := route.New(local.New())
	for _, scheme := range []string{"s3", "s3a", "s3p"} {
		r.Add(scheme, store.Resolve)
	}
	conf := map[string]string{
		"s3.access-key": server.AccessKey, "s3.secret-key": server.SecretKey, "s3.endpoint": server.Endpoint, "s3.region": server.Region,
		"s3.path.style.access": "true", "s3.path-style-access": "true",
		"s3.directory.marker.retention": "keep", // else Hadoop's deletes markers for ever, which this server refuses
		"s3.entropy.key":                "_entropy_", "s3.entropy.length": "4",
	}
	system := func(name string) FileSystem {
		return FileSystem{Name: "s3-" + name, Jars: []string{"org.apache.flink:flink-s3-fs-" + name + ":FLINK"}, Configuration: conf}
	}
	return &service{
		systems: []FileSystem{system("presto"), system("native"), system("hadoop")}, stores: r,
		bucket: func(t *testing.T) string { return "s3://" + server.Bucket(t) },
	}
}

// remoteCases are what Flink writes to a store: each kind of reference that a
// _metadata can have.
var remoteCases = []string{"operator-files", "union-modulo", "keyed-rocksdb-native", "counts-incremental"}

// TestS3: what Flink wrote to S3 is read, checked, changed and moved there by spt, and
// Flink restores it from there.
func TestS3(t *testing.T) {
	needsFlink(t)
	s := s3Service(t)
	for i, system := range s.systems {
		for _, version := range []Version{V1_20, V2_3} {
			cases := remoteCases
			switch {
			case system.Name == "s3-native" && version == V1_20:
				continue // it came with Flink 2.3
			case system.Name == "s3-hadoop" && version == V1_20:
				continue // once: its requests are those of 2.3
			case i > 0:
				cases = cases[2:4]
			}
			t.Run(system.Name+"/"+string(version), func(t *testing.T) {
				t.Parallel() // each has a JVM of its own, which mostly waits
				f := UseWith(t, version, system)
				for _, name := range cases {
					t.Run(name, func(t *testing.T) { s.judge(t, f, caseNamed(t, name).options, "") })
				}
				if i == 0 {
					t.Run("pruned", func(t *testing.T) { s.pruned(t, f, caseNamed(t, "union-inflated").options) })
				}
				t.Run("file-merging", func(t *testing.T) { s.merged(t, f, system, caseNamed(t, "counts-file-merging").options) })
				if system.Name != "s3-hadoop" {
					t.Run("entropy", func(t *testing.T) {
						s.judge(t, f, caseNamed(t, "counts-incremental").options, "/_entropy_")
					})
				}
			})
		}
	}
}

var remotes atomic.Int64

// judge lets Flink write a snapshot, spt rewrite it, and Flink restore each result.
func (s *service) judge(t *testing.T, f *Flink, options Options, marker string) {
	bucket := s.bucket(t)
	options.At = fmt.Sprintf("%s%s/ck/case-%d", bucket, marker, remotes.Add(1))
	made, err := f.MakeRemote(options, t.TempDir())
	if err != nil {
		t.Fatal(explain(err))
	}
	snap := s.open(t, made.Location)
	s.verify(t, snap)

	p := options.Parallelism
	if p == 0 {
		p = 2
	}
	restore := func(location string, parallelism int) Content {
		t.Helper()
		got, err := f.RestoreRemote(Remote{Location: location, Options: options}, Choices{Parallelism: parallelism})
		if err != nil {
			t.Fatalf("%s: %s", location, explain(err))
		}
		return got
	}
	var truth Content
	if err := readJSON(filepath.Join(made.Known, "truth.json"), &truth); err != nil {
		t.Fatal(err)
	}
	whole := func(location string, parallelism int) {
		t.Helper()
		for _, fault := range CheckRedistributed(truth, restore(location, parallelism)) {
			t.Errorf("%s at parallelism %d: %s", location, parallelism, fault)
		}
	}
	whole(made.Location, p)

	if options.Checkpoint {
		s.deleteOrphans(t, bucket, made.Location)
		whole(made.Location, p+1)
	}

	other := s.bucket(t)
	s.write(t, snap, other+"/copied", writer.Options{ReadBack: true}) // to another bucket
	whole(other+"/copied", p+1)

	home := filepath.Join(t.TempDir(), "home") // to local files, and back
	s.write(t, s.open(t, other+"/copied"), home, writer.Options{})
	s.write(t, s.open(t, home), other+"/back", writer.Options{})
	whole(other+"/back", p)
	packed := other + "/packed.spt"
	s.write(t, snap, packed, writer.Options{ReadBack: true})
	s.write(t, s.open(t, packed), other+"/unpacked", writer.Options{})
	whole(other+"/unpacked", p)

	s.write(t, snap, bucket+"/named", writer.Options{Files: writer.Reference}) // its files stay where they are
	whole(bucket+"/named", p)

	if options.Shape == "counts" || options.Shape == "keyed" {
		return // what follows is for operator state
	}
	v, _, err := transform.Rescale(context.Background(), snap.View(), transform.RescaleOptions{To: int32(p) + 2, At: made.Location})
	if err != nil {
		t.Fatal(err)
	}
	s.writeView(t, v, other+"/rescaled", writer.Options{})
	whole(other+"/rescaled", p+2)
}

// merged is for a checkpoint with merged files. Where an object is only there once it
// was closed, the files that a job was still writing when it was cancelled are missing,
// and Flink restores nothing: spt must report exactly that.
func (s *service) merged(t *testing.T, f *Flink, system FileSystem, options Options) {
	options.At = fmt.Sprintf("%s/ck/case-%d", s.bucket(t), remotes.Add(1))
	made, err := f.MakeRemote(options, t.TempDir())
	if err != nil && system.Name == "s3-native" && strings.Contains(explain(err), "Stream is closed") {
		t.Log("Flink cannot take such a checkpoint there")
		return
	}
	if err != nil {
		t.Fatal(explain(err))
	}
	open := false // all that spt found are files shorter than recorded
	faults := func() int {
		t.Helper()
		open = true
		v, err := s.open(t, made.Location).Verify(context.Background(), reader.VerifyOptions{Read: true}, func(f finding.Finding) {
			if f.Severity == finding.Error {
				t.Logf("%s: %s: %s", f.Code, f.File, f.Message)
				open = open && f.Code == "file-length"
			}
		})
		if err != nil {
			t.Fatal(err)
		}
		return v.Faults
	}
	// The job that made it may close and delete files of a merged checkpoint for a while
	// after it ended: the answers count once they come from the same files.
	var found int
	var refused *RefusedError
	for attempt := range 10 {
		time.Sleep(time.Duration(attempt) * 300 * time.Millisecond)
		found, refused = faults(), nil
		if _, err = f.RestoreRemote(made, Choices{}); err != nil && !errors.As(err, &refused) {
			t.Fatal(err)
		}
		if (found == 0) == (err == nil) {
			break
		}
		t.Logf("spt found %d faults, and Flink answered: %v", found, err)
	}
	switch {
	case err == nil && found > 0 && open && system.Name == "hdfs":
		// A file that the job has not closed: the NameNode does not know the bytes of its
		// last block, for which Flink asks the DataNode.
		t.Log("spt found the file of a job that still holds it open")
	case err == nil && found > 0:
		t.Errorf("Flink restores it, and spt found %d faults", found)
	case err != nil && found == 0:
		t.Errorf("spt found no fault, and Flink refused: %s", explain(err))
	}
	t.Logf("%d faults, restored: %v", found, err == nil)
}

// deleteOrphans puts unreferenced objects into each directory of a bucket in which a
// state file is, and deletes them as found.
func (s *service) deleteOrphans(t *testing.T, bucket, location string) {
	ctx := context.Background()
	store, name, err := s.stores.Resolve(ctx, bucket+"/")
	if err != nil {
		t.Fatal(err)
	}
	planted := map[string]bool{}
	for info, err := range store.List(ctx, name, "") {
		if err != nil {
			t.Fatal(err)
		}
		if dir := info.Name[:strings.LastIndexByte(info.Name, '/')]; !strings.HasSuffix(info.Name, "/_metadata") {
			planted[dir+"/0f0e0d0c-0b0a-0908-0706-000000000001"] = true
		}
	}
	for name := range planted {
		w, err := store.Create(ctx, name, storage.CreateOptions{IfAbsent: true})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write([]byte("not referenced")); err != nil {
			t.Fatal(err)
		}
		if _, err := w.Commit(ctx); err != nil {
			t.Fatal(err)
		}
	}
	r, err := orphans.Find(ctx, []string{bucket}, orphans.Options{Reader: reader.Options{Stores: s.stores}, Now: time.Now().Add(time.Hour), OlderThan: time.Minute})
	if err != nil {
		t.Fatal(err)
	}
	if r.Err() != nil || r.Snapshots == 0 {
		t.Fatalf("%d snapshots, %v", r.Snapshots, r.Err())
	}
	deleted := 0
	err = errors.Join(r.Unchanged(ctx), r.Remove(ctx, r.Removable(), nil, func(file *orphans.File, err error) error {
		if planted[file.Path] {
			deleted++
		} else {
			t.Logf("%s was left by Flink itself", file.Path)
		}
		return err
	}))
	if err != nil || deleted != len(planted) || deleted == 0 {
		t.Fatalf("%s: %d of %d objects deleted: %v", location, deleted, len(planted), err)
	}
}

func (s *service) open(t *testing.T, location string) *reader.Snapshot {
	t.Helper()
	snap, err := reader.Open(context.Background(), location, &reader.Options{Stores: s.stores})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	})
	return snap
}

// verify reads all of a snapshot.
func (s *service) verify(t *testing.T, snap *reader.Snapshot) {
	t.Helper()
	v, err := snap.Verify(context.Background(), reader.VerifyOptions{Read: true}, func(f finding.Finding) { t.Logf("%s: %s", f.Code, f.Message) })
	if err != nil {
		t.Fatal(err)
	}
	if v.Faults > 0 || v.NotChecked > 0 || v.Outside > 0 || v.Elsewhere > 0 {
		t.Errorf("%s: %+v", snap.Location, v)
	}
}

func (s *service) write(t *testing.T, snap *reader.Snapshot, to string, o writer.Options) {
	t.Helper()
	s.writeView(t, snap.View(), to, o)
}

func (s *service) writeView(t *testing.T, v format.View, to string, o writer.Options) {
	t.Helper()
	o.Stores = s.stores
	if _, err := writer.Write(context.Background(), v, to, &o); err != nil {
		t.Fatalf("write %s: %v", to, err)
	}
}
