package expression_test

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/expression"
)

// TestReference: the examples of docs/expressions.md are true, and it has every
// function.
func TestReference(t *testing.T) {
	doc, err := os.ReadFile("../../docs/expressions.md")
	if err != nil {
		t.Fatal(err)
	}
	line := func(sku string, n int64) value.Value { return record("sku", text(sku), "n", value.Int(n)) }
	order := record("id", value.Int(7), "name", text("Ada"), "price", decimalOf(1990, 2), "at", value.Instant(1714564800, 0),
		"tags", listOf(text("new"), text("paid")), "lines", listOf(line("a", 2), line("b", 5)),
		"stock", value.Map([]value.Value{text("a"), value.Int(3), text("b"), value.Int(0)}), "note", value.Null())
	v := expression.Vars{Values: []value.Value{value.Int(40), text("orders"), value.Bool(true), order, value.Null(), {}}}
	examples := 0
	for _, block := range regexp.MustCompile("(?s)```expression\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		for example := range strings.Lines(block[1]) {
			examples++
			p, err := expression.Compile(example, names)
			if err != nil {
				t.Errorf("%s%v", example, err)
				continue
			}
			if ok, err := p.Eval(&v); err != nil || !ok {
				t.Errorf("%s%v, %v", example, ok, err)
			}
		}
	}
	if examples < 20 {
		t.Errorf("%d examples", examples)
	}
	for _, name := range expression.Functions() {
		_, err := expression.Compile(name+"()", names)
		_, usage, ok := strings.Cut(err.Error(), "expected ")
		usage, _, _ = strings.Cut(usage, " (column")
		if !ok || !strings.Contains(string(doc), "`"+usage+"`") {
			t.Errorf("docs/expressions.md does not have `%s`", usage)
		}
	}
}
