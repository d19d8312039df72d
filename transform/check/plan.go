package check

import (
	"encoding/json"
	"fmt"
	"html"
	"regexp"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Job is what is known of a job.
type Job struct {
	Operators []JobOperator
	// Whole is set if Operators has all operators with state. A plan of Flink's REST
	// interface has only vertices, each with the id of the first operator of its
	// chain.
	Whole bool
}

// JobOperator is an operator of a job.
type JobOperator struct {
	ID          format.OperatorID
	Name        string // uid, or else a name or id
	Parallelism int32  // 0 if unknown
	Description string // of the vertex, in a plan: names of all chained operators

	chained []string // the names in it
	vertex  bool     // by a plan, it is the first of a chain
	inputs  []jobInput
}

// jobInput is an edge of a plan.
type jobInput struct {
	from     format.OperatorID
	allToAll bool
}

// JobOfNames returns a job from the uids of its operators. A uid of 32 hex digits
// is an id: of an operator without a uid, or with a uid hash.
func JobOfNames(uids []string) *Job {
	j := &Job{Whole: true}
	seen := map[format.OperatorID]bool{}
	for _, uid := range uids {
		id, ok := format.ParseOperatorID(uid)
		if !ok {
			id = format.OperatorIDOf(uid)
		}
		if !seen[id] {
			seen[id] = true
			j.Operators = append(j.Operators, JobOperator{ID: id, Name: uid})
		}
	}
	return j
}

// ParsePlan parses the plan of a job as Flink's REST interface returns it
// (/jobs/ID/plan, /jobs/ID, or only the plan object).
func ParsePlan(text []byte) (*Job, error) {
	type plan struct {
		Nodes []struct {
			ID          string `json:"id"`
			Parallelism int32  `json:"parallelism"`
			Description string `json:"description"`
			Inputs      []struct {
				ID       string `json:"id"`
				Strategy string `json:"ship_strategy"`
			} `json:"inputs"`
		} `json:"nodes"`
	}
	var doc struct {
		Plan *plan `json:"plan"`
		plan
	}
	if err := json.Unmarshal(text, &doc); err != nil {
		return nil, fmt.Errorf("not the plan of a job: %w", err)
	}
	if doc.Plan == nil {
		doc.Plan = &doc.plan
	}
	if len(doc.Plan.Nodes) == 0 {
		return nil, fmt.Errorf("not the plan of a job: it has no plan with nodes")
	}
	j := &Job{}
	seen := map[format.OperatorID]bool{}
	for i, n := range doc.Plan.Nodes {
		id, ok := format.ParseOperatorID(n.ID)
		switch {
		case !ok:
			return nil, fmt.Errorf("node %d of the plan: %q is not an id of 32 hex digits", i, n.ID)
		case n.Parallelism < 0 || n.Parallelism > format.MaxKeyGroups:
			return nil, fmt.Errorf("node %d of the plan: invalid parallelism %d", i, n.Parallelism)
		case seen[id]:
			return nil, fmt.Errorf("node %d of the plan: duplicate id %s", i, n.ID)
		}
		seen[id] = true
		name := plainDescription(n.Description)
		op := JobOperator{ID: id, Name: name, Parallelism: n.Parallelism, Description: name, chained: chained(n.Description), vertex: true}
		for _, in := range n.Inputs {
			if from, ok := format.ParseOperatorID(in.ID); ok {
				op.inputs = append(op.inputs, jobInput{from, in.Strategy != "FORWARD" && in.Strategy != "RESCALE"})
			}
		}
		j.Operators = append(j.Operators, op)
	}
	return j, nil
}

// plainDescription reverts the HTML entities and line breaks that Flink adds to
// descriptions for its web page.
func plainDescription(s string) string { return strings.Join(descriptionLines(s), " ") }

// descriptionLines returns the lines of a description that are not blank.
func descriptionLines(s string) []string {
	var lines []string
	for line := range strings.SplitSeq(lineBreak.ReplaceAllString(s, "\n"), "\n") {
		if line = oneSpace(html.UnescapeString(line)); line != "" {
			lines = append(lines, line)
		}
	}
	return lines
}

func oneSpace(s string) string { return strings.Join(strings.Fields(s), " ") }

var (
	lineBreak = regexp.MustCompile(`<br ?/?>`)
	branch    = regexp.MustCompile(`^(?:: )*[:+]- `) // after runs of blanks were merged
)

// chained lists the names in the description of a vertex. Flink writes it as a
// tree, one operator per line after ":- " or "+- ", or in one line, as "a -> b"
// or "a -> (b, c -> d)"; in both, sources chained into a head follow it in
// brackets: "a [b, c]". Brackets inside a name belong to the name.
func chained(description string) []string {
	lines := descriptionLines(description)
	tree := slices.ContainsFunc(lines, branch.MatchString)
	var all []string
	for _, line := range lines {
		names := []string{branch.ReplaceAllString(line, "")}
		if !tree {
			names = cascade(line)
		}
		for _, name := range names {
			all = append(all, name)
			if head, sources, ok := strings.Cut(name, " ["); ok && strings.HasSuffix(sources, "]") {
				all = append(all, head)
				for s := range strings.SplitSeq(strings.TrimSuffix(sources, "]"), ",") {
					all = append(all, strings.TrimSpace(s))
				}
			}
		}
	}
	return all
}

// cascade splits a one-line description.
func cascade(line string) []string {
	var all []string
	start, inner, groups := 0, 0, 0 // parts of a name: text, brackets in it, brackets around it
	end := func(i, next int) {
		all = append(all, strings.TrimSpace(line[start:i]))
		start = next
	}
	for i := 0; i < len(line); i++ {
		switch c := line[i]; {
		case inner == 0 && strings.HasPrefix(line[i:], " -> "):
			end(i, i+4)
			if strings.HasPrefix(line[start:], "(") {
				groups++
				start++
			}
			i = start - 1
		case c == '(' || c == '[':
			inner++
		case (c == ')' || c == ']') && inner > 0:
			inner--
		case inner == 0 && groups > 0 && c == ')':
			end(i, i+1)
			groups--
		case inner == 0 && groups > 0 && c == ',':
			end(i, i+1)
		}
	}
	end(len(line), len(line))
	if inner > 0 { // an unbalanced bracket of a name: groups are unknown
		all = nil
		for member := range strings.SplitSeq(line, " -> ") {
			all = append(all, strings.TrimSpace(member))
		}
	}
	return slices.DeleteFunc(all, func(name string) bool { return name == "" })
}

// WithPlan adds the parallelisms of a plan to a job of names. Vertices without a
// matching name are added too.
func (j *Job) WithPlan(plan *Job) *Job {
	out := &Job{Whole: j.Whole}
	byID := map[format.OperatorID]JobOperator{}
	for _, p := range plan.Operators {
		byID[p.ID] = p
	}
	for _, op := range j.Operators {
		if p, ok := byID[op.ID]; ok {
			op.Parallelism, op.Description, op.chained, op.vertex, op.inputs = p.Parallelism, p.Description, p.chained, p.vertex, p.inputs
			delete(byID, op.ID)
		}
		out.Operators = append(out.Operators, op)
	}
	for _, p := range plan.Operators {
		if _, ok := byID[p.ID]; ok {
			out.Operators = append(out.Operators, p)
		}
	}
	return out
}
