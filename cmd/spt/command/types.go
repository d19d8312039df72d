package command

import (
	"context"
	"errors"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/pflag"
	"go.yaml.in/yaml/v4"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/protobuf"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// typeFlags give states types that the snapshot does not record.
type typeFlags struct {
	types []string
	file  string
}

func (f *typeFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&f.types, "type", nil, "`STATE=TYPE`: read values of STATE as TYPE, such as 'pojo{id: long}', json, utf8, avro:FILE or proto:FILE#MESSAGE; STATE may be a glob, OPERATOR/STATE, or @key for the keys of keyed state; repeatable")
	fs.StringVar(&f.file, "types", "", "`FILE` in YAML with types of states, as a map from STATE or OPERATOR/STATE to TYPE; --type wins")
}

// keyOfState is the name of the keys of keyed state in --type.
const keyOfState = "@key"

// givenType is one type of --type or --types.
type givenType struct {
	where    string // of the flag or the file, for messages
	flag     bool   // of --type: it must match a state
	state    string // STATE or OPERATOR/STATE, a glob
	key, val *types.Snapshot
}

// readTypes reads the types that the flags give.
func (e *Env) readTypes(ctx context.Context, f typeFlags) error {
	language := e.typeLanguage(ctx)
	add := func(where, state, text string) error {
		g := givenType{where: where, state: state}
		if _, err := path.Match(state, ""); err != nil || state == "" {
			return usagef("%s: %s is not the name of a state", where, ui.Quote(state))
		}
		var err error
		if g.key, g.val, err = language.ParseState(text); err != nil {
			var t *types.TypeError
			if !errors.As(err, &t) {
				return err
			}
			return &usageError{fmt.Sprintf("%s: %v", where, err), "the words of types: docs/type-language.md"}
		}
		e.types = append(e.types, g)
		return nil
	}
	for _, text := range f.types {
		state, typ, ok := strings.Cut(text, "=")
		if !ok {
			return usagef("--type %s: expected STATE=TYPE", ui.Quote(text))
		}
		if err := add("--type", state, typ); err != nil {
			return err
		}
		e.types[len(e.types)-1].flag = true
	}
	if f.file == "" {
		return nil
	}
	text, err := e.readSide(ctx, "--types", f.file)
	if err != nil {
		return err
	}
	fail := func(line int, format string, args ...any) error {
		return usagef("%s:%d: %s", ui.Quote(f.file), line, fmt.Sprintf(format, args...))
	}
	return eachType(text, fail, func(line int, state, text string) error {
		return add(placeOfLine(f.file, int64(line)), state, text)
	})
}

// eachType calls f with the types of a file:
//
//	orders: "pojo{id: long}"
//	enrich:
//	  profile: json
//	"*/@key": string
func eachType(text []byte, fail failure, f func(line int, state, text string) error) error {
	const what = "types are a map such as  orders: \"pojo{id: long}\""
	root, err := yamlRoot(text, fail, what)
	if err != nil {
		return err
	}
	if root.Kind != yaml.MappingNode {
		return fail(root.Line, what)
	}
	return eachKey(root, fail, func(key, n *yaml.Node) error {
		switch n.Kind {
		case yaml.ScalarNode:
			return f(n.Line, key.Value, n.Value)
		case yaml.MappingNode:
			return eachKey(n, fail, func(state, n *yaml.Node) error {
				if n.Kind != yaml.ScalarNode {
					return fail(n.Line, "the type of %s is a text", ui.Quote(state.Value))
				}
				return f(n.Line, key.Value+"/"+state.Value, n.Value)
			})
		}
		return fail(n.Line, "the type of %s is a text", ui.Quote(key.Value))
	})
}

// typeLanguage returns the type language with the formats that need files.
func (e *Env) typeLanguage(ctx context.Context) *types.Language {
	return &types.Language{Formats: map[string]func(string) (value.Codec, error){
		"avro": func(name string) (value.Codec, error) {
			schema, err := e.readSide(ctx, "--type", name)
			if err != nil {
				return nil, err
			}
			return types.NewAvroCodec(schema)
		},
		"proto": func(argument string) (value.Codec, error) {
			i := strings.LastIndexByte(argument, '#')
			if i <= 0 || i == len(argument)-1 {
				return nil, format.Errorf(format.ErrUnsupported, "expected proto:FILE#MESSAGE with a descriptor set and the full name of a message")
			}
			set, err := e.readSide(ctx, "--type", argument[:i])
			if err != nil {
				return nil, err
			}
			return protobuf.NewCodec(set, argument[i+1:])
		},
	}}
}

// is reports whether the type is of a state of an operator, or of keyOfState.
func (g *givenType) is(e *Env, op *format.Operator, state string) bool {
	if globMatches(g.state, state) && (state != keyOfState || g.state == keyOfState) {
		return true
	}
	for i := range g.state {
		if g.state[i] != '/' || !globMatches(g.state[i+1:], state) || state == keyOfState && g.state[i+1:] != keyOfState {
			continue
		}
		if exact, prefix := e.isOperator(op, g.state[:i]); exact || prefix || op.ID == format.OperatorIDOf(g.state[:i]) {
			return true
		}
	}
	return false
}

// typeOf implements [reader.Options.Types].
func (e *Env) typeOf(op *format.Operator, state string, part types.Part, _ *types.Snapshot) *types.Snapshot {
	if part == types.PartKey {
		state = keyOfState
	}
	for i := range e.types {
		g := &e.types[i]
		if part == types.PartNamespace || !g.is(e, op, state) {
			continue
		}
		if part == types.PartUserKey {
			if g.key == nil {
				continue // the type of the value alone
			}
			return g.key
		}
		return g.val
	}
	return nil
}

// checkTypes returns an error if a --type is of no state.
func (e *Env) checkTypes(ctx context.Context, snap *reader.Snapshot) error {
	for i := range e.types {
		g := &e.types[i]
		if !g.flag {
			continue
		}
		var names []string
		found := false
		for _, op := range snap.Operators {
			for _, sub := range op.Subtasks {
				for _, h := range []*format.OperatorHandle{sub.Managed, sub.Raw} {
					if h == nil {
						continue
					}
					for k := range h.States {
						name := h.States[k].Name.String()
						found = found || g.is(e, op, name)
						names = append(names, name)
					}
				}
			}
			found = found || op.HasKeyed() && g.is(e, op, keyOfState)
		}
		if found {
			continue
		}
		for _, op := range snap.Operators {
			if !op.HasKeyed() {
				continue
			}
			schema, _, err := snap.Schema(ctx, op) // what cannot be read is not found
			if err != nil {
				return err
			}
			for k := range schema.States {
				if name := schema.States[k].Name.String(); schema.States[k].Keyed != "" {
					found = found || g.is(e, op, name)
					names = append(names, name)
				}
			}
		}
		if !found {
			return &usageError{fmt.Sprintf("--type %s matches no state", ui.Quote(g.state)), e.available(g.state, names, "no state")}
		}
	}
	return nil
}
