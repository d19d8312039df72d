package command

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v4"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/writer"
)

// createPlan is the operators and states of a savepoint that is created.
type createPlan struct {
	name      string // of its file
	release   flink.Release
	operators []*createOperator

	parallelism, maxParallelism int32 // of operators that have none
}

// createOperator is an operator of a plan.
type createOperator struct {
	line int
	writer.FlinkOperator
	states []*createState
	b      *writer.FlinkOperatorBuilder
}

// createState is a state of a plan, and how its entries are made of rows.
type createState struct {
	line int
	writer.FlinkState
	keyed bool
	from  string // name of a file; "": of lines that name the state
	parts [numParts]*mapped
	turns bool // elements go to the subtasks in turn, whatever rows say
	types [numParts]*types.Type
	codec [numParts]value.Codec
	b     *writer.FlinkStateBuilder
}

// The parts of an entry that rows have.
const (
	partKey = iota
	partNamespace
	partUserKey
	partValue
	partTime
	partSubtask
	numParts
)

// partNames are the fields of the parts in lines that cat prints.
var partNames = [numParts]string{"key", "namespace", "user_key", "value", "time", "subtask"}

// mapped is how a part is made of the fields of a row: of one field, or as a list or an
// object of several.
type mapped struct {
	field string
	list  []*mapped
	names []string // of an object; nil: a list
}

func (p *createPlan) fail(line int, format string, args ...any) error {
	return usagef("%s:%d: %s", ui.Quote(p.name), line, fmt.Sprintf(format, args...))
}

// wrap returns an error of the writer with its line: a type that cannot be written is not
// wrong usage.
func (p *createPlan) wrap(line int, err error) error {
	switch {
	case err == nil:
		return nil
	case errors.As(err, new(*types.NotRecorded)), errors.As(err, new(*types.NotHashed)):
		return fmt.Errorf("%s:%d: %w", ui.Quote(p.name), line, err)
	case errors.As(err, new(*types.TypeError)):
		return &usageError{p.fail(line, "%v", err).Error(), "the words of types: docs/type-language.md"}
	}
	return p.fail(line, "%s", strings.TrimSuffix(err.Error(), ": "+format.ErrUnsupported.Error()))
}

// parseCreatePlan reads a plan:
//
//	flink: "1.20"
//	operators:
//	  - uid: counts
//	    parallelism: 2
//	    key: string
//	    states: [{name: rules, kind: broadcast, type: string -> long}]
//	    keyed: [{name: count, kind: value, type: long, rows: {from: users, key: name, value: n}}]
func parseCreatePlan(name string, content []byte) (*createPlan, error) {
	p := &createPlan{name: name, release: flink.Latest()}
	root, err := yamlRoot(content, p.fail, "the plan is empty: it needs operators:")
	if err != nil {
		return nil, err
	}
	var operators *yaml.Node
	err = eachOf(root, p.fail, "a plan", map[string]func(*yaml.Node) error{
		"flink": func(n *yaml.Node) (err error) {
			if p.release, err = flink.ParseRelease(n.Value); err != nil {
				err = p.fail(n.Line, "%v", err)
			}
			return err
		},
		"parallelism": int32Of(&p.parallelism, p.fail), "max_parallelism": int32Of(&p.maxParallelism, p.fail),
		"operators": func(n *yaml.Node) error { operators = n; return nil },
	})
	if err != nil {
		return nil, err
	}
	if operators == nil || operators.Kind != yaml.SequenceNode || len(operators.Content) == 0 {
		return nil, p.fail(root.Line, "operators is a list, such as: - {uid: counts, parallelism: 2, …}")
	}
	for _, n := range operators.Content {
		op, err := p.operator(n)
		if err != nil {
			return nil, err
		}
		p.operators = append(p.operators, op)
	}
	return p, nil
}

// int32Of returns a function that reads a number.
func int32Of(to *int32, fail failure) func(*yaml.Node) error {
	return func(n *yaml.Node) error {
		v, err := strconv.ParseInt(n.Value, 10, 32)
		if n.Kind != yaml.ScalarNode || err != nil || v < 1 {
			return fail(n.Line, "expected a number from 1 on, found %s", ui.Quote(n.Value))
		}
		*to = int32(v)
		return nil
	}
}

func (p *createPlan) operator(n *yaml.Node) (*createOperator, error) {
	op := &createOperator{line: n.Line}
	op.Parallelism, op.MaxParallelism = max(p.parallelism, 1), p.maxParallelism
	states := func(keyed bool) func(*yaml.Node) error {
		return func(n *yaml.Node) error {
			if n.Kind != yaml.SequenceNode {
				return p.fail(n.Line, "expected a list of states, such as: - {name: count, kind: value, type: long}")
			}
			for _, item := range n.Content {
				s, err := p.state(item, keyed)
				if err != nil {
					return err
				}
				op.states = append(op.states, s)
			}
			return nil
		}
	}
	id := ""
	err := eachOf(n, p.fail, "an operator", map[string]func(*yaml.Node) error{
		"uid": text(&op.UID, p.fail), "id": text(&id, p.fail), "name": text(&op.Name, p.fail), "key": text(&op.Key, p.fail),
		"parallelism": int32Of(&op.Parallelism, p.fail), "max_parallelism": int32Of(&op.MaxParallelism, p.fail),
		"states": states(false), "keyed": states(true),
	})
	if err == nil && id != "" {
		var ok bool
		if op.ID, ok = format.ParseOperatorID(id); !ok {
			err = p.fail(n.Line, "id %s: expected 32 hexadecimal digits", ui.Quote(id))
		}
	}
	return op, err
}

func (p *createPlan) state(n *yaml.Node, keyed bool) (*createState, error) {
	s := &createState{line: n.Line, keyed: keyed}
	for i, name := range partNames {
		s.parts[i] = &mapped{field: name}
	}
	typ, elements, distribute := "", "false", "rows"
	err := eachOf(n, p.fail, "a state", map[string]func(*yaml.Node) error{
		"name": text(&s.Name, p.fail), "kind": text(&s.Kind, p.fail), "type": text(&typ, p.fail), "namespace": text(&s.Namespace, p.fail),
		"elements": text(&elements, p.fail), "distribute": text(&distribute, p.fail),
		"rows": func(n *yaml.Node) error { return p.rows(n, s) },
	})
	if err != nil {
		return nil, err
	}
	if s.turns = distribute == "in-turn"; !s.turns && distribute != "rows" {
		return nil, p.fail(n.Line, "distribute is rows or in-turn, found %s", ui.Quote(distribute))
	}
	if s.Elements = elements == "true"; !s.Elements && elements != "false" {
		return nil, p.fail(n.Line, "elements is true or false, found %s", ui.Quote(elements))
	}
	s.Type = typ
	for _, arrow := range []string{"→", "->"} {
		if key, val, ok := strings.Cut(typ, arrow); ok {
			s.MapKey, s.Type = strings.TrimSpace(key), strings.TrimSpace(val)
			break
		}
	}
	return s, nil
}

// typeText is the type of a state in the plan.
func (s *createState) typeText() string {
	if s.MapKey != "" {
		return s.MapKey + " → " + s.Type
	}
	return s.Type
}

// rows reads how the entries of a state are made of rows.
func (p *createPlan) rows(n *yaml.Node, s *createState) error {
	keys := map[string]func(*yaml.Node) error{"from": text(&s.from, p.fail)}
	for i, name := range partNames {
		keys[name] = func(n *yaml.Node) (err error) {
			s.parts[i], err = p.mapped(n)
			return err
		}
	}
	if err := eachOf(n, p.fail, "rows", keys); err != nil {
		return err
	}
	if s.from == "" {
		return p.fail(n.Line, "rows needs from: the name of a file of --from NAME=FILE")
	}
	return nil
}

func (p *createPlan) mapped(n *yaml.Node) (*mapped, error) {
	m := &mapped{}
	add := func(n *yaml.Node) error {
		part, err := p.mapped(n)
		m.list = append(m.list, part)
		return err
	}
	switch {
	case n.Kind == yaml.ScalarNode && n.Value != "":
		m.field = n.Value
		return m, nil
	case n.Kind == yaml.SequenceNode && len(n.Content) > 0:
		for _, item := range n.Content {
			if err := add(item); err != nil {
				return nil, err
			}
		}
		return m, nil
	case n.Kind == yaml.MappingNode && len(n.Content) > 0:
		err := eachKey(n, p.fail, func(key, item *yaml.Node) error {
			m.names = append(m.names, key.Value)
			return add(item)
		})
		return m, err
	}
	return nil, p.fail(n.Line, "expected the name of a field, a list of fields, or a map of names to fields")
}

// builder returns a builder with the operators and states of the plan.
func (p *createPlan) builder(o writer.FlinkOptions) (*writer.FlinkBuilder, error) {
	o.Release = p.release
	b, err := writer.NewFlinkBuilder(&o)
	if err != nil {
		return nil, p.wrap(1, err)
	}
	for _, op := range p.operators {
		if err := p.build(b, op); err != nil {
			return nil, errors.Join(err, b.Close())
		}
	}
	return b, nil
}

func (p *createPlan) build(b *writer.FlinkBuilder, op *createOperator) (err error) {
	if op.b, err = b.Operator(op.FlinkOperator); err != nil {
		return p.wrap(op.line, err)
	}
	for _, s := range op.states {
		if s.keyed {
			s.b, err = op.b.Keyed(s.FlinkState)
		} else {
			s.b, err = op.b.State(s.FlinkState)
		}
		if err != nil {
			return p.wrap(s.line, err)
		}
		c, t := s.b.Codecs(), s.b.Types()
		s.codec = [numParts]value.Codec{partKey: c.Key, partNamespace: c.Namespace, partUserKey: c.UserKey, partValue: c.Value}
		s.types = [numParts]*types.Type{partKey: t.Key, partNamespace: t.Namespace, partUserKey: t.UserKey, partValue: t.Value}
	}
	return nil
}

// rowsFrom returns the states whose rows are in a file.
func (p *createPlan) rowsFrom(name string) (all []*createState) {
	for _, op := range p.operators {
		for _, s := range op.states {
			if s.from == name {
				all = append(all, s)
			}
		}
	}
	return all
}
