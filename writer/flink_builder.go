package writer

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/format/flink/keyed"
	"github.com/savepoint-tools/spt/format/flink/opstate"
	"github.com/savepoint-tools/spt/format/flink/types"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/scratch"
)

// FlinkOptions are the options of NewFlinkBuilder.
type FlinkOptions struct {
	// Release is the release of Flink that the savepoint is for, 1.15 or later; 0 means
	// the latest. Later releases restore it, too.
	Release flink.Release
	ID      int64 // checkpoint id; 0 means 1
	// LastWins: of several values of one key, the last one counts. Otherwise they are a
	// *DuplicateError.
	LastWins bool
	// SortBytes bounds the memory for sorting entries; 0 means 32 MiB. What does not fit
	// is in temporary files in TempDir; "" is the directory of the system.
	SortBytes int64
	TempDir   string
}

// oldestCreated is the oldest release that savepoints are made for: the first whose keyed
// handles have ids. The serializer snapshots are from it too.
var oldestCreated, _ = flink.Lifetime(flink.Facts.HandleIDs)

// FlinkBuilder makes a savepoint of a Flink job that never ran: operators by uid, and
// their states with types and values. The savepoint is canonical, so every state backend
// restores it.
//
// Entries are added in any order, and sorted at the end: memory does not grow with them,
// except for eight bytes for each element of a list or union state. If Add returns an
// error, the entry was not added, and the builder can be used further. A FlinkBuilder is
// not safe for concurrent use. The same calls make the same savepoint.
type FlinkBuilder struct {
	o         FlinkOptions
	operators []*FlinkOperatorBuilder
	ids       map[format.OperatorID]bool
	sorter    *scratch.Sorter // nil after View or Close
	count     uint64          // of records
	out       *scratch.File   // bytes of the state; nil before View
	buf       []byte
}

// NewFlinkBuilder returns a builder without operators. The caller must close it.
func NewFlinkBuilder(opts *FlinkOptions) (*FlinkBuilder, error) {
	var o FlinkOptions
	if opts != nil {
		o = *opts
	}
	if o.Release == 0 {
		o.Release = flink.Latest()
	}
	if o.ID == 0 {
		o.ID = 1
	}
	if o.SortBytes == 0 {
		o.SortBytes = 32 << 20
	}
	switch {
	case o.Release < oldestCreated:
		return nil, invalid("savepoints for Flink %v are not created: expected %v or later", o.Release, oldestCreated)
	case o.ID < 0:
		return nil, invalid("ID %d: expected 0 or more", o.ID)
	case o.SortBytes < 0:
		return nil, invalid("SortBytes %d: expected 0 or more", o.SortBytes)
	}
	return &FlinkBuilder{o: o, ids: map[format.OperatorID]bool{}, sorter: scratch.NewSorter(scratch.Options{Memory: o.SortBytes, Dir: o.TempDir})}, nil
}

// FlinkOperator is an operator of a job.
type FlinkOperator struct {
	UID string
	// ID is the id of an operator without a uid, which Flink computes from the job.
	ID   format.OperatorID
	Name string // display name; stored for Flink 2.0 and later
	// Parallelism is the number of subtasks that the savepoint has state of; the job can
	// have another. MaxParallelism is fixed with the savepoint; 0 means what Flink
	// derives from the parallelism.
	Parallelism, MaxParallelism int32
	// Key is the type of the keys of keyed state; "": the operator has none.
	Key string
}

// Operator adds an operator.
func (b *FlinkBuilder) Operator(op FlinkOperator) (*FlinkOperatorBuilder, error) {
	id := op.ID
	switch {
	case b.sorter == nil:
		return nil, errFlinkBuilt
	case op.UID != "" && id != (format.OperatorID{}):
		return nil, invalid("operator %q has a uid, from which its id follows, and an id", op.UID)
	case op.UID != "":
		id = format.OperatorIDOf(op.UID)
	case id == (format.OperatorID{}):
		return nil, invalid("an operator needs a uid or an id")
	}
	if op.MaxParallelism == 0 {
		op.MaxParallelism = defaultMaxParallelism(op.Parallelism)
	}
	switch {
	case op.Parallelism < 1 || op.Parallelism > op.MaxParallelism || op.MaxParallelism > format.MaxKeyGroups:
		return nil, invalid("parallelism %d of at most %d: expected 1 ≤ parallelism ≤ max parallelism ≤ %d", op.Parallelism, op.MaxParallelism, format.MaxKeyGroups)
	case b.ids[id]:
		return nil, invalid("two operators have the id %s", id)
	}
	o := &FlinkOperatorBuilder{b: b, index: len(b.operators), op: &format.Operator{
		Name: format.NewText(op.Name), UID: format.NewText(op.UID), ID: id, Parallelism: op.Parallelism, MaxParallelism: op.MaxParallelism,
	}}
	if op.Key != "" {
		var err error
		if o.key, err = b.typed(op.Key); err != nil {
			return nil, fmt.Errorf("type of keys: %w", err)
		}
		if o.hash, err = types.KeyHasher(o.key.snapshot, types.Options{}); err != nil {
			return nil, fmt.Errorf("type of keys: the key groups of %s are not known: %w", op.Key, err)
		}
	}
	b.ids[id] = true
	b.operators = append(b.operators, o)
	return o, nil
}

// defaultMaxParallelism returns the max parallelism of an operator for which the job
// sets none: 1.5 times the parallelism, rounded up to a power of two, at least 128.
func defaultMaxParallelism(parallelism int32) int32 {
	for n := int64(128); n < format.MaxKeyGroups; n *= 2 {
		if n >= int64(parallelism)+int64(parallelism)/2 {
			return int32(n)
		}
	}
	return format.MaxKeyGroups
}

var errFlinkBuilt = invalid("the builder is closed, or its View was taken")

// typedCodec is a type: its serializer snapshot and the codec of its values.
type typedCodec struct {
	snapshot *types.Snapshot
	codec    value.Codec
}

// typed reads a type of the type language.
func (b *FlinkBuilder) typed(text string) (typedCodec, error) {
	s, err := new(types.Language).Parse(text)
	if err != nil {
		return typedCodec{}, err
	}
	if s, err = types.Recorded(s, b.o.Release); err != nil {
		return typedCodec{}, err
	}
	c, err := types.NewCodec(s, types.Options{})
	return typedCodec{s, c}, err
}

// FlinkOperatorBuilder adds the states of one operator.
type FlinkOperatorBuilder struct {
	b      *FlinkBuilder
	index  int
	op     *format.Operator
	key    typedCodec
	hash   func(key []byte) (int32, error) // of key; nil without keyed state
	states []*FlinkStateBuilder            // of the operator: list and union before broadcast at the end
	keyed  []*FlinkStateBuilder
}

// FlinkState is a state. Types are in the type language (docs/type-language.md), with the
// classes of POJOs and enums.
type FlinkState struct {
	Name string
	// Kind is "list", "union" or "broadcast", or for keyed state one of
	// [keyed.NewKinds].
	Kind string
	// Type is the type of the values: of the elements of a list, the values of a map, the
	// accumulators of a reducing or aggregating state. Timers have none.
	Type string
	// MapKey is the type of the keys of a map: of broadcast state, and of keyed state of
	// kind "map".
	MapKey string
	// Namespace is the type of the namespaces of keyed state, such as "timewindow"; ""
	// means that it has none.
	Namespace string
	// Elements, of keyed state of kind "list": each entry is one element. The
	// elements with the same key are one list, in the order in which they were added.
	Elements bool
}

// FlinkStateBuilder adds the entries of one state.
type FlinkStateBuilder struct {
	o                         *FlinkOperatorBuilder
	index                     int // in the operator's states, or in its keyed states
	state                     FlinkState
	keyed                     bool
	mode                      format.Mode // of operator state
	mapKey, namespace, values typedCodec
	codec                     value.Codec // of the values in an entry
	next                      int32       // subtask of the next element
	count                     int64
}

// State adds a list, union or broadcast state.
func (o *FlinkOperatorBuilder) State(st FlinkState) (*FlinkStateBuilder, error) {
	i := slices.IndexFunc(modes, func(m format.Mode) bool { return m.String() == st.Kind })
	switch {
	case i < 0:
		return nil, invalid("unknown kind %q of operator state; available: list, union, broadcast", st.Kind)
	case st.Namespace != "" || st.Elements:
		return nil, invalid("namespaces and elements are of keyed state")
	}
	s := &FlinkStateBuilder{o: o, index: len(o.states), state: st, mode: modes[i]}
	if err := s.start(s.mode == format.ModeBroadcast, o.states); err != nil {
		return nil, err
	}
	s.codec = s.values.codec
	o.states = append(o.states, s)
	return s, nil
}

var modes = []format.Mode{format.ModeList, format.ModeUnion, format.ModeBroadcast}

// Keyed adds a keyed state. The operator needs a type of keys.
func (o *FlinkOperatorBuilder) Keyed(st FlinkState) (*FlinkStateBuilder, error) {
	timers := st.Kind == types.Timers
	switch {
	case !slices.Contains(keyed.NewKinds, st.Kind):
		return nil, invalid("unknown kind %q of keyed state; available: %s", st.Kind, strings.Join(keyed.NewKinds, ", "))
	case o.hash == nil:
		return nil, invalid("keyed state needs the type of the keys of its operator")
	case st.Elements && st.Kind != "list":
		return nil, invalid("only lists have elements")
	case timers != (st.Type == ""):
		return nil, invalid("all states but timers have a type")
	case timers && !isTimerService(st.Name):
		return nil, invalid("timers are named _timer_state/event_NAME or _timer_state/processing_NAME; NAME is user-timers in a process function")
	}
	if st.Namespace == "" {
		st.Namespace = noNamespaceType
	}
	s := &FlinkStateBuilder{o: o, index: len(o.keyed), state: st, keyed: true}
	err := s.start(st.Kind == "map", o.keyed)
	switch {
	case err != nil || timers:
	case st.Kind == "list" && !st.Elements:
		s.codec, err = types.ListCodec(s.values.snapshot, types.Options{})
	case st.Kind == "map":
		s.codec, err = types.MapValueCodec(s.values.snapshot, types.Options{})
	default:
		s.codec = s.values.codec
	}
	if err != nil {
		return nil, err
	}
	o.keyed = append(o.keyed, s)
	return s, nil
}

// noNamespaceType is the type of the namespaces of state that has none.
const noNamespaceType = "VoidNamespace"

func isTimerService(name string) bool {
	for _, prefix := range []string{"_timer_state/event_", "_timer_state/processing_"} {
		if rest, ok := strings.CutPrefix(name, prefix); ok && rest != "" {
			return true
		}
	}
	return false
}

// start checks a state and reads its types.
func (s *FlinkStateBuilder) start(isMap bool, others []*FlinkStateBuilder) (err error) {
	switch {
	case s.o.b.sorter == nil:
		return errFlinkBuilt
	case s.state.Name == "":
		return invalid("a state needs a name")
	case slices.ContainsFunc(others, func(o *FlinkStateBuilder) bool { return o.state.Name == s.state.Name }):
		return invalid("duplicate state %q", s.state.Name)
	case len(others) >= math.MaxInt16:
		return format.Errorf(format.ErrLimit, "more than %d states of one operator", len(others))
	case isMap != (s.state.MapKey != ""):
		return invalid("map and broadcast states have a type of the keys of the map, and no other states")
	}
	for _, t := range []struct {
		text, what string
		to         *typedCodec
	}{{s.state.MapKey, "map key", &s.mapKey}, {s.state.Namespace, "namespace", &s.namespace}, {s.state.Type, "value", &s.values}} {
		if t.text == "" {
			continue
		}
		if *t.to, err = s.o.b.typed(t.text); err != nil {
			return err
		}
	}
	return nil
}

// Codecs returns the codecs of the parts of entries, which also read JSON: see
// [value.FromJSON]. A part that entries of the state do not have is nil. The key of an
// entry of broadcast state is Key.
func (s *FlinkStateBuilder) Codecs() value.EntryCodecs {
	if !s.keyed {
		return value.EntryCodecs{Key: s.mapKey.codec, Value: s.codec}
	}
	c := value.EntryCodecs{Key: s.o.key.codec, UserKey: s.mapKey.codec, Value: s.codec, KeyHash: s.o.hash}
	if s.state.Namespace != noNamespaceType {
		c.Namespace = s.namespace.codec
	}
	return c
}

// FlinkTypes are the types of the parts of entries; nil for a part that they do not have.
type FlinkTypes struct{ Key, Namespace, UserKey, Value *types.Type }

// Types returns the types of the parts of entries, as Codecs their codecs.
func (s *FlinkStateBuilder) Types() (t FlinkTypes) {
	of := func(c value.Codec, s *types.Snapshot) *types.Type {
		if c == nil {
			return nil
		}
		return types.TypeOf(s, types.Options{})
	}
	c := s.Codecs()
	t = FlinkTypes{Key: of(c.Key, s.mapKey.snapshot), Value: of(c.Value, s.values.snapshot)}
	if s.keyed {
		t.Key, t.Namespace, t.UserKey = of(c.Key, s.o.key.snapshot), of(c.Namespace, s.namespace.snapshot), of(c.UserKey, s.mapKey.snapshot)
		if s.state.Kind == "list" && !s.state.Elements {
			t.Value = of(c.Value, types.Nesting("List", s.values.snapshot))
		}
	}
	return t
}

// Count returns the number of entries that were added.
func (s *FlinkStateBuilder) Count() int64 { return s.count }

// Parallelism returns the number of subtasks of the operator of the state.
func (s *FlinkStateBuilder) Parallelism() int32 { return s.o.op.Parallelism }

// ID returns the id of the operator.
func (o *FlinkOperatorBuilder) ID() format.OperatorID { return o.op.ID }

// MaxParallelism returns the max parallelism of the operator.
func (o *FlinkOperatorBuilder) MaxParallelism() int32 { return o.op.MaxParallelism }

// FlinkEntry is an entry of a state. Parts that its state does not have are not used.
type FlinkEntry struct {
	Key       value.Value // of keyed state and of broadcast state
	Namespace value.Value // null if the state has no namespaces
	UserKey   value.Value // of a map
	Value     value.Value
	Time      int64 // at which a timer fires, in ms
	// Row is a number for errors, such as the number of a line.
	Row int64
}

// Add adds an element or an entry. Elements of list and union state go to the subtasks in
// turn; entries of broadcast state go to all subtasks, and entries of keyed state to the
// subtask of their key.
func (s *FlinkStateBuilder) Add(e FlinkEntry) error {
	if s.keyed || s.mode == format.ModeBroadcast {
		return s.add(e, 0)
	}
	if err := s.add(e, s.next); err != nil {
		return err
	}
	s.next = (s.next + 1) % s.o.op.Parallelism
	return nil
}

// AddTo adds an element of list or union state to a subtask. A job with the parallelism of
// the savepoint restores list state where it was.
func (s *FlinkStateBuilder) AddTo(subtask int32, e FlinkEntry) error {
	switch {
	case s.keyed || s.mode == format.ModeBroadcast:
		return invalid("only elements of list and union state are added to a subtask")
	case subtask < 0 || subtask >= s.o.op.Parallelism:
		return invalid("subtask %d: the operator has subtasks 0 to %d", subtask, s.o.op.Parallelism-1)
	}
	return s.add(e, subtask)
}

// Records are sorted by their bytes:
//
//	int operator, byte section
//	list, union   int subtask, short state
//	broadcast     short state, key
//	keyed         short key group, short state; time of a timer; key, namespace, map key
//	long          number of the record
//	value
//
// In the last two sections follow long row, and int lengths of key, namespace and map key.
// Flink's serializers write where a value ends, so no key is the beginning of another.
const (
	sectionLists = iota
	sectionBroadcast
	sectionKeyed

	sectionAt = 4
	headSize  = 5
	groupAt   = headSize
	keyedAt   = groupAt + 4 // time or key
	trailer   = 20

	maxEntry  = 1 << 30
	timerSign = 1 << 63
)

func (s *FlinkStateBuilder) add(e FlinkEntry, subtask int32) error {
	b := s.o.b
	if b.sorter == nil {
		return errFlinkBuilt
	}
	p := binary.BigEndian.AppendUint32(b.buf[:0], uint32(s.o.index))
	var lengths [3]int
	var err error
	switch {
	case s.keyed:
		p, lengths, err = s.entry(append(p, sectionKeyed), e)
	case s.mode == format.ModeBroadcast:
		p = binary.BigEndian.AppendUint16(append(p, sectionBroadcast), uint16(s.index))
		p, lengths, err = s.parts(p, part{"key", s.mapKey.codec, e.Key})
	default:
		p = binary.BigEndian.AppendUint32(append(p, sectionLists), uint32(subtask))
		p = binary.BigEndian.AppendUint16(p, uint16(s.index))
	}
	p = binary.BigEndian.AppendUint64(p, b.count)
	if err == nil && s.codec != nil {
		if p, err = s.codec.Append(p, e.Value); err != nil {
			err = fmt.Errorf("value: %w", err)
		}
	}
	if err == nil && len(p) > maxEntry {
		err = format.Errorf(format.ErrLimit, "an entry of %d bytes, over the limit of %d", len(p), maxEntry)
	}
	if err != nil {
		return err
	}
	if p[sectionAt] != sectionLists {
		p = binary.BigEndian.AppendUint64(p, uint64(e.Row))
		for _, n := range lengths {
			p = binary.BigEndian.AppendUint32(p, uint32(n))
		}
	}
	if err := b.sorter.Add(0, p); err != nil {
		return err
	}
	b.count++
	s.count++
	b.buf = p
	return nil
}

// part is a part of an entry by which it is sorted.
type part struct {
	what  string
	codec value.Codec // nil: the state does not have it
	value value.Value
}

// parts appends parts and returns their lengths.
func (s *FlinkStateBuilder) parts(p []byte, all ...part) (_ []byte, lengths [3]int, err error) {
	for i, part := range all {
		if part.codec == nil {
			continue
		}
		at := len(p)
		if p, err = part.codec.Append(p, part.value); err != nil {
			return p, lengths, fmt.Errorf("%s: %w", part.what, err)
		}
		lengths[i] = len(p) - at
	}
	return p, lengths, nil
}

// entry appends the parts of an entry of keyed state.
func (s *FlinkStateBuilder) entry(p []byte, e FlinkEntry) ([]byte, [3]int, error) {
	p = append(p, 0, 0) // key group
	p = binary.BigEndian.AppendUint16(p, uint16(s.index))
	if s.state.Kind == types.Timers {
		p = binary.BigEndian.AppendUint64(p, uint64(e.Time)^timerSign)
	}
	at := len(p)
	p, lengths, err := s.parts(p, part{"key", s.o.key.codec, e.Key}, part{"namespace", s.namespace.codec, e.Namespace}, part{"map key", s.mapKey.codec, e.UserKey})
	if err != nil {
		return p, lengths, err
	}
	hash, err := s.o.hash(p[at : at+lengths[0]])
	if err != nil {
		return p, lengths, fmt.Errorf("key: %w", err)
	}
	binary.BigEndian.PutUint16(p[groupAt:], uint16(format.KeyGroupOfHash(hash, s.o.op.MaxParallelism)))
	return p, lengths, nil
}

// meta returns the state as it is in a stream of operator state.
func (s *FlinkStateBuilder) meta() (format.StateMeta, error) {
	return opstate.NewState(s.o.b.o.Release, format.NewText(s.state.Name), s.mode, s.mapKey.snapshot, s.values.snapshot)
}

// Close releases the memory and the temporary files. A View must not be used after it.
func (b *FlinkBuilder) Close() error {
	var err error
	if b.sorter != nil {
		err = b.sorter.Close()
		b.sorter = nil
	}
	if b.out != nil {
		if cerr := b.out.Close(); err == nil {
			err = cerr
		}
		b.out = nil
	}
	return err
}
