package report

import (
	"cmp"
	"fmt"
	"iter"
	"strconv"
	"strings"

	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/transform"
)

// Pending is the answer of pending.
type Pending struct {
	Commits    []PendingRow `json:"commits" jsonschema:"description=what a restore would commit\\, abort or go on writing"`
	NotDecoded []NotDecoded `json:"not_decoded,omitempty"`
}

// PendingRow is a transaction, or files.
type PendingRow struct {
	Operator        string   `json:"operator"`
	ID              string   `json:"id"`
	State           string   `json:"state"`
	Subtask         int32    `json:"subtask"`
	Index           int64    `json:"index" jsonschema:"description=of the element in the subtask"`
	Connector       string   `json:"connector"`
	Class           string   `json:"class" jsonschema:"description=of what is stored"`
	Restore         string   `json:"restore" jsonschema:"enum=commit,enum=abort,enum=resume,description=what a restore does"`
	Checkpoint      *int64   `json:"checkpoint,omitempty"`
	Prefix          string   `json:"prefix,omitempty" jsonschema:"description=of transactional ids: open transactions with it are aborted"`
	TransactionalID string   `json:"transactional_id,omitempty"`
	ProducerID      *int64   `json:"producer_id,omitempty"`
	Epoch           *int64   `json:"epoch,omitempty"`
	Topic           string   `json:"topic,omitempty"`
	Table           string   `json:"table,omitempty"`
	Job             string   `json:"job,omitempty" jsonschema:"description=that wrote to the table"`
	Files           []string `json:"files,omitempty"`
}

// NewPending returns commits as they are printed.
func (r *Run) NewPending(all *transform.PendingReport) *Pending {
	p := &Pending{Commits: []PendingRow{}}
	for _, s := range all.Sinks {
		op := opLabel{r.Label(s.Operator), s.Operator.ID.String()}
		for _, c := range s.Commits {
			row := PendingRow{Operator: op.label, ID: op.id, State: r.Text(c.State), Subtask: c.Subtask, Index: c.Index, Connector: c.Connector, Class: c.Class, Restore: string(c.Fate),
				Checkpoint: c.Checkpoint, Prefix: r.Text(c.Prefix), TransactionalID: r.Text(c.TransactionalID), ProducerID: c.ProducerID, Epoch: c.Epoch, Topic: r.Text(c.Topic), Table: r.Text(c.Table), Job: r.Text(c.Job)}
			for _, f := range c.Files {
				row.Files = append(row.Files, r.Text(f))
			}
			p.Commits = append(p.Commits, row)
		}
		for _, u := range s.Undecoded {
			p.NotDecoded = append(p.NotDecoded, r.notDecoded(op, u))
		}
	}
	return p
}

// what is the transaction or the files in a table.
func (p *PendingRow) what() string {
	var all []string
	add := func(name, text string) {
		if text != "" {
			all = append(all, strings.TrimPrefix(name+" "+ui.Quote(text), " "))
		}
	}
	add("", p.TransactionalID)
	add("prefix", p.Prefix)
	if p.ProducerID != nil {
		all = append(all, fmt.Sprintf("producer %d", *p.ProducerID))
	}
	if p.Epoch != nil {
		all = append(all, fmt.Sprintf("epoch %d", *p.Epoch))
	}
	add("topic", p.Topic)
	add("table", p.Table)
	if len(p.Files) > 0 {
		all = append(all, ShortenQuoted(p.Files))
	}
	return cmp.Or(strings.Join(all, ", "), p.Class)
}

// Document implements [Report].
func (p *Pending) Document() *ui.Document {
	var d ui.Document
	if len(p.Commits)+len(p.NotDecoded) == 0 {
		d.Line("nothing pending: no known sink has a transaction or a file that a restore would commit or abort")
		return &d
	}
	t := ui.NewTable(ui.Column{Header: "SINK", Shrink: 1}, ui.Column{Header: "RESTORE"}, ui.Column{Header: "CONNECTOR"}, ui.Column{Header: "CHECKPOINT", Align: ui.Right},
		ui.Column{Header: "TRANSACTION / FILES", Shrink: 2, Wrap: true}, ui.Column{Header: "SUBTASK", Align: ui.Right})
	commits := 0
	for i := range p.Commits {
		c := &p.Commits[i]
		checkpoint := ""
		if c.Checkpoint != nil {
			checkpoint = strconv.FormatInt(*c.Checkpoint, 10)
		}
		if c.Restore == string(connector.FateCommit) {
			commits++
		}
		t.Row(ui.Quote(c.Operator), c.Restore, c.Connector, checkpoint, c.what(), strconv.Itoa(int(c.Subtask)))
	}
	d.Add(t)
	if commits > 0 {
		d.Remark("%s to commit: a restore without this state loses what they hold, and so does one after the transactions have timed out", ui.Plural(int64(commits), "transaction or file group"))
	}
	for _, n := range p.NotDecoded {
		d.Remark("%s", n.text())
	}
	return &d
}

// Lines implements [Lines].
func (p *Pending) Lines() iter.Seq[any] { return each(p.Commits) }

// Header implements [Rows].
func (p *Pending) Header() []string {
	return []string{"operator", "id", "state", "subtask", "index", "connector", "class", "restore", "checkpoint", "prefix", "transactional_id", "producer_id", "epoch", "topic", "table", "files"}
}

// Rows implements [Rows].
func (p *Pending) Rows() iter.Seq[[]string] {
	return rows(p.Commits, func(c *PendingRow) []string {
		return []string{c.Operator, c.ID, c.State, strconv.Itoa(int(c.Subtask)), strconv.FormatInt(c.Index, 10), c.Connector, c.Class, c.Restore, optional(c.Checkpoint), c.Prefix, c.TransactionalID,
			optional(c.ProducerID), optional(c.Epoch), c.Topic, c.Table, strings.Join(c.Files, "\n")}
	})
}
