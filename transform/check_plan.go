package transform

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// Job is what is known of a job.
type Job struct {
	Operators []JobOperator
	// Whole: Operators has all that keep state. A plan of Flink's REST interface
	// has only vertices, each with the id of the first operator of its chain.
	Whole bool
}

// JobOperator is an operator of a job.
type JobOperator struct {
	ID          format.OperatorID
	Name        string // uid, or what else it is known by
	Parallelism int32  // 0: not known
	Description string // of the vertex, in a plan: names of all that is chained
}

// JobOfNames makes a job of the uids of its operators. One of 32 hex digits is
// an id itself: of an operator without a uid, or with a uid hash.
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

// ParsePlan reads the plan of a job as Flink's REST interface gives it
// (/jobs/ID/plan, /jobs/ID, or the plan object alone).
func ParsePlan(text []byte) (*Job, error) {
	type plan struct {
		Nodes []struct {
			ID          string `json:"id"`
			Parallelism int32  `json:"parallelism"`
			Description string `json:"description"`
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
		return nil, fmt.Errorf("not the plan of a job: there is no plan with nodes in it")
	}
	j := &Job{}
	seen := map[format.OperatorID]bool{}
	for i, n := range doc.Plan.Nodes {
		id, ok := format.ParseOperatorID(n.ID)
		switch {
		case !ok:
			return nil, fmt.Errorf("node %d of the plan: %q is not an id of 32 hex digits", i, n.ID)
		case n.Parallelism < 0 || n.Parallelism > format.MaxKeyGroups:
			return nil, fmt.Errorf("node %d of the plan: a parallelism of %d", i, n.Parallelism)
		case seen[id]:
			return nil, fmt.Errorf("node %d of the plan: the id %s comes twice", i, n.ID)
		}
		seen[id] = true
		name := plainDescription(n.Description)
		j.Operators = append(j.Operators, JobOperator{ID: id, Name: name, Parallelism: n.Parallelism, Description: name})
	}
	return j, nil
}

// plainDescription undoes what Flink does to descriptions for its web page:
// HTML entities and line breaks.
func plainDescription(s string) string {
	s = strings.NewReplacer("&lt;", "<", "&gt;", ">", "&quot;", `"`, "&#39;", "'", "&amp;", "&", "<br/>", " ", "<br />", " ", "<br>", " ").Replace(s)
	return strings.Join(strings.Fields(s), " ")
}

// WithPlan adds to a job of names what a plan says of the parallelism of its
// operators. Vertices that no name stands for are added too.
func (j *Job) WithPlan(plan *Job) *Job {
	out := &Job{Whole: j.Whole}
	byID := map[format.OperatorID]JobOperator{}
	for _, p := range plan.Operators {
		byID[p.ID] = p
	}
	for _, op := range j.Operators {
		if p, ok := byID[op.ID]; ok {
			op.Parallelism, op.Description = p.Parallelism, p.Description
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
