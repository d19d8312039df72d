package command

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/reader"
)

// What a completion may cost. A shell waits for it, so what would take longer is
// not completed.
const (
	completeTime     = 2 * time.Second
	completeMetadata = 64 << 20 // bytes of a _metadata
	completeMost     = 200      // words offered
	completeNodes    = 500_000  // of the model
	completeSPs      = 2        // snapshots on the command line that are opened
)

// registerCompletions lets a shell complete the values of flags: words of a closed
// set, and what the snapshots on the command line hold. It is called only for
// completion requests: cobra keeps what is registered as long as the process lives.
func registerCompletions(env *Env, cmd *cobra.Command) {
	register := func(f *pflag.Flag) {
		if complete := completionOf(env, cmd, f); complete != nil {
			// The only error is a flag that does not exist, or is registered twice.
			_ = cmd.RegisterFlagCompletionFunc(f.Name, complete)
		}
	}
	cmd.LocalNonPersistentFlags().VisitAll(register)
	cmd.PersistentFlags().VisitAll(register)
	for _, c := range cmd.Commands() {
		registerCompletions(env, c)
	}
}

const noFiles = cobra.ShellCompDirectiveNoFileComp

// completionOf returns what completes a flag; nil where files do.
func completionOf(env *Env, cmd *cobra.Command, f *pflag.Flag) cobra.CompletionFunc {
	value, _ := pflag.UnquoteUsage(f)
	if words := strings.Split(value, "|"); len(words) > 1 {
		return func(of *cobra.Command, _ []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
			if f.Name == "output" {
				return outputsOf(of), noFiles
			}
			return words, noFiles
		}
	}
	switch f.Name {
	case "ignore":
		return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			before := typed[:strings.LastIndexByte(typed, ',')+1] // several with commas
			var all []string
			for _, kind := range diffKinds() {
				all = append(all, before+kind)
			}
			return offer(all, typed), noFiles | cobra.ShellCompDirectiveNoSpace
		}
	case "flink":
		return func(_ *cobra.Command, _ []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
			var all []string
			for _, r := range flink.Releases() {
				all = append(all, r.String())
			}
			return offer(all, typed), noFiles | cobra.ShellCompDirectiveKeepOrder
		}
	case "operator":
		return env.completeFrom(cmd, operatorNames, "")
	case "state":
		return env.completeFrom(cmd, stateNames, "")
	case "uid":
		return env.completeFrom(cmd, operatorNames, "=")
	case "state-name":
		return env.completeFrom(cmd, stateNames, "=")
	}
	return nil
}

// offer returns the words that begin with what is typed, not too many, and none
// that would disturb a terminal or the protocol with the shell.
func offer(words []string, typed string) []cobra.Completion {
	var all []cobra.Completion
	for _, w := range words {
		if w != "" && strings.HasPrefix(w, typed) && ui.Printable(w) == w && len(all) < completeMost {
			all = append(all, w)
		}
	}
	return all
}

// completeFrom completes with names from the snapshots on the command line, each
// followed by after. Nothing is printed where they cannot be read.
func (e *Env) completeFrom(cmd *cobra.Command, names namesOf, after string) cobra.CompletionFunc {
	directive := noFiles
	if after != "" {
		directive |= cobra.ShellCompDirectiveNoSpace
	}
	return func(_ *cobra.Command, args []string, typed string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if from := cmd.Flags().Lookup("from"); from != nil && from.Value.Type() == "string" && from.Changed {
			args = []string{from.Value.String()} // merge takes operators of B
		}
		picked, _ := cmd.Flags().GetStringArray("operator") // "" where it has no such flag
		ctx, cancel := context.WithTimeout(cmd.Context(), completeTime)
		defer cancel()
		found := make(chan []string, 1)
		go func() { // opening may hang where a file system does
			var all []string
			if e.prepareCompletion(ctx) == nil {
				for _, location := range args[:min(len(args), completeSPs)] {
					all = append(all, e.namesIn(ctx, location, names, picked)...)
				}
			}
			found <- all
		}()
		select {
		case all := <-found:
			slices.Sort(all)
			all = slices.Compact(all)
			for i := range all {
				all[i] += after
			}
			return offer(all, typed), directive
		case <-ctx.Done():
			return nil, directive
		}
	}
}

// prepareCompletion is prepare, which cobra does not call for completions, without
// reading standard input: that is the user's terminal.
func (e *Env) prepareCompletion(ctx context.Context) error {
	if e.common.names == "-" {
		e.common.names = ""
	}
	return e.prepare(ctx)
}

// namesOf returns names in a snapshot, of the operators that were picked before on the
// command line if any were.
type namesOf func(ctx context.Context, e *Env, snap *reader.Snapshot, picked []string) []string

func (e *Env) namesIn(ctx context.Context, location string, names namesOf, picked []string) []string {
	if location == "-" || !e.cheap(ctx, location) {
		return nil
	}
	o := e.readerOptions()
	o.Limits = format.Limits{Nodes: completeNodes, Manifest: completeMetadata}
	snap, err := reader.Open(ctx, location, &o)
	if err != nil {
		return nil
	}
	defer snap.Close() //nolint:errcheck // it was only read
	return names(ctx, e, snap, picked)
}

// cheap reports whether a location is a snapshot that is opened quickly: not a pipe,
// which would be emptied, and not a very large _metadata.
func (e *Env) cheap(ctx context.Context, location string) bool {
	store, key, err := e.Stores.Resolve(ctx, location)
	if err != nil {
		return false
	}
	key = objpath.Clean(key)
	for _, name := range []string{objpath.Join(key, reader.MetadataName), key} {
		info, err := store.Stat(ctx, name)
		if err != nil {
			continue
		}
		return info.Size > 0 && (info.Size <= completeMetadata || strings.HasSuffix(name, reader.Extension))
	}
	return !strings.ContainsAny(location, `/\`) // a bare name: reader.Open adds the extension
}

func operatorNames(_ context.Context, e *Env, snap *reader.Snapshot, _ []string) []string {
	var all []string
	for _, op := range snap.Operators {
		name := e.run.Learned(op.ID.String())
		for _, stored := range []string{op.Name.String(), op.UID.String()} {
			if stored != "" {
				name = stored
			}
		}
		if name == "" {
			name = op.ID.String()
		}
		all = append(all, name)
	}
	return all
}

// stateNames returns the names of states. The names of keyed states are in the streams of
// a subtask, of which those of the first one that has any are read.
func stateNames(ctx context.Context, e *Env, snap *reader.Snapshot, picked []string) []string {
	p := pick{operators: picked}
	ops, err := p.pickOperators(e, snap.Operators)
	if err != nil {
		ops = snap.Operators
	}
	var all []string
	for _, op := range ops {
		if i := slices.IndexFunc(op.Subtasks, func(sub *format.Subtask) bool { return sub.ManagedKeyed != nil }); i >= 0 {
			one := *op
			one.Subtasks = op.Subtasks[i : i+1]
			schema, _, err := snap.Schema(ctx, &one)
			for k := range schema.States {
				if err == nil && schema.States[k].Keyed != "" {
					all = append(all, schema.States[k].Name.String())
				}
			}
		}
		for _, sub := range op.Subtasks {
			if sub.Managed == nil {
				continue
			}
			for i := range sub.Managed.States {
				all = append(all, sub.Managed.States[i].Name.String())
			}
		}
	}
	return all
}
