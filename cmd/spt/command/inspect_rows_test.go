package command

import (
	"encoding/json"
	"path/filepath"
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestRowsAddUp: what the rows of inspect --by say of offsets is what the whole
// has, in every real snapshot.
func TestRowsAddUp(t *testing.T) {
	snapshots, offsets, handles := 0, int64(0), int64(0)
	for _, dir := range testenv.Snapshots(t) {
		env := OSEnv()
		snap, err := env.open(t.Context(), dir)
		if err != nil {
			t.Fatal(err)
		}
		s, err := summary.Of(t.Context(), snap.Savepoint)
		if err != nil {
			t.Fatal(err)
		}
		one := addsUp(t, env, dir)
		for _, by := range []string{report.BySubtask, report.ByHandle} {
			sum := int64(0)
			for _, r := range report.NewInspectRows(by, 0, report.Inspects{one}).JSON().([]report.InspectRow) {
				sum += r.OffsetBytes
			}
			if sum != s.Bytes.Offsets {
				t.Errorf("%s: offsets of %d bytes by %s, %d in all", dir, sum, by, s.Bytes.Offsets)
			}
		}
		handles += trueOffsetBytes(snap.Savepoint)
		snapshots++
		offsets += s.Bytes.Offsets
		if err := snap.Close(); err != nil {
			t.Error(err)
		}
	}
	own, err := filepath.Glob("../../../testdata/savepoints/*.spt")
	if err != nil || len(own) == 0 {
		t.Fatal(own, err)
	}
	for _, file := range own {
		addsUp(t, OSEnv(), file)
	}
	t.Logf("%d snapshots, offsets of %d bytes", snapshots, offsets)
	testenv.Found(t, "snapshots", snapshots, testenv.Manifest(t).Snapshots)
	testenv.Found(t, "bytes of offsets", offsets, handles)
}

// trueOffsetBytes counts 8 bytes for each offset of a handle.
func trueOffsetBytes(sp *format.Savepoint) (n int64) {
	var keyed func(h format.KeyedHandle)
	keyed = func(h format.KeyedHandle) {
		switch h := h.(type) {
		case *format.KeyGroups:
			n += 8 * h.Offsets.Len()
		case *format.Changelog:
			for _, m := range slices.Concat(h.Materialized, h.Changes) {
				keyed(m)
			}
		}
	}
	for _, op := range sp.Operators {
		for _, sub := range op.Subtasks {
			for _, h := range []*format.OperatorHandle{sub.Managed, sub.Raw} {
				if h == nil {
					continue
				}
				for _, st := range h.States {
					n += 8 * st.Offsets.Len()
				}
			}
			keyed(sub.ManagedKeyed)
			keyed(sub.RawKeyed)
			for _, h := range slices.Concat(sub.Input, sub.Output) {
				for _, c := range h.Channels {
					n += 8 * c.Offsets.Len()
				}
			}
		}
	}
	return n
}

// addsUp: in the JSON of inspect, the states of each operator add up to it and
// the operators to the total, and so do the parts that are inline.
func addsUp(t *testing.T, env *Env, dir string) *report.Inspect {
	t.Helper()
	o := inspectOptions{}
	one, _, err := o.inspect(t.Context(), env, dir)
	if err != nil {
		t.Fatal(err)
	}
	p, err := json.Marshal(one)
	if err != nil {
		t.Fatal(err)
	}
	type figures struct{ Total, Serializers, Inline int64 }
	var r struct {
		Bytes     figures
		Operators []struct {
			ID     string
			Bytes  figures
			States []struct {
				Kind   string
				Bytes  int64
				Inline int64 `json:"inline_bytes"`
			}
		}
	}
	if err := json.Unmarshal(p, &r); err != nil {
		t.Fatal(err)
	}
	var all figures
	for _, op := range r.Operators {
		var sum figures
		for _, st := range op.States {
			if st.Bytes < 0 || st.Inline < 0 || st.Inline > st.Bytes {
				t.Errorf("%s: %s: %s of %d bytes, %d inline", dir, op.ID, st.Kind, st.Bytes, st.Inline)
			}
			sum.Total += st.Bytes
			sum.Inline += st.Inline
			if st.Kind == "serializers" {
				sum.Serializers += st.Bytes
			}
		}
		if sum != op.Bytes {
			t.Errorf("%s: states of %s add up to %+v, the operator has %+v", dir, op.ID, sum, op.Bytes)
		}
		all.Total, all.Serializers, all.Inline = all.Total+sum.Total, all.Serializers+sum.Serializers, all.Inline+sum.Inline
	}
	if all != r.Bytes {
		t.Errorf("%s: operators add up to %+v, the snapshot has %+v", dir, all, r.Bytes)
	}
	return one
}
