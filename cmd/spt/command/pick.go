package command

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
)

// pick chooses operators, states and subtasks.
type pick struct {
	operators, states []string
	subtasks          string
	ranges            [][2]int32

	flag string // that named the operators, for messages; "": --operator
}

// idDigits is how many digits of an id name an operator: fewer could be a name.
const idDigits = 4

func (p *pick) addFlags(fs *pflag.FlagSet) {
	operatorFlag(fs, &p.operators, "only these operators")
	stateFlag(fs, &p.states, "only these states")
	fs.StringVar(&p.subtasks, "subtask", "", "only the subtasks in `LIST`, such as 0,3-5")
}

// validate reads the subtask list and the globs.
func (p *pick) validate() error {
	for _, g := range slices.Concat(p.operators, p.states) {
		if _, err := path.Match(g, ""); err != nil {
			return usagef("%q is not a pattern: %v", g, err)
		}
	}
	if p.subtasks == "" {
		return nil
	}
	for part := range strings.SplitSeq(p.subtasks, ",") {
		lo, hi, isRange := strings.Cut(part, "-")
		if !isRange {
			hi = lo
		}
		first, err1 := strconv.ParseInt(lo, 10, 32)
		last, err2 := strconv.ParseInt(hi, 10, 32)
		if err1 != nil || err2 != nil || first < 0 || last < first {
			return usagef("--subtask %s: subtasks are given as 0,3-5", p.subtasks)
		}
		p.ranges = append(p.ranges, [2]int32{int32(first), int32(last)})
	}
	return nil
}

func (p *pick) subtask(i int32) bool {
	return len(p.ranges) == 0 || slices.ContainsFunc(p.ranges, func(r [2]int32) bool { return r[0] <= i && i <= r[1] })
}

func matches(globs []string, name string) bool {
	return len(globs) == 0 || slices.ContainsFunc(globs, func(g string) bool { return globMatches(g, name) })
}

func globMatches(glob, name string) bool { return format.Globs{glob}.Match(name) }

// unmatched returns the first of wanted that matches none of names; ok is false if
// each matches one.
func unmatched(wanted, names []string, match func(want, name string) bool) (first string, ok bool) {
	for _, want := range wanted {
		if !slices.ContainsFunc(names, func(name string) bool { return match(want, name) }) {
			return want, true
		}
	}
	return "", false
}

// apply returns the savepoint with the operators and subtasks that were picked. States
// are picked from a summary (applyStates), because the bytes of a state end where the
// next state starts. What matches nothing is an error that lists what is available.
func (p *pick) apply(env *Env, sp *format.Savepoint) (*format.Savepoint, error) {
	if len(p.operators)+len(p.ranges) == 0 {
		return sp, nil
	}
	c := *sp
	var err error
	if c.Operators, err = p.pickOperators(env, sp.Operators); err != nil {
		return nil, err
	}
	if len(p.ranges) > 0 {
		found := false
		for i, op := range c.Operators {
			o := *op
			o.Subtasks = nil
			for _, s := range op.Subtasks {
				if p.subtask(s.Index) {
					o.Subtasks = append(o.Subtasks, s)
					found = true
				}
			}
			c.Operators[i] = &o
		}
		if !found {
			return nil, usagef("no operator picked has a subtask in %s", p.subtasks)
		}
	}
	return &c, nil
}

func (p *pick) any() bool { return len(p.operators)+len(p.states)+len(p.ranges) > 0 }
