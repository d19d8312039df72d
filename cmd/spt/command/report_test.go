package command

import (
	"bytes"
	"context"
	"fmt"
	"html"
	"io/fs"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage/mem"
)

var (
	tag    = regexp.MustCompile(`<[^>]*>`)
	quoted = regexp.MustCompile(`"[^"]*"`)
	// active are elements and attributes that could run a script or load something.
	active = regexp.MustCompile(`(?i)^<(script|img|link|iframe|object|embed|base|form|foreignObject)\b|\s(on[a-z]+|src|srcset|action|style)\s*=`)
	links  = regexp.MustCompile(`href="[^#]`)
)

// activeParts returns the tags of a page that could run a script or load something.
func activeParts(body string) (all []string) {
	for _, t := range tag.FindAllString(body, -1) {
		if active.MatchString(quoted.ReplaceAllString(t, "")) || links.MatchString(t) {
			all = append(all, t)
		}
	}
	return all
}

// TestReportMarkup: names that look like markup are text on the page.
func TestReportMarkup(t *testing.T) {
	page, stderr, code := inBucket(t, mem.New(), "report", sptest.MarkupSnapshot(t), "--verify", "-o", "-")
	if code != exitOK && code != exitFindings {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	body, script, ok := strings.Cut(page, "<script>")
	if !ok || strings.Count(script, "</script>") != 1 || strings.Contains(script, "<script") {
		t.Errorf("expected one script, its own")
	}
	for _, m := range activeParts(body) {
		t.Errorf("the page has %q", m)
	}
	for _, name := range sptest.Markup[:6] {
		shown := html.UnescapeString(body)
		if quoted := strings.ReplaceAll(name, `"`, `\"`); !strings.Contains(shown, name) && !strings.Contains(shown, quoted) {
			t.Errorf("%q is not on the page", name)
		}
	}
	if strings.ContainsAny(page, "\u202e\x00") {
		t.Error("the page has control characters")
	}
}

// TestReportAll writes a page of every snapshot of testdata: it is complete, and loads
// nothing.
func TestReportAll(t *testing.T) {
	n := 0
	err := filepath.WalkDir("../../../testdata/savepoints", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.Name() != "_metadata" && filepath.Ext(path) != ".spt" {
			return err
		}
		for _, args := range [][]string{nil, {"--verify"}} {
			n++
			page, stderr, code := inBucket(t, mem.New(), append([]string{"report", path, "-o", "-"}, args...)...)
			if code != exitOK || !strings.HasSuffix(page, "</html>\n") {
				t.Errorf("%s %v: exit code %d: %s", path, args, code, stderr)
			}
			body, _, _ := strings.Cut(page, "<script>")
			for _, m := range activeParts(body) {
				t.Errorf("%s: the page has %q", path, m)
			}
			if strings.Contains(page, "ZgotmplZ") || strings.Contains(page, "NaN") || strings.Contains(page, "+Inf") {
				t.Errorf("%s: a value of the page is not one", path)
			}
		}
		return nil
	})
	if err != nil || n < 80 {
		t.Errorf("%d pages, %v", n, err)
	}
}

// TestReportSize: the page of 1,000 operators with 200 subtasks each is below 1 MB.
func TestReportSize(t *testing.T) {
	testenv.Long(t, "writes and reads 80 MB")
	sp := &format.Savepoint{ID: 7, Kind: format.SnapshotKind{Type: format.TypeSavepoint}}
	const operators, subtasks, groups = 1000, 200, 2000
	data, offsets := sptest.Blobs("topic-partition-offset-states", strings.Repeat("a", 20), strings.Repeat("b", 30))
	for k := range operators {
		op := sptest.Operator(fmt.Sprintf("operator-of-the-job-%04d-%s", k, strings.Repeat("x", k%100)))
		op.Parallelism, op.MaxParallelism = subtasks, groups
		for i := range int32(subtasks) {
			sub := &format.Subtask{Index: i, Managed: &format.OperatorHandle{
				Codec: format.CodecFlink, Data: sptest.Inline("x", string(data)),
				States: []format.NamedState{{Name: format.NewText("topic-partition-offset-states"), Offsets: format.OffsetSlice(offsets)}},
			}}
			if k%100 == 0 {
				sub.Managed.States[0].Mode = format.ModeUnion
			}
			if k < 20 { // their headers cannot be read: verify has as many findings
				r := format.KeyGroupsOf(i, subtasks, groups)
				texts := make([]string, r.Count)
				for g := range texts {
					texts[g] = strings.Repeat("v", int(r.First)%70+g+1)
				}
				sub.ManagedKeyed = sptest.KeyGroupStream(true, format.CodecFlink, "header", r.First, texts...)
			}
			op.Subtasks = append(op.Subtasks, sub)
		}
		sp.Operators = append(sp.Operators, op)
	}
	var b bytes.Buffer
	if err := metadata.Encode(context.Background(), &b, sp, nil); err != nil {
		t.Fatal(err)
	}
	dir := realTemp(t)
	put(t, dir+"/_metadata", b.String())
	page, stderr, code := inBucket(t, mem.New(), "report", dir, dir, "-o", "-")
	if code != exitFindings {
		t.Fatalf("exit code %d: %s", code, stderr)
	}
	t.Logf("a page of %d bytes for a _metadata of %d", len(page), b.Len())
	if len(page) > 1_000_000 {
		t.Errorf("the page has %d bytes", len(page))
	}
	for _, text := range []string{"960 more operators", "more operators; all of them:", "Key groups"} {
		if !strings.Contains(page, text) {
			t.Errorf("%q is not on the page", text)
		}
	}
}
