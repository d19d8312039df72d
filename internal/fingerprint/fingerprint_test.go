package fingerprint_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"reflect"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/fingerprint"
)

// sourceOf reads every stream as these bytes.
type sourceOf []byte

func (s sourceOf) ReadAt(_ context.Context, _ format.Stream, p []byte, off int64) (int, error) {
	if off+int64(len(p)) > int64(len(s)) {
		return 0, format.Errorf(format.ErrTruncated, "too short")
	}
	return copy(p, s[off:]), nil
}

// full is a savepoint in which no field is empty that a fingerprint counts.
func full() *format.Savepoint {
	text, some := format.NewText, format.OffsetSlice{4, 5}
	data := func() *format.Inline { return inline("n", "data") }
	r := format.KeyGroupRange{First: 1, Count: 2}
	return &format.Savepoint{
		ID: 7, Kind: format.SnapshotKind{Type: format.TypeSavepoint, Format: format.FormatNative},
		Masters: []format.MasterState{{Name: text("m"), Version: 1, Data: format.NewBytes([]byte("ms"))}},
		Operators: []*format.Operator{{
			Name: text("n"), UID: text("u"), ID: format.OperatorID{1}, Parallelism: 1, MaxParallelism: 128, Finished: true, Coordinator: data(),
			Subtasks: []*format.Subtask{{
				Index: 1, Finished: true,
				Managed: &format.OperatorHandle{Codec: format.CodecFlink, States: []format.NamedState{{Name: text("s"), Mode: format.ModeUnion, Offsets: some}},
					Data: &format.Segment{Path: text("p"), Start: 1, Length: 2, Scope: 1, LogicalID: text("l")}, Merging: &format.FileMerging{TaskOwnedDir: text("t"), SharedDir: text("s"), Placeholder: true}},
				Raw: &format.OperatorHandle{Codec: format.CodecRaw, Data: &format.KeyGroupStream{Range: r, Offsets: some, Data: &format.File{Path: text("p"), Relative: true, Length: 3}}},
				ManagedKeyed: &format.Changelog{Range: r, CheckpointedSize: 1, MaterializationID: 2, CheckpointID: 3, HandleID: text("h"),
					Materialized: []format.KeyedHandle{
						&format.KeyGroups{Codec: format.CodecFlink, Range: r, Offsets: some, Data: data(), Savepoint: true, HandleID: text("h")},
						&format.Incremental{CheckpointID: 1, BackendID: text("b"), Range: r, CheckpointedSize: 2, Meta: data(), HandleID: text("h"),
							Shared: []format.NamedStream{{Name: text("x"), Data: data()}}, Private: []format.NamedStream{{Name: text("y"), Data: data()}}}},
					Changes: []format.KeyedHandle{
						&format.ChangelogMemory{Range: r, From: 1, To: 2, Changes: []format.Change{{KeyGroup: 1, Data: format.NewBytes([]byte("c"))}}, HandleID: text("h")},
						&format.ChangelogStream{Range: r, Streams: []format.OffsetStream{{Offset: 1, Data: data()}}, StateSize: 1, CheckpointedSize: 2, HandleID: text("h"), StorageID: text("s")}}},
				RawKeyed: &format.KeyGroups{Data: &format.EmptySegment{}},
				Input:    []*format.ChannelHandle{{Subtask: 1, Size: 2, Merged: true, Data: data(), Channels: []format.Channel{{First: 1, Second: 2, Size: 3, Offsets: some}}}},
				Output:   []*format.ChannelHandle{{Data: data()}},
				Legacy:   []format.Stream{data()},
			}},
		}},
	}
}

// TestFingerprint changes each field of a savepoint, one at a time: all but
// Location and Wire count, and no two changes give one fingerprint.
func TestFingerprint(t *testing.T) {
	of := func(sp *format.Savepoint) [32]byte {
		t.Helper()
		sum, err := fingerprint.Of(context.Background(), sp, nil)
		if err != nil {
			t.Fatal(err)
		}
		return sum
	}
	base := of(full())
	if of(full()) != base {
		t.Fatal("equal savepoints, two fingerprints")
	}
	seen := map[[32]byte]string{base: "nothing"}
	n := 0
	for ; ; n++ {
		sp := full()
		at := n
		path, done := changeField(reflect.ValueOf(sp).Elem(), "", &at)
		if !done {
			break
		}
		sum := of(sp)
		if was, ok := seen[sum]; ok {
			t.Errorf("a change of %s has the fingerprint of a change of %s", path, was)
		}
		seen[sum] = path
	}
	if n < 100 {
		t.Errorf("only %d changes", n)
	}
	sp := full()
	sp.Location, sp.Wire, sp.Operators[0].Wire, sp.Operators[0].Subtasks[0].Wire = "elsewhere", "w", "w", "w"
	if of(sp) != base {
		t.Error("location and wire count")
	}
}

// changeField changes the n-th leaf under v and says which it was.
func changeField(v reflect.Value, path string, n *int) (string, bool) {
	mine := func() bool { *n--; return *n == -1 }
	set := func(x any) (string, bool) { v.Set(reflect.ValueOf(x)); return path, true }
	switch x := v.Interface().(type) {
	case format.Wire:
		return "", false
	case format.Text:
		if mine() {
			return set(format.NewText(x.String() + "+"))
		}
		if mine() {
			return set(format.RawText(x.String(), "raw"))
		}
		return "", false
	case format.Bytes:
		if mine() {
			return set(format.NewBytes(bytes.Repeat([]byte("+"), x.Len())))
		}
		if mine() {
			return set(format.NewBytes(nil))
		}
		return "", false
	case format.Offsets:
		if mine() {
			return set(format.OffsetSlice{4, 6})
		}
		if mine() {
			return set(format.OffsetSlice{4})
		}
		return "", false
	}
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			if v.Type().Field(i).Name == "Location" {
				continue
			}
			if p, ok := changeField(v.Field(i), path+"."+v.Type().Field(i).Name, n); ok {
				return p, true
			}
		}
	case reflect.Slice, reflect.Pointer, reflect.Interface:
		_, operator := v.Interface().(*format.Operator) // nodes of lists are never nil
		_, subtask := v.Interface().(*format.Subtask)
		_, channel := v.Interface().(*format.ChannelHandle)
		if !operator && !subtask && !channel && !v.IsNil() && mine() {
			v.SetZero()
			return path + " = nil", true
		}
		if v.Kind() == reflect.Slice {
			for i := range v.Len() {
				if p, ok := changeField(v.Index(i), fmt.Sprintf("%s[%d]", path, i), n); ok {
					return p, true
				}
			}
		} else if !v.IsNil() {
			e := v.Elem()
			if e.Kind() == reflect.Pointer {
				e = e.Elem()
			}
			return changeField(e, path, n)
		}
	case reflect.Array:
		if mine() {
			v.Index(0).SetUint(99)
			return path, true
		}
	case reflect.String:
		if mine() {
			v.SetString(v.String() + "+")
			return path, true
		}
	case reflect.Bool:
		if mine() {
			v.SetBool(!v.Bool())
			return path, true
		}
	case reflect.Int32, reflect.Int64:
		if mine() {
			v.SetInt(v.Int() + 40)
			return path, true
		}
	case reflect.Uint8:
		if mine() {
			v.SetUint(v.Uint() - 1)
			return path, true
		}
	default:
		panic("a kind of field this test does not know: " + v.Type().String())
	}
	return "", false
}

// TestFingerprintReadsInline: inline state counts with its bytes, from
// wherever they are read.
func TestFingerprintReadsInline(t *testing.T) {
	content := bytes.Repeat([]byte("0123456789"), 100_000)
	with := func(s format.Stream) *format.Savepoint {
		return &format.Savepoint{Operators: []*format.Operator{{Coordinator: s}}}
	}
	of := func(s format.Stream) ([32]byte, error) {
		return fingerprint.Of(context.Background(), with(s), sourceOf(content))
	}
	want, err := of(inline("n", string(content)))
	if err != nil {
		t.Fatal(err)
	}
	as := inline("n", "")
	for _, s := range []format.Stream{
		&format.Chunks{As: as, Length: int64(len(content)), Digest: "d"},
		&format.Concat{As: as, Parts: []format.Part{{N: int64(len(content))}}},
	} {
		if got, err := of(s); err != nil || got != want {
			t.Errorf("%T: %v", s, err)
		}
	}
	if got, err := of(&format.Chunks{As: as, Length: int64(len(content)) - 1}); err != nil || got == want {
		t.Errorf("one byte less: %v", err)
	}
	if _, err := of(&format.Chunks{As: as, Length: int64(len(content)) + 1}); !errors.Is(err, format.ErrTruncated) {
		t.Errorf("more than there is: %v", err)
	}
}

func inline(name, data string) *format.Inline {
	return &format.Inline{Name: format.NewText(name), Data: format.NewBytes([]byte(data))}
}
