package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/route"
)

// These tests count the requests of commands to an object store.

// inBucket runs a command with the s3: URIs of a store.
func inBucket(t testing.TB, store storage.Storage, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	r := route.New(local.New())
	for _, scheme := range []string{"s3", "s3a"} {
		r.Add(scheme, func(_ context.Context, uri string) (storage.Storage, string, error) {
			return store, format.CanonicalURI(uri), nil
		})
	}
	var out, errs bytes.Buffer
	env := &Env{Stdin: strings.NewReader(""), Stdout: &out, Stderr: &errs, Getenv: func(string) string { return "" }, Now: time.Now, Stores: r}
	code = Main(t.Context(), args, env)
	return out.String(), errs.String(), code
}

// elements is how many elements each file of bucketOfFiles has.
const elements = 4

// bucketOfFiles has a savepoint at s3://b/sp with n files of about size bytes.
func bucketOfFiles(t testing.TB, n, size int) *mem.Store {
	t.Helper()
	store := mem.New()
	op := &format.Operator{Name: format.NewText("op"), UID: format.NewText("uid"), ID: format.OperatorIDOf("uid"), Parallelism: int32(n), MaxParallelism: int32(max(n, 128))}
	for i := range n {
		elements := make([]string, elements)
		for k := range elements {
			elements[k] = strings.Repeat(string(rune('a'+(i+k)%26)), size/len(elements)-4)
		}
		data, offsets := sptest.Blobs("blobs", elements...)
		name := fmt.Sprintf("f%04d", i)
		h := &format.OperatorHandle{Codec: format.CodecFlink, Data: &format.File{Path: format.NewText(name), Relative: true, Length: int64(len(data))},
			States: []format.NamedState{{Name: format.NewText("blobs"), Offsets: format.OffsetSlice(offsets)}}}
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: h})
		storetest.Put(t, store, "s3://b/sp/"+name, string(data))
	}
	sp := &format.Savepoint{ID: 7, Kind: format.SnapshotKind{Type: format.TypeSavepoint}, Operators: []*format.Operator{op}}
	var b bytes.Buffer
	if err := metadata.Encode(t.Context(), &b, sp, nil); err != nil {
		t.Fatal(err)
	}
	storetest.Put(t, store, "s3://b/sp/_metadata", b.String())
	return store
}

// requestsOf are the counts that are not 0.
func requestsOf(c *storetest.Counting) string {
	var all []string
	for _, kind := range []string{"read", "page", "stat", "commit", "copy", "delete"} {
		if n := c.Count(kind); n > 0 {
			all = append(all, fmt.Sprintf("%d %s", n, kind))
		}
	}
	return strings.Join(all, ", ")
}

// TestCommandBudgets: the requests of each command, and that it says what it did not
// look at.
func TestCommandBudgets(t *testing.T) {
	store := bucketOfFiles(t, 1200, 256)
	for _, x := range []struct {
		line, want string
		says       string
	}{
		{"inspect s3a://b/sp", "1 read", "--check-files looks for them"},
		{"inspect s3://b/sp --check-files", "17 read, 2 page", "none missing"},
		{"inspect s3://b/sp --fail-if missing_files>0", "1 read, 2 page", "none missing"},
		{"verify s3://b/sp", "1 read, 2 page", "1,200 files that are not on this machine, only existence and length"},
		{"report s3://b/sp -o -", "1 read, 2 page", "<html"},
		{"report s3://b/sp s3://b/sp -o -", "1 read, 2 page", "<html"},
		{"ls s3://b", "1 read, 1 page", "--check-files looks for their files"},
		{"ls s3://b --check-files", "1 read, 3 page", "complete, newest"},
		{"cat s3://b/sp --limit 3", "2 read, 2 page", `"index":2`},
		{"relocate s3://b/sp s3://b/out-1 --absolute s3://b/sp", "1 read, 3 page, 1 commit", "_metadata"},
		{"relocate s3://b/out-1 s3://b/out-2 --map s3://b/sp=s3://b/other", "1 read, 1 page, 1 commit", "_metadata"},
		{"convert s3://b/sp s3://b/out-3", "2 read, 3 page, 1201 commit, 1200 copy", "1200 of them copied by the service"},
		// n + 4, and a page more for each further 1,000 files: a copy is requested by its commit.
		{"rename s3://b/sp s3://b/out-4 --uid uid=other", "1 read, 3 page, 1201 commit, 1200 copy", "1200 of them copied by the service"},
	} {
		c := storetest.NewCounting(store)
		out, errs, code := inBucket(t, c.WithCopier(), strings.Fields(x.line)...)
		if code != 0 {
			t.Errorf("%s: exit %d: %s%s", x.line, code, out, errs)
		}
		got := requestsOf(c)
		t.Logf("spt %-70s %s", x.line, got)
		if got != x.want {
			t.Errorf("spt %s: %s, want %s", x.line, got, x.want)
		}
		if !strings.Contains(out+errs, x.says) {
			t.Errorf("spt %s: no %q in\n%s%s", x.line, x.says, out, errs)
		}
	}
}

// A suggested command repeats the flags that reach the store, on stdout and on stderr,
// and no others.
func TestSuggestionsReachTheStore(t *testing.T) {
	store := bucketOfFiles(t, 2, 256)
	const reach = "--endpoint-url https://s3.example.org --no-sign-request --profile 'a b' --region eu-1"
	flags := []string{"-q", "--region", "eu-1", "--profile", "a b", "--endpoint-url", "https://s3.example.org", "--no-sign-request"}
	for _, x := range []struct {
		line, stdout, stderr string
	}{
		{"verify s3://b/sp", "spt check s3://b/sp " + reach + "\n", ""},
		{"prune-union s3://b/sp --keep distinct --state none s3://b/out", "", ""},
		{"relocate s3://b/sp", "", "hint: to see absolute ones:  spt verify s3://b/sp " + reach + "\n"},
	} {
		out, errs, _ := inBucket(t, store, append(strings.Fields(x.line), flags...)...)
		if !strings.Contains(out, x.stdout) || !strings.Contains(errs, x.stderr) {
			t.Errorf("%s: %s%s", x.line, out, errs)
		}
		for line := range strings.Lines(out + errs) {
			if strings.Contains(line, "  spt ") && strings.Contains(line, "://") && !strings.HasSuffix(line, " "+reach+"\n") {
				t.Errorf("%s: %s", x.line, line)
			}
		}
	}
}

// TestCatReadsAhead: each of 1,000 files takes one request, 16 of them run at the same
// time, and all is printed in order. With 30 ms for a request, that is 63 rounds, 1.9 s.
func TestCatReadsAhead(t *testing.T) {
	const n = 1000
	store := bucketOfFiles(t, n, 64<<10)
	var mu sync.Mutex
	reads := 0
	gate := make(chan struct{})
	c := storetest.NewCounting(store).WithWait(func(kind, name string) {
		if kind != "read" || strings.HasSuffix(name, "_metadata") {
			return
		}
		mu.Lock()
		if reads++; reads == 16 {
			close(gate)
		}
		mu.Unlock()
		<-gate // for ever, unless 16 run at once
	})
	out, errs, code := inBucket(t, c, "cat", "s3://b/sp", "-o", "csv", "--raw", "--quiet")
	if code != 0 {
		t.Fatalf("exit %d: %.500s", code, errs)
	}
	t.Logf("%s, %d at once", requestsOf(c), c.MaxRunning())
	if got := requestsOf(c); got != "1001 read, 2 page" || c.MaxRunning() != 16 {
		t.Errorf("requests: %s, %d at once", got, c.MaxRunning())
		for name, n := range c.Named("read") {
			if n > 1 {
				t.Errorf("%d reads of %s", n, name)
			}
		}
	}
	one, errs, code := inBucket(t, store, "cat", "s3://b/sp", "-o", "csv", "--raw", "--quiet", "--jobs", "1")
	if code != 0 || one != out || strings.Count(out, "\n") != n*elements+1 {
		t.Errorf("exit %d: %.500s; %d lines, with one job another output: %v", code, errs, strings.Count(out, "\n"), one != out)
	}
}
