package reader_test

import (
	"bytes"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/finding"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/fileref"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

// Nothing in the corpus is a fault, though every element is decoded: what is said
// is only where files of copied checkpoints were found, and what types are not
// known.
func TestVerifyCorpus(t *testing.T) {
	all := map[string]int{}
	var streams, files, absolute int
	var read, elements int64
	named := 0
	for _, dir := range testenv.Snapshots(t) {
		snap, err := reader.Open(ctx, dir, new(options()))
		if err != nil {
			t.Errorf("%s: %v", dir, err)
			continue
		}
		v, found := verify(t, snap)
		for _, f := range found {
			all[f.Code]++
			if f.Code != "not-decoded" && (f.Code != "file-elsewhere" || !strings.Contains(dir, "/known/")) || f.Severity != finding.Note {
				t.Errorf("%s: %+v", dir, f)
			}
		}
		distinct := map[string]bool{}
		if err := snap.EachStream(func(_ format.Place, s format.Stream) error {
			if path, _, ok := format.Reference(s); ok {
				distinct[path.String()] = true
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		named += len(distinct)
		streams += v.Streams
		files += v.Files
		read += v.BytesRead
		elements += v.Elements
		if !v.Relocatable() {
			absolute++
		}
		handles := 0
		fileref.EachAbsolute(snap.Savepoint, func(format.Place, string) { handles++ })
		if handles > v.Absolute || handles == 0 && v.Absolute > 0 {
			t.Errorf("%s: %d handles are listed as absolute, %d are counted", dir, handles, v.Absolute)
		}
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
	t.Logf("%d snapshots, %d not relocatable: %d streams, %d files, %d bytes and %d elements read; findings %v", len(testenv.Snapshots(t)), absolute, streams, files, read, elements, all)
	testenv.Found(t, "files", files, named)
	testenv.Some(t, "bytes of files", read, files > 0)
}

// keyed is a subtask's full keyed state.
func keyed(h *format.OperatorHandle, first, count int32, data format.Stream, offsets ...int64) *format.Savepoint {
	sp := model(h)
	sp.Operators[0].Subtasks[0].ManagedKeyed = &format.KeyGroups{
		Codec: format.CodecFlink, Range: format.KeyGroupRange{First: first, Count: count}, Offsets: format.OffsetSlice(offsets), Data: data,
	}
	return sp
}

// Every finding is provoked, alone, and said once.
func TestFindings(t *testing.T) {
	with := func(sp *format.Savepoint, change func(*format.Savepoint)) *format.Savepoint {
		change(sp)
		return sp
	}
	good := func() *format.Savepoint { return model(list(inline("hello"), 0, 2)) }
	broadcast := list(inline("hello"), 0, 2)
	broadcast.States[0].Mode = format.ModeBroadcast
	changelog := func(length int64) *format.Savepoint {
		return with(good(), func(sp *format.Savepoint) {
			sp.Operators[0].Subtasks[0].ManagedKeyed = &format.Changelog{Range: format.KeyGroupRange{Count: 128}, Changes: []format.KeyedHandle{
				&format.ChangelogStream{Range: format.KeyGroupRange{Count: 128}, Streams: []format.OffsetStream{{Data: relative("state", length)}}},
			}}
		})
	}
	tests := []struct {
		name     string
		sp       *format.Savepoint
		code     string
		severity finding.Severity
		place    string
		message  string
	}{
		{"sound", good(), "", "", "", ""},
		{"sound file", model(list(relative("state", 5), 0, 5)), "", "", "", ""},
		{"length not known", model(list(relative("state", -1), 0)), "", "", "", ""},
		{"sound key groups", keyed(nil, 0, 3, relative("state", 5), 0, 1, 5), "", "", "", ""},
		{"changelog file has a byte more", changelog(4), "", "", "", ""},
		{"changelog file as long as said", changelog(5), "", "", "", ""},
		{"changelog file", changelog(3), "file-length", finding.Error, `operator "uid"/subtask 0/keyed state`, "expected 3 bytes, the file has 5"},
		{"missing", model(list(relative("gone", 5), 0)), "file-missing", finding.Error, `operator "uid"/subtask 0/operator state`, "file gone is missing"},
		{"missing, absolute", model(list(absolute("s3://b/gone", 5), 0)), "file-not-checked", finding.Note, "", "s3"},
		{"hostile", model(list(relative("../x", 5), 0)), "path", finding.Error, "", "leads outside"},
		{"longer", model(list(relative("state", 4), 0)), "file-length", finding.Error, "", "expected 4 bytes, the file has 5"},
		{"shorter", model(list(relative("state", 6), 0)), "file-length", finding.Error, "", "expected 6 bytes, the file has 5"},
		{"offset outside", model(list(inline("hello"), 0, 6)), "offsets", finding.Error, `state "items"`, "1 of 2 offsets are outside the 5 bytes of the stream, the first is 6 of element 1"},
		{"negative offset", model(list(inline("hello"), -1, 2)), "offsets", finding.Error, "", "the first is -1 of element 0"},
		{"offsets out of order", model(list(inline("hello"), 3, 1)), "offsets", finding.Warning, "", "1 of 2 offsets are smaller than the one before, the first is 1 of element 1"},
		{"broadcast", model(broadcast), "broadcast", finding.Warning, `state "items"`, "2 offsets, a broadcast state has one"},
		{"key groups outside", keyed(nil, 127, 2, inline("hello"), 0, 1), "key-groups", finding.Error, "keyed state", "key groups 127 to 128, the operator has 128"},
		{"key group offset outside", keyed(nil, 0, 2, inline("hello"), 1, 9), "key-groups", finding.Error, "", "the first is 1 at 9"},
		{"key groups out of order", keyed(nil, 4, 2, inline("hello"), 3, 1), "key-groups", finding.Warning, "", "the first is 5 at 1"},
		{"parallelism", with(good(), func(sp *format.Savepoint) { sp.Operators[0].MaxParallelism = 0 }), "parallelism", finding.Error, "", "parallelism 1 of at most 0"},
		{"more than the maximum", with(good(), func(sp *format.Savepoint) { sp.Operators[0].Parallelism = 129 }), "parallelism", finding.Error, "", "parallelism 129 of at most 128"},
		{"subtask", with(good(), func(sp *format.Savepoint) { sp.Operators[0].Subtasks[0].Index = 1 }), "subtask", finding.Error, "subtask 1", "the operator has parallelism 1"},
		{"operator twice", with(good(), func(sp *format.Savepoint) { sp.Operators = append(sp.Operators, sp.Operators[0]) }), "operator-id", finding.Error, "", "occurs twice"},
	}
	provoked := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			dir := write(t, map[string]string{"_metadata": string(encode(t, tt.sp)), "state": "hello"})
			if !strings.Contains(tt.name, "changelog file") && !strings.Contains(tt.name, "sound file") && !strings.HasPrefix(tt.name, "length") && !strings.HasPrefix(tt.name, "sound key") && tt.code != "file-length" {
				dir = write(t, map[string]string{"_metadata": string(encode(t, tt.sp))})
			}
			snap := open(t, dir, options())
			v, found := described(t, snap)
			if tt.code == "" {
				if len(found) != 0 {
					t.Errorf("%+v", found)
				}
				return
			}
			if len(found) != 1 {
				t.Fatalf("%d findings: %+v", len(found), found)
			}
			f := found[0]
			provoked[f.Code] = true
			if f.Code != tt.code || f.Severity != tt.severity || !strings.Contains(f.Place, tt.place) || !strings.Contains(f.Message, tt.message) {
				t.Errorf("%+v", f)
			}
			if n := map[finding.Severity]int{finding.Error: v.Faults, finding.Warning: v.Warnings, finding.Note: v.Notes}; n[tt.severity] != 1 || v.Faults+v.Warnings+v.Notes != 1 {
				t.Errorf("%+v", v)
			}
		})
	}

	t.Run("segment", func(t *testing.T) {
		dir := write(t, map[string]string{"merged": "0123456789"})
		seg := func(start, n int64) *format.OperatorHandle {
			h := list(&format.Segment{Path: text("file:" + dir + "/merged"), Start: start, Length: n, LogicalID: text("l")}, 0)
			h.Merging = &format.FileMerging{TaskOwnedDir: text("file:" + dir), SharedDir: text("file:" + dir)}
			return h
		}
		put(t, dir+"/sp/_metadata", string(encode(t, model(seg(0, 5), seg(5, 5), seg(5, 6), seg(11, 1)))))
		o := options()
		o.Follow = []string{dir}
		v, found := described(t, open(t, dir+"/sp", o))
		if !slices.Equal(codes(found), []string{"file-length", "file-length"}) || v.Files != 1 || v.Absolute != 4 || v.BytesRead != 10 {
			t.Errorf("%+v, %+v", v, found)
		}
	})
	t.Run("file-elsewhere", func(t *testing.T) {
		dir := write(t, map[string]string{"job/chk-1/_metadata": string(encode(t, model(list(absolute("s3://b/job/shared/x", 5), 0)))), "job/shared/x": "hello"})
		v, found := described(t, open(t, dir+"/job/chk-1", options()))
		if len(found) != 1 || found[0].Code != "file-elsewhere" || found[0].Severity != finding.Note || found[0].File != "s3://b/job/shared/x" || !strings.HasSuffix(found[0].Found, "shared/x") || v.Faults != 0 {
			t.Errorf("%+v", found)
		}
		provoked["file-elsewhere"] = true
	})
	t.Run("orphan", func(t *testing.T) {
		dir := write(t, map[string]string{"_metadata": string(encode(t, model(list(relative("state", 5), 0)))), "state": "hello", "more": "123", "other": "4"})
		v, found := described(t, open(t, dir, options()))
		if len(found) != 1 || found[0].Code != "orphan" || !strings.Contains(found[0].Message, "2 files next to _metadata that no handle names, 4 bytes") || v.Notes != 1 {
			t.Errorf("%+v", found)
		}
		provoked["orphan"] = true
	})
	t.Run("read", func(t *testing.T) {
		store := inMemory(t, map[string]string{"sp/_metadata": string(encode(t, model(list(relative("state", 5), 0)))), "sp/state": "hello"})
		h := hooked{store, func(op, name string) error {
			if op == "read" && name == "sp/state" {
				return errors.New("a broken disk")
			}
			return nil
		}}
		_, found := described(t, open(t, "mem://sp", options("mem", h)))
		if len(found) != 1 || found[0].Code != "read" || found[0].Severity != finding.Error || !strings.Contains(found[0].Message, "a broken disk") {
			t.Errorf("%+v", found)
		}
		provoked["read"] = true
	})
	t.Run("properties", func(t *testing.T) {
		// The properties object of 1.20, but for one letter of the class name.
		dir := testenv.Fixture(t, "sp-001")
		p := encodeFile(t, dir)
		i := bytes.LastIndex(p, []byte("CheckpointProperties"))
		if i < 0 {
			t.Fatal("no properties object")
		}
		p[i] = 'K'
		snap, err := reader.Open(ctx, write(t, map[string]string{"_metadata": string(p)}), new(options()))
		if err != nil {
			t.Fatal(err)
		}
		_, found := described(t, snap)
		if len(found) != 1 || found[0].Code != "properties" || found[0].Severity != finding.Note {
			t.Errorf("%+v", found)
		}
		provoked["properties"] = true
	})
	t.Run("checksum", func(t *testing.T) {
		noise := make([]byte, 100<<10)
		for i, x := 0, uint32(7); i < len(noise); i++ {
			x = x*1664525 + 1013904223
			noise[i] = byte(x >> 24)
		}
		p := pack(t, model(list(inline(string(noise)), 0), list(inline("hello"+string(noise[:5000])), 0)))
		p[1000] ^= 1
		v, found := described(t, open(t, write(t, map[string]string{"x.spt": string(p)})+"/x.spt", options()))
		if len(found) != 1 || found[0].Code != "checksum" || found[0].Severity != finding.Error || v.Chunks < 2 {
			t.Errorf("%+v, %+v", v, found)
		}
		provoked["checksum"] = true
	})
	t.Logf("provoked: %v", slices.Sorted(maps.Keys(provoked)))
}

func encodeFile(t *testing.T, dir string) []byte {
	t.Helper()
	var b bytes.Buffer
	snap := open(t, dir, options())
	b.Write(encode(t, snap.Savepoint))
	return b.Bytes()
}

// All that is wrong is said, each once, in file order.
func TestAllFindings(t *testing.T) {
	sp := model(list(relative("gone", 5), 0), list(relative("gone", 5), 0), list(relative("state", 9), 70), list(relative("state", 5), 0), list(relative("../up", 1), 0))
	dir := write(t, map[string]string{"_metadata": string(encode(t, sp)), "state": "hello", "left": "x"})
	v, found := described(t, open(t, dir, options()))
	var got []string
	for _, f := range found {
		got = append(got, f.Code)
	}
	if want := []string{"offsets", "file-missing", "file-length", "path", "orphan"}; !slices.Equal(got, want) {
		t.Errorf("%v, want %v", got, want)
	}
	if v.Faults != 4 || v.Notes != 1 || v.Streams != 5 || v.Files != 1 {
		t.Errorf("%+v", v)
	}
	// The same file with another length, later.
	sp = model(list(relative("state", 5), 0), list(relative("state", 4), 0))
	dir = write(t, map[string]string{"_metadata": string(encode(t, sp)), "state": "hello"})
	if _, found := described(t, open(t, dir, options())); len(found) != 1 || found[0].Code != "file-length" || !strings.Contains(found[0].Place, "subtask 1") {
		t.Errorf("%+v", found)
	}
}

// What ends the work early is an error, not a finding.
func TestVerifyThatCannotGoOn(t *testing.T) {
	files := map[string]string{"sp/_metadata": string(encode(t, model(list(relative("state", 5), 0)))), "sp/state": "hello"}
	t.Run("changed", func(t *testing.T) {
		store := inMemory(t, files)
		snap := open(t, "mem://sp", options("mem", store))
		replace(t, store, "sp/_metadata", files["sp/_metadata"])
		_, err := snap.Verify(ctx, reader.VerifyOptions{DescriptionOnly: true}, func(f finding.Finding) { t.Errorf("%+v", f) })
		if !errors.Is(err, format.ErrChanged) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("file changed", func(t *testing.T) {
		store := inMemory(t, files)
		snap := open(t, "mem://sp", options("mem", store))
		content(t, snap, snap.Operators[0].Subtasks[0].Managed.Data)
		replace(t, store, "sp/state", "HELLO")
		_, err := snap.Verify(ctx, reader.VerifyOptions{Read: true, DescriptionOnly: true}, func(f finding.Finding) { t.Errorf("%+v", f) })
		if !errors.Is(err, format.ErrChanged) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("cancelled", func(t *testing.T) {
		snap := open(t, "mem://sp", options("mem", inMemory(t, files)))
		over, cancel := context.WithCancel(ctx)
		cancel()
		_, err := snap.Verify(over, reader.VerifyOptions{DescriptionOnly: true}, func(f finding.Finding) { t.Errorf("%+v", f) })
		if !errors.Is(err, context.Canceled) {
			t.Errorf("error %v", err)
		}
	})
	t.Run("unavailable", func(t *testing.T) {
		down := false
		snap := open(t, "mem://sp", options("mem", hooked{inMemory(t, files), func(string, string) error {
			if down {
				return storage.ErrUnavailable
			}
			return nil
		}}))
		down = true
		_, err := snap.Verify(ctx, reader.VerifyOptions{DescriptionOnly: true}, func(f finding.Finding) { t.Errorf("%+v", f) })
		if !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("error %v", err)
		}
	})
}

// TestVerifyForbidden: a file that is there and may not be read is a fault.
func TestVerifyForbidden(t *testing.T) {
	files := map[string]string{"sp/_metadata": string(encode(t, model(list(relative("state", 5), 0)))), "sp/state": "hello"}
	for _, read := range []bool{false, true} {
		snap := open(t, "mem://sp", options("mem", near{hooked{inMemory(t, files), func(op, name string) error {
			if op == "read" && name == "sp/state" {
				return storage.ErrPermission
			}
			return nil
		}}}))
		var found []finding.Finding
		v, err := snap.Verify(ctx, reader.VerifyOptions{Read: read}, func(f finding.Finding) { found = append(found, f) })
		if err != nil || len(found) != 1 || found[0].Severity != finding.Error || found[0].Code != "read" || found[0].File != "state" || v.BytesRead != 0 {
			t.Errorf("read %v: %+v, %v", read, found, err)
		}
	}
}

// Only where the placeholders of file merging and absolute handles are none can
// a folder be moved.
func TestRelocatable(t *testing.T) {
	for name, want := range map[string]bool{
		"sp-001": true, "sp-009": true, "flink-2.0-keyed-native": true,
		"sp-003": false, "sp-004": false, "sp-006": false,
	} {
		v, _ := verify(t, open(t, testenv.Fixture(t, name), options()))
		if v.Relocatable() != want {
			t.Errorf("%s: %v", name, v.Relocatable())
		}
	}
	placeholder := &format.OperatorHandle{Data: &format.EmptySegment{}, Merging: &format.FileMerging{TaskOwnedDir: text("file:/a"), SharedDir: text("file:/b"), Placeholder: true}}
	dir := write(t, map[string]string{"_metadata": string(encode(t, model(placeholder)))})
	if v, found := verify(t, open(t, dir, options())); v.Relocatable() || len(found) != 0 {
		t.Errorf("%+v, %+v", v, found)
	}
}

func TestFilesSaysWhatIsMissing(t *testing.T) {
	sp := model(list(relative("state", 5), 0), list(relative("gone", 1), 0), list(absolute("gs://b/x", 2), 0), list(relative("../up", 1), 0))
	dir := write(t, map[string]string{"_metadata": string(encode(t, sp)), "state": "hello"})
	snap := open(t, dir, options())
	s, err := summary.Of(ctx, snap.Savepoint)
	if err != nil {
		t.Fatal(err)
	}
	files, err := snap.Files(ctx, s.Files)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]reader.FileStatus{"state": reader.FileFound, "gone": reader.FileMissing, "gs://b/x": reader.FileNotChecked, "../up": reader.FileRefused}
	for _, f := range files {
		if f.Status() != want[f.Path] || f.Missing() != (f.Path == "gone") {
			t.Errorf("%+v", f)
		}
	}
	if len(files) != 4 {
		t.Errorf("%d files", len(files))
	}
}
