package types

import "github.com/savepoint-tools/spt/format"

// Serializer is a serializer snapshot of a state with its key: VALUE_SERIALIZER, in
// broadcast state also KEY_SERIALIZER, in keyed state also NAMESPACE_SERIALIZER.
type Serializer struct {
	Key      string
	Snapshot *Snapshot
}

// Timers is the kind of keyed state that holds timers.
const Timers = "timers"

// StateSchema is the serializers of a state.
type StateSchema struct {
	Name format.Text
	// Keyed is the kind of keyed state: value, list, map, reducing, aggregating,
	// folding or Timers; "" for operator state, which has a Mode.
	Keyed       string
	Mode        format.Mode
	Serializers []Serializer // in the order of the file
	// Subtasks are the subtasks with this schema of the state, ascending; nil in the
	// schema of one handle.
	Subtasks []int32
}

// Kind returns the kind of keyed state, or the mode of operator state.
func (s *StateSchema) Kind() string {
	if s.Keyed != "" {
		return s.Keyed
	}
	return s.Mode.String()
}

// Scope returns the namespace of the state's name: the list and union states of an
// operator, its broadcast states, or its keyed states. A name is unique within a
// scope.
func (s *StateSchema) Scope() string {
	switch {
	case s.Keyed != "":
		return "keyed"
	case s.Mode == format.ModeBroadcast:
		return "broadcast"
	}
	return "list"
}

// Serializer returns the snapshot under a key, or nil.
func (s *StateSchema) Serializer(key string) *Snapshot {
	for _, k := range s.Serializers {
		if k.Key == key {
			return k.Snapshot
		}
	}
	return nil
}

// Schema is the serializers of the states of an operator, or of one handle.
type Schema struct {
	Key    *Snapshot // serializer of keys; nil without keyed state
	States []StateSchema
	// Keys are the distinct serializer snapshots of keys, if there are several; the
	// first is Key.
	Keys []KeySchema
	// Keyed are the distinct versions of the streams of keyed state.
	Keyed []int32
}

// KeySchema is the serializer of keys in some subtasks.
type KeySchema struct {
	*Snapshot
	Subtasks []int32
}

// AllKeys returns every serializer snapshot of keys.
func (s *Schema) AllKeys() []KeySchema {
	if len(s.Keys) == 0 && s.Key != nil {
		return []KeySchema{{Snapshot: s.Key}}
	}
	return s.Keys
}

// Each calls f with a snapshot and then with all snapshots nested in it.
func Each(s *Snapshot, f func(*Snapshot)) {
	if s == nil {
		return
	}
	f(s)
	for _, n := range s.Nested {
		Each(n, f)
	}
	for _, n := range s.Subclasses {
		Each(n, f)
	}
}
