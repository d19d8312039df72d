// Package count counts the entries of keyed state: how many each state has, how many
// bytes and keys, how they are distributed over key groups, which have expired, and
// when timers fire.
//
//	r, err := count.Keyed(ctx, view, count.Options{TTL: 7 * 24 * time.Hour, At: at})
//	for _, op := range r.Operators {
//		for _, st := range op.States {
//			fmt.Println(op.Label(), st.Name, st.Entries, st.Bytes, st.Expired.Entries)
//		}
//		fmt.Println(op.Skew().Largest, op.Subtasks(64))
//	}
//
// The numbers do not depend on the encoding: bytes are of stored keys and values, as
// a canonical savepoint holds them. Only [State.Dead], which is what files hold beyond
// the state, depends on the files.
//
// All entries are read once, handle by handle or, of large handles, some key groups
// after others, on several goroutines. Memory is bounded by the cursors of the
// encodings, not by the state.
package count
