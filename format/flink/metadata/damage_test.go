package metadata_test

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// specimen is a valid file to damage.
type specimen struct {
	name string
	file []byte
	// Whether reading it needs another layout than the common one: what is
	// told of a cut is then a guess.
	odd bool
}

// specimens has every record of the spec's vectors in the smallest file of a
// version that allows it, the whole files, and generated ones of each shape.
func specimens(t testing.TB) []specimen {
	var all []specimen
	add := func(name string, version int, f fill) {
		all = append(all, specimen{name: fmt.Sprintf("%s in v%d", name, version), file: smallest(version, f)})
	}
	for name := range vectors {
		v := vector(t, name)
		switch kind, _, _ := strings.Cut(name, "."); {
		case kind == "stream":
			add(name, 4, fill{managed: "\x04\x00\x00\x00\x00" + v})
		case kind == "keyed":
			add(name, 2+len(v)%5, fill{keyed: strings.ReplaceAll(v, vector(t, "stream.rel"), vector(t, "stream.file"))})
		case kind == "op":
			add(name, 3, fill{managed: v, raw: v})
		case strings.HasPrefix(name, "chan.in") && strings.HasSuffix(name, "v1"):
			add(name, 5, fill{input: v})
		case strings.HasPrefix(name, "chan.out") && strings.HasSuffix(name, "v1"):
			add(name, 3, fill{output: v})
		case strings.HasPrefix(name, "chan.in"):
			add(name, 6, fill{input: v})
		case strings.HasPrefix(name, "chan.out"):
			add(name, 6, fill{output: v})
		case kind == "file":
			all = append(all, specimen{name: name, file: []byte(v)})
		}
	}
	for shape, s := range genShapes {
		for seed, found := uint64(0), 0; found < 2; seed++ {
			g, _ := generate(shape, seed)
			if g.Len() > 1500 || g.wantChannels || g.wantShortLog {
				continue // small ones, since all of it is cut and flipped
			}
			found++
			all = append(all, specimen{
				name: fmt.Sprintf("%s, seed %d", s.name, seed), file: g.B,
				odd: s.noSubtask || s.shortChangelogs,
			})
		}
	}
	return all
}

// judge decodes a damaged file: it is refused with an error of the right kind
// at a place in it, or it is a file that is written again as it is.
func judge(t *testing.T, what string, file []byte) error {
	t.Helper()
	sp, err := metadata.Decode(format.NewBytes(file), metadata.Options{})
	if err == nil {
		if again, err := encode(sp); err != nil || !bytes.Equal(again, file) {
			t.Fatalf("%s: accepted, but written again it differs at 0x%x, %v", what, differ(again, file), err)
		}
		return nil
	}
	var e *format.Error
	switch {
	case sp != nil:
		t.Fatalf("%s: an error and a savepoint", what)
	case !errors.As(err, &e) || e.Offset < 0 || e.Offset > int64(len(file)) || e.Msg == "":
		t.Fatalf("%s: %v: no place in a file of %d bytes", what, err, len(file))
	case !errors.Is(err, format.ErrCorrupt) && !errors.Is(err, format.ErrUnsupported) && !errors.Is(err, format.ErrLimit):
		t.Fatalf("%s: %v: of no kind", what, err)
	}
	return err
}

// TestCut cuts valid files at every offset: each is refused as cut short, and
// salvaging gives the operators that stand before the cut.
func TestCut(t *testing.T) {
	cuts := 0
	for _, s := range specimens(t) {
		whole, err := metadata.Decode(format.NewBytes(s.file), metadata.Options{})
		if err != nil {
			t.Fatalf("%s: %v", s.name, err)
		}
		for n := range s.file {
			cuts++
			what := fmt.Sprintf("%s cut at 0x%x", s.name, n)
			file := s.file[:n:n]
			err := judge(t, what, file)
			if err == nil {
				t.Fatalf("%s: accepted", what)
			}
			if !s.odd && (!errors.Is(err, format.ErrTruncated) || !errors.Is(err, io.ErrUnexpectedEOF)) {
				t.Fatalf("%s: %v: not told as cut short", what, err)
			}
			part, perr := metadata.Salvage(format.NewBytes(file), metadata.Options{})
			if perr == nil || perr.Error() != err.Error() {
				t.Fatalf("%s: salvaging says %v, decoding %v", what, perr, err)
			}
			if (part == nil) != (n < 8) {
				t.Fatalf("%s: salvaged: %v", what, part)
			}
			if part == nil || s.odd {
				continue
			}
			if v, ok := metadata.VersionOf(part); !ok || byte(v) != s.file[7] {
				t.Fatalf("%s: salvaged version %v, %v", what, v, ok)
			}
			if !standsBefore(part.Operators, whole.Operators) {
				t.Fatalf("%s: salvaged is not the start of the whole", what)
			}
		}
		// Without its last byte, everything but the last operator is there.
		part, _ := metadata.Salvage(format.NewBytes(s.file[:len(s.file)-1]), metadata.Options{})
		if n := len(part.Operators); n < len(whole.Operators)-1 {
			t.Errorf("%s: %d of %d operators salvaged", s.name, n, len(whole.Operators))
		}
	}
	t.Logf("%d cuts", cuts)
}

// standsBefore reports whether part is a prefix of whole, the last of it perhaps
// without some of its subtasks.
func standsBefore(part, whole []*format.Operator) bool {
	if len(part) > len(whole) {
		return false
	}
	for i, op := range part {
		want := whole[i]
		if i == len(part)-1 {
			if len(op.Subtasks) > len(want.Subtasks) || op.ID != want.ID || op.UID != want.UID {
				return false
			}
			return len(op.Subtasks) == 0 || reflect.DeepEqual(op.Subtasks, want.Subtasks[:len(op.Subtasks)])
		}
		if !reflect.DeepEqual(op, want) {
			return false
		}
	}
	return true
}

// TestFlip flips every bit of valid files.
func TestFlip(t *testing.T) {
	flips, accepted := 0, 0
	for _, s := range specimens(t) {
		file := bytes.Clone(s.file)
		for at := range file {
			for bit := range 8 {
				if len(file) > 400 && bit != at%8 {
					continue // one bit of each byte is enough in long ones
				}
				flips++
				file[at] ^= 1 << bit
				if judge(t, fmt.Sprintf("%s, bit %d of 0x%x flipped", s.name, bit, at), file) == nil {
					accepted++
				}
				file[at] ^= 1 << bit
			}
		}
	}
	if accepted == 0 || accepted == flips {
		t.Errorf("%d of %d accepted", accepted, flips)
	}
	t.Logf("%d flips, %d of them still valid files", flips, accepted)
}

// TestDamagedCorpus cuts and flips one small real file of each version.
func TestDamagedCorpus(t *testing.T) {
	smallest := map[metadata.Version][]byte{}
	for _, dir := range testenv.Snapshots(t) {
		file, err := os.ReadFile(filepath.Join(dir, "_metadata"))
		if err != nil {
			t.Fatal(err)
		}
		if v := metadata.Version(file[7]); smallest[v] == nil || len(file) < len(smallest[v]) {
			smallest[v] = file
		}
	}
	for v, file := range smallest {
		for n := range file {
			if judge(t, fmt.Sprintf("%s cut at 0x%x", v, n), file[:n]) == nil {
				t.Fatalf("%s cut at 0x%x: accepted", v, n)
			}
			file[n] ^= 1 << (n % 8)
			judge(t, fmt.Sprintf("%s, 0x%x flipped", v, n), file)
			file[n] ^= 1 << (n % 8)
		}
	}
}

// TestSalvageShortLists: where the cut leaves too little for all that a count
// promises, what does stand there is salvaged, and the count is what is told.
func TestSalvageShortLists(t *testing.T) {
	var b sptest.Buf
	b.I32(0x4960672d).I32(3).I64(1).I32(0).I32(5)
	for i := range 4 {
		b.I64(int64(i)).I64(2).I32(1).I32(128).U8(0).I32(-1) // 29 bytes, the least there is
	}
	b.I64(4).I64(2).I32(9).I32(128).U8(0).I32(9)
	for i := range 9 {
		b.I32(-i - 1) // finished, 4 bytes
	}
	whole := b.B
	roundTrip(t, whole)
	for n := 24; n < len(whole); n++ {
		sp, err := metadata.Salvage(format.NewBytes(whole[:n]), metadata.Options{})
		if !errors.Is(err, format.ErrTruncated) {
			t.Fatalf("cut at %d: %v", n, err)
		}
		operators := min(5, (n-24)/29)
		subtasks := max(0, n-24-5*29) / 4
		got := 0
		for _, op := range sp.Operators {
			got += len(op.Subtasks)
		}
		if len(sp.Operators) != operators || got != subtasks {
			t.Fatalf("cut at %d: %d operators, %d subtasks; want %d, %d", n, len(sp.Operators), got, operators, subtasks)
		}
	}
}
