package check

import (
	"slices"
	"testing"

	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/reader"
)

// TestTypeOfOneSubtask: savepoints of real Flink in which one subtask describes a
// state in another way than the other subtask: a check says so, and where.
func TestTypeOfOneSubtask(t *testing.T) {
	const long, date = "LongSerializer$LongSerializerSnapshot", "DateSerializer$DateSerializerSnapshot"
	const unknown, other = "LongSerializer$XongSerializerSnapshot", "LongSerializer$YongSerializerSnapshot"
	const operators, keyed = "flink-2.3-operator", "flink-1.20-keyed-rocksdb"
	for _, tt := range []struct {
		name     string
		old, now *reader.Snapshot
		want     []string // of old with a job like now
	}{
		{"operator state", sptest.WithClass(t, operators, long, date), sptest.WithClass(t, operators, long, long),
			[]string{"the keys of its map in subtask 1 of 2 are of another type in the job: DateSerializer → LongSerializer. Flink refuses it"}},
		{"keyed state", sptest.WithClass(t, keyed, long, date), sptest.WithClass(t, keyed, long, long),
			[]string{"its values in subtask 1 of 2 are of another type in the job: field 1: DateSerializer → LongSerializer. Flink refuses it"}},
		{"classes that are not known", sptest.WithClass(t, operators, unknown, unknown), sptest.WithClass(t, operators, unknown, other), nil},
	} {
		messages := func(was, now *reader.Snapshot) (all []string) {
			t.Helper()
			r, err := Run(t.Context(), was.View(), Options{Schema: was.Schema, Like: &Like{Savepoint: now.Savepoint, Schema: now.Schema}})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Findings {
				if f.Code == "type" {
					all = append(all, f.Message)
				}
			}
			return all
		}
		if got := messages(tt.old, tt.now); !slices.Equal(got, tt.want) {
			t.Errorf("%s: %q, want %q", tt.name, got, tt.want)
		}
		// A snapshot fits the job that took it, whatever its subtasks say.
		for _, s := range []*reader.Snapshot{tt.old, tt.now} {
			if got := messages(s, s); got != nil {
				t.Errorf("%s, with itself: %q", tt.name, got)
			}
		}
	}
}
