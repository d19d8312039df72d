package html

import (
	"cmp"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
)

// offsets is the positions of sources.
type offsets struct {
	Rows       []position
	Left       string
	NotDecoded []string
}

type position struct {
	Operator, Connector, Topic, Partition, Position, Subtask, Trouble string
}

const maxPositions = 300

// newOffsets returns the positions of sources, or nil without any.
func newOffsets(o *report.Offsets) *offsets {
	if o == nil || len(o.Partitions)+len(o.NotDecoded) == 0 {
		return nil
	}
	out := &offsets{Left: more(len(o.Partitions)-maxPositions, "partition", "spt offsets SP")}
	for i := range o.Partitions[:min(len(o.Partitions), maxPositions)] {
		p := &o.Partitions[i]
		row := position{Operator: name(p.Operator), Connector: p.Connector, Topic: name(cmp.Or(p.Topic, "-")), Partition: name(p.Partition), Position: sentence(p.Position()), Trouble: p.Trouble}
		if p.Cluster != "" {
			row.Topic = name(p.Cluster) + "/" + row.Topic
		}
		if p.Subtask != nil {
			row.Subtask = fmt.Sprint(*p.Subtask)
		}
		out.Rows = append(out.Rows, row)
	}
	for _, n := range o.NotDecoded[:min(len(o.NotDecoded), maxNotes)] {
		out.NotDecoded = append(out.NotDecoded, name(n.Operator)+"/"+name(cmp.Or(n.State, "(coordinator)"))+": "+sentence(n.Why))
	}
	return out
}

// schema is the types of states, as trees.
type schema struct {
	Operators []schemaOperator
	Left      string

	nodes int // that may still be added
}

type schemaOperator struct {
	Name, Count string
	Keys        []*node
	States      []schemaState
	Unread      []string
}

type schemaState struct {
	Name, Kind string
	Tree       []*node
}

// node is a type, or a part of one.
type node struct {
	Label, Type string
	Parts       []*node
}

const (
	maxNodes  = 1500 // of all trees
	maxLabels = 40   // parts of one type
	maxDepth  = 12
	maxType   = 160 // of the text of a type
)

// newSchema returns the types of states, or nil without any.
func newSchema(s *report.Schema) *schema {
	if s == nil || len(s.Operators) == 0 {
		return nil
	}
	out := &schema{nodes: maxNodes}
	for i := range s.Operators {
		op := &s.Operators[i]
		if out.nodes <= 0 {
			out.Left = more(len(s.Operators)-i, "operator", "spt schema SP")
			break
		}
		o := schemaOperator{Name: name(op.Operator), Count: ui.Plural(int64(len(op.States)), "state")}
		for _, k := range op.Keys {
			o.Keys = append(o.Keys, out.node("key", k, 0))
		}
		for k := range op.States {
			st := &op.States[k]
			if out.nodes <= 0 {
				o.Unread = append(o.Unread, "… and "+ui.Plural(int64(len(op.States)-k), "more state"))
				break
			}
			o.States = append(o.States, out.state(st))
		}
		for _, why := range op.Unread[:min(len(op.Unread), maxExamples)] {
			o.Unread = append(o.Unread, sentence(why))
		}
		if n := len(op.Unread) - maxExamples; n > 0 {
			o.Unread = append(o.Unread, "… and "+ui.Count(int64(n))+" more")
		}
		out.nodes -= 1 + len(o.Unread)
		out.Operators = append(out.Operators, o)
	}
	return out
}

func (s *schema) state(st *report.SchemaState) schemaState {
	out := schemaState{Name: name(st.State), Kind: st.Kind}
	if st.TTL {
		out.Kind += ", with a time to live"
	}
	if st.Connector != "" {
		out.Kind += ", " + st.Connector
	}
	if len(st.Subtasks) > 0 {
		out.Kind += fmt.Sprintf(", in subtasks %s", strings.Trim(fmt.Sprint(st.Subtasks[:min(len(st.Subtasks), maxLabels)]), "[]"))
	}
	for _, part := range []struct {
		label string
		of    *report.SchemaType
	}{{"namespace", st.Namespace}, {"map key", st.UserKey}, {"value", st.Value}} {
		if part.of != nil {
			out.Tree = append(out.Tree, s.node(part.label, part.of, 0))
		}
	}
	if len(out.Tree) == 0 {
		s.nodes--
		out.Tree = []*node{{Label: "type", Type: cut(st.Type, maxType)}}
	}
	return out
}

// node returns a type as a tree. Types nest, so that trees have a depth at which the rest
// is only in the text of the type.
func (s *schema) node(label string, t *report.SchemaType, depth int) *node {
	s.nodes--
	n := &node{Label: label, Type: cut(t.Text, maxType)}
	if t.NotDecoded != "" {
		n.Type += " (not decoded: " + sentence(t.NotDecoded) + ")"
	}
	if depth == maxDepth {
		return n
	}
	cut := false
	add := func(label string, of *report.SchemaType) {
		switch {
		case of == nil || cut:
		case len(n.Parts) == maxLabels || s.nodes <= 0:
			n.Parts = append(n.Parts, &node{Label: "…"})
			cut = true
		default:
			n.Parts = append(n.Parts, s.node(label, of, depth+1))
		}
	}
	for _, f := range t.Fields {
		add(name(f.Name), f.Type)
	}
	add("element", t.Element)
	add("key", t.Key)
	add("value", t.Value)
	for _, sub := range t.Subclasses {
		add("subclass", sub)
	}
	if len(n.Parts) > 0 { // the tree says the rest
		head, _, _ := strings.Cut(n.Type, "{")
		n.Type = strings.TrimSpace(head)
	}
	return n
}
