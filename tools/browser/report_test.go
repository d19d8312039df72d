// Package browser_test opens the pages of spt report in Chromium.
package browser_test

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

const savepoints = "../../testdata/savepoints/"

// build builds spt once.
var build = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "spt-browser-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "spt")
	cmd := exec.Command("go", "build", "-o", bin, "./cmd/spt")
	cmd.Dir = "../.."
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := build(); err == nil {
		os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

// report writes a page and returns its URL.
func report(t *testing.T, args ...string) string {
	t.Helper()
	bin, err := build()
	if err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "report.html")
	out, err := exec.Command(bin, append([]string{"report", "-o", page}, args...)...).CombinedOutput()
	if _, serr := os.Stat(page); serr != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return "file://" + page
}

// tab is a page in a browser.
type tab struct {
	*testing.T
	ctx context.Context

	mu      sync.Mutex
	console []string
}

// open opens a page. What the browser or the page writes to the console fails the test.
func open(t *testing.T, url string) *tab {
	t.Helper()
	chromium, err := exec.LookPath("chromium")
	if err != nil {
		testenv.Missing(t, "pages in a browser", err)
	}
	alloc, stop := chromedp.NewExecAllocator(context.Background(), append(slices.Clone(chromedp.DefaultExecAllocatorOptions[:]), chromedp.ExecPath(chromium), chromedp.NoSandbox)...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(alloc)
	t.Cleanup(cancel)
	b := &tab{T: t, ctx: ctx}
	run(b, chromedp.Navigate("about:blank"))
	go func() {
		for m, err := range chromedp.Console(ctx) {
			if err != nil {
				return
			}
			b.mu.Lock()
			b.console = append(b.console, m.String())
			b.mu.Unlock()
		}
	}()
	run(b, chromedp.EmulateViewport(1280, 900))
	run(b, chromedp.Navigate(url))
	t.Cleanup(func() {
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, m := range b.console {
			t.Errorf("console: %s", m)
		}
	})
	return b
}

func run[T any](b *tab, a chromedp.Action[T]) T {
	b.Helper()
	v, err := chromedp.Run(b.ctx, a)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// expect evaluates an expression on the page and compares its value.
func expect[T comparable](b *tab, expression string, want T) {
	b.Helper()
	if got := run(b, chromedp.Evaluate[T](expression)); got != want {
		b.Errorf("%s: %v, expected %v", expression, got, want)
	}
}

// media sets what the page is shown on.
func media(b *tab, medium, scheme string) {
	b.Helper()
	run(b, chromedp.Func(func(ctx context.Context, t *chromedp.Target) error {
		_, err := cdp.Call(ctx, t, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
			Media: medium, Features: []*emulation.MediaFeature{{Name: "prefers-color-scheme", Value: scheme}},
		})
		return err
	}))
}

// visible counts the panels of treemaps that are shown.
const visible = `[...document.querySelectorAll(".panel")].filter(p => p.offsetHeight > 0).map(p => p.id).join(" ")`

func TestTabs(t *testing.T) {
	b := open(t, report(t, savepoints+"sp-009"))
	expect(b, `document.title`, savepoints+"sp-009 – spt report")
	expect(b, visible, "states")
	run(b, chromedp.Click("#tab-subtasks"))
	expect(b, visible, "subtasks")
	expect(b, `document.querySelector("#tab-subtasks").ariaSelected`, "true")
	for _, step := range []struct{ key, want string }{{kb.ArrowRight, "files"}, {kb.ArrowRight, "states"}, {kb.ArrowLeft, "files"}, {kb.Home, "states"}, {kb.End, "files"}} {
		run(b, chromedp.KeyEvent(step.key))
		expect(b, `document.activeElement.getAttribute("aria-controls")`, step.want)
		expect(b, visible, step.want)
	}
	media(b, "print", "light")
	expect(b, visible, "states subtasks files")
	expect(b, `window.dispatchEvent(new Event("beforeprint")), document.querySelectorAll("details:not([open])").length`, 0)
}

// TestSlider compares what the page says each subtask holds at every parallelism with
// Flink's rule for a key group: its subtask is keyGroup * parallelism / maxParallelism.
func TestSlider(t *testing.T) {
	b := open(t, report(t, savepoints+"sp-002"))
	expect(b, `document.querySelectorAll(".groups").length`, 2)
	var groups []int64
	for _, s := range strings.Fields(run(b, chromedp.Evaluate[string](`document.querySelector(".groups").dataset.bytes`))) {
		n, err := strconv.ParseInt(s, 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		groups = append(groups, n)
	}
	if len(groups) != 128 {
		t.Fatalf("%d key groups", len(groups))
	}
	for p := 1; p <= len(groups); p++ {
		held := make([]int64, p)
		for g, n := range groups {
			held[g*p/len(groups)] += n
		}
		at := slices.Index(held, slices.Max(held))
		run(b, chromedp.Evaluate[bool](fmt.Sprintf(`{const s = document.querySelector(".groups input"); s.value = %d; s.dispatchEvent(new Event("input"))}`, p)))
		want := fmt.Sprintf("At parallelism %d: largest subtask %s (%d), median ", p, bytes(held[at]), at)
		if got := run(b, chromedp.Evaluate[string](`document.querySelector(".held").textContent`)); !strings.HasPrefix(got, want) {
			t.Errorf("%q, expected %q", got, want)
		}
		slices.Sort(held)
		if got, want := run(b, chromedp.Evaluate[string](`document.querySelector(".held").textContent`)), ", median "+bytes(held[(p-1)/2])+", smallest "+bytes(held[0])+"."; !strings.HasSuffix(got, want) {
			t.Errorf("%q, expected %q", got, want)
		}
	}
	// By keyboard, as a person without a mouse moves it.
	run(b, chromedp.Click(".groups input"))
	before := run(b, chromedp.Evaluate[string](`document.querySelector(".groups output").textContent`))
	run(b, chromedp.KeyEvent(kb.ArrowRight))
	expect(b, `document.querySelector(".groups output").textContent === "`+before+`"`, false)
}

// bytes formats less than 1 MiB as spt does.
func bytes(n int64) string {
	if n < 1024 {
		return fmt.Sprintf("%d B", n)
	}
	tenths := (n*10 + 512) / 1024
	return fmt.Sprintf("%d.%d KiB", tenths/10, tenths%10)
}

// TestLook: the page has a dark scheme, fits a narrow screen, and its parts have names.
func TestLook(t *testing.T) {
	b := open(t, report(t, savepoints+"sp-001", savepoints+"sp-007", savepoints+"sp-009"))
	const light, background = "rgb(251, 251, 250)", `getComputedStyle(document.documentElement).backgroundColor`
	expect(b, background, light)
	media(b, "", "dark")
	expect(b, background, "rgb(20, 23, 27)")
	for _, width := range []int64{1280, 400, 320} {
		run(b, chromedp.EmulateViewport(width, 900))
		expect(b, `document.documentElement.scrollWidth <= innerWidth`, true)
	}
	expect(b, `[...document.querySelectorAll("svg[role=img]")].filter(s => !s.getAttribute("aria-label")).length`, 0)
	expect(b, `[...document.querySelectorAll("table")].filter(t => !t.caption).length`, 0)
	expect(b, `[...document.querySelectorAll("input")].filter(i => i.labels.length !== 1).length`, 0)
	expect(b, `[...document.querySelectorAll("nav a")].filter(a => !document.querySelector(a.getAttribute("href"))).length`, 0)
	expect(b, `new Set([...document.querySelectorAll("[id]")].map(e => e.id)).size - document.querySelectorAll("[id]").length`, 0)
	expect(b, `performance.getEntriesByType("resource").length`, 0)
}

// TestMarkup: names that look like markup do nothing.
func TestMarkup(t *testing.T) {
	b := open(t, report(t, sptest.MarkupSnapshot(t), "--verify"))
	run(b, chromedp.Evaluate[bool](`document.querySelectorAll("body *").forEach(e => e.dispatchEvent(new Event("mouseover"))), true`))
	expect(b, `typeof taken`, "undefined")
	expect(b, `document.scripts.length + document.images.length`, 1)
	expect(b, `document.querySelector(".tile text").textContent.length > 0`, true)
}
