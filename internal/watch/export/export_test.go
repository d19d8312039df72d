package export

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/savepoint-tools/spt/internal/trend"
	"github.com/savepoint-tools/spt/internal/watch"
)

var noon = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// status is a root with a job whose union state grew from 10 to 40 elements in two
// checkpoints.
func status() []watch.Root {
	id := watch.StateID{Operator: "a83608dea766885569d5a234257f6990", Kind: "union", Name: "offsets"}
	first := &watch.Checkpoint{ID: 5, Written: noon, Bytes: 1000, MetadataBytes: 4000, States: []watch.State{{StateID: id, Elements: 10, Bytes: 200}}}
	last := &watch.Checkpoint{
		ID: 7, Written: noon.Add(time.Minute), Bytes: 1600, InlineBytes: 1500, MetadataBytes: 4000, Operators: 3, Files: 4, MissingFiles: 1, WrongFiles: 2, UncheckedFiles: 1,
		States: []watch.State{
			{StateID: id, Operator: "source", Elements: 40, Bytes: 800, InlineBytes: 800, UnionRestoreBytes: 1600, MayBeMultiplied: true},
			{StateID: watch.StateID{Operator: id.Operator, Kind: "keyed"}, Operator: "source", Elements: -1, Bytes: 700},
		},
	}
	return []watch.Root{{
		Path: "s3://b/chk", Errors: map[watch.Reason]int64{watch.List: 3}, Reads: 9, LastSuccess: noon, Orphans: &watch.Orphans{Files: 2, Bytes: 30},
		Jobs: []watch.Job{{Name: "orders", Directories: 3, Damaged: 1, Newest: last, Complete: first, First: first, Span: trend.Span{Checkpoints: 2, Seconds: 60}, Firing: []string{"large"}}},
	}}
}

func collector(roots []watch.Root, series int) *Collector {
	return New(Options{
		Status: func() []watch.Root { return roots }, Rules: []string{"large", "old"}, Limit: 3000, LimitElements: 100, MaxSeries: series,
		Webhooks: func() map[string]int64 { return map[string]int64{"sent": 2, "failed": 1} },
		Now:      func() time.Time { return noon.Add(5 * time.Minute) },
	})
}

// TestValues compares with values computed by hand.
func TestValues(t *testing.T) {
	job := `directory="orders"`
	state := `directory="orders",kind="union",operator="source",operator_id="a83608dea766885569d5a234257f6990"`
	keyed := strings.Replace(state, "union", "keyed", 1)
	for metric, want := range map[string]string{
		"spt_checkpoint_id":                        `{` + job + `,root="s3://b/chk"} 5`,
		"spt_checkpoint_age_seconds":               `{` + job + `,root="s3://b/chk"} 300`,
		"spt_checkpoint_timestamp_seconds":         `{` + job + `,root="s3://b/chk"} 1796040000`,
		"spt_checkpoint_state_bytes":               `{` + job + `,root="s3://b/chk"} 1600`,
		"spt_checkpoint_missing_files":             `{` + job + `,root="s3://b/chk"} 1`,
		"spt_checkpoint_limit_checkpoints":         `{` + job + `,quantity="metadata_bytes",root="s3://b/chk"} 0` + "\n" + `{` + job + `,quantity="state_bytes",root="s3://b/chk"} 5`, // 1400 at 300 each
		"spt_checkpoint_limit_seconds":             `{` + job + `,quantity="metadata_bytes",root="s3://b/chk"} 0` + "\n" + `{` + job + `,quantity="state_bytes",root="s3://b/chk"} 140`,
		"spt_rule_firing":                          `{` + job + `,root="s3://b/chk",rule="large"} 1` + "\n" + `{` + job + `,root="s3://b/chk",rule="old"} 0`,
		"spt_state_elements":                       `{` + state + `,root="s3://b/chk",state="offsets"} 40`,
		"spt_state_bytes":                          `{` + keyed + `,root="s3://b/chk",state=""} 700` + "\n" + `{` + state + `,root="s3://b/chk",state="offsets"} 800`,
		"spt_union_growth_ratio":                   `{` + state + `,root="s3://b/chk",state="offsets"} 4`,
		"spt_union_restore_bytes":                  `{` + state + `,root="s3://b/chk",state="offsets"} 1600`,
		"spt_union_may_be_multiplied":              `{` + state + `,root="s3://b/chk",state="offsets"} 1`,
		"spt_state_limit_checkpoints":              `{` + keyed + `,quantity="bytes",root="s3://b/chk",state=""} 7` + "\n" + `{` + state + `,quantity="bytes",root="s3://b/chk",state="offsets"} 8` + "\n" + `{` + state + `,quantity="elements",root="s3://b/chk",state="offsets"} 4`,
		"spt_orphan_bytes":                         `{root="s3://b/chk"} 30`,
		"spt_watch_errors_total":                   `{reason="damaged",root="s3://b/chk"} 0` + "\n" + `{reason="list",root="s3://b/chk"} 3` + "\n" + `{reason="orphans",root="s3://b/chk"} 0` + "\n" + `{reason="read",root="s3://b/chk"} 0`,
		"spt_watch_webhook_total":                  `{outcome="failed"} 1` + "\n" + `{outcome="sent"} 2`,
		"spt_watch_last_success_timestamp_seconds": `{root="s3://b/chk"} 1796040000`,
		"spt_watch_dropped_series":                 ` 0`,
		"spt_job_damaged_checkpoints":              `{` + job + `,root="s3://b/chk"} 1`,
		"spt_checkpoint_unchecked_files":           `{` + job + `,root="s3://b/chk"} 1`,
		"spt_job_checkpoint_directories":           `{` + job + `,root="s3://b/chk"} 3`,
	} {
		m := newMetrics().all[slices.IndexFunc(newMetrics().all, func(m *Metric) bool { return m.Name == metric })]
		text := fmt.Sprintf("# HELP %s %s\n# TYPE %s %s\n", metric, m.Help, metric, m.Type)
		for line := range strings.SplitSeq(want, "\n") {
			text += metric + line + "\n"
		}
		if err := testutil.CollectAndCompare(collector(status(), 1000), strings.NewReader(text), metric); err != nil {
			t.Errorf("%s: %v", metric, err)
		}
	}
}

// TestLint: the names follow the conventions, and each documented metric exists.
func TestLint(t *testing.T) {
	c := collector(status(), 1000)
	problems, err := testutil.CollectAndLint(c)
	if err != nil || len(problems) > 0 {
		t.Errorf("%v, %v", problems, err)
	}
	families, err := registry(c).Gather()
	if err != nil {
		t.Fatal(err)
	}
	var got, want []string
	for _, f := range families {
		got = append(got, f.GetName())
	}
	for _, m := range Metrics() {
		want = append(want, m.Name)
		if !strings.HasSuffix(m.Help, ".") {
			t.Errorf("%s: %q is not a sentence", m.Name, m.Help)
		}
	}
	slices.Sort(want)
	if !slices.Equal(got, want) {
		t.Errorf("collected %q, documented %q", got, want)
	}
}

// TestSeries: the number of series is bounded whatever a snapshot holds; the largest
// states are kept, and what is left out is counted.
func TestSeries(t *testing.T) {
	roots := status()
	job := &roots[0].Jobs[0]
	large := *job.Newest
	large.States = nil
	for i := range 3000 {
		large.States = append(large.States, watch.State{StateID: watch.StateID{Operator: "o", Kind: "list", Name: fmt.Sprint(i)}, Operator: "o", Bytes: int64(9000 - i), Elements: -1})
	}
	large.MoreStates = 10
	job.Newest = &large
	cuts := []int{}
	c := collector(roots, 500)
	c.o.Cut = func(n int) { cuts = append(cuts, n) }
	text, err := Text(c)
	if err != nil {
		t.Fatal(err)
	}
	series := 0
	for line := range strings.Lines(string(text)) {
		if !strings.HasPrefix(line, "#") {
			series++
		}
	}
	if series > 500 || series < 490 {
		t.Errorf("%d series", series)
	}
	if !strings.Contains(string(text), `state="0"`) || strings.Contains(string(text), `state="2999"`) {
		t.Error("not the largest states are kept")
	}
	if _, err := Text(c); err != nil || len(cuts) != 1 || cuts[0] < 3*3000-500 {
		t.Errorf("reported %v, %v", cuts, err)
	}
}

// TestNames: names from a file are valid labels, and equal ones do not break the rest.
func TestNames(t *testing.T) {
	roots := status()
	job := &roots[0].Jobs[0]
	evil := *job.Newest
	evil.States = nil
	for _, name := range []string{"\xff\xfe", "a\nb\"c\\", strings.Repeat("ä", 1<<20) + "1", strings.Repeat("ä", 1<<20) + "2", "\xfd\xfe"} {
		evil.States = append(evil.States, watch.State{StateID: watch.StateID{Operator: "o", Kind: "list", Name: name}, Operator: name, Elements: 1})
	}
	job.Newest = &evil
	text, err := Text(collector(roots, 500))
	if err != nil {
		t.Fatal(err)
	}
	if !utf8.Valid(text) || len(text) > 64<<10 || !strings.Contains(string(text), `state="a\nb\"c\\"`) || !strings.Contains(string(text), "spt_watch_dropped_series 2\n") {
		t.Errorf("%.3000s", text)
	}
}

func TestServer(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	s, err := Listen(ctx, "127.0.0.1:0", collector(status(), 1000))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := Listen(ctx, s.Address(), collector(status(), 1000)); err == nil {
		t.Error("the address is taken")
	}
	ended := make(chan error, 1)
	go func() { ended <- s.Serve(ctx) }()
	for path, want := range map[string]string{"/metrics": `spt_union_growth_ratio{`, "/healthz": "ok\n", "/": "404"} {
		resp, err := http.Get("http://" + s.Address() + path)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %.200s, %v", path, body, err)
		}
	}
	// A client that never sends a request does not keep it from ending.
	idle, err := net.Dial("tcp", s.Address())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = idle.Close() }()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestWriteFile(t *testing.T) {
	name := filepath.Join(t.TempDir(), "spt.prom")
	for range 2 { // the second replaces the first
		if err := WriteFile(name, collector(status(), 1000)); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(name)
	want, terr := Text(collector(status(), 1000))
	if err != nil || terr != nil || string(got) != string(want) {
		t.Errorf("%v, %v, %.500s", err, terr, got)
	}
	left, err := os.ReadDir(filepath.Dir(name))
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v", left, err)
	}
	if err := WriteFile(filepath.Join(name, "x"), collector(status(), 1000)); err == nil {
		t.Error("written below a file")
	}
}
