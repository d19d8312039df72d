package writer

import (
	"context"
	"errors"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/internal/fault"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
)

// job is a folder with a snapshot "job/chk-1" that refers to files beside it
// and elsewhere.
func jobFolder(t testing.TB) string {
	t.Helper()
	dir := folderOf(t, map[string]string{"job/chk-1/state": "hello", "job/shared/x": "shared"})
	putFile(t, dir+"/job/chk-1/_metadata", encoded(t, modelOf(handleOf(relative("state", 5), 0), handleOf(absoluteFile("file:"+dir+"/job/shared/x", 6), 0), handleOf(inlined("inline"), 0))))
	return dir
}

// The target has nothing to do with the input, by whatever name.
func TestTargetApartFromInput(t *testing.T) {
	dir := jobFolder(t)
	for link, to := range map[string]string{"tojob": "job", "tochk": "job/chk-1", "toshared": "job/shared", "dangling": "job/chk-1/new", "toall": "."} {
		if err := os.Symlink(dir+"/"+to, dir+"/"+link); err != nil {
			t.Fatal(err)
		}
	}
	sealAt(t, dir+"/job/chk-1", dir+"/in.spt", Options{Stores: stores()})
	if err := os.Symlink(dir+"/in.spt", dir+"/link.spt"); err != nil {
		t.Fatal(err)
	}
	t.Chdir(dir)
	tests := []struct{ in, target, why string }{
		{"job/chk-1", "job/chk-1", "it is the input"},
		{"job/chk-1", "job/chk-1/", "it is the input"},
		{"job/chk-1", "job/../job/./chk-1", "it is the input"},
		{"job/chk-1", dir + "/job/chk-1", "it is the input"},
		{"job/chk-1", "file:" + dir + "/job/chk-1", "it is the input"},
		{"job/chk-1", "tochk", "it is the input"},
		{"job/chk-1", "tojob/chk-1", "it is the input"},
		{"tochk", "job/chk-1", "it is the input"},
		{"job/chk-1/_metadata", "job/chk-1", "it is the input"},
		{"job/chk-1", "job/chk-1/out", "it is inside the input"},
		{"job/chk-1", "job/chk-1/out.spt", "it is inside the input"},
		{"job/chk-1", "job/chk-1/deep/er/out", "it is inside the input"},
		{"job/chk-1", "tochk/out", "it is inside the input"},
		{"job/chk-1", "dangling", "it is inside the input"},
		{"job/chk-1", "job", "it contains the input"},
		{"job/chk-1", "tojob", "it contains the input"},
		{"job/chk-1", ".", "it contains the input"},
		{"job/chk-1", "toall", "it contains the input"},
		{"job/chk-1", "job/shared", "it contains a file of the input"},
		{"job/chk-1", "toshared", "it contains a file of the input"},
		{"job/chk-1", "job/shared/x", "it is a file of the input"},
		{"job/chk-1", "toshared/x", "it is a file of the input"},
		{"in.spt", "in.spt", "it is the input"},
		{"in.spt", "link.spt", "it is the input"},
		{"link.spt", "in.spt", "it is the input"},
		{"in.spt", ".", "it contains the input"},
	}
	for _, tt := range tests {
		for _, overwrite := range []bool{false, true} {
			unchanged(t, dir, func() {
				_, err := Write(background, openAt(t, tt.in, stores()).View(), tt.target, &Options{Stores: stores(), Overwrite: overwrite})
				refusedTarget(t, err, tt.why)
			})
		}
	}
	// Below a file there can be nothing.
	if _, err := Write(background, openAt(t, "job/chk-1", stores()).View(), "job/shared/x/out", &Options{Stores: stores()}); err == nil {
		t.Error("written below a file")
	}
	// What only begins alike is apart.
	sealAt(t, "job/chk-1", "job/chk-10", Options{Stores: stores()})
	sealAt(t, "job/chk-1", "job/sharedout", Options{Stores: stores()})
}

func TestTargetApartFromInputInAnObjectStore(t *testing.T) {
	store := mem.New()
	storetest.Put(t, store, "job/chk-1/_metadata", encoded(t, modelOf(handleOf(absoluteFile("mem://job/shared/x", 6), 0))))
	storetest.Put(t, store, "job/shared/x", "shared")
	o := Options{Stores: stores("mem", store), Overwrite: true}
	for target, why := range map[string]string{"job/chk-1": "it is the input", "job/chk-1/": "it is the input", "job/chk-1/x.spt": "it is inside the input", "job": "it contains the input", "job/shared": "it contains a file of the input"} {
		_, err := Write(background, openAt(t, "mem://job/chk-1", o.Stores).View(), "mem://"+target, &o)
		refusedTarget(t, err, why)
	}
}

// Nothing that exists is replaced, and with Overwrite only a snapshot.
func TestTargetThatExists(t *testing.T) {
	dir := jobFolder(t)
	o := Options{Stores: stores()}
	sealAt(t, dir+"/job/chk-1", dir+"/old", o)
	sealAt(t, dir+"/job/chk-1", dir+"/old.spt", o)
	sealAt(t, dir+"/job/chk-1", dir+"/foreign", o)
	sealAt(t, dir+"/job/chk-1", dir+"/nested", o)
	for name, data := range map[string]string{
		"foreign/notes.txt": "mine", "nested/below/x": "mine", "file": "mine", "text.spt": "mine", "folder/x": "mine", "empty/": "",
		"cut.spt": contentsOf(t, dir+"/old.spt")[""][:50], "broken/_metadata": "mine", "dir.spt/x": "mine",
	} {
		putFile(t, dir+"/"+name, data)
	}
	refused := func(target, why string, o Options) {
		t.Helper()
		unchanged(t, dir, func() {
			_, err := Write(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), dir+"/"+target, &o)
			refusedTarget(t, err, why)
		})
	}
	all := []string{"old", "old.spt", "foreign", "nested", "file", "text.spt", "folder", "empty", "cut.spt", "broken", "dir.spt"}
	for _, target := range all {
		refused(target, "it exists", o)
	}
	o.Overwrite = true
	for target, why := range map[string]string{
		"foreign": "it contains notes.txt, which is not part of the snapshot", "nested": "it contains below/",
		"file": "it is not a snapshot", "text.spt": "it is not a snapshot", "folder": "it is not a snapshot", "empty": "it is not a snapshot",
		"cut.spt": "it is not a snapshot", "broken": "it is not a snapshot", "dir.spt": "it is not a snapshot",
	} {
		refused(target, why, o)
	}
	// A file and a folder do not replace each other.
	flink, packed := o, o
	flink.Family, packed.Family = reader.Flink, reader.SPT
	refused("old.spt", "a file cannot replace a directory, nor a directory a file", flink)
	refused("old", "a file cannot replace a directory, nor a directory a file", packed)

	// A snapshot is replaced.
	other := folderOf(t, map[string]string{"sp/_metadata": encoded(t, modelOf(handleOf(inlined("another"), 0)))})
	for _, target := range []string{"old", "old.spt"} {
		report, out := sealAt(t, other+"/sp", dir+"/"+target, o)
		if !report.Plan.Replaces {
			t.Errorf("%s: not said to be replaced", target)
		}
		sound(t, out)
		sameStreams(t, out, openAt(t, other+"/sp", o.Stores))
	}
	if got := files(t, dir+"/old"); len(got) != 1 {
		t.Errorf("the old files are still there: %v", names(got))
	}
	// What is new with Overwrite replaces nothing.
	if report, _ := sealAt(t, other+"/sp", dir+"/new", o); report.Plan.Replaces {
		t.Error("replaces nothing")
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		if tempname.Is(e.Name()) {
			t.Errorf("left over: %s", e.Name())
		}
	}
}

// The snapshot that was to be replaced stands where it stood when anything
// fails.
func TestOverwriteThatFails(t *testing.T) {
	dir := jobFolder(t)
	plain := Options{Stores: stores()}
	sealAt(t, dir+"/job/chk-1", dir+"/old", plain)
	sealAt(t, dir+"/job/chk-1", dir+"/old.spt", plain)
	broken := errors.New("a broken disk")
	for _, target := range []string{"old", "old.spt"} {
		for n := 1; ; n++ {
			var count atomic.Int64
			h := moving{local.New(), func(op, _ string) error {
				if count.Add(1) == int64(n) {
					return broken
				}
				return nil
			}}
			o := Options{Stores: stores("out", h), Overwrite: true}
			before := tree(t, dir+"/job")
			old := contentsOf(t, dir+"/"+target)
			_, err := Write(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), "out://"+dir+"/"+target, &o)
			if !maps.Equal(before, tree(t, dir+"/job")) {
				t.Errorf("%s: the input changed", target)
			}
			if err == nil {
				t.Logf("%s: %d points of failure", target, n-1)
				break
			}
			if !errors.Is(err, broken) {
				t.Errorf("%s at %d: %v", target, n, err)
			}
			if got := contentsOf(t, dir+"/"+target); !maps.Equal(got, old) {
				t.Errorf("%s at %d: %v, was %v", target, n, names(got), names(old))
			}
			sound(t, openAt(t, dir+"/"+target, plain.Stores))
			for name := range namesIn(t, dir) {
				if tempname.Is(name) && !strings.Contains(err.Error(), "could not be removed") {
					t.Errorf("%s at %d: %s is left over", target, n, name)
					os.RemoveAll(dir + "/" + name)
				}
			}
			if n > 100 {
				t.Fatal("it never ends")
			}
		}
	}
}

// A rename that was done and says that it was not: the target is there all the
// same, old or new, and whole.
func TestMoveThatFailsLate(t *testing.T) {
	dir := jobFolder(t)
	sealAt(t, dir+"/job/chk-1", dir+"/old", Options{Stores: stores()})
	for n := 1; n <= 2; n++ {
		o := Options{Stores: stores("out", &lateMover{moving{local.New(), func(string, string) error { return nil }}, n}), Overwrite: true}
		_, err := Write(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), "out://"+dir+"/old", &o)
		if !errors.Is(err, errDisk) {
			t.Errorf("rename %d: %v", n, err)
		}
		sound(t, openAt(t, dir+"/old", stores()))
		if n == 2 && !strings.Contains(err.Error(), "is under") {
			t.Errorf("it is not said where the old one is: %v", err)
		}
		for name := range namesIn(t, dir) {
			if tempname.Is(name) && n == 1 {
				t.Errorf("rename %d: %s is left over", n, name)
			}
		}
	}
}

// An exchange that was done and says that it was not is undone.
func TestExchangeThatFailsLate(t *testing.T) {
	dir := jobFolder(t)
	other := folderOf(t, map[string]string{"sp/_metadata": encoded(t, modelOf(handleOf(inlined("old"), 0)))})
	sealAt(t, other+"/sp", dir+"/old", Options{Stores: stores()})
	before := files(t, dir+"/old")
	o := Options{Stores: stores("out", &lateExchanger{moving{local.New(), func(string, string) error { return nil }}, 1}), Overwrite: true}
	_, err := Write(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), "out://"+dir+"/old", &o)
	if !errors.Is(err, errDisk) {
		t.Errorf("error %v", err)
	}
	if !maps.Equal(files(t, dir+"/old"), before) || len(namesIn(t, dir)) != 2 {
		t.Errorf("%v", names(namesIn(t, dir)))
	}
}

// What others write into a snapshot while it is replaced stays, at whatever
// moment it comes.
func TestForeignFileMeanwhile(t *testing.T) {
	dir := jobFolder(t)
	fresh := func(out string) (foreign func()) {
		sealAt(t, dir+"/job/chk-1", out, Options{Stores: stores()})
		return func() { putFile(t, out+"/notes.txt", "theirs") }
	}
	for name, tt := range map[string]struct {
		spt, unsupported bool
		at               string // the call before which it happens
		change           func(out string)
		why              string // of the refusal; "": it is done
	}{
		"a file, early":            {at: "create", why: "notes.txt was added to it"},
		"a file, before the check": {at: "sync directory", why: "notes.txt was added to it"},
		"a file, at the exchange":  {at: "exchange", why: "notes.txt was added to it"},
		"a file, in two steps":     {at: "rename new aside", unsupported: true, why: "notes.txt was added to it"},
		"a file, at the removal":   {at: "remove"},
		"a file, then, in two":     {at: "remove", unsupported: true},
		"a state file is another":  {at: "exchange", change: func(out string) { putFile(t, out+"/state", "other") }, why: "state was replaced or changed"},
		"a state file is gone":     {at: "exchange", change: func(out string) { os.Remove(out + "/state") }, why: "files of it are gone"},
		"all of it is gone":        {at: "create", change: func(out string) { os.RemoveAll(out) }, why: "it is gone"},
		"an .spt, early":           {spt: true, at: "write", change: func(out string) { putFile(t, out, "theirs") }, why: "another process wrote it"},
		"an .spt, at the exchange": {spt: true, at: "exchange", change: func(out string) { putFile(t, out, "theirs") }, why: "another process wrote it"},
		"an .spt, in two":          {spt: true, unsupported: true, at: "write", change: func(out string) { putFile(t, out, "theirs") }, why: "another process wrote it"},
		"an .spt is gone":          {spt: true, at: "write", change: func(out string) { os.Remove(out) }, why: "another process wrote it"},
		"an .spt is a folder now":  {spt: true, at: "write", change: func(out string) { os.Remove(out); putFile(t, out+"/x", "theirs") }, why: "another process wrote it"},
		"an .spt is a link now":    {spt: true, at: "write", change: func(out string) { os.Remove(out); os.Symlink(dir+"/job/shared/x", out) }, why: "another process wrote it"},
		"the folder is a link now": {at: "create", change: func(out string) { os.Rename(out, dir+"/moved"); os.Symlink(dir+"/moved", out) }, why: "it is now a symbolic link"},
	} {
		t.Run(name, func(t *testing.T) {
			to := folderOf(t, nil)
			out := to + "/out"
			if tt.spt {
				out += ".spt"
			}
			foreign := fresh(out)
			if tt.change != nil {
				foreign = func() { tt.change(out) }
			}
			old := func() string { // where the old snapshot is
				for name := range namesIn(t, to) {
					if _, err := os.Stat(to + "/" + name + "/_metadata"); err == nil && tempname.IsOwn(name) {
						return to + "/" + name
					}
				}
				return out
			}
			var mu sync.Mutex // files are written at the same time
			came := false
			var theirs map[string]string
			ctx := fault.With(background, func(_ context.Context, call, name string) error {
				mu.Lock()
				defer mu.Unlock()
				if call == "rename new" && strings.Contains(name, "/.spt-old-") {
					call = "rename new aside"
				}
				if call == "remove" && !strings.HasSuffix(name, "_metadata") {
					call = "" // of temporary files
				}
				if call == tt.at && !came {
					came = true
					if call == "remove" {
						putFile(t, old()+"/notes.txt", "theirs")
					} else {
						foreign()
					}
					theirs = treeIf(t, out)
				}
				if call == "exchange" && tt.unsupported {
					return errors.ErrUnsupported
				}
				return nil
			})
			o := Options{Stores: stores(), Overwrite: true}
			_, err := Write(ctx, openAt(t, dir+"/job/chk-1", o.Stores).View(), out, &o)
			if !came {
				t.Fatal("nothing was changed")
			}
			if tt.why != "" {
				refusedTarget(t, err, tt.why)
				if now := treeIf(t, out); !maps.Equal(now, theirs) {
					t.Errorf("what others wrote changed: %v, was %v", now, theirs)
				}
				if all := namesIn(t, to); len(all) > 1 {
					t.Errorf("left over: %v", names(all))
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), "what others wrote into the old one") {
				t.Errorf("error %v", err)
			}
			sound(t, openAt(t, out, o.Stores))
			kept := ""
			for name := range namesIn(t, to) {
				switch {
				case tempname.Is(name) || tempname.IsOwn(name):
					t.Errorf("%s can be deleted", name)
				case strings.HasPrefix(name, "out.kept-"):
					kept = name
				}
			}
			if got := files(t, to+"/"+kept); len(got) != 1 || got["notes.txt"] != "theirs" || !strings.Contains(err.Error(), kept) {
				t.Errorf("kept %v: %v", names(got), err)
			}
		})
	}
}

// treeIf is tree, also of nothing.
func treeIf(t *testing.T, name string) map[string]string {
	t.Helper()
	if _, err := os.Lstat(name); err != nil {
		return nil
	}
	return tree(t, name)
}

// A target that is a symbolic link is refused, wherever it leads.
func TestTargetIsALink(t *testing.T) {
	dir := jobFolder(t)
	o := Options{Stores: stores()}
	sealAt(t, dir+"/job/chk-1", dir+"/old", o)
	sealAt(t, dir+"/job/chk-1", dir+"/old.spt", o)
	putFile(t, dir+"/folder/", "")
	for link, to := range map[string]string{"a": "old", "a.spt": "old.spt", "b": "nowhere", "b.spt": "nowhere.spt", "c": "folder"} {
		if err := os.Symlink(to, dir+"/"+link); err != nil {
			testenv.Missing(t, "no symbolic link", err)
		}
		for _, o.Overwrite = range []bool{false, true} {
			for _, slash := range []string{"", "/"} {
				unchanged(t, dir, func() {
					_, err := Prepare(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), dir+"/"+link+slash, &o)
					refusedTarget(t, err, "it is a symbolic link to "+to)
				})
			}
		}
	}
	// A link further up is followed.
	if err := os.Symlink("folder", dir+"/up"); err != nil {
		t.Fatal(err)
	}
	sealAt(t, dir+"/job/chk-1", dir+"/up/out", Options{Stores: stores()})
	sound(t, openAt(t, dir+"/folder/out", o.Stores))
}

// Two runs with one target: one of them wins, and the other says so.
func TestTwoRunsOneTarget(t *testing.T) {
	dir := jobFolder(t)
	other := folderOf(t, map[string]string{"sp/_metadata": encoded(t, modelOf(handleOf(inlined("another"), 0)))})
	for _, unsupported := range []bool{false, true} {
		for _, target := range []string{"/out", "/out.spt"} {
			for _, overwrite := range []bool{false, true} {
				to := folderOf(t, nil)
				o := Options{Stores: stores(), Overwrite: overwrite}
				if overwrite {
					sealAt(t, dir+"/job/chk-1", to+target, Options{Stores: stores()})
				}
				// The second comes and goes while the first is at any of its calls.
				for n := int64(1); ; n++ {
					if n > 300 {
						t.Fatal("it never ends")
					}
					var calls atomic.Int64
					var second error
					inner := fault.With(background, func(_ context.Context, call, _ string) error {
						if call == "exchange" && unsupported {
							return errors.ErrUnsupported
						}
						return nil
					})
					ctx := fault.With(background, func(_ context.Context, call, _ string) error {
						if calls.Add(1) == n {
							its := Options{Stores: stores(), Overwrite: overwrite} // as another process has
							_, second = Write(inner, openAt(t, other+"/sp", its.Stores).View(), to+target, &its)
						}
						if call == "exchange" && unsupported {
							return errors.ErrUnsupported
						}
						return nil
					})
					_, first := Write(ctx, openAt(t, dir+"/job/chk-1", o.Stores).View(), to+target, &o)
					if first != nil && second != nil {
						t.Errorf("%s at %d: %v; %v", target, n, first, second)
					}
					if first != nil {
						var refused *TargetError
						if !errors.As(first, &refused) {
							t.Errorf("%s at %d: %v", target, n, first)
						}
					}
					sound(t, openAt(t, to+target, o.Stores))
					if all := namesIn(t, to); len(all) != 1 {
						t.Fatalf("%s at %d: left over: %v: %v; %v", target, n, names(all), first, second)
					}
					if calls.Load() < n {
						break
					}
					if !overwrite {
						if err := os.RemoveAll(to + target); err != nil {
							t.Fatal(err)
						}
					}
				}
			}
		}
	}
}

// namesIn is the names directly in a folder.
func namesIn(t testing.TB, dir string) map[string]bool {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	all := map[string]bool{}
	for _, e := range entries {
		all[e.Name()] = true
	}
	return all
}

// contentsOf is the files of a folder, or a file.
func contentsOf(t testing.TB, name string) map[string]string {
	t.Helper()
	if fi, err := os.Stat(name); err == nil && fi.IsDir() {
		return files(t, name)
	}
	p, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	return map[string]string{"": string(p)}
}

// Somebody else writes the target while we do.
func TestTargetTakenMeanwhile(t *testing.T) {
	dir := jobFolder(t)
	for target, other := range map[string]string{"out": "out/theirs", "x.spt": "x.spt"} {
		h := moving{local.New(), func(op, name string) error {
			if op == "commit" && (strings.HasSuffix(name, "_metadata") || strings.HasSuffix(name, ".spt")) {
				putFile(t, dir+"/"+other, "theirs")
			}
			return nil
		}}
		for _, overwrite := range []bool{false, true} {
			os.RemoveAll(dir + "/" + target)
			o := Options{Stores: stores("out", h), Overwrite: overwrite}
			_, err := Write(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), "out://"+dir+"/"+target, &o)
			refusedTarget(t, err, "another process wrote it")
			if p, err := os.ReadFile(dir + "/" + other); err != nil || string(p) != "theirs" {
				t.Errorf("%s: %q, %v", target, p, err)
			}
		}
	}
	// In an object store.
	for target, other := range map[string]string{"out": "out/_metadata", "x.spt": "x.spt"} {
		store := mem.New()
		h := hooks{store, func(op, name string) error {
			if op == "commit" && name == other {
				storetest.Put(t, store, other, "theirs")
			}
			return nil
		}}
		o := Options{Stores: stores("mem", h)}
		_, err := Write(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), "mem://"+target, &o)
		refusedTarget(t, err, "another process wrote it")
		if got := objects(t, store, ""); len(got) != 1 || got[other] != "theirs" {
			t.Errorf("%s: %v", target, names(got))
		}
	}
}

func TestNoRoom(t *testing.T) {
	dir := jobFolder(t)
	for target, want := range map[string]bool{"out": true, "x.spt": false} { // nobody knows the size of an .spt before
		o := Options{Stores: stores("out", full{moving{local.New(), func(string, string) error { return nil }}})}
		unchanged(t, dir+"/job", func() {
			_, err := Prepare(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), "out://"+dir+"/"+target, &o)
			if errors.Is(err, storage.ErrNoSpace) != want {
				t.Errorf("%s: %v", target, err)
			}
		})
	}
	if got := slices.Collect(maps.Keys(namesIn(t, dir))); len(got) != 1 {
		t.Errorf("%v", got)
	}
}
