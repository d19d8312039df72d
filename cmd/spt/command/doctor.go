package command

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/storage"
)

type doctorOptions struct{ write bool }

func (o *doctorOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.write, "write", false, "also create a small object under a temporary name there, and delete it")
}

func newDoctorCommand(env *Env) *cobra.Command {
	var o doctorOptions
	cmd := &cobra.Command{
		Use:   "doctor ADDRESS",
		Short: "Check how a store is reached, and what may be done there",
		Long: `Reports how an address is reached: the service, its endpoint and region, where
the credentials were found and what they belong to (never the secret), and how
far the clocks are apart. It tries to list and to read there, and reports what
failed, why, and what to do.

ADDRESS is a snapshot, or a directory or bucket that has some. Nothing is
written without --write. With it, a small object is created next to what is
there, under a name that only spt uses (.spt-tmp-…), and only if it is absent;
created again, which must be refused; read back; and deleted.`,
		Example: `  spt doctor s3://flink/savepoints
  spt doctor s3://flink/savepoints --write --profile prod`,
		Args: exactly(1, "an address"),
		RunE: func(cmd *cobra.Command, args []string) error { return runDoctor(cmd.Context(), o, env, args[0]) },
	}
	o.addFlags(cmd.Flags())
	return cmd
}

func runDoctor(ctx context.Context, o doctorOptions, env *Env, address string) error {
	store, name, err := env.Stores.Resolve(ctx, address)
	if err != nil {
		return err
	}
	e := &examination{ctx: ctx, env: env, store: store, r: report.NewDoctor(address, name)}
	if e.reach(name) {
		dir := e.read(name)
		if o.write {
			e.write(dir)
		} else {
			e.r.NotTried("create", "only with --write")
		}
	}
	if err := ctx.Err(); err != nil {
		return err
	}
	if err := env.answer(e.r); err != nil {
		return err
	}
	if !e.r.Works {
		return &findings{}
	}
	return nil
}

// examination tries what a store can do.
type examination struct {
	ctx   context.Context
	env   *Env
	store storage.Storage
	r     *report.Doctor
}

// failed reports a check that failed.
func (e *examination) failed(check string, err error) {
	e.r.Failed(check, e.env.run.Hide(err.Error()), e.env.hintOf(err))
}

// reach asks for an answer of the service.
func (e *examination) reach(name string) bool {
	by, ok := e.store.(storage.AccessReporter)
	if !ok {
		return true
	}
	access, err := by.Access(e.ctx, name)
	e.r.Accessed(access)
	if err != nil {
		e.failed("reach", err)
		return false
	}
	e.r.OK("reach", "it answers")
	return true
}

// most is the number of names that are listed.
const most = 1000

// read reads the object, or else the first one in the directory of that name. It
// returns the directory.
func (e *examination) read(name string) string {
	dir, object, failed := strings.TrimSuffix(name, "/")+"/", "", false
	if !strings.HasSuffix(name, "/") {
		switch err := e.readByte(name); {
		case err == nil:
			dir, object = objpath.Dir(name), name
			if dir != "" && !strings.HasSuffix(dir, "/") {
				dir += "/"
			}
		case !errors.Is(err, storage.ErrNotExist):
			e.failed("read", err)
			failed = true
		}
	}
	n, first, listed := 0, "", true
	for info, err := range e.store.List(e.ctx, dir, "") {
		if err != nil {
			e.failed("list", err)
			listed = false
			break
		}
		if n++; first == "" {
			first = info.Name
		}
		if n == most {
			break
		}
	}
	switch {
	case !listed:
	case n == most:
		e.r.OK("list", "%s objects or more", ui.Count(most))
	case n > 0:
		e.r.OK("list", "%s", ui.Plural(int64(n), "object"))
	default:
		e.r.OK("list", "no object has this name, or is in a directory of this name")
	}
	switch {
	case failed:
	case object != "":
		e.r.OK("read", "%s", object)
	case first == "":
		e.r.NotTried("read", "no object was found")
	default:
		if err := e.readByte(first); err != nil {
			e.failed("read", err)
		} else {
			e.r.OK("read", "%s", first)
		}
	}
	return dir
}

func (e *examination) readByte(name string) error {
	body, _, err := e.store.ReadRange(e.ctx, name, 0, 1, "")
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, body)
	return errors.Join(err, body.Close())
}

// write creates an object, and deletes it.
func (e *examination) write(dir string) {
	name := tempname.New(dir + "doctor")
	const first, second = "written by spt doctor", "a second object of spt doctor"
	err := e.create(name, first)
	if err != nil {
		e.failed("create", err)
		if errors.Is(err, storage.ErrUnavailable) || e.ctx.Err() != nil { // it may have been created
			e.remove(name)
		}
		return
	}
	e.r.OK("create", "%s", name)
	defer e.remove(name)
	atomic := true
	if c, ok := e.store.(storage.ConditionReporter); ok {
		atomic = c.AtomicConditions(name)
	}
	switch err := e.create(name, second); {
	case err == nil:
		e.r.Failed("refuse", "a second object of the same name replaced the first", "the service ignores conditions: two programs that write there can overwrite each other's snapshots")
	case !errors.Is(err, storage.ErrExist):
		e.failed("refuse", err)
	case atomic:
		e.r.OK("refuse", "refused, as it must be")
	default:
		e.r.OK("refuse", "refused, but not by the service: two programs that write at the same time can overwrite each other's snapshots")
	}
	body, _, err := e.store.ReadRange(e.ctx, name, 0, -1, "")
	if err != nil {
		e.failed("read_back", err)
		return
	}
	text, err := io.ReadAll(body)
	switch err = errors.Join(err, body.Close()); {
	case err != nil:
		e.failed("read_back", err)
	case string(text) != first:
		e.r.Failed("read_back", "the object has another content", "")
	default:
		e.r.OK("read_back", "%s", ui.Plural(int64(len(text)), "byte"))
	}
}

func (e *examination) create(name, text string) error {
	w, err := e.store.Create(e.ctx, name, storage.CreateOptions{IfAbsent: true, Size: int64(len(text))})
	if err != nil {
		return err
	}
	_, err = io.WriteString(w, text)
	if err == nil {
		_, err = w.Commit(e.ctx)
	}
	return errors.Join(err, w.Abort(e.ctx))
}

// remove deletes the object, also after the context has ended.
func (e *examination) remove(name string) {
	ctx := context.WithoutCancel(e.ctx)
	if err := e.store.Delete(ctx, name); err != nil {
		e.failed("delete", err)
		return
	}
	if _, err := e.store.Stat(ctx, name); !errors.Is(err, storage.ErrNotExist) {
		e.r.Failed("delete", name+" is still there", "delete it")
		return
	}
	e.r.OK("delete", "%s is gone", name)
}
