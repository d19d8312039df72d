package spt_test

import (
	"bytes"
	"context"
	"flag"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/cmd/spt/command"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

var update = flag.Bool("update", false, "write the output of the examples into the documents")

// TestDocumentExamples runs every console block of the README and the how-tos:
// what a line that starts with "$ " prints must be what follows it. A block with
// the name of a file is that file.
func TestDocumentExamples(t *testing.T) {
	for _, name := range []string{"README.md", "docs/howto.md", "docs/expressions.md", "docs/patch.md", "docs/redistribution.md", "docs/create.md", "docs/alert.md"} {
		t.Run(name, func(t *testing.T) {
			path, err := filepath.Abs(name)
			if err != nil {
				t.Fatal(err)
			}
			text, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			t.Chdir(workspace(t))
			for _, file := range fileBlock.FindAllStringSubmatch(string(text), -1) {
				if err := os.WriteFile(file[1], []byte(file[2]), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			runBlocks(t, path, string(text), func(stdout, stderr io.Writer) *command.Env {
				return &command.Env{
					Stdout: stdout, Stderr: stderr, Getenv: func(string) string { return "" },
					Now: time.Now, Stores: route.New(local.New()),
				}
			}, strings.NewReplacer())
		})
	}
}

// fileBlock is a block with the name of a file.
var fileBlock = regexp.MustCompile("(?s)```[a-z]+ ([a-z.]+)\n(.*?)```")

// runBlocks runs the console blocks of a document. hide replaces what depends on where
// the test runs.
func runBlocks(t *testing.T, path, text string, env newEnv, hide *strings.Replacer) {
	t.Helper()
	blocks := 0
	got := regexp.MustCompile("(?s)```console\n.*?\n```").ReplaceAllStringFunc(text, func(block string) string {
		blocks++
		body := strings.TrimSuffix(strings.TrimPrefix(block, "```console\n"), "```")
		return "```console\n" + hide.Replace(runBlock(t, body, env)) + "```"
	})
	if blocks == 0 {
		t.Fatal("no console block found")
	}
	if got == text {
		return
	}
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	t.Errorf("an example prints something else than the document says (go test -run %s . -update, then look at the diff):\n%s", t.Name(), firstDifference(text, got))
}

// newEnv returns an environment for one command.
type newEnv func(stdout, stderr io.Writer) *command.Env

// workspace is a folder in which the examples can write, with testdata in it.
func workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "testdata"), os.DirFS("testdata")); err != nil {
		t.Fatal(err)
	}
	return dir
}

// runBlock runs the commands of a block and gives it back with what they print.
func runBlock(t *testing.T, block string, newEnv newEnv) string {
	t.Helper()
	var out strings.Builder
	for line := range strings.Lines(block) {
		cmd, ok := strings.CutPrefix(strings.TrimRight(line, "\n"), "$ ")
		if !ok {
			continue
		}
		out.WriteString("$ " + cmd + "\n")
		args := words(cmd)
		if len(args) == 0 || args[0] != "spt" {
			t.Fatalf("an example that is no command of spt: %s", cmd)
		}
		var printed bytes.Buffer
		code := command.Main(context.Background(), args[1:], newEnv(&printed, &printed))
		out.Write(printed.Bytes())
		if code != 0 {
			out.WriteString("exit " + itoa(code) + "\n")
		}
	}
	return out.String()
}

// words splits a command line at spaces, but not within single quotes.
func words(line string) []string {
	var all []string
	for i, part := range strings.Split(line, "'") {
		if i%2 == 1 {
			all = append(all, part)
		} else {
			all = append(all, strings.Fields(part)...)
		}
	}
	return all
}

func itoa(n int) string {
	if n < 10 {
		return string(rune('0' + n))
	}
	return itoa(n/10) + itoa(n%10)
}

func firstDifference(a, b string) string {
	al, bl := strings.Split(a, "\n"), strings.Split(b, "\n")
	for i := range al {
		if i >= len(bl) || al[i] != bl[i] {
			hi := min(i+6, len(al), len(bl))
			return "document: " + strings.Join(al[i:hi], "\n          ") + "\nprinted:  " + strings.Join(bl[i:hi], "\n          ")
		}
	}
	return "the printed text is longer"
}

// TestOneTestCommand: the README and CI run the tests with the same command, which
// runs packages at the same time and has more time than Go's default.
func TestOneTestCommand(t *testing.T) {
	for _, name := range []string{"README.md", ".ci/run"} {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if !bytes.Contains(text, []byte("\ngo test -timeout 60m ")) || bytes.Contains(text, []byte("-p 1")) {
			t.Errorf("%s does not run go test -timeout 60m, or one package at a time", name)
		}
	}
}
