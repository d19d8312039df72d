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

// print prints the answer of the command.
func (e *Env) print(r report.Report) error {
	return report.Print(e.Stdout, e.term(), e.common.output, r)
}

// renderValue prints an answer of one value for programs. It is false where the
// answer is wanted for people, or as comma-separated rows.
func renderValue(env *Env, v any) (bool, error) {
	switch env.common.output {
	case ui.OutputJSON:
		return true, ui.JSON(env.Stdout, v)
	case ui.OutputJSONL:
		l := ui.NewJSONLines(env.Stdout)
		if err := l.Encode(v); err != nil {
			return true, err
		}
		return true, l.Flush()
	}
	return false, nil
}

// renderRows prints an answer of many rows for programs: an array, an object a
// line, or comma-separated cells under a header. It is false where a table is
// wanted.
func renderRows[T any](env *Env, output ui.Output, rows []T, header []string, cells func(*T) []string) (bool, error) {
	switch output {
	case ui.OutputJSON:
		if rows == nil {
			rows = []T{}
		}
		return true, ui.JSON(env.Stdout, rows)
	case ui.OutputJSONL:
		l := ui.NewJSONLines(env.Stdout)
		for i := range rows {
			if err := l.Encode(&rows[i]); err != nil {
				return true, err
			}
		}
		return true, l.Flush()
	case ui.OutputCSV:
		c := ui.NewCSV(env.Stdout, header...)
		for i := range rows {
			if err := c.Row(cells(&rows[i])...); err != nil {
				return true, err
			}
		}
		return true, c.Flush()
	}
	return false, nil
}
