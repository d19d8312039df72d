package command

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"strings"

	"github.com/savepoint-tools/spt/transform"
)

// changeLine is a line of a file of changes: what spt cat prints, edited. Pointers and
// raw values are nil if the line does not have them.
type changeLine struct {
	number int64 // of the line, from 1

	Op       string `json:"op"`
	Operator string `json:"operator"`
	ID       string `json:"id"`
	State    string `json:"state"`
	Kind     string `json:"kind"`
	Subtask  *int32 `json:"subtask"`
	Index    *int64 `json:"index"`

	Key         json.RawMessage `json:"key"`
	Value       json.RawMessage `json:"value"`
	ValueBase64 *string         `json:"value_base64"`
	ValueHex    *string         `json:"value_hex"`
	Was         json.RawMessage `json:"was"`
	WasBase64   *string         `json:"was_base64"`
	WasHex      *string         `json:"was_hex"`

	// Printed by cat; what they say is not used.
	Size *int64 `json:"size"`
	// Of an entry of keyed state.
	KeyGroup        *int32          `json:"key_group"`
	Namespace       json.RawMessage `json:"namespace"`
	UserKey         json.RawMessage `json:"user_key"`
	Time            *int64          `json:"time"`
	TTL             json.RawMessage `json:"ttl_timestamp"`
	KeyBase64       *string         `json:"key_base64"`
	KeyHex          *string         `json:"key_hex"`
	NamespaceBase64 *string         `json:"namespace_base64"`
	NamespaceHex    *string         `json:"namespace_hex"`
	UserKeyBase64   *string         `json:"user_key_base64"`
	UserKeyHex      *string         `json:"user_key_hex"`
	StoredBase64    *string         `json:"stored_base64"`
	StoredHex       *string         `json:"stored_hex"`

	// pair is two JSON values of --value: subtask and index, or key and user key.
	pair []json.RawMessage
	// Printed by cat with flags that make lines which name no element, or no value.
	Count    *int64  `json:"count"`
	Text     *string `json:"value_text"`
	Redacted *string `json:"value_redacted"`
}

// coordinatorKind is the kind of a line of the state of a coordinator.
const coordinatorKind = "coordinator"

// lineError is what is wrong with a line.
type lineError struct {
	line int64
	msg  string
}

func (e *lineError) Error() string { return e.msg }

// readChanges reads a file of changes that a flag names, line by line. A line that is
// wrong is yielded as a *lineError, and reading goes on; any other error ends it. Empty
// lines count and are not yielded.
func (e *Env) readChanges(ctx context.Context, flag, name string) iter.Seq2[*changeLine, error] {
	return func(yield func(*changeLine, error) bool) {
		err := e.sides.claim(flag, name)
		if err != nil {
			yield(nil, err)
			return
		}
		body, err := e.sideBody(ctx, name)
		if err == nil {
			err = errors.Join(eachChange(body, flag, name, yield), body.Close())
		}
		switch {
		case ctx.Err() != nil:
			yield(nil, ctx.Err())
		case err != nil:
			yield(nil, fmt.Errorf("%s: %w", flag, err))
		}
	}
}

// eachChange yields the lines of a file.
func eachChange(body io.Reader, flag, name string, yield func(*changeLine, error) bool) error {
	return eachLine(body, flag, name, func(n int64, text []byte) bool {
		l, err := parseChange(text)
		if err != nil {
			err = &lineError{n, err.Error()}
		} else {
			l.number = n
		}
		return yield(l, err)
	})
}

// parseChange reads a line.
func parseChange(text []byte) (*changeLine, error) {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	var l changeLine
	if err := decodeLine(d, text, &l, notChange); err != nil {
		return nil, err
	}
	return &l, l.check()
}

// decodeLine decodes the text of d, one JSON value that is not an array. word words an
// error of package json.
func decodeLine(d *json.Decoder, text []byte, to any, word func(error) error) error {
	if bytes.HasPrefix(bytes.TrimSpace(text), []byte("[")) {
		return errors.New("expected an object on each line, as cat -o jsonl prints, found an array")
	}
	if err := d.Decode(to); err != nil {
		return word(err)
	}
	if _, err := d.Token(); !errors.Is(err, io.EOF) {
		return errors.New("more than one JSON value on the line")
	}
	return nil
}

// notChange words an error of package json.
func notChange(err error) error {
	var typed *json.UnmarshalTypeError
	switch {
	case errors.As(err, &typed) && typed.Field != "":
		expected := "an integer"
		if typed.Type.String() == "string" {
			expected = "a string"
		}
		return fmt.Errorf("%s: expected %s, found a JSON %s", typed.Field, expected, typed.Value)
	case errors.As(err, &typed):
		return fmt.Errorf("expected an object, found a JSON %s", typed.Value)
	case errors.Is(err, io.ErrUnexpectedEOF):
		return errors.New("not JSON: the line ends within a value")
	}
	return fmt.Errorf("not a change: %s", strings.TrimPrefix(err.Error(), "json: "))
}

func (l *changeLine) check() error {
	switch {
	case l.Count != nil:
		return errors.New("a line of cat --distinct is for several elements: print them without --distinct")
	case l.Text != nil, l.Redacted != nil:
		return errors.New("values of --format text or redacted cannot be read: print them without --format")
	case l.State == "" && l.Kind != coordinatorKind:
		return errors.New("the state is missing")
	case l.Operator == "" && l.ID == "":
		return errors.New("the operator is missing")
	case l.Subtask != nil && *l.Subtask < 0 && l.Kind != coordinatorKind:
		return fmt.Errorf("subtask %d: must be 0 or more", *l.Subtask)
	case l.Index != nil && *l.Index < 0:
		return fmt.Errorf("index %d: must be 0 or more", *l.Index)
	}
	return nil
}

// ofEntry reports whether only an entry of keyed state has what the line says.
func (l *changeLine) ofEntry() bool {
	for _, text := range []*string{l.KeyBase64, l.KeyHex, l.NamespaceBase64, l.NamespaceHex, l.UserKeyBase64, l.UserKeyHex, l.StoredBase64, l.StoredHex} {
		if text != nil {
			return true
		}
	}
	return l.KeyGroup != nil || l.Namespace != nil || l.UserKey != nil || l.Time != nil || l.TTL != nil
}

// entry returns what the line says of an entry of keyed state more than its key.
func (l *changeLine) entry() (*transform.PatchEntry, error) {
	e := &transform.PatchEntry{Time: l.Time, KeyGroup: l.KeyGroup, TTL: l.TTL}
	e.Namespace.JSON, e.UserKey.JSON = l.Namespace, l.UserKey
	for _, part := range []struct {
		name         string
		base, digits *string
		to           *[]byte
	}{
		{"key", l.KeyBase64, l.KeyHex, &e.Key},
		{"namespace", l.NamespaceBase64, l.NamespaceHex, &e.Namespace.Stored},
		{"user_key", l.UserKeyBase64, l.UserKeyHex, &e.UserKey.Stored},
		{"stored", l.StoredBase64, l.StoredHex, &e.Stored},
	} {
		var err error
		if *part.to, err = storedBytes(part.base, part.digits); err != nil {
			return nil, fmt.Errorf("%s: %w", part.name, err)
		}
	}
	return e, nil
}

// storedBytes returns bytes that are given as base64 or hexadecimal digits; nil if
// neither is given.
func storedBytes(base, digits *string) (p []byte, err error) {
	switch {
	case base != nil && digits != nil:
		return nil, errors.New("the bytes are given twice")
	case base != nil:
		p, err = base64.StdEncoding.Strict().DecodeString(*base)
	case digits != nil:
		p, err = hex.DecodeString(*digits)
	default:
		return nil, nil
	}
	if p == nil {
		p = []byte{}
	}
	return p, err
}
