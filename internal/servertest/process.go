// Package servertest starts real servers for tests: object stores and file systems
// as users have them. They listen on the loopback interface only, keep their data in
// a directory of the test, and are stopped by their process id when the test ends.
// Without the server, the test is skipped as testenv.Missing says.
package servertest

import (
	"bytes"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// readyWithin is how long a server may take to start on a slow machine.
const readyWithin = 3 * time.Minute

// Process is a running server.
type Process struct {
	Dir string // of its data and its log
	cmd *exec.Cmd
	log bytes.Buffer
	mu  sync.Mutex
	end chan struct{} // closed when it has ended
}

// Write keeps what the server prints.
func (p *Process) Write(text []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.Write(text)
}

// Log returns what the server printed.
func (p *Process) Log() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// Start starts a server and waits until ready returns nil. The server is killed
// when the test ends.
func Start(t testing.TB, cmd *exec.Cmd, ready func() error) *Process {
	t.Helper()
	p := &Process{Dir: cmd.Dir, cmd: cmd, end: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = p, p
	name := filepath.Base(cmd.Path)
	if err := cmd.Start(); err != nil {
		testenv.Missing(t, name, err)
	}
	go func() {
		_ = cmd.Wait() // killed in most cases
		close(p.end)
	}()
	t.Cleanup(p.Kill)
	var last error
	for deadline := time.Now().Add(readyWithin); time.Now().Before(deadline); time.Sleep(20 * time.Millisecond) {
		select {
		case <-p.end:
			t.Fatalf("%s ended before it was ready:\n%s", name, p.Log())
		default:
		}
		if last = ready(); last == nil {
			return p
		}
	}
	t.Fatalf("%s is not ready after %v: %v\n%s", name, readyWithin, last, p.Log())
	return nil
}

// Kill ends the server at once, as a crash would, and waits for its end.
func (p *Process) Kill() {
	_ = p.cmd.Process.Kill() // it may have ended
	<-p.end
}

// Port returns a free port of the loopback interface.
func Port(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // nothing was written
	return l.Addr().(*net.TCPAddr).Port
}

// Tool builds a server written in Go, of the version that tools/servers/go.mod
// states, and returns the path of its binary. It is built once for each version, and
// kept in the cache directory of the user.
func Tool(t testing.TB, pkg string) string {
	t.Helper()
	return toolOf(t, "servers", pkg)
}

// toolOf is Tool for another module in tools, whose requirements conflict with the
// requirements of the other servers.
func toolOf(t testing.TB, module, pkg string) string {
	t.Helper()
	dir := filepath.Join(testenv.ModuleRoot(t), "tools", module)
	version, err := run(dir, nil, "go", "list", "-f", "{{with .Module}}{{.Version}}{{end}}", pkg)
	if err != nil {
		testenv.Missing(t, pkg, err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		testenv.Missing(t, pkg, err)
	}
	binary := filepath.Join(cache, "spt-test-servers", filepath.Base(pkg)+"-"+strings.TrimSpace(version))
	if _, err := os.Stat(binary); err == nil {
		return binary
	}
	if err := os.MkdirAll(filepath.Dir(binary), 0o755); err != nil {
		t.Fatal(err)
	}
	building := fmt.Sprintf("%s.%d", binary, os.Getpid()) // other packages may build it too
	if _, err := run(dir, []string{"CGO_ENABLED=0"}, "go", "build", "-trimpath", "-ldflags=-s -w", "-o", building, pkg); err != nil {
		testenv.Missing(t, pkg, err)
	}
	if err := os.Rename(building, binary); err != nil {
		t.Fatal(err)
	}
	return binary
}

// run runs a program and returns what it prints.
func run(dir string, env []string, name string, args ...string) (string, error) {
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), env...)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("%s %s: %w\n%s", name, strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}
