package conformance

import (
	"bytes"
	"encoding/json"
)

// Content is what the subtasks of a job hold: truth.json and restored-pN.json.
type Content struct {
	Flink     string     `json:"flink"`
	Shape     string     `json:"shape"`
	Operators []Operator `json:"operators"`
}

// Operator is one operator of a job. UID is empty if the job set none.
type Operator struct {
	UID         string    `json:"uid"`
	Name        string    `json:"name"`
	ID          string    `json:"id"`
	Parallelism int       `json:"parallelism"`
	Subtasks    []Subtask `json:"subtasks"`
}

// Subtask is what one subtask of an operator holds.
type Subtask struct {
	Index         int                      `json:"index"`
	OperatorState map[string]OperatorState `json:"operator_state"`
	KeyGroups     []int                    `json:"key_groups"` // first and last
	KeyedState    map[string]KeyedState    `json:"keyed_state"`
	Timers        map[string]Timers        `json:"timers"`
}

// OperatorState is a list or union state (elements in order, and their bytes
// in hex) or a broadcast state (entries, sorted).
type OperatorState struct {
	Kind     string   `json:"kind"`
	Elements []Value  `json:"elements"`
	Raw      []string `json:"raw"`
	Entries  []Value  `json:"entries"`
}

// KeyedState is one keyed state, its entries sorted by key group and text.
type KeyedState struct {
	Kind    string  `json:"kind"`
	TTL     bool    `json:"ttl"`
	Entries []Entry `json:"entries"`
}

// Entry is what a keyed state holds under one key and namespace.
type Entry struct {
	KeyGroup  int   `json:"key_group"`
	Key       Value `json:"key"`
	Namespace Value `json:"namespace"`
	Value     Value `json:"value"`
}

// Timers of one timer service.
type Timers struct {
	Event      []Timer `json:"event"`
	Processing []Timer `json:"processing"`
}

// Timer is one timer.
type Timer struct {
	KeyGroup  int   `json:"key_group"`
	Key       Value `json:"key"`
	Namespace Value `json:"namespace"`
	Timestamp int64 `json:"timestamp"`
}

// Value is any JSON value, as text without white space and with sorted fields.
type Value string

// UnmarshalJSON normalizes the text.
func (v *Value) UnmarshalJSON(text []byte) error {
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var decoded any
	if err := decoder.Decode(&decoded); err != nil {
		return err
	}
	canonical, err := json.Marshal(decoded)
	*v = Value(canonical)
	return err
}

// Metadata is a _metadata file as Flink's own reader sees it: metadata.json.
type Metadata struct {
	CheckpointID int64              `json:"checkpoint_id"`
	Size         int64              `json:"size"`
	Operators    []MetadataOperator `json:"operators"`
}

// MetadataOperator is one operator in a _metadata file.
type MetadataOperator struct {
	ID               string                     `json:"id"`
	Parallelism      int                        `json:"parallelism"`
	MaxParallelism   int                        `json:"max_parallelism"`
	CoordinatorBytes *int64                     `json:"coordinator_bytes"`
	Subtasks         map[string]MetadataSubtask `json:"subtasks"` // by index
}

// MetadataSubtask has the handles of one subtask, each as JSON text.
type MetadataSubtask struct {
	ManagedOperator    []Value `json:"managed_operator"`
	RawOperator        []Value `json:"raw_operator"`
	ManagedKeyed       []Value `json:"managed_keyed"`
	RawKeyed           []Value `json:"raw_keyed"`
	InputChannel       []Value `json:"input_channel"`
	ResultSubpartition []Value `json:"result_subpartition"`
}
