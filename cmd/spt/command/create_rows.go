package command

import (
	"bytes"
	"context"
	"encoding/csv"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
	"github.com/savepoint-tools/spt/writer"
)

// rowFile is a file of rows.
type rowFile struct {
	index  int
	name   string // "": its lines name their states
	path   string
	states []*createState // of name
}

func (f *rowFile) isCSV() bool { return strings.HasSuffix(strings.ToLower(f.path), ".csv") }

// row is the fields of a row: of a line of JSON, or the cells of a line of CSV.
type row struct {
	fields map[string]json.RawMessage
	cells  map[string]string
}

// read adds the entries of the rows of a file to their states. Rows that are wrong are
// added to w; another error ends it.
func (f *rowFile) read(ctx context.Context, env *Env, plan *createPlan, w *lineProblems) error {
	if err := env.sides.claim("--from", f.path); err != nil {
		return err
	}
	body, err := env.sideBody(ctx, f.path)
	if err != nil {
		return fmt.Errorf("--from: %w", err)
	}
	add := func(line int64, r row) error {
		states := f.states
		if f.name == "" {
			s, err := plan.named(r)
			if err != nil {
				w.add(rowOf(f.index, line), err)
				return nil
			}
			states = []*createState{s}
		}
		for _, s := range states {
			err := s.add(r, rowOf(f.index, line))
			if errors.As(err, new(*rowError)) {
				w.add(rowOf(f.index, line), fmt.Errorf("state %s: %w", ui.Quote(s.Name), err))
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	switch {
	case f.isCSV():
		err = eachRecord(body, f.path, add)
	default:
		var failed error
		err = eachLine(body, "--from", f.path, func(n int64, text []byte) bool {
			r, err := rowOfJSON(text)
			if err != nil {
				w.add(rowOf(f.index, n), err)
				return true
			}
			failed = add(n, r)
			return failed == nil
		})
		err = errors.Join(err, failed)
	}
	if err = errors.Join(err, body.Close()); ctx.Err() != nil {
		return ctx.Err()
	}
	if err != nil && !errors.As(err, new(*usageError)) {
		err = fmt.Errorf("--from %s: %w", ui.Quote(f.path), err)
	}
	return err
}

// rowOfJSON reads a line.
func rowOfJSON(text []byte) (r row, err error) {
	notObject := func(err error) error { return fmt.Errorf("not a JSON object: %w", err) }
	err = decodeLine(json.NewDecoder(bytes.NewReader(text)), text, &r.fields, notObject)
	if err == nil && r.fields == nil {
		err = errors.New("expected an object, found null")
	}
	return r, err
}

// eachRecord calls f with the lines of a CSV file whose first line has the names.
func eachRecord(body io.Reader, name string, f func(line int64, r row) error) error {
	bounded := &recordReader{in: body}
	in := csv.NewReader(bounded)
	in.ReuseRecord = true
	var names []string
	for {
		bounded.n = 0
		cells, err := in.Read()
		var wrong *csv.ParseError
		switch {
		case errors.Is(err, io.EOF) && names == nil:
			return usagef("%s: the file is empty: its first line has the names of the columns", ui.Quote(name))
		case errors.Is(err, io.EOF):
			return nil
		case errors.As(err, &wrong):
			return usagef("%s:%d: not valid CSV: %v", ui.Quote(name), wrong.Line, wrong.Err)
		case err != nil:
			return err
		}
		if names == nil {
			if len(cells) > 0 {
				head, err := sideText("--from", name, []byte(cells[0]))
				if err != nil {
					return err
				}
				cells[0] = string(head)
			}
			for i, n := range cells {
				for _, other := range cells[:i] {
					if n == other {
						return usagef("%s:1: two columns have the name %s", ui.Quote(name), ui.Quote(n))
					}
				}
				names = append(names, strings.Clone(n))
			}
			continue
		}
		line, _ := in.FieldPos(0)
		r := row{cells: make(map[string]string, len(cells))}
		for i, c := range cells {
			r.cells[names[i]] = c
		}
		if err := f(int64(line), r); err != nil {
			return err
		}
	}
}

// recordReader bounds the bytes of a record.
type recordReader struct {
	in io.Reader
	n  int
}

func (r *recordReader) Read(p []byte) (int, error) {
	if r.n > maxLine {
		return 0, errLongLine
	}
	n, err := r.in.Read(p)
	r.n += n
	return n, err
}

// lineFields are the fields of lines that cat prints. Those that are not parts of an
// entry, and do not name its state, are not used.
var lineFields = func() map[string]bool {
	known := map[string]bool{}
	for _, name := range append([]string{"operator", "id", "state", "kind", "index", "key_group", "size"}, partNames[:]...) {
		known[name] = true
	}
	return known
}()

// named returns the state that a line names.
func (p *createPlan) named(r row) (*createState, error) {
	var l struct{ operator, id, state, kind string }
	for name, to := range map[string]*string{"operator": &l.operator, "id": &l.id, "state": &l.state, "kind": &l.kind} {
		if raw, ok := r.fields[name]; ok {
			if err := json.Unmarshal(raw, to); err != nil {
				return nil, fmt.Errorf("%s: expected a string", name)
			}
		}
	}
	switch {
	case l.state == "" || l.operator == "" && l.id == "":
		return nil, errors.New("expected the fields operator or id, and state, as spt cat prints them")
	case r.fields["value_base64"] != nil, r.fields["value_hex"] != nil, r.fields["value_text"] != nil:
		return nil, errors.New("the value is not decoded: spt cat --type decodes values of user code")
	case r.fields["ttl_timestamp"] != nil:
		return nil, errors.New("state with a time to live is not created")
	}
	for name := range r.fields {
		if !lineFields[name] {
			return nil, fmt.Errorf("unknown field %s; rows with fields of their own need a name: --from NAME=FILE", ui.Quote(name))
		}
	}
	_, keyed := r.fields["key_group"]
	var found []*createState
	known := false
	for _, op := range p.operators {
		if l.id != "" && op.b.ID().String() != l.id || l.id == "" && l.operator != op.UID && l.operator != op.Name {
			continue
		}
		known = true
		for _, s := range op.states {
			if s.Name == l.state && (!keyed || s.keyed) {
				found = append(found, s)
			}
		}
	}
	if len(found) > 1 && l.kind != "" {
		var ofKind []*createState
		for _, s := range found {
			if s.Kind == l.kind {
				ofKind = append(ofKind, s)
			}
		}
		found = ofKind
	}
	operator := l.operator
	if operator == "" {
		operator = l.id
	}
	switch {
	case !known && l.id != "" && l.operator != "":
		return nil, fmt.Errorf("the plan has no operator %s with the id %s", ui.Quote(l.operator), ui.Quote(l.id))
	case !known:
		return nil, fmt.Errorf("the plan has no operator %s", ui.Quote(operator))
	case len(found) == 0:
		return nil, fmt.Errorf("operator %s of the plan has no state %s", ui.Quote(operator), ui.Quote(l.state))
	case len(found) > 1:
		return nil, fmt.Errorf("operator %s of the plan has several states %s", ui.Quote(operator), ui.Quote(l.state))
	case found[0].from != "":
		return nil, fmt.Errorf("the rows of state %s are from %s", ui.Quote(l.state), ui.Quote(found[0].from))
	}
	return found[0], nil
}

// rowError is what is wrong with a row.
type rowError struct {
	error
	hint string
}

func (e *rowError) Unwrap() error { return e.error }
func (e *rowError) Hint() string  { return e.hint }

// add adds the entry of a row.
func (s *createState) add(r row, number int64) error {
	e := writer.FlinkEntry{Row: number}
	for part, to := range [...]*value.Value{partKey: &e.Key, partNamespace: &e.Namespace, partUserKey: &e.UserKey, partValue: &e.Value} {
		if s.codec[part] == nil {
			if _, has := r.fields[partNames[part]]; has && s.from == "" {
				return &rowError{error: fmt.Errorf("%s: entries of the state do not have it", partNames[part])}
			}
			continue
		}
		text, err := s.parts[part].json(r, s.types[part])
		if err == nil {
			*to, err = value.FromJSON(s.codec[part], text)
		}
		if err != nil {
			return &rowError{error: fmt.Errorf("%s: %w", partNames[part], err)}
		}
	}
	if s.Kind == types.Timers {
		var err error
		if e.Time, err = s.number(r, partTime); err != nil {
			return err
		}
	}
	var err error
	if s.placed(r) {
		var n int64
		if n, err = s.number(r, partSubtask); err != nil {
			return err
		}
		if n < 0 || n >= int64(s.b.Parallelism()) {
			return &rowError{fmt.Errorf("subtask %d: the operator has subtasks 0 to %d", n, s.b.Parallelism()-1), "distribute: in-turn, in the plan, ignores the subtasks of rows"}
		}
		err = s.b.AddTo(int32(n), e)
	} else {
		err = s.b.Add(e)
	}
	if err == nil || errors.As(err, new(*transform.TempError)) {
		return err
	}
	return &rowError{error: err}
}

// placed reports whether the row says in which subtask its element is.
func (s *createState) placed(r row) bool {
	if s.keyed || s.turns || s.Kind == "broadcast" {
		return false
	}
	_, field := r.fields[s.parts[partSubtask].field]
	_, cell := r.cells[s.parts[partSubtask].field]
	return field || cell
}

// number reads a part that is a number.
func (s *createState) number(r row, part int) (int64, error) {
	text, err := s.parts[part].json(r, &types.Type{Kind: types.TypeInt})
	if err != nil {
		return 0, &rowError{error: err}
	}
	n, err := strconv.ParseInt(string(text), 10, 64)
	if err != nil {
		return 0, &rowError{error: fmt.Errorf("%s: expected an integer, found %s", partNames[part], ui.Quote(string(text)))}
	}
	return n, nil
}

// json returns the JSON of a part of a type in a row.
func (m *mapped) json(r row, t *types.Type) ([]byte, error) {
	if m.list == nil {
		if raw, ok := r.fields[m.field]; ok {
			return raw, nil
		}
		if cell, ok := r.cells[m.field]; ok {
			return cellJSON(cell, t), nil
		}
		return nil, fmt.Errorf("the row has no field %s", ui.Quote(m.field))
	}
	t, _ = t.Deref()
	open, end := byte('['), byte(']')
	if m.names != nil {
		open, end = '{', '}'
	}
	p := []byte{open}
	for i, part := range m.list {
		if i > 0 {
			p = append(p, ',')
		}
		if m.names != nil {
			name, err := json.Marshal(m.names[i])
			if err != nil {
				return nil, err
			}
			p = append(append(p, name...), ':')
		}
		text, err := part.json(r, m.part(t, i))
		if err != nil {
			return nil, err
		}
		p = append(p, text...)
	}
	return append(p, end), nil
}

// part returns the type of part i of a list or an object. If the type is another, the
// value will not be of it either, so any type does.
func (m *mapped) part(t *types.Type, i int) *types.Type {
	other := &types.Type{Kind: types.TypeAny}
	switch {
	case m.names != nil && t.Kind == types.TypeRecord:
		for k, name := range t.Names {
			if name == m.names[i] && k < len(t.Parts) {
				return t.Parts[k]
			}
		}
	case t.Kind == types.TypeList && len(t.Parts) == 1:
		return t.Parts[0]
	case (t.Kind == types.TypeTuple || t.Kind == types.TypeRow) && i < len(t.Parts):
		return t.Parts[i]
	}
	return other
}

// cellJSON returns the JSON of a cell of CSV: numbers, lists and objects are as in JSON,
// text and times without quotes. An empty cell is the empty
// string, or null if the type is not a string.
func cellJSON(cell string, t *types.Type) []byte {
	t, null := t.Deref()
	switch t.Kind {
	case types.TypeString, types.TypeEnum, types.TypeInstant, types.TypeDate, types.TypeTimeOfDay, types.TypeDateTime, types.TypeBytes:
		if cell == "" && null && t.Kind != types.TypeString {
			return []byte("null")
		}
		text, err := json.Marshal(cell)
		if err != nil {
			return []byte("null")
		}
		if t.Kind == types.TypeBytes {
			return fmt.Appendf(nil, `{"base64":%s}`, text)
		}
		return text
	}
	if cell == "" {
		return []byte("null")
	}
	if !json.Valid([]byte(cell)) { // such as NaN
		return []byte(strconv.QuoteToASCII(cell))
	}
	return []byte(cell)
}
