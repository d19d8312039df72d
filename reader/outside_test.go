package reader_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

const jobID = "000000000000000000000000005b707a"

// What belongs to a snapshot, and what does not, by the layout that Flink writes.
func TestWhatIsRead(t *testing.T) {
	tests := []struct {
		name, sp, file string
		follow         string // below the folder
		want           reader.FileStatus
	}{
		{"next to _metadata", "ck/" + jobID + "/chk-3", "ck/" + jobID + "/chk-3/x", "", reader.FileFound},
		{"shared", "ck/" + jobID + "/chk-3", "ck/" + jobID + "/shared/x", "", reader.FileFound},
		{"merged, task owned", "ck/" + jobID + "/chk-3", "ck/" + jobID + "/taskowned/job_1_tm_2/x", "", reader.FileFound},
		{"another checkpoint", "ck/" + jobID + "/chk-3", "ck/" + jobID + "/chk-2/x", "", reader.FileFound},
		{"another job, of which it was claimed", "ck/" + jobID + "/chk-3", "ck/00000000000000000000000000000001/shared/x", "", reader.FileFound},
		{"changelog in the root", "ck/" + jobID + "/chk-3", "ck/" + jobID + "/dstl/x", "", reader.FileFound},
		{"above the root", "ck/" + jobID + "/chk-3", "x", "", reader.FileRefused},
		{"next to the root", "ck/" + jobID + "/chk-3", "ck2/x", "", reader.FileRefused},
		{"not there, above the root", "ck/" + jobID + "/chk-3", "", "", reader.FileMissing},
		{"without a folder of the job", "ck/chk-3", "ck/shared/x", "", reader.FileFound},
		{"without a folder of the job, another checkpoint", "ck/chk-3", "ck/chk-2/x", "", reader.FileFound},
		{"without a folder of the job, changelog", "ck/chk-3", "dstl/" + jobID + "/dstl/x", "", reader.FileFound},
		{"without a folder of the job, above", "ck/chk-3", "x", "", reader.FileRefused},
		{"job with another name", "ck/orders/chk-3", "ck/orders/shared/x", "", reader.FileFound},
		{"job with another name, above", "ck/orders/chk-3", "ck/x", "", reader.FileRefused},
		{"savepoint", "sp/savepoint-5b707a-0123456789ab", "sp/savepoint-5b707a-0123456789ab/x", "", reader.FileFound},
		{"next to a savepoint", "sp/savepoint-5b707a-0123456789ab", "sp/x", "", reader.FileRefused},
		{"another savepoint", "sp/savepoint-5b707a-0123456789ab", "sp/savepoint-5b707a-ffffffffffff/x", "", reader.FileRefused},
		{"renamed checkpoint", "ck/" + jobID + "/backup", "ck/" + jobID + "/shared/x", "", reader.FileFound},
		{"renamed checkpoint, next to it", "ck/" + jobID + "/backup", "ck/" + jobID + "/x", "", reader.FileRefused},
		{"folder of a name that begins alike", "ck/" + jobID + "/chk-3", "ck/" + jobID + "-evil/../../ck-evil/x", "", reader.FileRefused},
		{"followed", "sp/one", "far/away/x", "far", reader.FileFound},
		{"followed, with a slash", "sp/one", "far/away/x", "far/", reader.FileFound},
		{"followed itself", "sp/one", "far/away/x", "far/away/x", reader.FileFound},
		{"followed by another name", "sp/one", "far/away/x", "far/aw", reader.FileRefused},
		{"followed elsewhere", "sp/one", "far/away/x", "near", reader.FileRefused},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := t.TempDir()
			file := filepath.Join(dir, tt.file)
			if tt.file == "" {
				file += "/gone"
			} else {
				put(t, file, "state")
			}
			ref := "file:" + dir + "/" + tt.file
			if tt.file == "" {
				ref = "file:" + file
			}
			put(t, dir+"/"+tt.sp+"/_metadata", referring(t, absolute(ref, 5)))
			for _, follow := range []string{dir + "/" + tt.follow, "file:" + dir + "/" + tt.follow, "file:///" + dir[1:] + "/" + tt.follow} {
				o := options()
				if tt.follow != "" {
					o.Follow = []string{dir + "/unlike", follow}
				}
				snap, found, err := locate(t, dir+"/"+tt.sp, o)
				if got := (reader.FileState{Err: err}).Status(); got != tt.want {
					t.Fatalf("%s: %v", got, err)
				}
				data := snap.Operators[0].Subtasks[0].Managed.Data
				if tt.want == reader.FileFound {
					if got := content(t, snap, data); got != "state" {
						t.Errorf("read %q", got)
					}
					continue
				}
				if n, rerr := snap.Source().ReadAt(ctx, data, make([]byte, 1), 0); n != 0 || rerr == nil || rerr.Error() != err.Error() {
					t.Errorf("read %d bytes, %v", n, rerr)
				}
				if _, oerr := snap.OpenFile(ctx, data, 0, -1); oerr == nil {
					t.Error("opened")
				}
				var out *reader.OutsideError
				if tt.want != reader.FileRefused {
					continue
				}
				if !errors.As(err, &out) || !out.Exists || out.Follow != filepath.Dir(file) || out.Reference != ref || found.Info.Size != 5 {
					t.Errorf("%+v, %+v", out, found)
				}
				o.Follow = []string{out.Follow}
				if _, _, err := locate(t, dir+"/"+tt.sp, o); err != nil {
					t.Errorf("the advice does not help: %v", err)
				}
			}
		})
	}
}

// A mapping allows where it leads, and nothing to which a name climbs from there.
func TestMappingAllowsWhereItLeads(t *testing.T) {
	dir := write(t, map[string]string{"new/x": "state", "secret": "keep!", "new2/x": "keep!"})
	o := options()
	o.Map = []format.Mapping{{Old: "s3://b", New: dir + "/new"}}
	for ref, want := range map[string]reader.FileStatus{
		"s3://b/x":                reader.FileFound,
		"file:" + dir + "/new/x":  reader.FileFound,
		"s3://b/../secret":        reader.FileRefused,
		"file:" + dir + "/new2/x": reader.FileRefused,
	} {
		put(t, dir+"/sp/_metadata", referring(t, absolute(ref, 5)))
		if _, _, err := locate(t, dir+"/sp", o); (reader.FileState{Err: err}).Status() != want {
			t.Errorf("%s: %v", ref, err)
		}
	}
}

// rooted is a file system in memory.
type rooted struct{ *mem.Store }

func (rooted) Canonical(_ context.Context, name string) (string, error) { return name, nil }

// A checkpoint at the top of the file system does not make all of it its own.
func TestTheFileSystemIsNoCheckpointRoot(t *testing.T) {
	for sp, want := range map[string]map[string]reader.FileStatus{
		"/" + jobID + "/chk-3":   {"/etc/passwd": reader.FileRefused, "/" + jobID + "/shared/x": reader.FileFound, "/" + jobID + "/x": reader.FileFound, "/dstl/x": reader.FileFound},
		"/chk-3":                 {"/etc/passwd": reader.FileRefused, "/shared/x": reader.FileFound, "/chk-3/x": reader.FileFound, "/chk-2/x": reader.FileFound, "/x": reader.FileRefused},
		"/sp":                    {"/etc/passwd": reader.FileRefused, "/sp/x": reader.FileFound, "/x": reader.FileRefused},
		"/d/" + jobID + "/chk-3": {"/etc/passwd": reader.FileRefused, "/d/x": reader.FileFound, "/x": reader.FileRefused},
	} {
		for file, status := range want {
			store := rooted{inMemory(t, map[string]string{sp + "/_metadata": referring(t, absolute("file:"+file, 5)), file: "state"})}
			if _, _, err := locate(t, sp, reader.Options{Stores: route.New(store)}); (reader.FileState{Err: err}).Status() != status {
				t.Errorf("%s of %s: %v", file, sp, err)
			}
		}
	}
}

// In a store of URIs, whose names are compared as they are written.
func TestWhatIsReadInAnObjectStore(t *testing.T) {
	for _, tt := range []struct {
		ref    string
		follow string
		want   reader.FileStatus
	}{
		{"mem://bucket/ck/" + jobID + "/shared/x", "", reader.FileFound},
		{"mem://bucket/ck/x", "", reader.FileFound},
		{"mem://bucket/ck-evil/x", "", reader.FileRefused},
		{"mem://bucket/ck/../ck-evil/x", "", reader.FileRefused},
		{"mem://bucket/ck-evil/x", "mem://bucket/ck-evil", reader.FileFound},
		{"mem://bucket/ck-evil/x", "mem://bucket/ck-", reader.FileRefused},
		{"mem://bucket/ck-evil/../other/x", "mem://bucket/ck-evil", reader.FileRefused},
		{"s3a://bucket/x", "s3p://bucket", reader.FileFound},
		{"s3://bucket/x", "s3a://bucket/", reader.FileFound},
		{"s3://bucket/x", "s3a://buck", reader.FileNotChecked}, // another store than the snapshot's
		{"s3://bucket/x", "", reader.FileNotChecked},
		{"gs://bucket/x", "gs://bucket", reader.FileNotChecked},
		// Flink puts random characters into the addresses of state files.
		{"mem://bucket/a1B2/ck/" + jobID + "/shared/x", "", reader.FileFound},
		{"mem://bucket/ck/a1B2/" + jobID + "/shared/x", "", reader.FileFound},
		{"mem://bucket/a1B2/ck-evil/x", "", reader.FileRefused},
		{"mem://bucket/a1B2/other/x", "", reader.FileRefused},
		{"mem://a1B2/bucket/ck/x", "", reader.FileRefused},
		{"mem://bucket/long/a1B2/ck/x", "", reader.FileRefused},
	} {
		asked := 0
		files := map[string]string{"bucket/ck/" + jobID + "/chk-3/_metadata": referring(t, absolute(tt.ref, 5))}
		for _, name := range []string{"bucket/ck/" + jobID + "/shared/x", "bucket/ck/x", "bucket/ck-evil/x", "bucket/x", "bucket/other/x", "bucket/ck-evil/../other/x", "bucket/ck/../ck-evil/x", "bucket/a1B2/ck/" + jobID + "/shared/x", "bucket/ck/a1B2/" + jobID + "/shared/x", "bucket/a1B2/other/x", "bucket/a1B2/ck-evil/x", "a1B2/bucket/ck/x", "bucket/long/a1B2/ck/x"} {
			files[name] = "state"
		}
		store := inMemory(t, files)
		counted := hooked{store, func(op, name string) error {
			if op != "list" && filepath.Base(name) == "x" {
				asked++
			}
			return nil
		}}
		o := options("mem", counted, "s3", counted, "s3a", counted, "s3p", counted)
		if tt.follow != "" {
			o.Follow = []string{tt.follow}
		}
		_, _, err := locate(t, "mem://bucket/ck/"+jobID+"/chk-3", o)
		if got := (reader.FileState{Err: err}).Status(); got != tt.want {
			t.Errorf("%s, following %q: %s, %v", tt.ref, tt.follow, got, err)
		}
		// The author of the reference chose the object: a request for it with the
		// credentials of the user would inform them.
		if tt.want != reader.FileFound && asked > 1 { // a copy in the snapshot is looked for
			t.Errorf("%s: %d requests", tt.ref, asked)
		}
	}
}

// swapping is the local store, with a moment between the look at a link and the
// look at the file in which somebody else can act.
type swapping struct {
	*local.Store
	name string // of the Canonical after which swap is called, once
	swap func()
}

func (s *swapping) Canonical(ctx context.Context, name string) (string, error) {
	real, err := s.Store.Canonical(ctx, name)
	if name == s.name && s.swap != nil {
		s.swap()
		s.swap = nil
	}
	return real, err
}

// A link that is put in the way after its name was resolved leads nowhere.
func TestSwappedMeanwhile(t *testing.T) {
	replace := func(t *testing.T, name, to string) {
		if err := os.Rename(name, name+".old"); err != nil {
			t.Fatal(err)
		}
		if err := os.Symlink(to, name); err != nil {
			t.Fatal(err)
		}
	}
	for name, tt := range map[string]struct {
		ref  format.Stream // {dir} is the folder
		file string
		swap func(t *testing.T, dir string)
	}{
		"file":            {relative("x", 5), "ck/job/chk-3/x", func(t *testing.T, dir string) { replace(t, dir+"/ck/job/chk-3/x", dir+"/out/x") }},
		"its folder":      {nil, "ck/job/shared/a/x", func(t *testing.T, dir string) { replace(t, dir+"/ck/job/shared/a", dir+"/out") }},
		"the folder read": {nil, "ck/job/shared/x", func(t *testing.T, dir string) { replace(t, dir+"/ck/job/shared", dir+"/out") }},
		"the snapshot":    {relative("x", 5), "ck/job/chk-3/x", func(t *testing.T, dir string) { replace(t, dir+"/ck/job/chk-3", dir+"/out") }},
	} {
		t.Run(name, func(t *testing.T) {
			dir, err := filepath.EvalSymlinks(write(t, map[string]string{tt.file: "right", "out/x": "wrong", "out/_metadata": "wrong", "out/shared/x": "wrong"}))
			if err != nil {
				t.Fatal(err)
			}
			ref := tt.ref
			if ref == nil {
				ref = absolute("file:"+dir+"/"+tt.file, 5)
			}
			put(t, dir+"/ck/job/chk-3/_metadata", referring(t, ref))
			store := &swapping{Store: local.New(), name: dir + "/" + tt.file}
			snap := open(t, dir+"/ck/job/chk-3", reader.Options{Stores: route.New(store)})
			data := snap.Operators[0].Subtasks[0].Managed.Data
			acted := false
			store.swap = func() { tt.swap(t, dir); acted = true }
			p := make([]byte, 5)
			if n, err := snap.Source().ReadAt(ctx, data, p, 0); !errors.Is(err, format.ErrChanged) && !errors.Is(err, format.ErrOutside) || n != 0 {
				t.Errorf("read %q, %v", p[:n], err)
			}
			if !acted {
				t.Error("nothing was swapped")
			}
		})
	}
}

// Nor does one that is put there between the look at the file and a read of it.
func TestSwappedBeforeItIsRead(t *testing.T) {
	dir := write(t, map[string]string{"sp/x": "right", "out/x": "wrong", "sp/_metadata": referring(t, relative("x", 5))})
	snap, _, err := locate(t, dir+"/sp", options())
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(os.Remove(dir+"/sp/x"), os.Symlink(dir+"/out/x", dir+"/sp/x")); err != nil {
		t.Fatal(err)
	}
	data := snap.Operators[0].Subtasks[0].Managed.Data
	p := make([]byte, 5)
	if n, err := snap.Source().ReadAt(ctx, data, p, 0); !errors.Is(err, format.ErrChanged) || n != 0 {
		t.Errorf("read %q, %v", p[:n], err)
	}
}

// The user named the folder, and the author of the folder the link: no state in
// its target is read. A file that the user names is.
func TestLinkedMetadata(t *testing.T) {
	dir := write(t, map[string]string{"out/m": string(encode(t, model(list(inline("keep!"), 0)))), "sp/": ""})
	if err := os.Symlink("../out/m", dir+"/sp/_metadata"); err != nil {
		t.Fatal(err)
	}
	read := func(location string, o reader.Options) (string, error) {
		snap := open(t, location, o)
		p := make([]byte, 5)
		n, err := snap.Source().ReadAt(ctx, snap.Operators[0].Subtasks[0].Managed.Data, p, 0)
		return string(p[:n]), err
	}
	if got, err := read(dir+"/sp", options()); !errors.Is(err, format.ErrOutside) || got != "" {
		t.Errorf("read %q, %v", got, err)
	}
	follow := options()
	follow.Follow = []string{dir + "/out"}
	for location, o := range map[string]reader.Options{dir + "/sp": follow, dir + "/sp/_metadata": options(), dir + "/out/m": options()} {
		if got, err := read(location, o); got != "keep!" {
			t.Errorf("%s: read %q, %v", location, got, err)
		}
	}
	// Inside, a link is one of the snapshot's own.
	put(t, dir+"/own/m", string(encode(t, model(list(inline("mine!"), 0)))))
	if err := os.Symlink("m", dir+"/own/_metadata"); err != nil {
		t.Fatal(err)
	}
	if got, err := read(dir+"/own", options()); got != "mine!" {
		t.Errorf("read %q, %v", got, err)
	}
}

// What no store answers for is not missing.
func TestNotChecked(t *testing.T) {
	for name, cause := range map[string]error{"permission": storage.ErrPermission, "unavailable": storage.ErrUnavailable} {
		store := hooked{inMemory(t, map[string]string{"sp/_metadata": referring(t, relative("x", 5)), "sp/x": "state"}), func(op, name string) error {
			if op == "list" || name == "sp/x" {
				return cause
			}
			return nil
		}}
		_, _, err := locate(t, "mem://sp", options("mem", store))
		var e *reader.NotCheckedError
		if !errors.As(err, &e) || e.Scheme != "" || !errors.Is(err, cause) || errors.Is(err, format.ErrMissing) {
			t.Errorf("%s: %v", name, err)
		}
	}
	dir := write(t, map[string]string{"sp/_metadata": referring(t, absolute("s3a://b/x", 5))})
	_, _, err := locate(t, dir+"/sp", options())
	var e *reader.NotCheckedError
	if !errors.As(err, &e) || e.Scheme != "s3a" || errors.Is(err, format.ErrMissing) || (reader.FileState{Err: err}).Status() != reader.FileNotChecked {
		t.Errorf("%v", err)
	}
}

// An address copied from the configuration, with the marker of Flink, names the
// directory of _metadata, which has no marker.
func TestEntropyMarker(t *testing.T) {
	store := inMemory(t, map[string]string{
		"bucket/ck/" + jobID + "/chk-3/_metadata": referring(t, absolute("mem://bucket/x9Zz/ck/"+jobID+"/chk-3/s", 5)),
		"bucket/x9Zz/ck/" + jobID + "/chk-3/s":    "state",
	})
	snap, found, err := locate(t, "mem://bucket/_entropy_/ck/"+jobID+"/chk-3", options("mem", store))
	if err != nil {
		t.Fatal(err)
	}
	if want := "mem://bucket/ck/" + jobID + "/chk-3"; snap.Location != want || found.Info.Size != 5 {
		t.Errorf("%s, %d bytes", snap.Location, found.Info.Size)
	}
	all, err := reader.List(ctx, "mem://bucket/_entropy_/ck", reader.ListOptions{Options: options("mem", store), Files: true})
	if err != nil || len(all) != 1 || all[0].State != reader.Complete || all[0].Path != snap.Location {
		t.Errorf("%+v, %v", all, err)
	}
}
