//go:build unix

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/savepoint-tools/spt/cmd/spt/command"
	"github.com/savepoint-tools/spt/internal/fault"
)

const signalEnv = "SPT_TEST_SIGNAL" // "CALL SIGNAL"

// signalled is spt, which sends itself a signal before one of the system calls
// by which it changes the disk, and goes on when that is known.
func signalled() {
	var at int64
	var sig syscall.Signal
	if _, err := fmt.Sscanf(os.Getenv(signalEnv), "%d %d", &at, &sig); err != nil {
		panic(err)
	}
	if strings.HasPrefix(filepath.Base(os.Args[1]), "ignored") { // as nohup does
		signal.Ignore(sig)
		os.Args = append(os.Args[:1], os.Args[2:]...)
	}
	ignored := signal.Ignored(sig)
	var calls atomic.Int64
	ctx := fault.With(context.Background(), func(ctx context.Context, _, _ string) error {
		if calls.Add(1) == at {
			if err := errors.Join(os.WriteFile(os.Getenv(signalMark), nil, 0o666), syscall.Kill(os.Getpid(), sig)); err != nil {
				return err
			}
			if !ignored && ctx.Done() != nil { // else it is past the point where it stops
				<-ctx.Done()
			}
		}
		return nil
	})
	os.Exit(run(ctx, command.OSEnv()))
}

// TestSignals: a signal at any call ends in exit code 130 with nothing left, or
// the command was past the point where it can stop, and is done.
func TestSignals(t *testing.T) {
	const in = "../../testdata/savepoints/sp-002"
	signals := []syscall.Signal{syscall.SIGINT, syscall.SIGTERM, syscall.SIGHUP}
	// A child of tests that run under nohup would ignore what they ignore.
	caught := make(chan os.Signal, 1)
	for _, sig := range signals {
		signal.Notify(caught, sig)
	}
	defer signal.Stop(caught)
	for _, sig := range signals {
		for _, target := range []string{"out", "out.spt"} {
			for _, overwrite := range []bool{false, true} {
				codes := map[int]int{}
				step := 3
				if sig == syscall.SIGHUP {
					step = 1
				}
				for n, more := 1, true; more; n += step {
					if n > 300 {
						t.Fatal("it never ends")
					}
					dir := t.TempDir()
					out := filepath.Join(dir, target)
					args := []string{"convert", in, out, "--inline-threshold", "100B"}
					if strings.HasSuffix(target, ".spt") {
						args = args[:3]
					}
					if overwrite {
						if _, code, said := signalledRun(t, 0, sig, args...); code != 0 {
							t.Fatalf("exit %d: %s", code, said)
						}
						args = append(args, "--overwrite")
					}
					sent, code, said := signalledRun(t, n, sig, args...)
					codes[code]++
					left := entriesOf(t, dir)
					switch {
					case code == 130 && sent && strings.Contains(said, "cancelled"):
						if len(left) > 0 && !overwrite || overwrite && len(left) != 1 {
							t.Errorf("%v at %d: left over: %v", sig, n, left)
						}
					case code == 0:
						if len(left) != 1 || left[0] != target {
							t.Errorf("%v at %d: done, and there is %v", sig, n, left)
						}
					default:
						t.Errorf("%v at %d: exit %d: %s", sig, n, code, said)
					}
					if len(left) == 1 {
						if _, code, said := signalledRun(t, 0, sig, "verify", out); code != 0 {
							t.Errorf("%v at %d: verify: exit %d: %s", sig, n, code, said)
						}
					}
					more = sent
				}
				t.Logf("%v, %s, overwrite %v: exit codes %v", sig, target, overwrite, codes)
				if codes[130] == 0 || codes[0] == 0 {
					t.Errorf("%v: exit codes %v", sig, codes)
				}
			}
		}
	}
}

// A signal that the parent process wants ignored, as nohup does, stops nothing.
func TestIgnoredSignals(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGHUP} {
		out := filepath.Join(t.TempDir(), "out.spt")
		sent, code, said := signalledRun(t, 1, sig, "ignored", "convert", "../../testdata/savepoints/sp-002", out)
		if !sent || code != 0 {
			t.Errorf("%v: sent %v, exit %d: %s", sig, sent, code, said)
		}
	}
}

// signalledRun runs spt-signalled, and reports whether it sent the signal.
func signalledRun(t *testing.T, call int, sig syscall.Signal, args ...string) (sent bool, code int, said string) {
	t.Helper()
	mark := filepath.Join(t.TempDir(), "sent")
	cmd := exec.Command(os.Args[0])
	cmd.Args = append([]string{"spt-signalled"}, args...)
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d %d", signalEnv, call, sig), signalMark+"="+mark)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	if exit != nil {
		code = exit.ExitCode()
	}
	_, err = os.Stat(mark)
	return err == nil, code, string(out)
}

const signalMark = "SPT_TEST_SIGNAL_SENT" // a file to make when it is

func entriesOf(t *testing.T, dir string) (names []string) {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}
