package reader_test

import (
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
)

// found is the jobs and ids that Checkpoints returns, sorted.
func found(t *testing.T, root string, depth int, o reader.Options) (all []string) {
	t.Helper()
	list, err := reader.Checkpoints(ctx, root, depth, o)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range list {
		all = append(all, fmt.Sprintf("%s %d", c.Job, c.ID))
	}
	slices.Sort(all)
	return all
}

func TestCheckpoints(t *testing.T) {
	const job = "0123456789abcdef0123456789abcdef"
	files := map[string]string{
		job + "/chk-1/_metadata":                        "",
		job + "/chk-2/state":                            "",
		job + "/shared/chk-3/f":                         "", // next to chk-1
		"orders/chk-7/_metadata":                        "",
		"team/orders/chk-8/_metadata":                   "",
		"savepoint-1-2/x/chk-9/f":                       "",
		"taskowned/chk-10/f":                            "",
		"fedcba9876543210fedcba9876543210/sub/chk-11/f": "", // a job has no jobs below it
		"chk-x/f": "",
	}
	local := write(t, files)
	store := mem.New()
	for name, data := range files {
		storetest.Put(t, store, "s3://b/ck/"+name, data)
	}
	for _, root := range []string{local, "s3a://b/ck"} {
		for depth, want := range map[int][]string{
			0: nil,
			1: {job + " 1", job + " 2", "orders 7"},
			2: {job + " 1", job + " 2", "orders 7", "team/orders 8"},
		} {
			if got := found(t, root, depth, bucket(store)); !slices.Equal(got, want) {
				t.Errorf("%s, depth %d: %q, want %q", root, depth, got, want)
			}
		}
		if got, want := found(t, root+"/"+job, 0, bucket(store)), []string{" 1", " 2"}; !slices.Equal(got, want) {
			t.Errorf("the directory of a job: %q, want %q", got, want)
		}
		if got := found(t, root+"/missing", 2, bucket(store)); got != nil {
			t.Errorf("a root that does not exist: %q", got)
		}
	}
}

func TestOpenCheckpoint(t *testing.T) {
	whole := string(encode(t, model(list(inline("hello"), 0))))
	store := mem.New()
	storetest.Put(t, store, "s3://b/chk-1/_metadata", whole)
	storetest.Put(t, store, "s3://b/chk-2/state", "x")
	storetest.Put(t, store, "s3://b/chk-3/_metadata", "")
	storetest.Put(t, store, "s3://b/chk-4/_metadata", whole[:len(whole)-5])
	c := storetest.NewCounting(store)
	o := bucket(c)
	for name, want := range map[string]error{"chk-1": nil, "chk-2": storage.ErrNotExist, "chk-3": format.ErrCorrupt, "chk-4": format.ErrCorrupt} {
		c.Reset()
		snap, err := reader.OpenCheckpoint(ctx, "s3a://b/"+name+"/", &o)
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", name, err, want)
		}
		if err == nil {
			if snap.ID != 7 || snap.Location != "s3a://b/"+name {
				t.Errorf("%s: checkpoint %d at %s", name, snap.ID, snap.Location)
			}
			if err := snap.Close(); err != nil {
				t.Error(err)
			}
		}
		if name != "chk-3" && name != "chk-4" { // whose errors say what is there
			wantRequests(t, c, name, "1 read")
		}
	}
}
