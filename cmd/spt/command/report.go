package command

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/report/html"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
)

type reportOptions struct {
	output    string // in place of the common flag: a report has one format
	overwrite bool
	verify    bool
}

func (o *reportOptions) addFlags(fs *pflag.FlagSet) {
	fs.StringVarP(&o.output, "output", "o", "", "write the report to `FILE`; - is standard output")
	fs.BoolVar(&o.overwrite, "overwrite", false, "replace FILE if it is a report")
	fs.BoolVar(&o.verify, "verify", false, "read all state: check every byte as spt verify --deep does, compare the elements of union states, and count the entries of keyed state")
}

func (o *reportOptions) validate() error {
	if o.output == "" {
		return &usageError{"report needs -o FILE", "such as:  spt report SP -o report.html"}
	}
	return nil
}

func newReportCommand(env *Env) *cobra.Command {
	var o reportOptions
	cmd := &cobra.Command{
		Use:   "report SP...",
		Short: "Write a page of HTML about a snapshot: treemaps, findings, key groups",
		Long: `Writes one page of HTML about a snapshot, to open in a browser, send or print.
It has no other parts and loads nothing. It shows what the snapshot is and
whether it is sound; where the bytes are, by operator, state, subtask and file;
union states with what the next restores load; how keyed state is distributed
over key groups, and what each subtask would hold at another parallelism;
positions of sources; the types of states; and every finding with the command
that helps.

With several snapshots, the oldest first, it is about the last one, and also
shows how states grew over all of them.

It reads what spt verify, spt inspect, spt offsets and spt schema read: headers,
and the state of sources. Of a snapshot that is not on this machine it reads no
state. With --verify it reads all state, also to find how the entries of RocksDB
are distributed over key groups.

Long lists are cut, so that the page stays small. FILE becomes visible when it
is complete. The exit code is 1 if the snapshot is not sound or a part could not
be read; the page is written, and names it.`,
		Example: `  spt report sp-001 -o report.html
  spt report --verify sp-001 -o report.html --overwrite
  spt report chk-4100 chk-4150 chk-4211 -o - > growth.html`,
		Args: between(1, -1, "at least one snapshot"),
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := o.validate(); err != nil {
				return err
			}
			return runReport(cmd.Context(), o, env, args)
		},
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runReport(ctx context.Context, o reportOptions, env *Env, locations []string) error {
	target, err := o.target(ctx, env)
	if err != nil {
		return err
	}
	p, partial, err := o.read(ctx, env, locations)
	if err != nil {
		return err
	}
	var page bytes.Buffer
	if err := html.Write(&page, *p); err != nil {
		return err
	}
	if target == nil {
		_, err = env.dataOut().Write(page.Bytes())
	} else if err = target.write(ctx, page.Bytes()); err == nil {
		err = env.remark("wrote %s, %s", ui.Quote(o.output), ui.Bytes(int64(page.Len())))
	}
	switch {
	case err != nil:
		return err
	case len(partial) > 0:
		return &findings{fmt.Sprintf("%s of the snapshot not read: %v", ui.Plural(int64(len(partial)), "part"), partial.err())}
	case p.Verify.Errors > 0:
		return &findings{fmt.Sprintf("the snapshot is not sound: %s", ui.Plural(int64(p.Verify.Errors), "error"))}
	}
	return nil
}

// read collects what the page shows. partial is what could not be read of it.
func (o *reportOptions) read(ctx context.Context, env *Env, locations []string) (p *html.Page, partial several, err error) {
	location := locations[len(locations)-1]
	snap, err := env.open(ctx, location)
	if err != nil {
		return nil, nil, err
	}
	defer func() { err = errors.Join(err, snap.Close()) }()
	version, _ := build()
	p = &html.Page{Made: env.Now(), Version: version, Read: o.verify, Verify: report.NewVerify(location)}
	if err := (verifyOptions{deep: o.verify}).verify(ctx, env, location, snap, p.Verify); err != nil {
		return nil, nil, err
	}
	inspect := inspectOptions{deep: o.verify, groups: true, count: countOptions{on: o.verify}}
	if p.Inspect, partial, err = inspect.look(ctx, env, location, snap, nil); err != nil {
		return nil, nil, err
	}
	for _, err := range partial {
		p.NotRead = append(p.NotRead, env.run.Hide(err.Error()))
	}
	unread, err := o.readStates(ctx, env, snap, p)
	if err != nil {
		return nil, nil, err
	}
	if unread != nil {
		partial = append(partial, unread)
	}
	if len(locations) > 1 {
		p.Trend, err = o.readTrend(ctx, env, locations, snap)
	}
	return p, partial, err
}

// readStates reads the types of states and the positions of sources, unless the snapshot
// is not on this machine. unread is why the positions are not read.
func (o *reportOptions) readStates(ctx context.Context, env *Env, snap *reader.Snapshot, p *html.Page) (unread, err error) {
	if snap.Remote() && !o.verify {
		p.NotRead = append(p.NotRead, "Types of states and positions of sources: the snapshot is not on the machine that made this report; spt report --verify reads them.")
		return nil, nil
	}
	if p.Schema, _, err = new(schemaOptions).read(ctx, env, snap); err != nil {
		return nil, err
	}
	found, unread := offsetsOf(ctx, env, snap, nil)
	switch {
	case unread == nil:
		p.Offsets = env.run.NewOffsets(found, nil, "")
	case ctx.Err() != nil:
		return nil, unread
	default:
		p.NotRead = append(p.NotRead, "Positions of sources: "+env.run.Hide(unread.Error()))
	}
	return unread, nil
}

// readTrend reads how states grew. The last snapshot is open.
func (o *reportOptions) readTrend(ctx context.Context, env *Env, locations []string, last *reader.Snapshot) (*report.Trend, error) {
	t := &trend{env: env, none: map[string]error{}, Trend: env.run.NewTrend(report.TrendOptions{})}
	err := t.addAll(ctx, locations, func(ctx context.Context, path string) error {
		if path == locations[len(locations)-1] {
			return t.addSnapshot(ctx, path, last, func() error { return last.Unchanged(ctx) })
		}
		return t.add(ctx, path)
	})
	if err != nil {
		return nil, err
	}
	if len(t.Snapshots) < 2 {
		return nil, t.tooFew(len(t.Snapshots))
	}
	t.Finish()
	return t.Trend, nil
}

// reportTarget is the file that a report is written to.
type reportTarget struct {
	store storage.Storage
	name  string
	opts  storage.CreateOptions
}

// target finds the file that the report is written to; nil is standard output. A file that
// is not a report is not replaced.
func (o *reportOptions) target(ctx context.Context, env *Env) (*reportTarget, error) {
	if o.output == "-" {
		return nil, nil
	}
	store, name, err := env.Stores.Resolve(ctx, o.output)
	if err != nil {
		return nil, err
	}
	t := &reportTarget{store: store, name: name, opts: storage.CreateOptions{IfAbsent: true}}
	info, err := store.Stat(ctx, name)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return t, nil
	case err != nil:
		return nil, err
	case !o.overwrite:
		return nil, &usageError{ui.Quote(o.output) + " exists", "to replace it if it is a report, add --overwrite"}
	}
	body, _, err := store.ReadRange(ctx, name, 0, int64(len(html.Head)), info.Version)
	if err != nil {
		return nil, err
	}
	head, err := io.ReadAll(body)
	if err := errors.Join(err, body.Close()); err != nil {
		return nil, err
	}
	if string(head) != html.Head {
		return nil, usagef("%s exists and is not a report: it is not replaced", ui.Quote(o.output))
	}
	t.opts = storage.CreateOptions{Replace: info.Version}
	return t, nil
}

// write writes the file, all of it or nothing.
func (t *reportTarget) write(ctx context.Context, page []byte) (err error) {
	t.opts.Size = int64(len(page))
	w, err := t.store.Create(ctx, t.name, t.opts)
	if err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, w.Abort(ctx))
		}
	}()
	if _, err := w.Write(page); err != nil {
		return err
	}
	_, err = w.Commit(ctx)
	return err
}
