package command

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// EditResult is the answer of commands that change something in a snapshot:
// what they change, and how the result is written.
type EditResult struct {
	Changes []EditChange `json:"changes"`
	Remarks []string     `json:"remarks,omitempty"`
	Steps   []ApplyStep  `json:"steps,omitempty" jsonschema:"description=of apply: each with its changes"`
	skipped []string     // what was asked for and left as it is: the result is partial
	// Sizes of _metadata, where IN and OUT have one.
	MetadataBefore int64        `json:"metadata_bytes_before,omitempty"`
	MetadataAfter  int64        `json:"metadata_bytes_after,omitempty"`
	Write          *WriteResult `json:"write"`

	partial string // what was not done, or is wrong with the result; exit 1
}

// EditChange is one change.
type EditChange struct {
	What      string `json:"what" jsonschema:"description=renamed, dropped, set, filtered, relocated"`
	Operator  string `json:"operator,omitempty"`
	ID        string `json:"id,omitempty"`
	State     string `json:"state,omitempty"`
	Kind      string `json:"kind,omitempty" jsonschema:"description=of a filter: list, union or broadcast; of a broadcast state the entries of all copies count as elements"`
	WholeMaps bool   `json:"whole_maps,omitempty" jsonschema:"description=of a filter: maps of this broadcast state are not decoded, so they stayed or went as a whole and count as one element each"`
	From      string `json:"from,omitempty"`
	To        string `json:"to,omitempty"`
	Handles   int    `json:"handles,omitempty"`
	Elements  int64  `json:"elements,omitempty" jsonschema:"description=of the state; of a filter those that stay"`
	Bytes     int64  `json:"bytes,omitempty"`
	// Of a filter: what goes, beside Elements and Bytes, which stay.
	Dropped      *int64 `json:"dropped_elements,omitempty"`
	DroppedBytes int64  `json:"dropped_bytes,omitempty"`
}

// edit opens IN, lets change make a new model of it, and writes it or says what
// would be written. Every command that changes a snapshot runs through it.
func edit(ctx context.Context, env *Env, o writeOptions, args []string, change func(snap *reader.Snapshot) (*format.Savepoint, *EditResult, error)) (err error) {
	in, out := args[0], ""
	if len(args) == 2 {
		out = args[1]
	}
	snap, err := env.open(ctx, in)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	stop := env.reading("reading", nil)
	sp, r, err := change(snap)
	stop()
	if err != nil {
		return inContainer(err, snap)
	}
	return sealEdit(ctx, env, o, in, out, snap, sp, r)
}

// sealEdit writes what an edit made of a snapshot, or says what would be
// written.
func sealEdit(ctx context.Context, env *Env, o writeOptions, in, out string, snap *reader.Snapshot, sp *format.Savepoint, r *EditResult) error {
	if o.opts.Family == "" && out == "" {
		o.opts.Family = snap.Container.Family
	}
	plan, written, err := o.write(ctx, env, snap.With(sp), in, out)
	if err != nil {
		return inContainer(err, snap)
	}
	r.Write = written
	if snap.Container.Family == reader.Flink && plan.Family == reader.Flink {
		r.MetadataBefore, r.MetadataAfter = snap.Container.Size, plan.MetadataBytes
	}
	if err := renderEdit(env, r, o.dryRun); err != nil {
		return err
	}
	if r.partial != "" {
		return &findings{"the result is not complete: " + r.partial}
	}
	if !o.bare || len(written.Damaged) > 0 {
		if err := incomplete(plan, written); err != nil {
			return err
		}
	}
	if len(r.skipped) > 0 {
		return &findings{"left as it is: " + shorten(r.skipped)}
	}
	return nil
}

func renderEdit(env *Env, r *EditResult, dryRun bool) error {
	if done, err := renderValue(env, r); done {
		return err
	}
	var b strings.Builder
	if len(r.Steps) > 0 {
		stepsText(env, &b, r.Steps)
	} else {
		changesText(&b, env.term().Style(), r.Changes, r.Remarks)
	}
	if r.MetadataBefore > 0 {
		fmt.Fprintf(&b, "_metadata %s → %s\n", ui.Bytes(r.MetadataBefore), ui.Bytes(r.MetadataAfter))
	}
	if _, err := fmt.Fprint(env.Stdout, b.String()); err != nil {
		return err
	}
	return writeText(env, env.Stdout, r.Write, dryRun)
}

// changesText is changes, one a line, and what is to be said of them.
func changesText(b *strings.Builder, style ui.Style, changes []EditChange, remarks []string) {
	var moved []WriteRewrite
	for _, c := range changes {
		if c.What == "relocated" {
			moved = append(moved, WriteRewrite{c.From, c.To})
			continue
		}
		b.WriteString(changeText(c))
		b.WriteByte('\n')
	}
	rewrittenText(b, moved)
	if len(changes) == 0 {
		b.WriteString("nothing changes\n")
	}
	for _, s := range remarks {
		fmt.Fprintf(b, "%s %s\n", style.Look("!"), printableLines(s))
	}
}

// changeText is one change in a line: "renamed operator a: a → b".
func changeText(c EditChange) string {
	text := c.What
	if c.Operator != "" {
		text += " " + ui.Quote(c.Operator)
	}
	if c.State != "" {
		text += "/" + ui.Quote(c.State)
	}
	switch {
	case c.From != "" && c.To != "" && c.From != c.State:
		text += fmt.Sprintf(" %s → %s", ui.Quote(c.From), ui.Quote(c.To))
	case c.To != "":
		text += " → " + ui.Quote(c.To)
	case c.From != "":
		text += " " + ui.Quote(c.From)
	}
	if c.What == renamedOperator {
		text += ", " + c.ID
	}
	if c.Dropped != nil {
		what := "element"
		switch {
		case c.WholeMaps:
			what = "whole map"
		case c.Kind == format.ModeBroadcast.String():
			what = "entry"
		}
		return text + fmt.Sprintf(": %s kept (%s), %s dropped (%s)", ui.Plural(c.Elements, what), ui.Bytes(c.Bytes), ui.Count(*c.Dropped), ui.Bytes(c.DroppedBytes))
	}
	var more []string
	if c.Handles > 0 {
		more = append(more, ui.Plural(int64(c.Handles), "handle"))
	}
	if c.Elements > 0 {
		more = append(more, ui.Plural(c.Elements, "element"))
	}
	if c.Bytes > 0 {
		more = append(more, ui.Bytes(c.Bytes))
	}
	if len(more) > 0 {
		text += " (" + strings.Join(more, ", ") + ")"
	}
	return text
}
