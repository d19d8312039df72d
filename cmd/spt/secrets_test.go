package main

import (
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"
)

// variable is how a log lists the variables of a script, which have the secrets.
var variable = regexp.MustCompile(`^\s*[A-Z][A-Z0-9_]*=`)

// withoutSecrets runs scripts and searches everything that their commands print for
// secrets. shown is something that one of them prints: without it, the output was not
// collected.
func withoutSecrets(t *testing.T, p testscript.Params, shown string, secrets ...string) {
	t.Helper()
	log := &scriptLog{}
	testscript.RunT(loggedT{t, log}, p)
	t.Cleanup(func() { // after the scripts, which run in parallel
		text := log.text()
		if !strings.Contains(text, shown) {
			t.Error("the output of the scripts was not collected")
		}
		for line := range strings.Lines(text) {
			for _, secret := range secrets {
				if secret == "" || strings.Contains(line, secret) && !variable.MatchString(line) {
					t.Errorf("a secret is in the output: %s", line)
				}
			}
		}
	})
}

// scriptLog is all output of the scripts.
type scriptLog struct {
	mu  sync.Mutex
	all strings.Builder
}

func (l *scriptLog) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.all.String()
}

// loggedT keeps the log of each script, all of it, and shows it only if the script
// fails.
type loggedT struct {
	*testing.T
	log *scriptLog
}

// Verbose makes a script log the output of everything that succeeds.
func (loggedT) Verbose() bool { return true }

// Log implements testscript.T.
func (l loggedT) Log(args ...any) {
	l.log.mu.Lock()
	defer l.log.mu.Unlock()
	fmt.Fprintln(&l.log.all, args...)
	l.T.Log(args...)
}

// Run implements testscript.T.
func (l loggedT) Run(name string, f func(testscript.T)) {
	l.T.Run(name, func(t *testing.T) { f(loggedT{t, l.log}) })
}
