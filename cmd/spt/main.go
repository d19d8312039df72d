// Command spt inspects, converts and checks savepoints and checkpoints of
// Apache Flink, and spt's own files, without a JVM and without a cluster.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/savepoint-tools/spt/cmd/spt/command"
)

func main() { os.Exit(run(context.Background(), command.OSEnv())) }

// run runs the command line of the process.
func run(ctx context.Context, env *command.Env) int {
	signal.Ignore(syscall.SIGPIPE)               // a reader that has gone is an error of writing, and a quiet one
	if signals := stopping(); len(signals) > 0 { // none would mean all
		stoppable, stop := signal.NotifyContext(ctx, signals...)
		defer stop()
		context.AfterFunc(stoppable, stop) // the first signal asks to stop, the next one ends the process
		ctx = stoppable
	}
	return command.Main(ctx, os.Args[1:], env)
}

// stopping is the signals that ask to stop, without those that the parent
// process wants ignored, as nohup does.
func stopping() []os.Signal {
	var all []os.Signal
	for _, s := range []os.Signal{os.Interrupt, syscall.SIGTERM, syscall.SIGHUP} {
		if !signal.Ignored(s) {
			all = append(all, s)
		}
	}
	return all
}
