package command

import (
	"fmt"

	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/internal/ui"
)

// remark says on stderr what the answer does not, such as why it is empty: for
// people, not for programs that read JSON.
func (e *Env) remark(format string, args ...any) error {
	if e.common.quiet || e.common.output.JSON() {
		return nil
	}
	return e.complain(ui.Printable(fmt.Sprintf(format, args...)))
}

// answer prints the answer of the command.
func (e *Env) answer(r report.Report) error {
	term := e.term()
	term.Repeat = e.reach
	return report.Print(e.Stdout, term, e.common.output, r)
}
