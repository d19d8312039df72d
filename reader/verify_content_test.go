package reader_test

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// copied is a copy of a snapshot that a test may damage.
func copied(t *testing.T, dir string) string {
	t.Helper()
	to := t.TempDir()
	if err := os.CopyFS(to, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	_ = filepath.WalkDir(to, func(name string, _ fs.DirEntry, err error) error { return errors.Join(err, os.Chmod(name, 0o755)) })
	return to
}

// damage changes the file, or the place in _metadata, of the stream that pick
// chooses. Lengths stay.
func damage(t *testing.T, dir string, pick func(format.Place) bool, change func(p []byte) bool) {
	t.Helper()
	snap, err := reader.Open(ctx, dir, new(options()))
	if err != nil {
		t.Fatal(err)
	}
	done := false
	err = snap.EachStream(func(p format.Place, st format.Stream) error {
		if done || !pick(p) || st.Size() == 0 {
			return nil
		}
		was := content(t, snap, st)
		now := bytes.Clone([]byte(was))
		if !change(now) {
			return nil
		}
		done = true
		file := filepath.Join(dir, "_metadata")
		if path, relative, ok := format.Reference(st); ok {
			if !relative {
				t.Fatalf("%v is absolute", p)
			}
			file = filepath.Join(dir, path.String())
		}
		all, err := os.ReadFile(file)
		if err != nil {
			return err
		}
		i := bytes.Index(all, []byte(was))
		if i < 0 {
			t.Fatalf("%v is not in %s", p, file)
		}
		copy(all[i:], now)
		return os.WriteFile(file, all, 0o644)
	})
	if err = errors.Join(err, snap.Close()); err != nil {
		t.Fatal(err)
	}
	if !done {
		t.Fatal("nothing was damaged")
	}
}

func swap(old, to string) func(p []byte) bool {
	return func(p []byte) bool {
		i := bytes.Index(p, []byte(old))
		if i < 0 || len(old) != len(to) {
			return false
		}
		copy(p[i:], to)
		return true
	}
}

// knownKind is a kind of known snapshots.
type knownKind struct {
	what string
	fit  func(testenv.KnownSnapshot) bool
}

// inFiles are snapshots with operator state in files, by a major release of Flink.
func inFiles(major string) knownKind {
	return knownKind{"of Flink " + major + "x with operator state in files", func(k testenv.KnownSnapshot) bool {
		o := k.Options
		return strings.HasPrefix(k.Flink, major) && o.Shape == "operator" && o.InlineThreshold == 0 && !o.Compress && !o.Checkpoint
	}}
}

var (
	canonicalHeap = knownKind{"with canonical keyed state", func(k testenv.KnownSnapshot) bool {
		o := k.Options
		return o.Shape == "keyed" && o.Format == "canonical" && !o.Checkpoint && !o.Compress
	}}
	nativeHeap = knownKind{"with native keyed state of the heap backend", func(k testenv.KnownSnapshot) bool {
		o := k.Options
		return o.Shape == "keyed" && o.Format == "native" && o.Backend == "hashmap" && !o.Checkpoint && !o.Compress
	}}
	compressedState = knownKind{"with compressed operator state", func(k testenv.KnownSnapshot) bool {
		o := k.Options
		return o.Shape == "operator" && o.Compress && !o.Checkpoint
	}}
)

// TestVerifyContent damages state that real Flink wrote, in the way that each code
// stands for. Without --read the first bytes of a stream are enough; what is in an
// element is found with it.
func TestVerifyContent(t *testing.T) {
	slot := func(s format.Slot) func(format.Place) bool {
		return func(p format.Place) bool { return p.Slot == s }
	}
	version := func(v uint32) func(p []byte) bool {
		return func(p []byte) bool { binary.BigEndian.PutUint32(p, v); return true }
	}
	const intClass = "org.apache.flink.api.common.typeutils.base.LongSerializer$LongSerializerSnapshot"
	tests := []struct {
		name          string
		snapshot      knownKind
		slot          format.Slot
		change        func(p []byte) bool
		code, message string
		read          bool // found only with Read
	}{
		{"operator state of version 0", inFiles("1."), format.SlotManaged, version(0), "state-version", "unknown version 0 of operator state; supported: 1 to 6", false},
		{"operator state of version 99", inFiles("2."), format.SlotManaged, version(99), "state-version", "unknown version 99 of operator state", false},
		{"keyed state of version 99", canonicalHeap, format.SlotManagedKeyed, version(99), "state-version", "unknown version 99 of keyed state", false},
		{"keyed state of version 0, native", nativeHeap, format.SlotManagedKeyed, version(0), "state-version", "unknown version 0 of keyed state", false},
		{"a state of another name", inFiles("2."), format.SlotManaged, swap("alpha", "alphb"), "state-meta", `"alphb"`, false},
		{"a state of another mode", inFiles("2."), format.SlotManaged, swap("\x00\x05UNION", "\x00\x05UNIOM"), "unreadable", `unknown mode "UNIOM"`, false},
		{"a flag that is neither 0 nor 1", inFiles("2."), format.SlotManaged, func(p []byte) bool { p[4] = 7; return true }, "unreadable", "expected 0 or 1", false},
		{"a class that no release has", inFiles("2."), format.SlotManaged, swap("typeutils.base.LongSerializer$", "typeutils.base.LonhSerializer$"), "serializer-class", "LonhSerializer", false},
		{"a class in another package", inFiles("2."), format.SlotManaged, swap("api.common.typeutils.base.LongSerializer$", "api.comMon.typeutils.base.LongSerializer$"), "serializer-class", "it differs by a character or two from \"" + intClass, false},
		{"a class of keyed state", canonicalHeap, format.SlotManagedKeyed, swap("typeutils.base.", "typeutils.bade."), "serializer-class", "typeutils.bade.", false},
		{"bad snappy", compressedState, format.SlotManaged, func(p []byte) bool {
			i := bytes.LastIndex(p, []byte("sNaPpY"))
			if i < 0 || len(p) < i+20 {
				return false
			}
			p[len(p)-1] ^= 1
			return true
		}, "unreadable", "checksum", true},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			root := testenv.AnyKnown(t, tt.snapshot.what, tt.snapshot.fit).Location
			dir := copied(t, root)
			damage(t, dir, slot(tt.slot), tt.change)
			for _, read := range []bool{false, true} {
				snap := open(t, dir, options())
				var found []finding.Finding
				v, err := snap.Verify(ctx, reader.VerifyOptions{Read: read}, func(f finding.Finding) {
					if f.Code != "not-decoded" {
						found = append(found, f)
					}
				})
				if err != nil {
					t.Fatal(err)
				}
				if tt.read && !read {
					if len(found) != 0 || v.Faults != 0 {
						t.Errorf("without Read: %+v", found)
					}
					continue
				}
				i := slices.IndexFunc(found, func(f finding.Finding) bool { return f.Code == tt.code })
				if i < 0 {
					t.Fatalf("read %v: %+v", read, found)
				}
				if f := found[i]; f.Severity != finding.Error || !strings.Contains(f.Message, tt.message) || !strings.HasPrefix(f.Place, "operator ") || f.Operator == nil {
					t.Errorf("read %v: %+v", read, f)
				}
				if v.Faults != len(found) {
					t.Errorf("read %v: %+v, %+v", read, v, found)
				}
				// What the caller asks of single operators is the same.
				var examined []string
				if err := snap.Examine(ctx, snap.Operators, reader.VerifyOptions{Read: read}, func(f finding.Finding) { examined = append(examined, f.Code) }); err != nil || !slices.Contains(examined, tt.code) {
					t.Errorf("%v, %v", examined, err)
				}
				// And without their streams nothing is wrong.
				err = snap.Examine(ctx, snap.Operators, reader.VerifyOptions{DescriptionOnly: true}, func(f finding.Finding) { t.Errorf("%+v", f) })
				if err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// TestVerifySameOffset: what FLINK-34063 not restored in a snapshot of Flink 1.20. The check
// of the offsets reports it, once, also if elements are read.
func TestVerifySameOffset(t *testing.T) {
	snap := open(t, "../testdata/reported/same-offset-compressed", options())
	for _, o := range []reader.VerifyOptions{{}, {Read: true}, {Read: true, Deep: true}} {
		var found []finding.Finding
		if _, err := snap.Verify(ctx, o, func(f finding.Finding) { found = append(found, f) }); err != nil {
			t.Fatal(err)
		}
		if len(found) != 2 {
			t.Fatalf("%+v: %+v", o, found)
		}
		for _, f := range found {
			if f.Code != "same-offset" || f.Severity != finding.Error || !strings.Contains(f.Message, "FLINK-34063") || !strings.Contains(f.Message, `state "mid"`) {
				t.Errorf("%+v: %+v", o, f)
			}
		}
	}
}

// TestVerifyBudget: without Read, a bounded part of each stream is read, whatever
// its size.
func TestVerifyBudget(t *testing.T) {
	const handles, size = 400, 1 << 20
	var all []*format.OperatorHandle
	body := append([]byte("\x00\x00\x00\x06\x00\x00\x00\x00\x00"), make([]byte, size)...) // version 6, not compressed, no states
	for range handles {
		h := list(&format.File{Path: text("big"), Relative: true, Length: int64(len(body))})
		h.States = nil
		all = append(all, h)
	}
	store := inMemory(t, map[string]string{"sp/_metadata": string(encode(t, model(all...))), "sp/big": string(body)})
	var read atomic.Int64
	counting := near{counted{store, &read}}
	snap := open(t, "mem://sp", options("mem", counting))
	before := read.Load()
	v, err := snap.Verify(ctx, reader.VerifyOptions{}, func(finding.Finding) {})
	if err != nil || v.Streams != handles {
		t.Fatalf("%+v, %v", v, err)
	}
	if n := (read.Load() - before) / handles; n > 5<<10 {
		t.Errorf("%d bytes read for a handle", n)
	}
}

// TestVerifyNativeContent: state that is not valid state of a Go program.
func TestVerifyNativeContent(t *testing.T) {
	sp := model(nil)
	sp.Operators[0].Subtasks[0].ManagedKeyed = &format.KeyGroups{
		Codec: format.CodecNative, Range: format.KeyGroupRange{Count: 128}, Offsets: make(format.OffsetSlice, 128), Data: inline("\xc1 is no msgpack"),
	}
	dir := write(t, map[string]string{"x.spt": string(pack(t, sp))})
	snap := open(t, dir+"/x.spt", options())
	var found []finding.Finding
	report := func(f finding.Finding) { found = append(found, f) }
	if _, err := snap.Verify(ctx, reader.VerifyOptions{}, report); err != nil {
		t.Fatal(err)
	}
	if err := snap.Examine(ctx, snap.Operators, reader.VerifyOptions{}, report); err != nil {
		t.Fatal(err)
	}
	if len(found) != 2 || found[0].Code != "native-state" || found[1].Code != "native-state" || found[0].Severity != finding.Error {
		t.Errorf("%+v", found)
	}
}

// Handles of an .spt that share a stream and its offsets are read once, unless they
// are of different codecs.
func TestEachCodecOfAStreamIsRead(t *testing.T) {
	data := inline("not state of Flink")
	unknown, flink := list(data, 0, 3), list(data, 0, 3)
	unknown.Codec = ""
	snap := open(t, "mem://a.spt", options("mem", inMemory(t, map[string]string{"a.spt": string(pack(t, model(unknown, flink, flink)))})))
	var found []finding.Finding
	if _, err := snap.Verify(ctx, reader.VerifyOptions{}, func(f finding.Finding) { found = append(found, f) }); err != nil {
		t.Fatal(err)
	}
	if got, want := codes(found), []string{"not-checked", "state-version"}; !slices.Equal(got, want) {
		t.Errorf("%q, expected %q", got, want)
	}
}

// A finding with a place in an operator names the operator, whichever part of
// Verify made it.
func TestFindingsNameTheirOperator(t *testing.T) {
	files := map[string]string{"s/short": "abc"}
	files["s/_metadata"] = string(encode(t, model(list(relative("short", 5), 0), list(relative("gone", 5), 0))))
	packed := model(&format.OperatorHandle{Codec: format.CodecNative, Data: inline("\xc1"), States: []format.NamedState{{Name: text("items"), Offsets: format.OffsetSlice{0}}}})
	files["a.spt"] = string(pack(t, packed))
	store := inMemory(t, files)
	for name, want := range map[string][]string{"s": {"file-length", "file-missing"}, "a.spt": {"native-state"}} {
		var found []finding.Finding
		if _, err := open(t, "mem://"+name, options("mem", store)).Verify(ctx, reader.VerifyOptions{Read: true}, func(f finding.Finding) { found = append(found, f) }); err != nil {
			t.Fatal(err)
		}
		if got := codes(found); !slices.Equal(got, want) {
			t.Errorf("%s: %q, expected %q", name, got, want)
		}
		for _, f := range found {
			if f.Operator == nil || f.Operator.UID.String() != "uid" {
				t.Errorf("%s: %s at %s names no operator", name, f.Code, f.Place)
			}
		}
	}
}

// TestExamineManyStates: a file of 9 KB can hold a handle of 100,000 states. What
// is kept of a handle, to look into equal ones once, is small however many it has.
func TestExamineManyStates(t *testing.T) {
	h := &format.OperatorHandle{Codec: format.CodecRaw, Data: inline(strings.Repeat("x", 5000))}
	for i := range 5000 {
		h.States = append(h.States, format.NamedState{Name: text(fmt.Sprint("state ", i)), Offsets: format.OffsetSlice{int64(i)}})
	}
	sp := model(nil)
	sp.Operators[0].Subtasks[0].Raw = h
	dir := write(t, map[string]string{"x.spt": string(pack(t, sp))})
	snap := open(t, dir+"/x.spt", options())
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if err := snap.Examine(ctx, snap.Operators, reader.VerifyOptions{}, func(f finding.Finding) { t.Errorf("%+v", f) }); err != nil {
		t.Fatal(err)
	}
	runtime.ReadMemStats(&after)
	if n := after.TotalAlloc - before.TotalAlloc; n > 64<<20 {
		t.Errorf("%d bytes were allocated for %d states", n, len(h.States))
	}
}
