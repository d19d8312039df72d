package connector

import (
	"fmt"
	"maps"
	"slices"

	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
)

// Types are the types of what a state of a connector holds. They are of values, so of
// their JSON (docs/json.md); the connector writes them in its own way.
type Types struct {
	// Of is the type of an element. Structures in it are a types.TypeRef with a name in
	// Defs.
	Of *types.Type
	// Defs are the structures, each a record with its class.
	Defs []TypeDef
}

// TypeDef is a structure of a class with a name: "KafkaPartitionSplit 0".
type TypeDef struct {
	Name string
	Type *types.Type
}

// ElementTypes returns the types of the elements of the operator state with this name,
// and whether a state of a connector has it; see [Elements].
func ElementTypes(name string) (t *Types, ok bool) {
	s := stateOf(name)
	if s == nil {
		return nil, false
	}
	return typesOf(s.of), true
}

// CoordinatorTypes returns the types of what [Coordinator] reads.
func CoordinatorTypes(connector string) *Types { return typesOf(coordinatorState{connector}) }

func typesOf(l layout) *Types {
	d := &describer{}
	t := &Types{Of: l.describe(d)}
	for _, s := range d.all {
		t.Defs = append(t.Defs, TypeDef{s.name, s.typ})
	}
	return t
}

// describer collects the structures that a description refers to.
type describer struct{ all []*described }

type described struct {
	name  string
	shape *value.Shape
	typ   *types.Type
}

// structure returns a reference to the type of a structure with the fields of shape,
// whose types parts returns. Structures of one name that have other fields have a number
// in their names.
func (d *describer) structure(name, class string, shape *value.Shape, parts func() []*types.Type) *types.Type {
	unique := name
	for i := 0; i < len(d.all); i++ {
		switch s := d.all[i]; {
		case s.shape == shape:
			return refType(s.name)
		case s.name == unique:
			unique = fmt.Sprintf("%s (%d)", name, i)
			i = -1
		}
	}
	s := &described{name: unique, shape: shape, typ: &types.Type{Kind: types.TypeRecord, Class: class, Names: shape.Names}}
	d.all = append(d.all, s)
	s.typ.Parts = parts()
	return refType(unique)
}

// of returns the types of layouts.
func (d *describer) of(all ...layout) (parts []*types.Type) {
	for _, l := range all {
		parts = append(parts, l.describe(d))
	}
	return parts
}

// choice returns the type of any of the structures that a frame can hold, or of bytes
// that are not decoded.
func (d *describer) choice(all candidates) *types.Type {
	t := &types.Type{Kind: types.TypeChoice}
	for _, c := range all {
		t.Parts = append(t.Parts, d.structure(fmt.Sprintf("%s %d", c.body.class, c.version), c.body.class, c.framed.shape, func() []*types.Type {
			return append([]*types.Type{int32Type}, d.of(c.body.of...)...)
		}))
	}
	t.Parts = append(t.Parts, recordType(notDecoded, int32Type, stringType, bytesType))
	return t
}

var (
	stringType = &types.Type{Kind: types.TypeString}
	bytesType  = &types.Type{Kind: types.TypeBytes}
	boolType   = &types.Type{Kind: types.TypeBool}
	nullType   = &types.Type{Kind: types.TypeNull}
	int32Type  = intType(32)
	int64Type  = intType(64)
)

func intType(bits int) *types.Type { return &types.Type{Kind: types.TypeInt, Bits: bits} }

func refType(name string) *types.Type { return &types.Type{Kind: types.TypeRef, Class: name} }

func listType(of *types.Type) *types.Type {
	return &types.Type{Kind: types.TypeList, Parts: []*types.Type{of}}
}

func choiceType(of ...*types.Type) *types.Type {
	return &types.Type{Kind: types.TypeChoice, Parts: of}
}

// nullable returns the type of a value or null.
func nullable(t *types.Type) *types.Type {
	out := *t
	out.Null = true
	return &out
}

// recordType returns the type of a record whose values have no class.
func recordType(shape *value.Shape, parts ...*types.Type) *types.Type {
	return &types.Type{Kind: types.TypeRecord, Names: shape.Names, Parts: parts}
}

func (s scalar) describe(*describer) *types.Type { return s.typ }

func (e enum) describe(*describer) *types.Type {
	return &types.Type{Kind: types.TypeEnum, Names: e.names}
}

func (l record) describe(d *describer) *types.Type {
	if l.class == "" {
		return recordType(l.shape, d.of(l.of...)...)
	}
	return d.structure(l.class, l.class, l.shape, func() []*types.Type { return d.of(l.of...) })
}

func (l list) describe(d *describer) *types.Type          { return listType(l.of.describe(d)) }
func (l listLE) describe(d *describer) *types.Type        { return listType(l.of.describe(d)) }
func (l optional) describe(d *describer) *types.Type      { return nullable(l.of.describe(d)) }
func (l nullAs) describe(d *describer) *types.Type        { return nullable(l.of.describe(d)) }
func (l atEnd) describe(d *describer) *types.Type         { return nullable(l.of.describe(d)) }
func (l magic) describe(d *describer) *types.Type         { return l.of.describe(d) }
func (l inBytes) describe(d *describer) *types.Type       { return l.of.describe(d) }
func (l rest) describe(d *describer) *types.Type          { return l.of.describe(d) }
func (l afterMinusOne) describe(d *describer) *types.Type { return l.of.describe(d) }
func (f frame) describe(d *describer) *types.Type         { return d.choice(f.known.candidates()) }
func (l cdcSplit) describe(d *describer) *types.Type      { return d.choice(l.known().candidates()) }
func (setVersion) describe(*describer) *types.Type        { return int32Type }
func (dynamoAttribute) describe(d *describer) *types.Type { return dynamoValue.describe(d) }
func (dynamoMap) describe(d *describer) *types.Type       { return dynamoItem.describe(d) }

func (f frames) describe(d *describer) *types.Type {
	return recordType(f.names, int32Type, listType(d.choice(f.known.candidates())))
}

func (l statusList) describe(d *describer) *types.Type {
	split := d.choice(l.known.candidates())
	if l.status != nil {
		split = recordType(statusShape, split, enum{names: l.status}.describe(d))
	}
	return recordType(statusListShape, int32Type, listType(split))
}

func (icebergStatuses) describe(d *describer) *types.Type {
	return recordType(statusListShape, int32Type, listType(recordType(statusShape, d.choice(icebergSplits), stringType)))
}

func (splitAssignments) describe(d *describer) *types.Type {
	return recordType(assignmentsShape, int32Type, listType(recordType(subtaskSplits, int32Type, listType(d.choice(splits)))))
}

func (l versionedList) describe(d *describer) *types.Type {
	state := l.frame.describe(d)
	retained := nullType
	if l.retained {
		retained = listType(recordType(retainedShape, stringType, int64Type, state))
	}
	return recordType(clustersShape, int32Type, listType(recordType(activeShape, stringType, state)), retained)
}

func (l versionedGroups) describe(d *describer) *types.Type {
	return recordType(groupsShape, int32Type, listType(recordType(groupShape, int64Type, listType(l.frame.describe(d)))))
}

func (pendingSplits) describe(d *describer) *types.Type {
	return recordType(pendingShape, int32Type, listType(d.choice(fileSplits)), listType(stringType))
}

func (localRecoverable) describe(*describer) *types.Type {
	return recordType(localShape, int64Type, stringType, stringType)
}

func (l sizedRequest) describe(d *describer) *types.Type {
	key := nullType
	if l.after != nil {
		key = l.after.describe(d)
	}
	return recordType(sizedShape, bytesType, key)
}

// describe returns a reference for values in each other, such as lists in lists.
func (l tagged) describe(d *describer) *types.Type {
	t := &types.Type{Kind: types.TypeChoice}
	for _, tag := range l.of {
		t.Parts = append(t.Parts, d.structure(l.what+" "+tag.name, "", tag.shape, func() []*types.Type { return d.of(tag.of) }))
	}
	return t
}

func (l eitherKind) describe(d *describer) *types.Type {
	t := &types.Type{Kind: types.TypeChoice}
	for _, kind := range slices.Sorted(maps.Keys(l.of)) {
		t.Parts = append(t.Parts, l.of[kind].describe(d))
	}
	return t
}

func (paimonMessages) describe(d *describer) *types.Type {
	t := &types.Type{Kind: types.TypeChoice}
	for _, version := range paimonMessageFields {
		of, _ := paimonMessage(version)
		t.Parts = append(t.Parts, recordType(messagesShape, int32Type, listType(of.describe(d))))
	}
	return t
}

func (l anyVersion) describe(d *describer) *types.Type {
	t := &types.Type{Kind: types.TypeChoice}
	for _, of := range l.of {
		t.Parts = append(t.Parts, of.describe(d))
	}
	return t
}

func (legacyKafkaPosition) describe(d *describer) *types.Type {
	return d.structure("KafkaTopicPartition", "KafkaTopicPartition", legacyKafkaShape, func() []*types.Type {
		return []*types.Type{stringType, int32Type, int64Type}
	})
}

func (legacyKinesisPosition) describe(d *describer) *types.Type {
	return d.structure("StreamShardMetadata", "StreamShardMetadata", legacyKinesisShape, func() []*types.Type {
		return append(slices.Repeat([]*types.Type{nullable(stringType)}, kinesisStrings), stringType, int64Type)
	})
}

func (kafkaTransactionsEither) describe(d *describer) *types.Type {
	return choiceType(kafkaTransactionsNew.describe(d), kafkaTransactionsOld.describe(d))
}

func (c coordinatorState) describe(d *describer) *types.Type {
	return d.structure("SourceCoordinator", "SourceCoordinator", coordinatorShape, func() []*types.Type {
		assignments := recordType(trackerShape, int32Type, listType(recordType(trackedShape, int64Type, trackedSubtasks.describe(d))))
		return []*types.Type{int32Type, d.choice(c.candidates()), nullable(assignments)}
	})
}
