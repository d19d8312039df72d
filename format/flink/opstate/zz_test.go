package opstate_test
import ("testing";"fmt";"sort";"errors"
"github.com/savepoint-tools/spt/format"
"github.com/savepoint-tools/spt/format/flink/opstate"
"github.com/savepoint-tools/spt/format/flink/types"
"github.com/savepoint-tools/spt/internal/sptest"
"github.com/savepoint-tools/spt/internal/testenv")
func TestZZ(t *testing.T) {
	why := map[string]int{}
	ex := map[string]string{}
	ok, bad := 0, 0
	for _, dir := range testenv.Snapshots(t) {
		snap := sptest.Open(t, dir)
		codec := &opstate.Codec{}
		for _, op := range snap.Operators { for _, sub := range op.Subtasks {
			h := sub.Managed
			if h == nil { continue }
			schemas, err := codec.Schema(t.Context(), snap.Source(), h)
			if err != nil { why["SCHEMA "+err.Error()]++; continue }
			for i := range schemas {
				s := &schemas[i]
				if s.Mode == format.ModeBroadcast { continue }
				sn := s.Serializer("VALUE_SERIALIZER")
				c, err := types.NewCodec(sn)
				all, e2 := elements(t.Context(), codec, snap.Source(), h, s.Name.String(), 0)
				if e2 != nil { if !errors.Is(e2, format.ErrMissing) {why["ELEMENTS "+e2.Error()]++}; continue }
				if err != nil { k := err.Error()+" in "+sn.Text(nil); why[k] += len(all); if len(all)>0 { ex[k] = fmt.Sprintf("%s %x", s.Name, all[0]) }; continue }
				for _, e := range all {
					if v, err := testenv.ReadBack(t, c, []byte(e)); err != nil { bad++; fmt.Println("BAD", dir, s.Name, sn.Text(nil), err, v) } else { ok++ }
				}
			}
		}}
	}
	var ks []string
	for k := range why { ks = append(ks, k) }
	sort.Slice(ks, func(i, j int) bool { return why[ks[i]] > why[ks[j]] })
	fmt.Println(ok, "ok", bad, "bad")
	for _, k := range ks { fmt.Println(why[k], k, fmt.Sprintf("%.200s", ex[k])) }
}
