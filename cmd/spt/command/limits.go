package command

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/limit"
	"github.com/savepoint-tools/spt/internal/ui"
)

// limitNames are the limits that --limits sets, and whether they are sizes.
var limitNames = []struct {
	name format.Limit
	size bool
}{
	{limit.Memory, true}, {limit.Manifest, true}, {limit.Chunk, true}, {limit.Value, true},
	{limit.Offsets, false}, {limit.ChunkRefs, false},
	{limit.Nodes, false}, {limit.Operators, false}, {limit.Subtasks, false}, {limit.Depth, false},
}

// maxDepth is the depth that --limits none allows: a decoder recurses.
const maxDepth = 1000

// limitsFlag is the value of --limits: NAME=N, several joined by commas, or none.
type limitsFlag struct {
	format.Limits
	text []string
}

// Set takes one use of the flag.
func (l *limitsFlag) Set(text string) error {
	l.text = append(l.text, text)
	if text == "none" {
		for _, n := range limitNames {
			l.Limits.Set(n.name, math.MaxInt64/2)
		}
		l.Depth = maxDepth
		return nil
	}
	for part := range strings.SplitSeq(text, ",") {
		name, value, ok := strings.Cut(strings.TrimSpace(part), "=")
		if !ok {
			return fmt.Errorf("%q is not NAME=N", part)
		}
		i := slices.IndexFunc(limitNames, func(n struct {
			name format.Limit
			size bool
		}) bool {
			return string(n.name) == name
		})
		if i < 0 {
			return fmt.Errorf("unknown limit %q; available: %s", name, strings.Join(l.names(), ", "))
		}
		var n ui.Size
		if err := n.Set(value); err != nil {
			return fmt.Errorf("%s %w", name, err)
		}
		if n <= 0 {
			return fmt.Errorf("%s must be at least 1", name)
		}
		if limitNames[i].name == limit.Depth && n > maxDepth {
			return fmt.Errorf("depth must be at most %d", maxDepth)
		}
		l.Limits.Set(limitNames[i].name, int64(n))
	}
	return nil
}

func (l *limitsFlag) names() []string {
	var all []string
	for _, n := range limitNames {
		all = append(all, string(n.name))
	}
	return all
}

// String is what was given.
func (l *limitsFlag) String() string { return strings.Join(l.text, ",") }

// Type is the name of the value in a help text.
func (l *limitsFlag) Type() string { return "NAME=N" }

// limitHint is what a user can do about a limit that a file exceeds.
func limitHint(l format.Limit) string {
	example := "2000000"
	for _, n := range limitNames {
		if n.name == l && n.size {
			example = "1GiB"
		}
	}
	return fmt.Sprintf("files that are made to use up a machine look like this; if you trust this one, allow it more:  --limits %s=%s", string(l), example)
}
