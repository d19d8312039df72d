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

func main() { os.Exit(run(command.OSEnv())) }

// run runs the command line of the process.
func run(env *command.Env) int {
	signal.Ignore(syscall.SIGPIPE) // a reader that has gone is an error of writing, and a quiet one
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	context.AfterFunc(ctx, stop) // the first signal asks to stop, the next one ends the process
	return command.Main(ctx, os.Args[1:], env)
}
