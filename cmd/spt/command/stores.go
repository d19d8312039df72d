package command

import (
	"context"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/internal/shell"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

// driver is a storage driver: the schemes it opens, and how it is made from the
// flags and the environment.
type driver struct {
	schemes []string
	open    func(*Env) (route.Scheme, error)
	flags   func(*Env, *pflag.FlagSet) // adds its flags to the common flags of all commands; may be nil
}

// drivers returns the storage drivers of the program, each in a file stores_*.go.
func drivers() []driver {
	return slices.Concat(s3Drivers(), []driver{gcsDriver(), azureDriver(), hdfsDriver(), webDriver()})
}

// storeFlags marks the flags that say how stores are reached.
const storeFlags = "stores"

// addStoreFlags adds the flags of the drivers, marked with storeFlags.
func (e *Env) addStoreFlags(to *pflag.FlagSet) {
	fs := pflag.NewFlagSet("", pflag.ContinueOnError)
	fs.StringVar(&e.common.flinkConf, "flink-conf", "", "take endpoints and credentials from Flink's configuration: the `FILE` config.yaml or flink-conf.yaml, or its directory (also FLINK_CONF_DIR)")
	for _, d := range drivers() {
		if d.flags != nil {
			d.flags(e, fs)
		}
	}
	fs.VisitAll(func(f *pflag.Flag) {
		f.Annotations = map[string][]string{storeFlags: {}}
		to.AddFlag(f)
	})
}

// storeArguments returns the flags of the command line that say how stores are
// reached, as a command repeats them.
func storeArguments(given *pflag.FlagSet) string {
	var all []string
	given.Visit(func(f *pflag.Flag) {
		if _, ok := f.Annotations[storeFlags]; !ok {
			return
		}
		arg := "--" + f.Name
		if f.Value.Type() != "bool" {
			arg += " " + shell.Quote(f.Value.String())
		}
		all = append(all, arg)
	})
	return strings.Join(all, " ")
}

// newStores returns the stores of the command line: local files, and what the
// drivers open. A driver is made when the first of its URIs is opened, after the flags
// were read.
func newStores(env *Env) storage.Resolver {
	r := route.New(local.New())
	for _, d := range drivers() {
		open := sync.OnceValues(func() (route.Scheme, error) { return d.open(env) })
		for _, scheme := range d.schemes {
			r.Add(scheme, func(ctx context.Context, uri string) (storage.Storage, string, error) {
				resolve, err := open()
				if err != nil {
					return nil, "", err
				}
				return resolve(ctx, uri)
			})
		}
	}
	return r
}

// warnConditions says before something is written to out that its store does not
// create objects atomically.
func (e *Env) warnConditions(ctx context.Context, out string) error {
	if out == "" {
		return nil
	}
	store, name, err := e.Stores.Resolve(ctx, out)
	if err != nil {
		return err
	}
	if c, ok := store.(storage.ConditionReporter); !ok || c.AtomicConditions(name) {
		return nil
	}
	return e.remark("what exists at %s is looked up before each write, not by the service: nothing else may write there meanwhile", ui.Quote(out))
}

// retryLines is the time between two lines on stderr about requests of one kind.
const retryLines = 5 * time.Second

// retried returns a function that says on stderr that a request is made again. While a
// service fails, many do at once: it says so for the first, and then from time to time.
func (e *Env) retried() func(storage.Retry) {
	var mu sync.Mutex
	last := map[string]time.Time{} // by operation
	return func(r storage.Retry) {
		mu.Lock()
		defer mu.Unlock()
		now := e.Now()
		if before, ok := last[r.Op]; ok && now.Sub(before) < retryLines {
			return
		}
		last[r.Op] = now
		_ = e.remark("trying again after attempt %d: %v", r.Attempt, r.Err) // the command goes on
	}
}
