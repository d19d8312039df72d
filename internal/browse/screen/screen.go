// Package screen shows a browser on a terminal.
package screen

import (
	"context"
	"errors"
	"io"
	"strings"
	"sync"
	"time"

	tea "charm.land/bubbletea/v2"

	"github.com/savepoint-tools/spt/internal/browse"
)

// redrawEvery is how often the progress of work is drawn.
const redrawEvery = time.Second / 5

// Run shows b on a terminal until the user leaves or ctx ends. No work runs any more
// when it returns.
func Run(ctx context.Context, b *browse.Browser, in io.Reader, out io.Writer) error {
	working, cancel := context.WithCancel(ctx)
	m := &model{ctx: working, b: b}
	// Signals end ctx; the terminal sends Ctrl+C as a key.
	p := tea.NewProgram(m, tea.WithInput(in), tea.WithOutput(out), tea.WithoutSignalHandler())
	stop := context.AfterFunc(ctx, p.Quit)
	_, err := p.Run()
	stop()
	cancel()
	m.wait()
	b.Close()
	return errors.Join(err, ctx.Err())
}

// model passes messages to a browser and runs its work.
type model struct {
	ctx    context.Context
	b      *browse.Browser
	cancel context.CancelFunc // of the work that runs; nil: none

	mu   sync.Mutex // held while work runs
	over bool       // guarded by mu: no work may start
}

// wait waits for work that runs, and starts no other.
func (m *model) wait() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.over = true
}

type (
	finished func() // the result of work
	tick     struct{}
)

func (m *model) Init() tea.Cmd { return nil } // the size of the terminal comes first

func (m *model) Update(msg tea.Msg) (tea.Model, tea.Cmd) {
	switch msg := msg.(type) {
	case tea.WindowSizeMsg:
		m.b.Resize(msg.Width, msg.Height)
	case tea.KeyPressMsg:
		if m.b.Press(msg.String(), msg.Text) && m.cancel != nil {
			m.cancel()
		}
	case tea.PasteMsg:
		m.b.Paste(msg.Content)
	case finished:
		m.cancel()
		m.cancel = nil
		msg()
	case tick:
		if m.b.Busy() {
			return m, redraw()
		}
		return m, nil
	}
	if m.b.Done() {
		return m, tea.Quit
	}
	work := m.b.Next()
	if work == nil {
		return m, nil
	}
	ctx, cancel := context.WithCancel(m.ctx)
	m.cancel = cancel
	return m, tea.Batch(redraw(), func() tea.Msg {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.over {
			return nil
		}
		return finished(work(ctx))
	})
}

func redraw() tea.Cmd { return tea.Tick(redrawEvery, func(time.Time) tea.Msg { return tick{} }) }

func (m *model) View() tea.View {
	v := tea.NewView(strings.Join(m.b.Screen(), "\n"))
	v.AltScreen = true
	return v
}
