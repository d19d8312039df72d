//go:build unix

package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

// watched is a running spt watch.
type watched struct {
	cmd    *exec.Cmd
	url    string // of its metrics
	stdout *bufio.Reader
}

// startWatch runs spt watch at a free port, and waits until it serves.
func startWatch(t *testing.T, args ...string) *watched {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Args = append([]string{"spt", "watch", "--listen", "127.0.0.1:0", "--interval", "1s"}, args...)
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() }) // in most cases it has ended
	lines := bufio.NewReader(stderr)
	line, err := lines.ReadString('\n')
	m := regexp.MustCompile(`^metrics at (http://127\.0\.0\.1:\d+/metrics)\n$`).FindStringSubmatch(line)
	if m == nil {
		t.Fatalf("%q, %v", line, err)
	}
	go func() { _, _ = io.Copy(io.Discard, lines) }()
	return &watched{cmd, m[1], bufio.NewReader(stdout)}
}

// until asks until the answer has a text.
func until(t *testing.T, url, want string) string {
	t.Helper()
	body := ""
	for deadline := time.Now().Add(time.Minute); time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
		resp, err := http.Get(url)
		if err != nil {
			continue // it does not serve yet
		}
		text, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if body = string(text); err == nil && strings.Contains(body, want) {
			return body
		}
	}
	t.Fatalf("%s: no %q in\n%s", url, want, body)
	return ""
}

func copyFixture(t *testing.T, name, to string) {
	t.Helper()
	if err := os.CopyFS(to, os.DirFS(filepath.Join("../../testdata/savepoints", name))); err != nil {
		t.Fatal(err)
	}
}

// TestWatchService: it starts before its directory exists, follows what appears there,
// and SIGTERM ends it with exit code 0.
func TestWatchService(t *testing.T) {
	dir := t.TempDir()
	chk := filepath.Join(dir, "chk")
	rules := filepath.Join(dir, "rules.yaml")
	if err := os.WriteFile(rules, []byte("rules: [{name: large, fail-if: union_elements > 30}]\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	w := startWatch(t, chk, "--rules", rules, "--textfile", filepath.Join(dir, "spt.prom"))
	until(t, w.url, "spt_watch_checkpoints_read_total{root=\""+chk+"\"} 0\n")
	copyFixture(t, "sp-001", filepath.Join(chk, "job/chk-1"))
	until(t, w.url, `spt_checkpoint_id{directory="job",root="`+chk+`"} 1`)
	copyFixture(t, "sp-007", filepath.Join(chk, "job/chk-3"))
	until(t, w.url, `spt_rule_firing{directory="job",root="`+chk+`",rule="large"} 1`)
	if line, err := w.stdout.ReadString('\n'); err != nil || !strings.Contains(line, `"state":"firing"`) {
		t.Errorf("%q, %v", line, err)
	}
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	rest, err := w.stdout.ReadString(0)
	if rest != "" || err != io.EOF {
		t.Errorf("on stdout after the signal: %q, %v", rest, err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "spt.prom"))
	if err != nil || !strings.Contains(string(text), `spt_checkpoint_id{directory="job"`) {
		t.Errorf("%v, %s", err, text)
	}
}

// TestWatchPrometheus: a real Prometheus scrapes spt watch, finds nothing to complain
// about, evaluates the alerts of docs/watch, and answers the queries of the dashboard.
func TestWatchPrometheus(t *testing.T) {
	prometheus, err := exec.LookPath("prometheus")
	if err != nil {
		testenv.Missing(t, "Prometheus (apt-get install prometheus)", err)
	}
	dir := t.TempDir()
	chk := filepath.Join(dir, "chk")
	copyFixture(t, "sp-007", filepath.Join(chk, "job/chk-3"))
	w := startWatch(t, chk, "--limit", "1KiB", "--orphans-every", "1h", "--limit-elements", "50")
	metrics := until(t, w.url, `spt_checkpoint_id{directory="job"`)
	lint := exec.Command("promtool", "check", "metrics")
	lint.Stdin = strings.NewReader(metrics)
	if out, err := lint.CombinedOutput(); err != nil || len(out) > 0 {
		t.Errorf("promtool check metrics: %v\n%s", err, out)
	}

	var rule struct {
		Spec map[string]any `yaml:"spec"`
	}
	text, err := os.ReadFile("../../docs/watch/prometheusrule.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &rule); err != nil {
		t.Fatal(err)
	}
	groups, err := yaml.Marshal(rule.Spec)
	if err != nil {
		t.Fatal(err)
	}
	target, err := url.Parse(w.url)
	if err != nil {
		t.Fatal(err)
	}
	config := fmt.Sprintf("global: {scrape_interval: 1s, evaluation_interval: 1s}\nrule_files: [%q]\nscrape_configs: [{job_name: spt, static_configs: [{targets: [%q]}]}]\n", filepath.Join(dir, "rules.yml"), target.Host)
	for name, text := range map[string]string{"rules.yml": string(groups), "prometheus.yml": config} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	address := fmt.Sprintf("127.0.0.1:%d", servertest.Port(t))
	cmd := exec.Command(prometheus, "--config.file="+filepath.Join(dir, "prometheus.yml"), "--storage.tsdb.path="+filepath.Join(dir, "data"), "--web.listen-address="+address)
	servertest.Start(t, cmd, func() error {
		resp, err := http.Get("http://" + address + "/-/ready")
		if err != nil {
			return err
		}
		_ = resp.Body.Close()
		if resp.StatusCode != http.StatusOK {
			return fmt.Errorf("status %d", resp.StatusCode)
		}
		return nil
	})
	query := func(expr string) string {
		return "http://" + address + "/api/v1/query?query=" + url.QueryEscape(expr)
	}
	// Two restores at parallelism 2 made 40 of 10 elements: testdata/savepoints/README.md.
	until(t, query(`sum by (state, job) (spt_state_elements{kind="union"})`), `"metric":{"job":"spt","state":"offsets"}`)
	until(t, query(`spt_state_elements{kind="union"} == 40`), `"state":"offsets"`)
	until(t, "http://"+address+"/api/v1/alerts", `"alertname":"SptUnionMayBeMultiplied"`)

	var rules struct {
		Data struct {
			Groups []struct {
				Rules []struct{ Name, Health, LastError, State string }
			}
		}
	}
	health := func() (unknown int) {
		resp, err := http.Get("http://" + address + "/api/v1/rules")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close() //nolint:errcheck // it was read
		rules.Data.Groups = nil
		if err := json.NewDecoder(resp.Body).Decode(&rules); err != nil {
			t.Fatal(err)
		}
		for _, g := range rules.Data.Groups {
			for _, r := range g.Rules {
				if r.Health == "unknown" {
					unknown++
				}
			}
		}
		return unknown
	}
	for deadline := time.Now().Add(time.Minute); health() > 0 && time.Now().Before(deadline); time.Sleep(50 * time.Millisecond) {
	}
	alerts := map[string]string{}
	for _, g := range rules.Data.Groups {
		for _, r := range g.Rules {
			alerts[r.Name] = r.State
			if r.Health != "ok" {
				t.Errorf("%s: %s %s", r.Name, r.Health, r.LastError)
			}
		}
	}
	for name, want := range map[string]string{"SptUnionMayBeMultiplied": "firing", "SptLimitNear": "firing", "SptCheckpointFilesMissing": "inactive", "SptWatchFails": "inactive"} {
		if alerts[name] != want {
			t.Errorf("alert %s is %q, want %q", name, alerts[name], want)
		}
	}

	var board struct {
		Panels []struct {
			Title   string
			Targets []struct{ Expr string }
		}
	}
	text, err = os.ReadFile("../../docs/watch/dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &board); err != nil {
		t.Fatal(err)
	}
	queries := 0
	for _, p := range board.Panels {
		for _, target := range p.Targets {
			if strings.Contains(target.Expr, "webhook") || strings.Contains(target.Expr, "rule_firing") {
				continue // it has no webhook and no rules
			}
			queries++
			until(t, query(strings.NewReplacer("$root", ".*", "$directory", ".*").Replace(target.Expr)), `"value":[`)
		}
	}
	t.Logf("%d alerts, %d queries of the dashboard", len(alerts), queries)
	if err := w.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := w.cmd.Wait(); err != nil {
		t.Errorf("after SIGTERM: %v", err)
	}
}
