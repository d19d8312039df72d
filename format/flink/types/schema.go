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
	Keyed string
	Mode  format.Mode
	// Asynchronous reports whether keyed state is of the asynchronous API of Flink 2: its
	// serializer of values is the one of an element of a list, or of a value of a map.
	Asynchronous bool
	Serializers  []Serializer // in the order of the file
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

// What returns what the serializer under a key is for: values, namespaces, map keys or
// timers.
func (s *StateSchema) What(key string) string {
	switch {
	case s.Keyed == Timers:
		return "timers"
	case key == "NAMESPACE_SERIALIZER":
		return "namespaces"
	case key == "KEY_SERIALIZER", key == "USER_KEY_SERIALIZER":
		return "map keys"
	}
	return "values"
}

// Parts are the serializers of the parts of a state. One that the state does not have,
// or that the file does not record, is nil.
type Parts struct {
	Namespace *Snapshot // of keyed state
	UserKey   *Snapshot // the key of a map, or of broadcast state
	Value     *Snapshot // the value; of a list the element, of a map one value, of timers the timer
}

// Parts returns the serializers of the parts of the state.
func (s *StateSchema) Parts() Parts {
	value := original(s.Serializer("VALUE_SERIALIZER"))
	p := Parts{Namespace: s.Serializer("NAMESPACE_SERIALIZER"), UserKey: s.Serializer("USER_KEY_SERIALIZER"), Value: value}
	switch {
	case s.Keyed == Timers && value.is("TimerSerializerSnapshot", 2):
		p.Namespace = value.Nested[1]
	case s.Asynchronous:
	case s.Keyed == "list" && (value.is("ListSerializerSnapshot", 1) || value.isConfig("CollectionSerializerConfigSnapshot", 1)):
		p.Value = value.Nested[0]
	case s.Keyed == "map" && p.UserKey == nil && (value.is("MapSerializerSnapshot", 2) || value.is("NullAwareMapSerializerSnapshot", 2) || value.isConfig("MapSerializerConfigSnapshot", 2)):
		p.UserKey, p.Value = value.Nested[0], value.Nested[1]
	case s.Keyed == "": // broadcast state
		p.UserKey = s.Serializer("KEY_SERIALIZER")
	}
	return p
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
