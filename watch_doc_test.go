package spt_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/savepoint-tools/spt/cmd/spt/command"
	"github.com/savepoint-tools/spt/internal/watch/export"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/route"
)

const watchDoc = "docs/watch.md"

// TestWatchDocument: docs/watch.md has every metric.
func TestWatchDocument(t *testing.T) {
	var b strings.Builder
	b.WriteString("| metric | type | labels | meaning |\n|---|---|---|---|\n")
	for _, m := range export.Metrics() {
		fmt.Fprintf(&b, "| `%s` | %s | %s | %s |\n", m.Name, m.Type, strings.Join(m.Labels, ", "), m.Help)
	}
	generated(t, watchDoc, "TestWatchDocument", b.String())
}

// yamlFiles decodes the documents of the manifests.
func yamlFiles(t *testing.T) map[string][]map[string]any {
	t.Helper()
	names, err := filepath.Glob("docs/watch/*.yaml")
	if err != nil || len(names) != 4 {
		t.Fatalf("%q, %v", names, err)
	}
	all := map[string][]map[string]any{}
	for _, name := range names {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		d := yaml.NewDecoder(bytes.NewReader(text))
		for {
			var doc map[string]any
			if err := d.Decode(&doc); errors.Is(err, io.EOF) {
				break
			} else if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			all[filepath.Base(name)] = append(all[filepath.Base(name)], doc)
		}
	}
	return all
}

// TestWatchManifests: each document is an object of Kubernetes, and its flags and rules
// are those of spt.
func TestWatchManifests(t *testing.T) {
	kinds := []string{}
	dir := t.TempDir()
	for name, docs := range yamlFiles(t) {
		for _, doc := range docs {
			if name == "rules.yaml" {
				continue
			}
			if doc["apiVersion"] == nil || doc["metadata"] == nil {
				t.Errorf("%s: %v", name, doc)
			}
			kinds = append(kinds, fmt.Sprint(doc["kind"]))
			if data, ok := doc["data"].(map[string]any); ok {
				if err := os.WriteFile(filepath.Join(dir, "configmap.yaml"), []byte(data["rules.yaml"].(string)), 0o644); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	slices.Sort(kinds)
	if want := []string{"ConfigMap", "CronJob", "Deployment", "PrometheusRule"}; !slices.Equal(kinds, want) {
		t.Errorf("%q, want %q", kinds, want)
	}
	if err := os.CopyFS(filepath.Join(dir, "chk/orders/chk-7"), os.DirFS("testdata/savepoints/sp-007")); err != nil {
		t.Fatal(err)
	}
	example, err := os.ReadFile("docs/watch/rules.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "example.yaml"), example, 0o644); err != nil {
		t.Fatal(err)
	}
	flags := 0
	for _, name := range []string{"deployment.yaml", "cronjob.yaml"} {
		text, err := os.ReadFile(filepath.Join("docs/watch", name))
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range regexp.MustCompile(`(?m)^ +- --([a-z-]+)`).FindAllStringSubmatch(string(text), -1) {
			flags++
			c, _, err := command.New(command.OSEnv()).Find([]string{"watch"})
			if err != nil || c.Flags().Lookup(m[1]) == nil {
				t.Errorf("%s: no flag --%s", name, m[1])
			}
		}
	}
	if flags < 5 {
		t.Errorf("%d flags", flags)
	}
	for _, name := range []string{"configmap.yaml", "example.yaml"} {
		var out, errs bytes.Buffer
		env := &command.Env{Stdout: &out, Stderr: &errs, Now: time.Now, Stores: route.New(local.New()), Getenv: func(name string) string {
			return map[string]string{"ALERT_URL": "http://127.0.0.1:1/"}[name] // nothing listens there
		}}
		// Without the webhook, which would be tried several times.
		rules := filepath.Join(dir, name)
		text, err := os.ReadFile(rules)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(rules, bytes.Replace(text, []byte("webhook: {url-env: ALERT_URL}\n"), nil, 1), 0o644); err != nil {
			t.Fatal(err)
		}
		code := command.Main(t.Context(), []string{"watch", "--once", filepath.Join(dir, "chk"), "--rules", rules}, env)
		if code != 1 || strings.Count(out.String(), "\n") != 1 || !strings.Contains(out.String(), `"rule":"union state may be multiplied"`) {
			t.Errorf("%s: exit %d\n%s%s", name, code, &out, &errs)
		}
	}
}

// TestWatchQueries: alerts and dashboard use only metrics that exist, with labels that
// these have.
func TestWatchQueries(t *testing.T) {
	labels := map[string][]string{}
	for _, m := range export.Metrics() {
		labels[m.Name] = m.Labels
	}
	metric := regexp.MustCompile(`spt_[a-z_]+`)
	check := func(where, expr, text string) {
		names := metric.FindAllString(expr, -1)
		if len(names) == 0 {
			t.Errorf("%s: no metric in %s", where, expr)
		}
		for _, name := range names {
			known, ok := labels[name]
			if !ok {
				t.Errorf("%s: no metric %s", where, name)
			}
			for _, m := range regexp.MustCompile(`{{ *(?:\$labels\.)?([a-z_]+) *}}`).FindAllStringSubmatch(text, -1) {
				if m[1] != "value" && !slices.Contains(known, m[1]) {
					t.Errorf("%s: %s has no label %s", where, name, m[1])
				}
			}
		}
	}
	alerts := 0
	for _, group := range yamlFiles(t)["prometheusrule.yaml"][0]["spec"].(map[string]any)["groups"].([]any) {
		for _, r := range group.(map[string]any)["rules"].([]any) {
			rule := r.(map[string]any)
			notes := rule["annotations"].(map[string]any)
			check(fmt.Sprint(rule["alert"]), rule["expr"].(string), fmt.Sprint(notes["summary"], notes["description"]))
			alerts++
		}
	}
	text, err := os.ReadFile("docs/watch/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	var board struct {
		Title, UID string
		Templating struct {
			List []struct{ Name, Definition string }
		}
		Panels []struct {
			ID      int
			Title   string
			Type    string
			GridPos struct{ X, Y, W, H int }
			Targets []struct{ Expr, LegendFormat string }
		}
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	for _, v := range board.Templating.List {
		if v.Definition != "" {
			check("$"+v.Name, v.Definition, "")
		}
	}
	ids := map[int]bool{}
	for _, p := range board.Panels {
		if ids[p.ID] || p.GridPos.W == 0 || p.GridPos.X+p.GridPos.W > 24 || len(p.Targets) == 0 {
			t.Errorf("%q: id %d at %+v with %d targets", p.Title, p.ID, p.GridPos, len(p.Targets))
		}
		ids[p.ID] = true
		for _, target := range p.Targets {
			check(p.Title, target.Expr, target.LegendFormat)
		}
	}
	if alerts < 9 || len(board.Panels) < 10 || board.UID == "" {
		t.Errorf("%d alerts, %d panels", alerts, len(board.Panels))
	}
}
