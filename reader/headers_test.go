package reader_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
)

// TestHeadersTellTheTruth: the keyed states that subtasks of real Flink had are in
// the headers, under their names and kinds, and nothing else is; and state is
// compressed where the job was told to compress it.
func TestHeadersTellTheTruth(t *testing.T) {
	type truth struct {
		Operators []struct {
			ID       string
			Subtasks []struct {
				Keyed    map[string]struct{ Kind string } `json:"keyed_state"`
				Timers   map[string]any
				Operator map[string]any `json:"operator_state"`
			}
		}
	}
	states, held, compressed, snapshots := 0, 0, 0, 0
	for _, about := range testenv.KnownSnapshots(t) {
		var want truth
		load(t, filepath.Join(about.Dir, "truth.json"), &want)
		name := filepath.Base(about.Dir)
		if about.Options.Changelog {
			continue // its states are named in the changes
		}
		snap := open(t, about.Location, options())
		all, err := snap.Headers(ctx, snap.Operators)
		if err != nil {
			t.Fatal(name, err)
		}
		snapshots++
		got := map[string]*reader.Headers{}
		for op, h := range all {
			got[op.ID.String()] = h
			if len(h.Unread) > 0 {
				t.Errorf("%s: %v", name, h.Unread)
			}
		}
		for _, op := range want.Operators {
			kinds := map[string]string{} // of the states
			operator := map[string]bool{}
			for _, sub := range op.Subtasks {
				for n, st := range sub.Keyed {
					kinds[n] = st.Kind
				}
				for n := range sub.Timers {
					kinds["_timer_state/event_"+n] = "timers"
					kinds["_timer_state/processing_"+n] = "timers"
				}
				for n := range sub.Operator {
					operator[n] = true
				}
			}
			held += len(kinds) + len(operator)
			h := got[op.ID]
			if h == nil {
				if len(kinds)+len(operator) > 0 {
					t.Errorf("%s: operator %s is not there", name, op.ID)
				}
				continue
			}
			for _, st := range h.States {
				if !st.Keyed() {
					if !operator[st.Name()] {
						t.Errorf("%s: operator state %q that no subtask had", name, st.Name())
					}
				} else if kinds[st.Name()] != st.Schemas[0].Keyed {
					t.Errorf("%s: keyed state %q is %s, want %q", name, st.Name(), st.Schemas[0].Keyed, kinds[st.Name()])
				}
				if len(st.Schemas) != 1 || st.Schemas[0].TypeText(nil) == "" || strings.Contains(st.Schemas[0].TypeText(nil), "?") {
					t.Errorf("%s: %q is of %d types, %q", name, st.Name(), len(st.Schemas), st.Schemas[0].TypeText(nil))
				}
				delete(kinds, st.Name())
				states++
				if st.Compressed > 0 {
					compressed++
				}
				if native := about.Options.Format == "native" && about.Options.Backend == "rocksdb"; st.Compressed > 0 != about.Options.Compress && !native {
					t.Errorf("%s: %q: compressed %d of %d", name, st.Name(), st.Compressed, st.Streams)
				}
			}
			for n := range kinds {
				t.Errorf("%s: keyed state %q of %s is not in the headers", name, n, op.ID)
			}
		}
	}
	t.Logf("%d snapshots, %d states, %d of them compressed", snapshots, states, compressed)
	testenv.Found(t, "states that subtasks held", states, held)
}

func load(t testing.TB, file string, v any) {
	t.Helper()
	p, err := os.ReadFile(file)
	if err == nil {
		err = json.Unmarshal(p, v)
	}
	if err != nil {
		t.Fatal(file, err)
	}
}

// keyedHeader is the header of keyed state of version 1, without any state: a
// serializer as a Java object of 3 bytes, which is not looked into.
const keyedHeader = "\x00\x00\x00\x01" + "\x00\x00\x00\x01\x00\x00\x00\x03abc" + "\x00\x00"

// keyedModel has subtasks with keyed state in files f0, f1, …, or inline.
func keyedModel(n int, data func(i int) format.Stream) *format.Savepoint {
	sp := model(make([]*format.OperatorHandle, n)...)
	for i, sub := range sp.Operators[0].Subtasks {
		sub.ManagedKeyed = &format.KeyGroups{Codec: format.CodecFlink, Range: format.KeyGroupRange{Count: 1}, Offsets: format.OffsetSlice{15}, Data: data(i)}
	}
	return sp
}

// TestHeadersCost: inline state costs no read, of state in files the headers of 16
// subtasks are read, with one read each.
func TestHeadersCost(t *testing.T) {
	for _, x := range []struct {
		subtasks, reads int
		inline          bool
	}{{40, 0, true}, {1, 1, false}, {16, 16, false}, {17, 16, false}, {100, 16, false}} {
		files := map[string]string{}
		sp := keyedModel(x.subtasks, func(i int) format.Stream {
			if x.inline {
				return inline(keyedHeader + "body")
			}
			name := fmt.Sprintf("f%d", i)
			files["sp/"+name] = keyedHeader + "body"
			return relative(name, int64(len(files["sp/"+name])))
		})
		files["sp/_metadata"] = string(encode(t, sp))
		c := storetest.NewCounting(inMemory(t, files))
		snap := open(t, "mem://sp", options("mem", c))
		before := c.Count("read")
		all, err := snap.Headers(ctx, snap.Operators)
		if err != nil {
			t.Fatal(err)
		}
		h := all[snap.Operators[0]]
		read := min(x.subtasks, 16)
		if x.inline {
			read = x.subtasks
		}
		if got := c.Count("read") - before; got != x.reads || h.Read != read || h.Skipped != x.subtasks-read || len(h.Unread) > 0 {
			t.Errorf("%d subtasks: %d reads, %d headers, %d skipped, %v", x.subtasks, got, h.Read, h.Skipped, h.Unread)
		}
	}
}

// TestHeadersThatCannotBeRead: what is missing, damaged, or out of reach is said,
// and keeps no other header from being read; a file that changed is an error.
func TestHeadersThatCannotBeRead(t *testing.T) {
	files := map[string]string{}
	sp := keyedModel(4, func(i int) format.Stream {
		name := fmt.Sprintf("f%d", i)
		files["sp/"+name] = keyedHeader
		return relative(name, int64(len(keyedHeader)))
	})
	delete(files, "sp/f1")
	files["sp/f2"] = "\x00\x00\x00\x63" + keyedHeader[4:] // version 99
	files["sp/_metadata"] = string(encode(t, sp))
	var fail atomic.Value
	fail.Store(errors.New("the network is gone"))
	store := hooked{inMemory(t, files), func(op, name string) error {
		if op == "read" && name == "sp/f3" {
			return fail.Load().(error)
		}
		return nil
	}}
	snap := open(t, "mem://sp", options("mem", store))
	all, err := snap.Headers(ctx, snap.Operators)
	if err != nil {
		t.Fatal(err)
	}
	h := all[snap.Operators[0]]
	if h.Read != 1 || len(h.Unread) != 3 {
		t.Fatalf("%d read, %v", h.Read, h.Unread)
	}
	is(t, h.Unread[0], "subtask 1", "", format.ErrMissing)
	is(t, h.Unread[1], "version 99", "", format.ErrUnsupported)
	is(t, h.Unread[2], "the network is gone", "")

	fail.Store(format.ErrChanged)
	snap = open(t, "mem://sp", options("mem", store))
	if _, err := snap.Headers(ctx, snap.Operators); !errors.Is(err, format.ErrChanged) {
		t.Errorf("a file that changed: %v", err)
	}
}
