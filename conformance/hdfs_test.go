package conformance

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/storage/hdfs"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// hdfsService is a NameNode with a DataNode. A bucket is a directory, and paths of S3
// are there too, so that snapshots can go from one to the other.
func hdfsService(t *testing.T) (*service, *hdfs.Store) {
	server := servertest.StartHDFS(t, t.TempDir(), servertest.HDFSOptions{})
	store, err := hdfs.New(hdfs.Options{Getenv: func(name string) string {
		return map[string]string{"HADOOP_CONF_DIR": server.Conf}[name]
	}})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := store.Close(); err != nil {
			t.Error(err)
		}
	})
	r := route.New(local.New())
	r.Add("hdfs", store.Resolve)
	var buckets atomic.Int64
	return &service{
		systems: []FileSystem{{
			Name:          "hdfs",
			Jars:          []string{"org.apache.hadoop:hadoop-client-api:3.4.2", "org.apache.hadoop:hadoop-client-runtime:3.4.2"},
			Configuration: map[string]string{"flink.hadoop.dfs.replication": "1"},
		}},
		stores: r,
		bucket: func(*testing.T) string { return fmt.Sprintf("%s/flink/%d", server.URI, buckets.Add(1)) },
	}, store
}

// TestHDFS: what Flink wrote to HDFS is read, checked, changed and moved there by spt,
// and Flink restores it from there.
func TestHDFS(t *testing.T) {
	needsFlink(t)
	s, store := hdfsService(t)
	for _, version := range []Version{V1_20, V2_3} {
		t.Run(string(version), func(t *testing.T) {
			t.Parallel() // each has a JVM of its own, which mostly waits
			f := UseWith(t, version, s.systems[0])
			for _, name := range remoteCases {
				t.Run(name, func(t *testing.T) { s.judge(t, f, caseNamed(t, name).options, "") })
			}
			t.Run("file-merging", func(t *testing.T) { s.merged(t, f, s.systems[0], caseNamed(t, "counts-file-merging").options) })
			t.Run("pruned", func(t *testing.T) { s.pruned(t, f, caseNamed(t, "union-inflated").options) })
			t.Run("relocated", func(t *testing.T) { s.relocated(t, f, store, caseNamed(t, "counts-incremental").options) })
			t.Run("overwritten", func(t *testing.T) { s.overwritten(t, f, caseNamed(t, "operator-files").options) })
		})
	}
}

// TestHDFSAndS3: a snapshot that Flink wrote to HDFS goes to S3 and back.
func TestHDFSAndS3(t *testing.T) {
	needsFlink(t)
	s, store := hdfsService(t)
	object := s3Service(t)
	r := route.New(local.New())
	r.Add("hdfs", store.Resolve)
	r.Add("s3", object.stores.Resolve)
	s.stores = r
	f := UseWith(t, V2_3, s.systems[0])
	for _, name := range []string{"operator-files", "counts-incremental"} {
		made, truth := s.make(t, f, caseNamed(t, name).options)
		bucket, back := object.bucket(t), s.bucket(t)+"/back"
		s.write(t, s.open(t, made.Location), bucket+"/copied", writer.Options{ReadBack: true})
		s.write(t, s.open(t, bucket+"/copied"), back, writer.Options{})
		s.held(t, f, made, truth, back)
		onS3 := UseWith(t, V2_3, object.systems[0])
		s.held(t, onS3, made, truth, bucket+"/copied")
	}
}

// make lets Flink write a snapshot, and returns what it held.
func (s *service) make(t *testing.T, f *Flink, options Options) (made Remote, truth Content) {
	t.Helper()
	options.At = fmt.Sprintf("%s/ck/case-%d", s.bucket(t), remotes.Add(1))
	made, err := f.MakeRemote(options, t.TempDir())
	if err != nil {
		t.Fatal(explain(err))
	}
	if err := readJSON(filepath.Join(made.Known, "truth.json"), &truth); err != nil {
		t.Fatal(err)
	}
	return made, truth
}

// held fails the test unless Flink restores from a location what the snapshot of the
// same job held.
func (s *service) held(t *testing.T, f *Flink, made Remote, truth Content, location string) {
	t.Helper()
	made.Location = location
	got, err := f.RestoreRemote(made, Choices{})
	if err != nil {
		t.Fatalf("%s: %s", location, explain(err))
	}
	for _, fault := range CheckRedistributed(truth, got) {
		t.Errorf("%s: %s", location, fault)
	}
}

// pruned prunes union state that restores multiplied; every subtask gets what is kept.
func (s *service) pruned(t *testing.T, f *Flink, options Options) {
	made, truth := s.make(t, f, options)
	snap := s.open(t, made.Location)
	v, pruned, err := transform.PruneUnion(context.Background(), snap.View(), transform.PruneOptions{Keep: transform.KeepDistinct, AcceptUnproven: true})
	if err != nil || len(pruned.States) != 1 {
		t.Fatalf("pruned %+v, %v", pruned, err)
	}
	out := s.bucket(t) + "/pruned"
	s.writeView(t, v, out, writer.Options{ReadBack: true})
	var lists [][]string
	for _, sub := range operatorNamed(t, truth, "union").Subtasks {
		lists = append(lists, sub.OperatorState["offsets"].Raw)
	}
	kept := slices.Concat(keptOf(t, lists, transform.KeepDistinct)...)
	if len(kept) == 0 || len(kept) >= len(slices.Concat(lists...)) {
		t.Fatalf("%d of %d elements are kept: nothing is shown", len(kept), len(slices.Concat(lists...)))
	}
	made.Location = out
	restored, err := f.RestoreRemote(made, Choices{})
	if err != nil {
		t.Fatal(explain(err))
	}
	for _, sub := range operatorNamed(t, restored, "union").Subtasks {
		if got := sub.OperatorState["offsets"].Raw; !sameBag(kept, got) {
			t.Errorf("subtask %d is given %d elements, expected the %d that are kept", sub.Index, len(got), len(kept))
		}
	}
}

// relocated moves the directory of a job with an incremental checkpoint, whose references
// are absolute: Flink refuses the checkpoint until they are rewritten.
func (s *service) relocated(t *testing.T, f *Flink, store *hdfs.Store, options Options) {
	made, truth := s.make(t, f, options)
	from, to := made.Options.At, made.Options.At+"-moved"
	if err := store.Move(context.Background(), from, to); err != nil {
		t.Fatal(err)
	}
	moved := made
	moved.Location = strings.Replace(made.Location, from, to, 1)
	if _, err := f.RestoreRemote(moved, Choices{}); err == nil {
		t.Fatalf("Flink restores %s although its files are not where it says", moved.Location)
	}
	snap := s.open(t, moved.Location)
	v, _, err := transform.Relocate(context.Background(), snap.View(), transform.RelocateOptions{Prefixes: []format.Mapping{{Old: from, New: to}}})
	if err != nil {
		t.Fatal(err)
	}
	out := s.bucket(t) + "/relocated"
	s.writeView(t, v, out, writer.Options{KeepReferences: true})
	s.held(t, f, made, truth, out)
}

// overwritten replaces one snapshot by another.
func (s *service) overwritten(t *testing.T, f *Flink, options Options) {
	old, _ := s.make(t, f, options)
	options.Seed++
	made, truth := s.make(t, f, options)
	out := s.bucket(t) + "/out"
	s.write(t, s.open(t, old.Location), out, writer.Options{})
	s.write(t, s.open(t, made.Location), out, writer.Options{Overwrite: true})
	s.held(t, f, made, truth, out)
}
