package transform_test

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// eachKafka calls f with each snapshot of the corpus that has a Kafka source whose
// coordinator lists partitions.
func eachKafka(t *testing.T, f func(t *testing.T, snap *reader.Snapshot, s *transform.SourceOffsets)) {
	t.Helper()
	found, present := 0, false
	for _, dir := range testenv.Snapshots(t) {
		present = present || strings.Contains(filepath.Base(dir), "kafka-source-enum")
		if !strings.Contains(dir, "kafka") {
			continue
		}
		snap := sptest.Open(t, dir)
		r, err := transform.Offsets(t.Context(), snap.View(), transform.OffsetsOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range r.Sources {
			if len(s.Partitions) == 0 || s.Connector != "Kafka" || s.Operator.Coordinator == nil {
				continue
			}
			found++
			t.Run(filepath.Base(dir), func(t *testing.T) { f(t, snap, s) })
		}
	}
	testenv.Some(t, "Kafka sources with a coordinator", found, present)
}

// written writes a view, opens it again, and returns its only Kafka source.
func written(t *testing.T, v format.View) (*reader.Snapshot, *transform.SourceOffsets) {
	t.Helper()
	out := filepath.Join(t.TempDir(), "out")
	if _, err := writer.Write(t.Context(), v, out, nil); err != nil {
		t.Fatal(err)
	}
	snap := sptest.Open(t, out)
	r, err := transform.Offsets(t.Context(), snap.View(), transform.OffsetsOptions{})
	if err != nil || len(r.Sources) != 1 {
		t.Fatal(err, r)
	}
	return snap, r.Sources[0]
}

// TestSetOffsetsEverywhere: an offset is set in the reader and in the coordinator, if
// that stores it; nothing else changes.
func TestSetOffsetsEverywhere(t *testing.T) {
	eachKafka(t, func(t *testing.T, snap *reader.Snapshot, s *transform.SourceOffsets) {
		first := s.Partitions[0].Position
		v, r, err := transform.SetOffsets(t.Context(), snap.View(), transform.SetOffsetsOptions{Set: []transform.OffsetChange{
			{Topic: first.Topic, At: connector.AtEarliest}, {Topic: first.Topic, Partition: first.Partition, Offset: 1 << 40},
		}})
		if err != nil {
			t.Fatal(err)
		}
		_, after := written(t, v)
		if len(after.Partitions) != len(s.Partitions) {
			t.Fatalf("%d places, expected %d", len(after.Partitions), len(s.Partitions))
		}
		seen := 0
		for i, p := range after.Partitions {
			was := s.Partitions[i]
			if p.Topic != was.Topic || p.Partition != was.Partition || p.Subtask != was.Subtask || p.Status != was.Status || p.Trouble != transform.NoTrouble {
				t.Errorf("%+v was %+v", p, was)
			}
			switch {
			case p.At == connector.AtNothing:
			case p.Partition == first.Partition:
				if seen++; p.At != connector.AtOffset || p.Offset != 1<<40 {
					t.Errorf("%+v", p)
				}
			case p.At != connector.AtEarliest:
				t.Errorf("%+v", p)
			}
		}
		if seen == 0 || len(r.Set) == 0 || r.Set[0].To.Offset != 1<<40 || r.Set[0].Readers != 1 {
			t.Errorf("%d times: %+v", seen, r.Set)
		}
		// The same again changes nothing: the result is the input.
		again, r, err := transform.SetOffsets(t.Context(), v, transform.SetOffsetsOptions{Set: []transform.OffsetChange{{Topic: first.Topic, Partition: first.Partition, Offset: 1 << 40}}})
		if err != nil || again.Savepoint != v.Savepoint || len(r.Set) != 0 {
			t.Errorf("%v: %+v", err, r)
		}
	})
}

// TestDropTopicEverywhere: no place has the topic any more, and the coordinator is
// still read.
func TestDropTopicEverywhere(t *testing.T) {
	eachKafka(t, func(t *testing.T, snap *reader.Snapshot, s *transform.SourceOffsets) {
		v, r, err := transform.SetOffsets(t.Context(), snap.View(), transform.SetOffsetsOptions{DropTopics: []string{s.Partitions[0].Topic}})
		if err != nil || len(r.Dropped) == 0 {
			t.Fatal(err, r)
		}
		for _, d := range r.Dropped {
			if d.Readers != 1 || !d.Coordinator {
				t.Errorf("%+v", d)
			}
		}
		_, after := written(t, v)
		if len(after.Partitions) > 0 || len(after.Undecoded) > 0 {
			t.Errorf("left: %+v %+v", after.Partitions, after.Undecoded)
		}
	})
}

// TestTroubles: what readers and coordinator disagree about is found.
func TestTroubles(t *testing.T) {
	eachKafka(t, func(t *testing.T, snap *reader.Snapshot, s *transform.SourceOffsets) {
		first := s.Partitions[0].Position
		trouble := func(v format.View) (kinds []transform.PartitionTrouble) {
			t.Helper()
			r, err := transform.Offsets(t.Context(), v, transform.OffsetsOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range r.Sources[0].Partitions {
				if p.Partition == first.Partition {
					kinds = append(kinds, p.Trouble)
				} else if p.Trouble != transform.NoTrouble {
					t.Errorf("%+v", p)
				}
			}
			return kinds
		}
		// A filter takes the split from its reader, and warns.
		v, report, err := transform.Filter(t.Context(), snap.View(), transform.FilterOptions{States: format.ByName("SourceReaderState"), Keep: func(e transform.FilterElement) (bool, error) {
			return !slices.ContainsFunc(positionsOf(t, e.Value), func(p connector.Position) bool { return p.Partition == first.Partition }), nil
		}})
		if err != nil || len(report.Splits) != 1 || report.Splits[0].Removed != 1 || len(report.Splits[0].Listed) != 1 || report.Splits[0].Listed[0].Partition != first.Partition {
			t.Fatalf("%v: %+v", err, report.Splits)
		}
		if got := trouble(v); !slices.Equal(got, []transform.PartitionTrouble{transform.InNoReader}) {
			t.Errorf("removed from the reader: %q", got)
		}
		// The coordinator does not know the split.
		v = withCoordinator(t, snap.View(), func(p connector.Position) bool { return p.Partition != first.Partition })
		if got := trouble(v); !slices.Equal(got, []transform.PartitionTrouble{transform.NotEnumerated}) {
			t.Errorf("removed from the coordinator: %q", got)
		}
		// Two readers have it.
		twice, err := snap.MapOperators(func(op *format.Operator) (*format.Operator, error) {
			c := *op
			c.Subtasks = append(slices.Clone(op.Subtasks), op.Subtasks...)
			return &c, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		r, err := transform.Offsets(t.Context(), snap.View().With(twice), transform.OffsetsOptions{})
		if err != nil || r.Sources[0].Partitions[0].Trouble != transform.TwiceInReaders {
			t.Errorf("%v: %+v", err, r.Sources[0].Partitions[0])
		}
	})
}

func positionsOf(t *testing.T, element []byte) []connector.Position {
	t.Helper()
	codec, ok := connector.Elements("SourceReaderState", []byte("BytePrimitiveArraySerializer"))
	if !ok {
		t.Fatal("no codec")
	}
	v, err := value.ReadAll(codec, element)
	if err != nil {
		t.Fatal(err)
	}
	return connector.Positions(v)
}

// withCoordinator returns the view with the partitions in its coordinators for which
// keep is true.
func withCoordinator(t *testing.T, v format.View, keep func(connector.Position) bool) format.View {
	t.Helper()
	sp, err := v.MapOperators(func(op *format.Operator) (*format.Operator, error) {
		if op.Coordinator == nil {
			return op, nil
		}
		codec := connector.Coordinator("Kafka")
		state, err := value.ReadAll(codec, sptest.Bytes(t, v.Source, op.Coordinator))
		if err != nil {
			return nil, err
		}
		state, _, err = connector.EditPositions(state, func(p connector.Position) (connector.Position, bool, error) { return p, keep(p), nil })
		if err != nil {
			return nil, err
		}
		p, err := codec.Append(nil, state)
		c := *op
		c.Coordinator = sptest.Inline(op.ID.String(), string(p))
		return &c, err
	})
	if err != nil {
		t.Fatal(err)
	}
	return v.With(sp)
}

// TestSetOffsetsUnknown: what no source has is an error that lists what there is.
func TestSetOffsetsUnknown(t *testing.T) {
	eachKafka(t, func(t *testing.T, snap *reader.Snapshot, s *transform.SourceOffsets) {
		var unknown *transform.PartitionError
		topic := s.Partitions[0].Topic
		for _, o := range []transform.SetOffsetsOptions{
			{Set: []transform.OffsetChange{{Topic: "nothing"}}}, {DropTopics: []string{"nothing"}}, {Set: []transform.OffsetChange{{Topic: topic, Partition: "999"}}},
		} {
			v, _, err := transform.SetOffsets(t.Context(), snap.View(), o)
			if !errors.As(err, &unknown) || len(unknown.Available) == 0 || v.Savepoint != snap.Savepoint {
				t.Errorf("%+v: %v", o, err)
			}
		}
		if _, _, err := transform.SetOffsets(t.Context(), snap.View(), transform.SetOffsetsOptions{Set: []transform.OffsetChange{{Topic: topic, Offset: -7}}}); err == nil {
			t.Error("a negative offset was set")
		}
		// State that is not decoded could hold the partition.
		broken, err := snap.MapOperators(func(op *format.Operator) (*format.Operator, error) {
			c := *op
			if op.Coordinator != nil {
				c.Coordinator = sptest.Inline(op.ID.String(), "\x00\x00\x00\x01\x00\x00\x00\x63\x00\x00\x00\x01x")
			}
			return &c, nil
		})
		if err != nil {
			t.Fatal(err)
		}
		_, _, err = transform.SetOffsets(t.Context(), snap.View().With(broken), transform.SetOffsetsOptions{DropTopics: []string{topic}})
		if !errors.Is(err, format.ErrUnsupported) || !strings.Contains(err.Error(), "version 99") {
			t.Error(err)
		}
	})
}
