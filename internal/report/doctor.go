package report

import (
	"fmt"
	"iter"
	"time"

	"github.com/savepoint-tools/spt/internal/ui"
	"github.com/savepoint-tools/spt/storage"
)

// Doctor is the answer of doctor: how an address is reached, and what works there.
type Doctor struct {
	Address     string        `json:"address"`
	Name        string        `json:"name" jsonschema:"description=of the address in its store"`
	Service     string        `json:"service"`
	Endpoint    string        `json:"endpoint,omitempty"`
	Region      string        `json:"region,omitempty"`
	Credentials string        `json:"credentials,omitempty" jsonschema:"description=where they were found; never the secret"`
	Identity    string        `json:"identity,omitempty" jsonschema:"description=what the credentials belong to"`
	Details     []string      `json:"details,omitempty"`
	Clock       *int64        `json:"clock_ahead_seconds,omitempty" jsonschema:"description=how far the clock of the service is ahead of this machine"`
	Works       bool          `json:"works" jsonschema:"description=no check failed"`
	Checks      []DoctorCheck `json:"checks"`
}

// DoctorCheck is one thing that was tried.
type DoctorCheck struct {
	Check  string `json:"check" jsonschema:"enum=reach,enum=list,enum=read,enum=create,enum=refuse,enum=read_back,enum=delete"`
	Result string `json:"result" jsonschema:"enum=ok,enum=failed,enum=not_tried"`
	Detail string `json:"detail,omitempty"`
	Hint   string `json:"hint,omitempty" jsonschema:"description=what to do"`
}

// The values of [DoctorCheck.Result].
const (
	doctorOK       = "ok"
	doctorFailed   = "failed"
	doctorNotTried = "not_tried"
)

// NewDoctor returns a report of an address, and of its name in its store.
func NewDoctor(address, name string) *Doctor {
	return &Doctor{Address: address, Name: name, Service: "local files", Works: true, Checks: []DoctorCheck{}}
}

// Accessed adds how the store is reached.
func (a *Doctor) Accessed(by storage.Access) {
	a.Service, a.Endpoint, a.Region, a.Credentials, a.Identity, a.Details = by.Service, by.Endpoint, by.Region, by.Credentials, by.Identity, by.Details
	if by.Clocked {
		a.Clock = new(int64(by.Clock.Seconds()))
	}
}

// OK adds a check that succeeded.
func (a *Doctor) OK(check, format string, args ...any) {
	a.Checks = append(a.Checks, DoctorCheck{Check: check, Result: doctorOK, Detail: fmt.Sprintf(format, args...)})
}

// NotTried adds a check that was not made, and why.
func (a *Doctor) NotTried(check, why string) {
	a.Checks = append(a.Checks, DoctorCheck{Check: check, Result: doctorNotTried, Detail: why})
}

// Failed adds a check that failed, and what to do.
func (a *Doctor) Failed(check, why, hint string) {
	a.Works = false
	a.Checks = append(a.Checks, DoctorCheck{Check: check, Result: doctorFailed, Detail: why, Hint: hint})
}

// Lines implements [Lines].
func (a *Doctor) Lines() iter.Seq[any] { return each([]*Doctor{a}) }

// Header implements [Rows].
func (a *Doctor) Header() []string { return []string{"check", "result", "detail", "hint"} }

// Rows implements [Rows].
func (a *Doctor) Rows() iter.Seq[[]string] {
	return rows(a.Checks, func(c *DoctorCheck) []string { return []string{c.Check, c.Result, c.Detail, c.Hint} })
}

// clockOff is a difference of clocks that deserves a look: services refuse requests
// from 15 minutes on.
const clockOff = time.Minute

// Document implements [Report].
func (a *Doctor) Document() *ui.Document {
	var d ui.Document
	d.Heading("%s", ui.Quote(a.Address))
	field := func(label, text string) {
		if text != "" {
			d.Line("%-12s %s", label, text)
		}
	}
	service := a.Service
	if a.Endpoint != "" {
		service += " at " + ui.Quote(a.Endpoint)
	}
	field("service", service)
	field("region", ui.Printable(a.Region))
	credentials := ui.Printable(a.Credentials)
	if a.Identity != "" {
		credentials += " (" + ui.Printable(a.Identity) + ")"
	}
	field("credentials", credentials)
	for _, text := range a.Details {
		field("", ui.Printable(text))
	}
	if a.Clock != nil {
		field("clock", clockText(time.Duration(*a.Clock)*time.Second))
	}
	for _, c := range a.Checks {
		word := "ok"
		switch c.Result {
		case doctorFailed:
			word = ui.Bad("failed")
		case doctorNotTried:
			word = ui.Look("not tried")
		}
		text := fmt.Sprintf("%-12s %s", doctorLabels[c.Check], word)
		if c.Detail != "" {
			text += ": " + ui.PrintableLines(c.Detail)
		}
		d.Line("%s", text)
		if c.Hint != "" {
			d.Line("%-12s what to do: %s", "", ui.PrintableLines(c.Hint))
		}
	}
	return &d
}

var doctorLabels = map[string]string{
	"reach": "reach", "list": "list", "read": "read", "create": "create", "refuse": "create again", "read_back": "read back", "delete": "delete",
}

func clockText(ahead time.Duration) string {
	var text string
	switch {
	case ahead.Abs() < 2*time.Second:
		return "the same as here"
	case ahead > 0:
		text = fmt.Sprintf("the service's is %v ahead", ahead)
	default:
		text = fmt.Sprintf("the service's is %v late", -ahead)
	}
	if ahead.Abs() >= clockOff {
		text = ui.Look(text)
	}
	return text
}
