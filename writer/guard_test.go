package writer

import (
	"bytes"
	"context"
	"errors"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/fault"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
)

// changing replaces bytes of _metadata on their way to the disk, by as many.
type changing struct {
	moving
	old, new string
	done     int
}

func (c *changing) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	w, err := c.moving.Store.Create(ctx, name, o)
	if err != nil || !strings.HasSuffix(name, reader.MetadataName) {
		return w, err
	}
	return &changingWriter{w, c}, nil
}

type changingWriter struct {
	storage.Writer
	c *changing
}

func (w *changingWriter) Write(p []byte) (int, error) {
	w.c.done += bytes.Count(p, []byte(w.c.old))
	return w.Writer.Write(bytes.ReplaceAll(p, []byte(w.c.old), []byte(w.c.new)))
}

func (w *changingWriter) Contents() ([]byte, func() error, error) {
	return w.Writer.(ability.Contents).Contents()
}

// A _metadata that reached the disk as another than was meant, and decodes all
// the same, is not left there: neither one that was encoded, nor one that was
// copied.
func TestMetadataThatDiffers(t *testing.T) {
	dir := jobFolder(t)
	for name, o := range map[string]Options{"encoded": {}, "copied": {KeepReferences: true}} {
		for old, other := range map[string]string{"inline": "inlinE", "uid": "uiD"} {
			out := folderOf(t, nil)
			c := &changing{moving: moving{local.New(), nil}, old: old, new: other}
			o.Stores = stores("out", c)
			_, err := Write(background, openAt(t, dir+"/job/chk-1", o.Stores).View(), "out://"+out+"/sp", &o)
			if c.done != 1 {
				t.Errorf("%s: %s was changed %d times", name, old, c.done)
			}
			want := "does not match the planned model"
			if name == "copied" {
				want = "the copy of _metadata differs from the original"
			}
			if err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %s: error %v, want: %s", name, old, err, want)
			}
			if left := names(tree(t, out)); len(left) != 1 {
				t.Errorf("%s: left over: %v", name, left)
			}
		}
	}
}

// A stream that gives more or fewer bytes than were planned ends the writing,
// whatever the store thinks of it.
func TestLengthWhileCopying(t *testing.T) {
	dir := jobFolder(t)
	snap := openAt(t, dir+"/job/chk-1", stores())
	for _, planned := range []int64{0, 4, 6, 1 << 20} {
		for name, store := range map[string]storage.Storage{"mem": mem.New(), "sizes unknown": &sinking{Store: mem.New()}} {
			w := newFlinkWrite(&Plan{snap: snap, store: store, name: "out", o: Options{Jobs: 4, Files: Copy, Progress: func(int64) {}}})
			err := w.file(background, File{Name: "f", Bytes: planned, How: "new", of: inlined("12345")})
			if !errors.Is(err, format.ErrChanged) {
				t.Errorf("%s: %d bytes planned of 5: %v", name, planned, err)
			}
			if err := w.file(background, File{Name: "g", Bytes: 5, How: "new", of: inlined("12345")}); err != nil {
				t.Errorf("%s: %v", name, err)
			}
			if len(w.names) != 1 || w.written != 5 {
				t.Errorf("%s: wrote %v, %d bytes", name, w.names, w.written)
			}
		}
	}
}

// roomy has room for so many bytes.
type roomy struct {
	moving
	free int64
}

func (r roomy) FreeSpace(context.Context, string) (int64, error) { return r.free, nil }

// What has to fit is what will be written, to the byte: every file and
// _metadata, without what is linked.
func TestRoomToTheByte(t *testing.T) {
	dir := folderOf(t, map[string]string{"in/one": noise(1, 1000), "in/two": noise(2, 2000), "in/three": noise(3, 30), "far/four": noise(4, 400)})
	putFile(t, dir+"/in/_metadata", encoded(t, modelOf(
		handleOf(relative("one", 1000), 0), handleOf(relative("two", 2000), 0), handleOf(relative("three", 30), 0), handleOf(relative("one", 1000), 0), // one file, twice
		handleOf(absoluteFile("file:"+dir+"/far/four", 400), 0), handleOf(inlined(noise(5, 500)), 0))))
	for how, state := range map[Files]int64{Copy: 3430, Link: 0, Reference: 0} {
		o := Options{Stores: stores(), Files: how}
		sealAt(t, dir+"/in", dir+"/"+string(how), o)
		fi, err := os.Stat(dir + "/" + string(how) + "/_metadata")
		if err != nil {
			t.Fatal(err)
		}
		need := state + fi.Size()
		for free, fits := range map[int64]bool{0: false, fi.Size() - 1: false, need - 1: false, need: true, need + 1: true} {
			o.Stores = stores("out", roomy{moving{local.New(), func(string, string) error { return nil }}, free})
			_, err := Prepare(background, openAt(t, dir+"/in", o.Stores).View(), "out://"+dir+"/new", &o)
			if fits != (err == nil) || !fits && !errors.Is(err, storage.ErrNoSpace) {
				t.Errorf("%s: %d bytes free, %d needed: %v", how, free, need, err)
			}
		}
	}
}

// The folder of the target goes while it is written, at each call: the outcome is
// an error or a whole snapshot, never one without its files, which a store that
// makes missing folders again would leave.
func TestFolderRemovedMeanwhile(t *testing.T) {
	dir := folderOf(t, severalFiles(t))
	o := Options{Stores: stores("in", prefixed{local.New(), dir + "/"}), Jobs: 1}
	snap := openAt(t, dir+"/sp", o.Stores)
	for _, target := range []string{"/to/out", "/to/out.spt"} {
		figures := map[string]int{}
		for n := int64(1); ; n++ {
			if n > 300 {
				t.Fatal("it never ends")
			}
			base := folderOf(t, map[string]string{"to/": ""})
			var calls atomic.Int64
			ctx := fault.With(background, func(context.Context, string, string) error {
				if calls.Add(1) == n {
					return os.RemoveAll(base + "/to")
				}
				return nil
			})
			_, err := Write(ctx, snap.View(), base+target, &Options{Stores: stores("in", prefixed{local.New(), dir + "/"}), Jobs: 1})
			_, there := os.Lstat(base + target)
			switch {
			case err == nil && there == nil:
				sound(t, openAt(t, base+target, o.Stores))
				figures["whole"]++
			case there == nil:
				t.Errorf("%s at %d: it is there: %v", target, n, err)
			case err != nil:
				figures["failed"]++
			default: // removed when it was done
				figures["done"]++
			}
			if calls.Load() < n {
				break
			}
		}
		t.Logf("%s: %v", target, figures)
		if figures["failed"] == 0 || figures["whole"] == 0 {
			t.Errorf("%s: %v", target, figures)
		}
	}
}
