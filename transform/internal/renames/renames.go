// Package renames finds the operators that a newer snapshot, or a job, likely has
// under other ids. Packages diff and check use it.
package renames

import (
	"cmp"
	"context"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/summary"
	"github.com/savepoint-tools/spt/transform"
)

// maxRenamePairs bounds how many pairs of operators are compared.
const maxRenamePairs = 1 << 18

// sqlNumber matches the number that the SQL planner appends to a name and uses in
// the generated uid.
var sqlNumber = regexp.MustCompile(`\s*\[\d+\]$`)

// baseName returns the stored name of an operator without the planner's number.
func baseName(op *format.Operator) string {
	return sqlNumber.ReplaceAllString(op.Name.String(), "")
}

// nameChanged reports whether both operators have stored names that differ.
func nameChanged(a, b *format.Operator) bool {
	x, y := baseName(a), baseName(b)
	return x != "" && y != "" && x != y
}

// genericStates are names that Flink and its connectors give to states of many
// operators: they do not identify an operator.
var genericStates = []string{
	"window-contents", "merging-window-set", "writer_raw_states", "writer-state", "streaming_committer_raw_states", "file-monitoring-state",
	"input-splits", "state", "global_committer_raw_states", "next-transaction-id-hint-v2", "bucket-states", "max-part-counter",
}

// Generic reports whether many operators have a state of this name, so that it
// does not identify an operator.
func Generic(name string) bool {
	return name == "" || strings.HasPrefix(name, "_timer_state/") || connector.IsPositions(name) || slices.Contains(genericStates, name)
}

// Side is an operator on one of the two sides that Find compares.
type Side struct {
	ID  format.OperatorID
	UID string // "" if unknown
	// Operator is nil if only its id or uid is known.
	Operator *format.Operator
	Summary  *summary.Operator // of Operator
	Schema   types.Schemas     // nil if types are unknown
}

// Of returns an operator of a snapshot.
func Of(op *format.Operator, sum *summary.Operator, schema types.Schemas) Side {
	return Side{op.ID, op.UID.String(), op, sum, schema}
}

// renameOperator is an operator of either side, with the headers of its states.
type renameOperator struct {
	Side
	read  bool
	keyed map[string]*types.StateSchema // by name; nil if unknown
	types map[stateName]*types.StateSchema
	key   *types.Snapshot
}

// stateName is a state name with its scope.
type stateName struct{ scope, name string }

// describe reads the headers of one subtask with keyed state and of one with
// operator state: other subtasks have the same states.
func (r *renameOperator) describe(ctx context.Context) error {
	if r.read || r.Operator == nil || r.Schema == nil {
		return nil
	}
	r.read = true
	one := *r.Operator
	one.Subtasks = nil
	var managed, keyed bool
	for _, sub := range r.Operator.Subtasks {
		if sub.Managed != nil && len(sub.Managed.States) > 0 && !managed || sub.ManagedKeyed != nil && !keyed {
			managed, keyed = managed || sub.Managed != nil && len(sub.Managed.States) > 0, keyed || sub.ManagedKeyed != nil
			one.Subtasks = append(one.Subtasks, sub)
		}
	}
	schema, unread, err := r.Schema(ctx, &one)
	if err != nil {
		return err
	}
	r.types, r.key = map[stateName]*types.StateSchema{}, schema.Key
	if len(unread) == 0 && schema.Key != nil {
		r.keyed = map[string]*types.StateSchema{}
	}
	for i := range schema.States {
		st := &schema.States[i]
		r.types[stateName{st.Scope(), st.Name.String()}] = st
		if st.Keyed != "" && r.keyed != nil {
			r.keyed[st.Name.String()] = st
		}
	}
	return nil
}

// states returns the states of an operator, and the ones whose names identify it.
// Keyed states count as one if their names are unknown.
func (r *renameOperator) states(keyedNames bool) (all map[stateName]bool, telling int) {
	all = map[stateName]bool{}
	for _, st := range r.Summary.States {
		if st.Kind == summary.InFlight || st.Name == "" && st.Bytes == 0 {
			continue
		}
		if st.Kind == summary.Keyed && keyedNames {
			for name := range r.keyed {
				all[stateName{"keyed", name}] = true
			}
			continue
		}
		all[stateName{string(st.Kind), st.Name}] = true
	}
	for s := range all {
		if !Generic(s.name) {
			telling++
		}
	}
	return all, telling
}

// How well two operators match.
const (
	fitNot    = iota
	fitPartly // worth reporting
	fitWell   // likely the same operator, if no other matches as well
)

// renameFit compares an operator of the older snapshot with one of the newer
// snapshot.
func renameFit(ctx context.Context, x, y *renameOperator) (fit int, reasons []string, err error) {
	if !x.Operator.HasState() {
		return fitNot, nil, nil
	}
	if y.Operator == nil { // no evidence for or against it
		return fitPartly, nil, nil
	}
	for _, r := range []*renameOperator{x, y} {
		if err := r.describe(ctx); err != nil {
			return fitNot, nil, err
		}
	}
	named := x.keyed != nil && y.keyed != nil
	old, telling := x.states(named)
	now, tellingNow := y.states(named)
	common, tellingCommon := 0, 0
	for s := range old {
		if now[s] {
			common++
			if !Generic(s.name) {
				tellingCommon++
			}
		}
	}
	typesKnown, typesFit := sameTypes(x, y)
	because := func(format string, args ...any) { reasons = append(reasons, fmt.Sprintf(format, args...)) }
	sameName := baseName(x.Operator) != "" && baseName(x.Operator) == baseName(y.Operator)
	if sameName {
		because("the same name %q", baseName(x.Operator))
	}
	switch equal := maps.Equal(old, now); {
	case equal && telling == 0:
		because("the same kinds of state")
	case equal && len(old) == 1:
		because("the same state")
	case equal:
		because("the same %d states", len(old))
	case tellingCommon > 0:
		because("%d of %d states", tellingCommon, max(telling, tellingNow))
	}
	if typesKnown && typesFit {
		because("the same types")
	}
	sizeOld, sizeNow := x.Summary.Bytes.State(), y.Summary.Bytes.State()
	if sizeOld == sizeNow {
		because("the same size")
	}
	if x.Operator.Parallelism == y.Operator.Parallelism {
		because("the same parallelism")
	}
	// Without names or types to distinguish them, sizes must be close.
	close := telling > 0 || len(x.keyed) > 0 && typesKnown && typesFit || min(sizeOld, sizeNow) > 0 && max(sizeOld, sizeNow)*4 <= min(sizeOld, sizeNow)*5
	switch {
	case nameChanged(x.Operator, y.Operator): // the names decide, unless what the user named is the same
		if typesKnown && typesFit && telling > 0 && maps.Equal(old, now) {
			return fitPartly, reasons, nil
		}
	case sameName:
		if typesFit && (common > 0 || len(now) == 0) {
			return fitWell, reasons, nil
		}
		return fitPartly, reasons, nil
	case typesKnown && !typesFit:
	case maps.Equal(old, now) && close:
		return fitWell, reasons, nil
	case maps.Equal(old, now), tellingCommon > 0 && (tellingCommon == tellingNow || tellingCommon == telling):
		return fitPartly, reasons, nil
	}
	return fitNot, nil, nil
}

// sameTypes reports whether the states that both operators have are of the same
// types, and whether any type is known.
func sameTypes(x, y *renameOperator) (known, same bool) {
	same = true
	if x.key != nil && y.key != nil {
		known, same = true, types.Compare(x.key, y.key).Compatibility == types.CompatibleAsIs
	}
	for name, a := range x.types {
		b := y.types[name]
		if b == nil {
			continue
		}
		for _, k := range a.Serializers {
			if other := b.Serializer(k.Key); k.Snapshot != nil && other != nil {
				known = true
				same = same && types.Compare(k.Snapshot, other).Compatibility == types.CompatibleAsIs
			}
		}
		same = same && a.Kind() == b.Kind()
	}
	return known, same
}

// otherStates reports whether an operator with the same id has none of its old
// states, or none of the old states that identify it.
func otherStates(ctx context.Context, x, y *renameOperator) (bool, error) {
	if x.Operator == nil || y.Operator == nil {
		return false, nil
	}
	if x.Operator.HasKeyed() && y.Operator.HasKeyed() {
		for _, r := range []*renameOperator{x, y} {
			if err := r.describe(ctx); err != nil {
				return false, err
			}
		}
	}
	named := x.keyed != nil && y.keyed != nil
	old, telling := x.states(named)
	now, tellingNow := y.states(named)
	if len(old) == 0 || len(now) == 0 {
		return false, nil
	}
	for s := range old {
		if now[s] && (!Generic(s.name) || telling == 0 || tellingNow == 0) {
			return false, nil
		}
	}
	return true, nil
}

// Find compares the operators that only one side has, and the operators with the
// same id but another stored name or other states: ids generated by a planner
// shift, and uids get exchanged. Operators that kept both id and name are only
// considered as the other side of such a rename.
func Find(ctx context.Context, old, now []Side) (*transform.Renames, error) {
	var gone, come []*renameOperator
	var kept [][2]*renameOperator
	byID := map[format.OperatorID][]*renameOperator{}
	for _, x := range old {
		byID[x.ID] = append(byID[x.ID], &renameOperator{Side: x})
	}
	for _, y := range now {
		if free := byID[y.ID]; len(free) > 0 {
			kept = append(kept, [2]*renameOperator{free[0], {Side: y}})
			byID[y.ID] = free[1:]
			continue
		}
		come = append(come, &renameOperator{Side: y})
	}
	for _, x := range old {
		if free := byID[x.ID]; len(free) > 0 {
			gone = append(gone, free[0])
			byID[x.ID] = free[1:]
		}
	}
	r := &transform.Renames{}
	var stayed [][2]*renameOperator
	partner := map[*renameOperator]*renameOperator{}
	for _, k := range kept {
		if k[1].Operator != nil && nameChanged(k[0].Operator, k[1].Operator) {
			r.Names = append(r.Names, transform.NameChange{Old: k[0].Operator, New: k[1].Operator})
		} else if other, err := otherStates(ctx, k[0], k[1]); err != nil {
			return nil, err
		} else if !other {
			stayed = append(stayed, k)
			continue
		}
		gone, come = append(gone, k[0]), append(come, k[1])
		partner[k[0]] = k[1]
	}
	if len(gone) == 0 || len(come) == 0 {
		return r, nil
	}
	if (len(gone)+len(stayed))*(len(come)+len(stayed)) > maxRenamePairs {
		r.Skipped = true
		return r, nil
	}
	type source struct {
		*renameOperator
		fit     int
		reasons []string
		kept    bool
	}
	fits := map[*renameOperator][]source{} // by added operator
	well := map[*renameOperator]int{}      // number of newer operators that match an older one well
	pair := func(x, y *renameOperator, kept bool) error {
		fit, reasons, err := renameFit(ctx, x, y)
		if err != nil || fit == fitNot {
			return err
		}
		if fit == fitWell {
			well[x]++
		}
		fits[y] = append(fits[y], source{x, fit, reasons, kept})
		return nil
	}
	for _, y := range come {
		for _, x := range gone {
			if partner[x] == y {
				continue
			}
			if err := pair(x, y, partner[x] != nil); err != nil {
				return nil, err
			}
		}
		for _, k := range stayed {
			if y.Operator == nil {
				continue // nothing is known that could match
			}
			if err := pair(k[0], y, true); err != nil {
				return nil, err
			}
		}
	}
	for _, x := range gone {
		for _, k := range stayed {
			if k[1].Operator == nil {
				continue
			}
			if fit, _, err := renameFit(ctx, x, k[1]); err != nil {
				return nil, err
			} else if fit == fitWell {
				well[x]++
			}
		}
	}
	for _, y := range come {
		all := fits[y]
		if !slices.ContainsFunc(all, func(s source) bool { return !s.kept || partner[s.renameOperator] != nil }) {
			continue // it matches only operators that kept everything
		}
		slices.SortStableFunc(all, func(a, b source) int {
			// Operators that the job no longer has come first.
			kept := func(s source) int {
				if s.kept {
					return 1
				}
				return 0
			}
			return cmp.Or(cmp.Compare(b.fit, a.fit), cmp.Compare(kept(a), kept(b)))
		})
		n := transform.LikelyRename{ID: y.ID, UID: y.UID, Operator: y.Operator}
		best := 0
		for _, s := range all {
			if s.fit == fitWell {
				best++
			}
			n.From = append(n.From, transform.RenameSource{Operator: s.Operator, Reasons: s.reasons, Kept: s.kept})
		}
		if best == 1 && well[all[0].renameOperator] == 1 && (!all[0].kept || partner[all[0].renameOperator] != nil) {
			n.From = n.From[:1]
			r.Likely = append(r.Likely, n)
			continue
		}
		r.Open = append(r.Open, n)
	}
	settle(r, gone, stayed)
	for _, list := range [][]transform.LikelyRename{r.Likely, r.Open} {
		slices.SortStableFunc(list, func(a, b transform.LikelyRename) int {
			return cmp.Or(cmp.Compare(a.Label(), b.Label()), cmp.Compare(a.ID.String(), b.ID.String()))
		})
	}
	return r, nil
}

// settle moves a rename to Open if another operator of the older snapshot has its
// id and keeps it.
func settle(r *transform.Renames, gone []*renameOperator, stayed [][2]*renameOperator) {
	holder := map[format.OperatorID]*format.Operator{}
	for _, x := range gone {
		holder[x.ID] = x.Operator
	}
	for _, k := range stayed {
		holder[k[0].ID] = k[0].Operator
	}
	for again := true; again; {
		again = false
		moves := map[*format.Operator]bool{}
		for _, n := range r.Likely {
			moves[n.From[0].Operator] = true
		}
		for i, n := range r.Likely {
			if in := holder[n.ID]; in != nil && !moves[in] {
				n.From[0].Reasons = append(n.From[0].Reasons, fmt.Sprintf("but the snapshot has that id for %q, which would have to be dropped or renamed first", nameOf(in)))
				r.Open = append(r.Open, n)
				r.Likely = slices.Delete(r.Likely, i, i+1)
				again = true
				break
			}
		}
	}
}

// nameOf returns the stored name of an operator, or its label.
func nameOf(op *format.Operator) string { return cmp.Or(op.Name.String(), op.Label()) }
