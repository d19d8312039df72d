package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
	"unicode"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/savepoint-tools/spt/cmd/spt/command"
	"github.com/savepoint-tools/spt/storage"
)

var update = flag.Bool("update", false, "write what the commands print into the scripts")

func TestMain(m *testing.M) {
	testscript.Main(m, map[string]func(){
		"spt":           main,
		"spt-waiting":   func() { os.Exit(run(context.Background(), waitingEnv())) },
		"spt-signalled": signalled,
	})
}

// TestScripts runs testdata/script: one behaviour of the command line a file.
// Besides the verbs of testscript there are
//
//	mksp NAME DST         copy a savepoint of testdata/savepoints, with fixed times
//	unchanged DST         what mksp made there is as it was, but for the damage done by the verbs below
//	exitcode N spt …      run spt and compare its exit code
//	cutfile FILE N        leave N bytes; less than 0: take them off the end
//	flipbyte FILE OFFSET  turn one byte round; less than 0: from the end
//	replace FILE OLD NEW  replace bytes, all of them, by as many; Go escapes
//	printable             neither stdout nor stderr of the last command holds a control character
//	interrupt spt …       run spt, which waits for its storage, and send SIGINT
//	evil VAR              set VAR to a name with an escape sequence and a direction mark
//	headof N spt …        run spt, read N lines of its stdout and close it; then as exitcode 0, and no word on stderr
func TestScripts(t *testing.T) {
	fixtures, err := filepath.Abs("../../testdata/savepoints")
	if err != nil {
		t.Fatal(err)
	}
	testscript.Run(t, scriptParams("testdata/script", fixtures))
}

// scriptParams returns the parameters of the scripts in a directory.
func scriptParams(dir, fixtures string) testscript.Params {
	return testscript.Params{
		Dir:                 dir,
		UpdateScripts:       *update,
		RequireExplicitExec: true,
		RequireUniqueNames:  true,
		Setup: func(e *testscript.Env) error {
			e.Values[treesKey{}] = trees{}
			// Where the tests run must not show: an offset from UTC, a colour, a
			// path or a mapping of the caller.
			e.Setenv("TZ", "UTC")
			e.Setenv("FIXTURES", fixtures)
			return nil
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"mksp":      func(ts *testscript.TestScript, neg bool, args []string) { makeSavepoint(ts, fixtures, args) },
			"unchanged": unchanged,
			"exitcode":  exitCode,
			"cutfile":   cutFile,
			"flipbyte":  flipByte,
			"replace":   replaceBytes,
			"printable": printable,
			"interrupt": interrupt,
			"headof":    headOf,
			"evil":      func(ts *testscript.TestScript, _ bool, args []string) { ts.Setenv(args[0], evilName) },
		},
	}
}

// evilName clears a terminal that is shown it raw, and turns round what follows.
const evilName = "a\x1b[2Jb\u202ec\x07"

// trees are the digests of what mksp made, by path.
type (
	trees    map[string]string
	treesKey struct{}
)

func treesOf(ts *testscript.TestScript) trees { return ts.Value(treesKey{}).(trees) }

// fixedTime is when every fixture was written, plus a minute for each of its number.
var fixedTime = time.Date(2025, 1, 2, 3, 0, 0, 0, time.UTC)

func makeSavepoint(ts *testscript.TestScript, fixtures string, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: mksp NAME DST")
	}
	src, dst := filepath.Join(fixtures, args[0]), ts.MkAbs(args[1])
	when := fixedTime
	if n, err := strconv.Atoi(strings.TrimSuffix(strings.TrimPrefix(args[0], "sp-"), ".spt")); err == nil {
		when = when.Add(time.Duration(n) * time.Minute)
	}
	ts.Check(filepath.WalkDir(src, func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(src, path)
		if err != nil {
			return err
		}
		to := filepath.Join(dst, rel)
		if d.IsDir() {
			return os.MkdirAll(to, 0o777)
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(to, data, 0o666)
	}))
	ts.Check(filepath.WalkDir(dst, func(path string, _ fs.DirEntry, err error) error {
		return errors.Join(err, os.Chtimes(path, when, when))
	}))
	treesOf(ts)[dst] = digest(ts, dst)
}

// digest covers the names, modes, times, lengths and bytes of a tree.
func digest(ts *testscript.TestScript, root string) string {
	h := sha256.New()
	ts.Check(filepath.WalkDir(root, func(path string, _ fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := os.Lstat(path)
		if err != nil {
			return err
		}
		fmt.Fprintf(h, "%q %v %d %d\n", path, info.Mode(), info.ModTime().UnixNano(), info.Size())
		if info.Mode().IsRegular() {
			data, err := os.ReadFile(path)
			if err != nil {
				return err
			}
			h.Write(data)
		}
		return nil
	}))
	return string(h.Sum(nil))
}

func unchanged(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) == 0 || neg {
		ts.Fatalf("usage: unchanged DST…")
	}
	for _, a := range args {
		want, ok := treesOf(ts)[ts.MkAbs(a)]
		if !ok {
			ts.Fatalf("%s was not made by mksp", a)
		}
		if digest(ts, ts.MkAbs(a)) != want {
			ts.Fatalf("%s has changed", a)
		}
	}
}

// edit changes a file and takes the change as what is to stay.
func edit(ts *testscript.TestScript, name string, change func([]byte) []byte) {
	file := ts.MkAbs(name)
	data, err := os.ReadFile(file)
	ts.Check(err)
	ts.Check(os.WriteFile(file, change(data), 0o666))
	for root := range treesOf(ts) {
		if file == root || strings.HasPrefix(file, root+string(filepath.Separator)) {
			treesOf(ts)[root] = digest(ts, root)
		}
	}
}

func number(ts *testscript.TestScript, s string, size int) int {
	n, err := strconv.Atoi(s)
	ts.Check(err)
	if n < 0 {
		n += size
	}
	if n < 0 || n > size {
		ts.Fatalf("%s is outside of %d bytes", s, size)
	}
	return n
}

func cutFile(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: cutfile FILE N")
	}
	edit(ts, args[0], func(b []byte) []byte { return b[:number(ts, args[1], len(b))] })
}

func flipByte(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 2 {
		ts.Fatalf("usage: flipbyte FILE OFFSET")
	}
	edit(ts, args[0], func(b []byte) []byte {
		b[number(ts, args[1], len(b)-1)] ^= 0xff
		return b
	})
}

func replaceBytes(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) != 3 {
		ts.Fatalf("usage: replace FILE OLD NEW")
	}
	unescape := func(s string) []byte {
		out, err := strconv.Unquote(`"` + s + `"`)
		ts.Check(err)
		return []byte(out)
	}
	from, to := unescape(args[1]), unescape(args[2])
	if len(from) != len(to) {
		ts.Fatalf("%d bytes for %d", len(to), len(from))
	}
	edit(ts, args[0], func(b []byte) []byte {
		if !bytes.Contains(b, from) {
			ts.Fatalf("%s does not hold %q", args[0], from)
		}
		return bytes.ReplaceAll(b, from, to)
	})
}

func exitCode(ts *testscript.TestScript, neg bool, args []string) {
	if len(args) < 2 || neg {
		ts.Fatalf("usage: exitcode N spt …")
	}
	checkCode(ts, args[0], ts.Exec(args[1], args[2:]...))
}

func checkCode(ts *testscript.TestScript, want string, err error) {
	code := 0
	if err != nil {
		var exit *exec.ExitError
		if !errors.As(err, &exit) {
			ts.Fatalf("%v", err)
		}
		code = exit.ExitCode()
	}
	if strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, not %s", code, want)
	}
}

func printable(ts *testscript.TestScript, _ bool, _ []string) {
	for _, name := range []string{"stdout", "stderr"} {
		for i, r := range ts.ReadFile(name) {
			// Cc: control characters. Cf: direction marks and other format characters.
			if r != '\n' && unicode.In(r, unicode.Cc, unicode.Cf) || r == unicode.ReplacementChar {
				ts.Fatalf("%s holds %U at %d", name, r, i)
			}
		}
	}
}

// headOf reads the beginning of an answer and goes away, as head does.
func headOf(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 2 {
		ts.Fatalf("usage: headof N spt …")
	}
	cmd, stderr := start(ts, args[1:])
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	in := bufio.NewReader(stdout)
	for range number(ts, args[0], 1<<20) {
		_, err := in.ReadString('\n')
		ts.Check(err)
	}
	ts.Check(stdout.Close())
	checkCode(ts, "0", cmd.Wait())
	if stderr.Len() > 0 {
		ts.Fatalf("stderr: %s", stderr)
	}
}

func start(ts *testscript.TestScript, args []string) (*exec.Cmd, *bytes.Buffer) {
	path, err := exec.LookPath(filepath.Join(filepath.SplitList(ts.Getenv("PATH"))[0], args[0]))
	ts.Check(err)
	cmd := exec.Command(path, args[1:]...)
	cmd.Dir = ts.Getenv("WORK")
	cmd.Env = append(os.Environ(), "PATH="+ts.Getenv("PATH"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	return cmd, &stderr
}

const waiting = "waiting\n"

// interrupt runs spt on a storage that never answers, sends SIGINT as soon as
// it is asked, and expects 130.
func interrupt(ts *testscript.TestScript, _ bool, args []string) {
	if len(args) < 1 || args[0] != "spt" {
		ts.Fatalf("usage: interrupt spt …")
	}
	cmd, stderr := start(ts, append([]string{"spt-waiting"}, args[1:]...))
	stdout, err := cmd.StdoutPipe()
	ts.Check(err)
	ts.Check(cmd.Start())
	in := bufio.NewReader(stdout)
	if line, err := in.ReadString('\n'); line != waiting {
		_ = cmd.Process.Kill()
		ts.Fatalf("%q, %v; %s", line, err, stderr)
	}
	ts.Check(cmd.Process.Signal(syscall.SIGINT))
	rest, err := in.ReadString(0)
	if rest != "" {
		ts.Fatalf("on stdout after the signal: %q, %v", rest, err)
	}
	checkCode(ts, "130", cmd.Wait())
	if !strings.Contains(stderr.String(), "cancelled") {
		ts.Fatalf("stderr: %q", stderr)
	}
}

// waitingEnv is the environment of the process, with a storage that waits.
func waitingEnv() *command.Env {
	env := command.OSEnv()
	env.Stores = waitingStore{}
	return env
}

type waitingStore struct{}

func (waitingStore) Resolve(ctx context.Context, uri string) (storage.Storage, string, error) {
	fmt.Print(waiting)
	<-ctx.Done()
	return nil, "", ctx.Err()
}
