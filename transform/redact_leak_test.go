package transform_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf16"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/spt"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// secrets are what the values of a snapshot tell: texts of at least four bytes, and numbers
// of at least 24 bits.
type secrets struct {
	texts   map[string]bool
	numbers map[int64]bool
}

func (s *secrets) add(v value.Value) {
	_, _ = v.MapLeaves(func(v value.Value) (value.Value, error) {
		switch v.Kind() {
		case value.KindString, value.KindBytes:
			if len(v.Text()) >= 4 {
				s.texts[v.Text()] = true
			}
		case value.KindInt:
			if n := v.Int(); n >= 1<<24 || n < -1<<24 {
				s.numbers[n] = true
			}
		}
		return v, nil
	})
}

// secretsOf reads all values of a snapshot with their codecs.
func secretsOf(t *testing.T, snap *reader.Snapshot) *secrets {
	t.Helper()
	ctx := context.Background()
	s := &secrets{texts: map[string]bool{}, numbers: map[int64]bool{}}
	read := func(c value.Codec, p []byte) {
		if c == nil {
			return
		}
		if v, err := value.ReadAll(c, p); err == nil {
			s.add(v)
		}
	}
	v := snap.View()
	for _, op := range v.Operators {
		for _, sub := range op.Subtasks {
			if h := sub.Managed; h != nil {
				codec, err := v.Codec(h.Codec)
				if err != nil {
					t.Fatal(err)
				}
				for i, st := range h.States {
					c, err := snap.Values(ctx, h, i)
					if err != nil || c.Why != "" {
						continue
					}
					if st.Mode == format.ModeBroadcast {
						_ = format.EachEntry(ctx, v.Source, codec, h, st.Name.String(), func(e format.MapEntry) error {
							read(c.Key, e.Key)
							read(c.Value, e.Value)
							return nil
						})
						continue
					}
					_ = format.EachElement(ctx, v.Source, codec, h, st.Name.String(), func(e format.Element) error {
						read(c.Element, e.Value)
						return nil
					})
				}
			}
			if h := sub.ManagedKeyed; h != nil {
				codec, err := v.KeyedCodec(op, h)
				if err != nil {
					continue
				}
				all, err := value.EntryCodecsOf(ctx, v.Source, codec, h)
				if err != nil {
					continue
				}
				_ = format.EachKeyedEntry(ctx, v.Source, codec, h, format.KeyedSelection{}, func(e format.KeyedEntry) error {
					c := all[e.State]
					read(c.Key, e.Key)
					read(c.UserKey, e.UserKey)
					if !c.TTL { // the times stay
						read(c.Value, e.Value)
					}
					return nil
				})
			}
		}
	}
	return s
}

// patterns are the encodings in which a secret could be found.
func (s *secrets) patterns() map[string]string {
	all := map[string]string{}
	for text := range s.texts {
		units := utf16.Encode([]rune(text))
		big, little := make([]byte, 0, 2*len(units)), make([]byte, 0, 2*len(units))
		for _, u := range units {
			big, little = binary.BigEndian.AppendUint16(big, u), binary.LittleEndian.AppendUint16(little, u)
		}
		kryo := []byte(text) // the last byte of a short text is marked
		kryo[len(kryo)-1] |= 0x80
		for _, p := range []string{text, string(kryo), string(big), string(little), hex.EncodeToString([]byte(text)), base64.StdEncoding.EncodeToString([]byte(text))[:len(text)]} {
			all[p] = text
		}
	}
	for n := range s.numbers {
		for _, p := range [][]byte{binary.BigEndian.AppendUint64(nil, uint64(n)), binary.LittleEndian.AppendUint64(nil, uint64(n)), binary.AppendVarint(nil, n), binary.AppendUvarint(nil, uint64(n))} {
			if !bytes.HasPrefix(p, make([]byte, 5)) && len(p) >= 5 {
				all[string(p)] = value.Int(n).String()
			}
		}
		if n == int64(int32(n)) {
			all[string(binary.BigEndian.AppendUint32(nil, uint32(n)))] = value.Int(n).String()
		}
	}
	return all
}

// redacted redacts a snapshot; what is refused is dropped. It returns nil if the snapshot
// cannot be read.
func redacted(t *testing.T, snap *reader.Snapshot, names bool) *format.View {
	t.Helper()
	o := transform.RedactOptions{Key: []byte("the key of this test"), Names: names, Values: snap.Values}
	v, _, err := transform.Redact(context.Background(), snap.View(), o)
	var refused *transform.NotRedactedError
	if errors.As(err, &refused) {
		for _, p := range refused.Parts {
			o.Drop = append(o.Drop, p.Part)
		}
		v, _, err = transform.Redact(context.Background(), snap.View(), o)
	}
	if errors.Is(err, format.ErrMissing) || errors.Is(err, format.ErrOutside) {
		return nil
	}
	if err != nil {
		t.Error(err)
		return nil
	}
	return &v
}

// TestRedactLeaks: no value of a snapshot, and no name, is in the files of the redacted
// one, in any encoding.
func TestRedactLeaks(t *testing.T) {
	snapshots, patterns := 0, 0
	for _, top := range []string{"../testdata/savepoints", filepath.Join(testenv.Corpus(t), "known")} {
		err := filepath.WalkDir(top, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || d.Name() != reader.MetadataName {
				return err
			}
			snap, err := reader.Open(context.Background(), filepath.Dir(path), nil)
			if err != nil {
				return nil //nolint:nilerr // other tests say which snapshots can be opened
			}
			defer snap.Close() //nolint:errcheck // nothing was written
			v := redacted(t, snap, true)
			if v == nil {
				return nil
			}
			out := filepath.Join(t.TempDir(), "out")
			for _, target := range []string{out, out + ".spt"} {
				if _, err := writer.Write(context.Background(), *v, target, &writer.Options{Compression: spt.None}); err != nil {
					t.Errorf("%s: %v", path, err)
					return nil
				}
			}
			all := bytesBelow(t, filepath.Dir(out))
			s := secretsOf(t, snap)
			for _, op := range snap.Operators {
				for _, name := range []string{op.UID.String(), op.Name.String(), op.ID.String()} {
					if len(name) >= 5 {
						s.texts[name] = true
					}
				}
				if !bytes.Equal(op.ID[:], make([]byte, len(op.ID))) && bytes.Contains(all, op.ID[:]) {
					t.Errorf("%s: the id of operator %q", path, op.Label())
				}
			}
			snapshots++
			for p, secret := range s.patterns() {
				patterns++
				if strings.Contains(string(all), p) && !public(secret) {
					t.Errorf("%s: %q as %q", path, secret, p)
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	t.Logf("%d snapshots, %d patterns", snapshots, patterns)
	if snapshots < 60 || patterns < 5000 {
		t.Errorf("%d snapshots, %d patterns", snapshots, patterns)
	}
}

// public reports whether a text is in every snapshot: these uids are words of names of
// classes and of keys in .spt files.
func public(s string) bool { return s == "subtask" || s == "window" || s == "keyed" }

func bytesBelow(t *testing.T, dir string) (all []byte) {
	t.Helper()
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		p, err := os.ReadFile(path)
		all = append(all, p...)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}
