package types

import "github.com/savepoint-tools/spt/format"

// Serializer is a serializer snapshot of a state under its key:
// VALUE_SERIALIZER, of a broadcast state KEY_SERIALIZER too, of a keyed state
// NAMESPACE_SERIALIZER too.
type Serializer struct {
	Key      string
	Snapshot *Snapshot
}

// Timers is the kind of keyed state that timers are in.
const Timers = "timers"

// StateSchema is how the values of a state were serialized.
type StateSchema struct {
	Name format.Text
	// Keyed is what kind of keyed state it is: value, list, map, reducing,
	// aggregating, folding or Timers; "" of operator state, which has a Mode.
	Keyed       string
	Mode        format.Mode
	Serializers []Serializer // in the order of the file
	// Subtasks are those that describe the state so, ascending; nil of the schema
	// of one handle.
	Subtasks []int32
}

// Kind is the kind of keyed state, or the mode of operator state.
func (s *StateSchema) Kind() string {
	if s.Keyed != "" {
		return s.Keyed
	}
	return s.Mode.String()
}

// Scope returns what the state shares its namespace of names with: the list and
// union states of an operator, its broadcast states, or its keyed states. Within
// one scope a name means one state.
func (s *StateSchema) Scope() string {
	switch {
	case s.Keyed != "":
		return "keyed"
	case s.Mode == format.ModeBroadcast:
		return "broadcast"
	}
	return "list"
}

// Serializer gives the snapshot under a key, or nil.
func (s *StateSchema) Serializer(key string) *Snapshot {
	for _, k := range s.Serializers {
		if k.Key == key {
			return k.Snapshot
		}
	}
	return nil
}

// Schema is how the states of an operator, or of one handle, were serialized.
type Schema struct {
	Key    *Snapshot // of keyed state; nil: there is none
	States []StateSchema
	// Keys are the different descriptions of keys, where there are several; the
	// first is Key.
	Keys []KeySchema
	// Keyed is the versions of the streams of keyed state, each once.
	Keyed []int32
}

// KeySchema is how some subtasks serialized their keys.
type KeySchema struct {
	*Snapshot
	Subtasks []int32
}

// AllKeys returns every description of keys.
func (s *Schema) AllKeys() []KeySchema {
	if len(s.Keys) == 0 && s.Key != nil {
		return []KeySchema{{Snapshot: s.Key}}
	}
	return s.Keys
}

// Each calls f for a snapshot and all nested in it, each before what is in it.
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
