package report

import (
	"cmp"
	"fmt"
	"iter"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/columns"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// Offsets is the answer of offsets.
type Offsets struct {
	Partitions []OffsetRow  `json:"partitions" jsonschema:"description=a row for each partition of each source; several where several readers hold it"`
	NotDecoded []NotDecoded `json:"not_decoded,omitempty"`

	since   string // the older snapshot; ""
	sources int    // that were found
}

// OffsetRow is the position in one partition.
type OffsetRow struct {
	Operator   string `json:"operator"`
	ID         string `json:"id"`
	Connector  string `json:"connector"`
	State      string `json:"state,omitempty" jsonschema:"description=absent if only the coordinator has the partition"`
	Cluster    string `json:"cluster,omitempty"`
	Topic      string `json:"topic" jsonschema:"description=or stream, table or file"`
	Partition  string `json:"partition" jsonschema:"description=number, or the id of a shard or split"`
	At         string `json:"at" jsonschema:"enum=offset,enum=earliest,enum=latest,enum=committed,enum=unknown,enum=text,enum=finished,enum=not stored,description=what the position is"`
	Offset     *int64 `json:"offset,omitempty" jsonschema:"description=of the next record, if the position is an offset"`
	Stored     *int64 `json:"stored,omitempty" jsonschema:"description=the number that is stored, of Kafka: -1 latest, -2 earliest, -3 committed, the least long unknown; FlinkKafkaConsumer stores the last record that was read"`
	Text       string `json:"text,omitempty" jsonschema:"description=the position, if it is not a number"`
	Stop       *int64 `json:"stopping_offset,omitempty"`
	Subtask    *int32 `json:"subtask,omitempty" jsonschema:"description=that holds it; absent if only the coordinator has the partition"`
	Index      *int64 `json:"index,omitempty" jsonschema:"description=of the element in the subtask"`
	Enumerator string `json:"enumerator,omitempty" jsonschema:"description=status of the partition in the coordinator"`
	Trouble    string `json:"trouble,omitempty" jsonschema:"enum=twice in readers,enum=in reader and unassigned,enum=in no reader,enum=not in enumerator"`
	Since      *int64 `json:"since,omitempty" jsonschema:"description=with --since: records from the position in the older snapshot to this one"`
	Before     string `json:"before,omitempty" jsonschema:"description=with --since: the position in the older snapshot"`
}

// NotDecoded is state of a connector that is not decoded.
type NotDecoded struct {
	Operator string `json:"operator"`
	ID       string `json:"id"`
	State    string `json:"state,omitempty" jsonschema:"description=absent for the state of the coordinator"`
	Subtask  *int32 `json:"subtask,omitempty"`
	Elements int64  `json:"elements"`
	Why      string `json:"why"`
}

func (r *Run) notDecoded(op opLabel, u transform.Undecoded) NotDecoded {
	n := NotDecoded{Operator: op.label, ID: op.id, State: r.Text(u.State), Elements: u.Elements, Why: r.Hide(u.Why)}
	if u.Subtask >= 0 {
		n.Subtask = &u.Subtask
	}
	return n
}

type opLabel struct{ label, id string }

// NewOffsets returns the positions of sources as they are printed. older, if not nil, is
// the positions of an older snapshot at a location.
func (r *Run) NewOffsets(all, older *transform.OffsetsReport, since string) *Offsets {
	o := &Offsets{Partitions: []OffsetRow{}, since: since, sources: len(all.Sources)}
	before := map[[4]string]*transform.PartitionOffset{}
	if older != nil {
		for _, s := range older.Sources {
			for _, p := range s.Partitions {
				key := [4]string{s.Operator.ID.String(), p.Cluster, p.Topic, p.Partition}
				if was := before[key]; was == nil || was.Subtask < 0 && p.Subtask >= 0 {
					before[key] = p
				}
			}
		}
	}
	for _, s := range all.Sources {
		op := opLabel{r.Label(s.Operator), s.Operator.ID.String()}
		inReader, status := map[[3]string]bool{}, map[[3]string]string{}
		for _, p := range s.Partitions {
			key := [3]string{p.Cluster, p.Topic, p.Partition}
			if p.Subtask >= 0 {
				inReader[key] = true
			} else {
				status[key] = p.Status
			}
		}
		for _, p := range s.Partitions {
			key := [3]string{p.Cluster, p.Topic, p.Partition}
			if p.Subtask < 0 && inReader[key] {
				continue
			}
			row := OffsetRow{Operator: op.label, ID: op.id, Connector: cmp.Or(p.Connector, s.Connector), State: r.Text(p.State), Cluster: r.Text(p.Cluster), Topic: r.Text(p.Topic), Partition: p.Partition,
				At: p.At.String(), Text: r.Text(p.Text), Stop: p.Stop, Enumerator: status[key], Trouble: string(p.Trouble)}
			if p.Subtask >= 0 {
				row.Subtask, row.Index = &p.Subtask, &p.Index
			}
			if p.Settable {
				row.Stored = &p.Stored
			}
			if p.At == connector.AtOffset {
				row.Offset = &p.Offset
			}
			if was := before[[4]string{op.id, p.Cluster, p.Topic, p.Partition}]; was != nil {
				row.Before = r.Text(positionText(&was.Position))
				if was.At == connector.AtOffset && p.At == connector.AtOffset {
					row.Since = new(p.Offset - was.Offset)
				}
			}
			o.Partitions = append(o.Partitions, row)
		}
		for _, u := range s.Undecoded {
			o.NotDecoded = append(o.NotDecoded, r.notDecoded(op, u))
		}
	}
	return o
}

// positionText returns a position for a person: "4,711", "-2 (earliest)".
func positionText(p *connector.Position) string {
	switch {
	case p.At == connector.AtOffset:
		return ui.Count(p.Offset)
	case p.At == connector.AtText:
		return p.Text
	case p.Settable && p.Stored == math.MinInt64:
		return "Long.MIN_VALUE (" + p.At.String() + ")"
	case p.Settable:
		return fmt.Sprintf("%d (%s)", p.Stored, p.At)
	}
	return p.At.String()
}

// Position returns the position for a person: "4,711", "-2 (earliest)".
func (o *OffsetRow) Position() string {
	p := connector.Position{Settable: o.Stored != nil, Text: o.Text}
	for _, at := range connector.Ats() {
		if at.String() == o.At {
			p.At = at
		}
	}
	if o.Stored != nil {
		p.Stored = *o.Stored
	}
	if o.Offset != nil {
		p.Offset = *o.Offset
	}
	return positionText(&p)
}

// troubles says what each kind of trouble means.
var troubles = []struct {
	kind transform.PartitionTrouble
	text string
}{
	{transform.TwiceInReaders, "held by several readers: read several times, from each position"},
	{transform.InBoth, "held by a reader and unassigned in the coordinator, which will assign it again: read twice"},
	{transform.InNoReader, "assigned by the coordinator, and no reader holds it: not read any more, unless the source had read it to its end"},
	{transform.NotEnumerated, "held by a reader and unknown to the coordinator, which will find and assign it again: read twice"},
}

// Document implements [Report].
func (o *Offsets) Document() *ui.Document {
	var d ui.Document
	switch {
	case len(o.Partitions)+len(o.NotDecoded) > 0:
	case o.sources > 0:
		d.Line("%s without a position: they have nothing left to read, or had not begun", ui.Plural(int64(o.sources), "source"))
		return &d
	default:
		d.Line("no operator has a state in which known sources store positions")
		return &d
	}
	since := "SINCE"
	if o.since != "" {
		since += " " + ui.Quote(o.since)
	}
	t := ui.NewTable(ui.Column{Header: "SOURCE", Shrink: 1}, ui.Column{Header: "CLUSTER", Shrink: 1}, ui.Column{Header: "TOPIC", Shrink: 2}, ui.Column{Header: "PARTITION", Align: ui.Right},
		ui.Column{Header: "POSITION", Align: ui.Right}, ui.Column{Header: "STOP", Align: ui.Right}, ui.Column{Header: since, Align: ui.Right, Shrink: 1}, ui.Column{Header: "SUBTASK", Align: ui.Right}, ui.Column{Header: "COORDINATOR"})
	for i := range o.Partitions {
		p := &o.Partitions[i]
		subtask, stop, progress, status := "–", "", "", ""
		if p.Subtask != nil {
			subtask = strconv.Itoa(int(*p.Subtask))
		}
		if p.Stop != nil {
			stop = ui.Count(*p.Stop)
		}
		switch {
		case p.Since != nil:
			progress = ui.Signed(*p.Since, ui.Count)
		case p.Before != "" && p.Before != p.Position():
			progress = "was " + p.Before
		case o.since != "":
			progress = "–"
		}
		if p.Subtask == nil || p.Trouble != "" {
			status = p.Enumerator
		}
		if p.Trouble != "" {
			status = ui.Look("! " + cmp.Or(status, "–"))
		}
		t.Row(ui.Quote(p.Operator), quoted2(p.Cluster), quoted2(p.Topic), ui.Quote(p.Partition), p.Position(), stop, progress, subtask, status)
	}
	d.Add(t)
	for _, k := range troubles {
		var names []string
		for i := range o.Partitions {
			if p := &o.Partitions[i]; p.Trouble == string(k.kind) {
				names = append(names, p.name())
			}
		}
		if names = slices.Compact(names); len(names) > 0 {
			d.Remark("%s: %s", Shorten(names), k.text)
		}
	}
	for _, n := range o.NotDecoded {
		d.Remark("%s", n.text())
	}
	return &d
}

func quoted2(s string) string {
	if s == "" {
		return ""
	}
	return ui.Quote(s)
}

// name returns the partition in a remark: topic/partition.
func (o *OffsetRow) name() string {
	return ui.Quote(strings.TrimPrefix(o.Topic+"/"+o.Partition, "/"))
}

func (n *NotDecoded) text() string {
	name := ui.Quote(n.Operator) + "/" + ui.Quote(n.State)
	if n.State == "" {
		return fmt.Sprintf("coordinator of %s not decoded: %s", ui.Quote(n.Operator), ui.Printable(n.Why))
	}
	return fmt.Sprintf("%s, subtask %d: %s not decoded: %s", name, *n.Subtask, ui.Plural(n.Elements, "element"), ui.Printable(n.Why))
}

// Lines implements [Lines].
func (o *Offsets) Lines() iter.Seq[any] { return each(o.Partitions) }

// offsetFields are the columns of the rows.
var offsetFields = fields[OffsetRow]{
	textField("operator", func(p *OffsetRow) string { return p.Operator }),
	textField("id", func(p *OffsetRow) string { return p.ID }),
	textField("connector", func(p *OffsetRow) string { return p.Connector }),
	textField("cluster", func(p *OffsetRow) string { return p.Cluster }),
	textField("topic", func(p *OffsetRow) string { return p.Topic }),
	textField("partition", func(p *OffsetRow) string { return p.Partition }),
	textField("at", func(p *OffsetRow) string { return p.At }),
	maybeField("offset", func(p *OffsetRow) *int64 { return p.Offset }),
	textField("text", func(p *OffsetRow) string { return p.Text }),
	maybeField("stopping_offset", func(p *OffsetRow) *int64 { return p.Stop }),
	maybeField("subtask", func(p *OffsetRow) *int32 { return p.Subtask }),
	textField("enumerator", func(p *OffsetRow) string { return p.Enumerator }),
	textField("trouble", func(p *OffsetRow) string { return p.Trouble }),
	maybeField("since", func(p *OffsetRow) *int64 { return p.Since }),
}

// Header implements [Rows].
func (o *Offsets) Header() []string { return offsetFields.header() }

// Rows implements [Rows].
func (o *Offsets) Rows() iter.Seq[[]string] { return offsetFields.texts(o.Partitions) }

// Columns implements [Table].
func (o *Offsets) Columns() []columns.Column { return offsetFields.columns() }

// Cells implements [Table].
func (o *Offsets) Cells() iter.Seq[[]value.Value] { return offsetFields.cells(o.Partitions) }

func optional(n *int64) string {
	if n == nil {
		return ""
	}
	return strconv.FormatInt(*n, 10)
}
