package command

import (
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// offsetFlags are the flags of set that move sources.
type offsetFlags struct {
	offset, topics, drop []string
	from, all            string

	changes []transform.OffsetChange // of --offset
}

func (o *offsetFlags) addFlags(fs *pflag.FlagSet) {
	fs.StringArrayVar(&o.offset, "offset", nil, "`PARTITION=OFFSET`, such as orders:3=15000: read a partition from an offset, or from earliest, latest or committed (repeatable)")
	fs.StringVar(&o.from, "offsets-from", "", "read new offsets from the CSV `FILE`, with the columns topic, partition and offset, as spt offsets prints it")
	fs.StringVar(&o.all, "offsets", "", "`earliest|latest|committed`: read all partitions of the topics named by --topic from there")
	fs.StringArrayVar(&o.topics, "topic", nil, "with --offsets: all partitions of `TOPIC` (repeatable)")
	fs.StringArrayVar(&o.drop, "drop-topic", nil, "remove the partitions of `TOPIC` from the source, its coordinator included (repeatable)")
}

// offsetWords are the positions that are not offsets.
var offsetWords = map[string]connector.At{"earliest": connector.AtEarliest, "latest": connector.AtLatest, "committed": connector.AtCommitted}

// given reports whether any of the flags is used.
func (o *offsetFlags) given() bool {
	return len(o.offset)+len(o.topics)+len(o.drop) > 0 || o.from != "" || o.all != ""
}

func (o *offsetFlags) validate() error {
	_, known := offsetWords[o.all]
	switch {
	case o.all != "" && !known:
		return usagef("--offsets %s: earliest, latest or committed", ui.Quote(o.all))
	case (o.all != "") != (len(o.topics) > 0):
		return usagef("--offsets and --topic go together")
	}
	o.changes = nil
	for _, text := range o.offset {
		c, err := parseOffset(text)
		if err != nil {
			return err
		}
		o.changes = append(o.changes, c)
	}
	return nil
}

// parseOffset reads TOPIC:P=N.
func parseOffset(text string) (c transform.OffsetChange, err error) {
	wrong := func(what string) error {
		return &usageError{fmt.Sprintf("--offset %s: %s", ui.Quote(text), what), "such as orders:3=15000 or orders:3=earliest"}
	}
	at := strings.LastIndex(text, "=")
	if at < 0 {
		return c, wrong("expected TOPIC:P=N")
	}
	colon := strings.LastIndex(text[:at], ":")
	if colon <= 0 {
		return c, wrong("expected TOPIC:P=N")
	}
	c.Topic, c.Partition = text[:colon], text[colon+1:at]
	if n, err := strconv.ParseInt(c.Partition, 10, 32); err != nil || n < 0 || strconv.FormatInt(n, 10) != c.Partition {
		return c, wrong(ui.Quote(c.Partition) + " is not the number of a partition")
	}
	if err := setPosition(&c, text[at+1:]); err != nil {
		return c, wrong(err.Error())
	}
	return c, nil
}

// setPosition reads an offset or a word.
func setPosition(c *transform.OffsetChange, text string) error {
	if at, ok := offsetWords[text]; ok {
		c.At = at
		return nil
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 {
		return fmt.Errorf("%s is not an offset, which is 0 or more, nor earliest, latest or committed", ui.Quote(text))
	}
	c.At, c.Offset = connector.AtOffset, n
	return nil
}

// read returns the changes of all flags. A change of one partition counts more than a
// change of its whole topic.
func (o *offsetFlags) read(ctx context.Context, env *Env) ([]transform.OffsetChange, error) {
	var all []transform.OffsetChange
	for _, topic := range o.topics {
		all = append(all, transform.OffsetChange{Topic: topic, At: offsetWords[o.all]})
	}
	if o.from != "" {
		text, err := env.readSide(ctx, "--offsets-from", o.from)
		if err != nil {
			return nil, err
		}
		changes, err := parseOffsets(o.from, text)
		if err != nil {
			return nil, err
		}
		all = append(all, changes...)
	}
	return append(all, o.changes...), nil
}

// parseOffsets reads a CSV file with a header. Columns: topic, partition, and offset or
// at, which spt offsets writes where a position is not an offset. All lines that are
// wrong are in the error.
func parseOffsets(name string, text []byte) (all []transform.OffsetChange, err error) {
	c := csv.NewReader(strings.NewReader(string(text)))
	header, err := c.Read()
	if err != nil {
		return nil, usagef("%s: it has no header: expected the columns topic, partition and offset", ui.Quote(name))
	}
	column := func(name string) int {
		return slices.IndexFunc(header, func(s string) bool { return strings.EqualFold(strings.TrimSpace(s), name) })
	}
	topic, partition, offset, at := column("topic"), column("partition"), column("offset"), column("at")
	if topic < 0 || partition < 0 || offset < 0 {
		return nil, usagef("%s:1: expected the columns topic, partition and offset, found %s", ui.Quote(name), report.ShortenQuoted(header))
	}
	var wrong []string
	for {
		row, err := c.Read()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			wrong = append(wrong, fmt.Sprintf("%s: %v", ui.Quote(name), err))
			break
		}
		line, _ := c.FieldPos(0)
		change := transform.OffsetChange{Topic: row[topic], Partition: strings.TrimSpace(row[partition])}
		text := strings.TrimSpace(row[offset])
		if text == "" && at >= 0 {
			text = row[at]
		}
		switch err := setPosition(&change, text); {
		case change.Topic == "" || change.Partition == "":
			wrong = append(wrong, fmt.Sprintf("%s:%d: a topic and a partition are needed", ui.Quote(name), line))
		case err != nil:
			wrong = append(wrong, fmt.Sprintf("%s:%d: %v", ui.Quote(name), line, err))
		default:
			all = append(all, change)
		}
	}
	switch {
	case len(wrong) > 0:
		return nil, usagef("%s", report.ShortenLong(wrong))
	case len(all) == 0:
		return nil, usagef("%s: it has no row", ui.Quote(name))
	}
	return all, nil
}

// apply moves the sources of a snapshot.
func (o *offsetFlags) apply(ctx context.Context, env *Env, snap *reader.Snapshot, operators format.Selector) (*format.Savepoint, *report.Edit, error) {
	changes, err := o.read(ctx, env)
	if err != nil {
		return nil, nil, err
	}
	v, done, err := transform.SetOffsets(ctx, snap.View(), transform.SetOffsetsOptions{Operators: operators, Set: changes, DropTopics: o.drop})
	var unknown *transform.PartitionError
	if errors.As(err, &unknown) {
		what := "topics"
		if unknown.Partition != "" {
			what = "partitions"
		}
		hint := "no known source has a position; spt offsets names what is not decoded"
		if len(unknown.Available) > 0 {
			hint = "available " + what + ": " + report.ShortenQuoted(env.texts(unknown.Available))
		}
		return nil, nil, &usageError{env.run.Hide(err.Error()), hint}
	}
	if err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	r.SetOffsets(done)
	return v.Savepoint, r, nil
}

// texts returns names as they are shown.
func (e *Env) texts(names []string) []string {
	out := make([]string, len(names))
	for i, name := range names {
		out[i] = e.run.Text(name)
	}
	return out
}
