package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// parseValue reads OPERATOR/STATE[SUBTASK,INDEX]=JSON, or OPERATOR/STATE[KEY]=JSON for an
// entry of broadcast or keyed state, or OPERATOR/STATE[KEY,USERKEY]=JSON for one of a map in
// keyed state, or OPERATOR[coordinator]=JSON. Names may contain any of the characters between them: the
// first [ counts after which the rest is read.
func parseValue(text string) (*changeLine, error) {
	if operator, value, ok := strings.Cut(text, "["+coordinatorKind+"]="); ok && operator != "" && !strings.Contains(operator, "[") && json.Valid([]byte(value)) {
		return &changeLine{Operator: operator, Kind: coordinatorKind, Value: bytes.TrimSpace([]byte(value))}, nil
	}
	for i := 0; ; i++ {
		k := strings.IndexByte(text[i:], '[')
		if k < 0 {
			return nil, &usageError{fmt.Sprintf("--value %s: expected OPERATOR/STATE[SUBTASK,INDEX]=JSON", ui.Quote(text)), `such as 'sink/buffer[0,3]=17', or for an entry of broadcast or keyed state 'rules/rules["a"]=17'`}
		}
		i += k
		slash := strings.LastIndexByte(text[:i], '/')
		place, value, ok := cutPlace(text[i+1:])
		if slash <= 0 || slash == i-1 || !ok {
			continue
		}
		l := &changeLine{Operator: text[:slash], State: text[slash+1 : i], Value: value}
		if len(place) == 1 {
			l.Key = place[0]
			return l, nil
		}
		l.pair = place
		return l, nil
	}
}

// cutPlace reads one or two JSON values, "]=" and a JSON value.
func cutPlace(text string) (place []json.RawMessage, value json.RawMessage, ok bool) {
	for len(place) < 2 {
		d := json.NewDecoder(strings.NewReader(text))
		var v json.RawMessage
		if d.Decode(&v) != nil {
			return nil, nil, false
		}
		place = append(place, v)
		text = strings.TrimLeft(text[d.InputOffset():], " ")
		if rest, more := strings.CutPrefix(text, ","); more {
			text = rest
			continue
		}
		if rest, end := strings.CutPrefix(text, "]="); end {
			value = bytes.TrimSpace([]byte(rest))
			return place, value, json.Valid(value)
		}
		return nil, nil, false
	}
	return nil, nil, false
}

// setIndex sets the subtask and the index of a line of --value.
func (l *changeLine) setIndex() error {
	if l.pair == nil {
		return nil
	}
	l.Subtask, l.Index = new(int32), new(int64)
	if json.Unmarshal(l.pair[0], l.Subtask) != nil || json.Unmarshal(l.pair[1], l.Index) != nil {
		return errors.New("expected [SUBTASK,INDEX], two numbers")
	}
	return l.check()
}

// setValues changes the values that --value names.
func (o *setOptions) setValues(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	p := &patcher{env: env, snap: snap, label: func(n int64) string { return "--value " + ui.Quote(o.values[n-1]) }}
	return p.patch(ctx, false, p.changes(func(yield func(*changeLine, error) bool) {
		for i, text := range o.values {
			l, err := parseValue(text)
			if err == nil {
				l.number = int64(i + 1)
			}
			if !yield(l, err) {
				return
			}
		}
	}))
}
