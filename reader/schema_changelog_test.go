package reader_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// TestTypesOfChangelogs: the states that only the changes of a changelog register have the
// types, and the time to live, that they have in a canonical snapshot of the same job.
func TestTypesOfChangelogs(t *testing.T) {
	// types of an operator by its id
	typesOf := func(location string) map[string][]string {
		snap := open(t, location, options())
		all := map[string][]string{}
		for _, op := range snap.Operators {
			types, err := snap.Types(ctx, op)
			if err != nil || len(types.Unread) > 0 {
				t.Fatal(err, types.Unread)
			}
			for _, st := range types.States {
				if st.Keyed != "" {
					all[op.ID.String()] = append(all[op.ID.String()], fmt.Sprint(st.Name, " ", st.Kind(), " ", types.Keys[0], " ", st.Namespace, " ", st.UserKey, " ", st.Value, " ", st.TTL))
				}
			}
			slices.Sort(all[op.ID.String()])
		}
		return all
	}
	found, present := 0, false
	for _, about := range testenv.KnownSnapshots(t) {
		if !about.Options.Changelog {
			continue
		}
		present = true
		name := strings.Replace(filepath.Base(about.Dir), "changelog", "canonical", 1)
		for _, other := range testenv.KnownSnapshots(t) {
			if filepath.Base(other.Dir) != name {
				continue
			}
			got, want := typesOf(about.Location), typesOf(other.Location)
			for id, all := range want {
				found++
				all = slices.DeleteFunc(all, func(line string) bool { // timers are registered with the first one
					return strings.HasPrefix(line, "_timer_state/processing_") && !slices.Contains(got[id], line)
				})
				if ttl := strings.Count(strings.Join(all, "\n"), " true"); !slices.Equal(got[id], all) || len(all) > 5 && ttl == 0 {
					t.Errorf("%s, %s:\n%s\nwant\n%s", name, id, strings.Join(got[id], "\n"), strings.Join(all, "\n"))
				}
			}
		}
	}
	testenv.Some(t, "operators with changelogs", found, present)
}
