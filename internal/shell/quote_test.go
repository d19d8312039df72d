package shell

import (
	"os/exec"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
)

var words = []struct{ in, want string }{
	{"sp-001", "sp-001"},
	{"s3://flink/prod/a=b", "s3://flink/prod/a=b"},
	{"", "''"},
	{"my sp (1)", "'my sp (1)'"},
	{"Größe", "Größe"}, {"a_b+c@d%e", "a_b+c@d%e"}, {`a\b`, `'a\b'`}, {"a*", "'a*'"}, {"$x", "'$x'"}, {"a~", "a~"}, {"x;y", "'x;y'"},
	{"it's $x", `'it'\''s $x'`},
	{"Sink: Print to Std. Out", "'Sink: Print to Std. Out'"},
	{"größe", "größe"},
	{"~root", "'~root'"},
	{"a*[0]?", "'a*[0]?'"},
	{`a\b"c`, `'a\b"c'`},
	{"a`id`;b&c|d>e<f#g!{h}", "'a`id`;b&c|d>e<f#g!{h}'"},
	{"line\nbreak1", `$'line\012break1'`},
	{"\x1b[31m'red\\", `$'\033[31m\'red\\'`},
	{"bad\xff1", `$'bad\3771'`},
	{"a\u202eb", `$'a\342\200\256b'`},
}

func TestQuote(t *testing.T) {
	for _, w := range words {
		if got := Quote(w.in); got != w.want {
			t.Errorf("Quote(%q) = %s, want %s", w.in, got, w.want)
		}
	}
}

// TestQuoteInBash: a real shell reads each word as it was.
func TestQuoteInBash(t *testing.T) {
	bash, err := exec.LookPath("bash")
	if err != nil {
		testenv.Missing(t, "words in bash", err)
	}
	for _, w := range words {
		out, err := exec.Command(bash, "--norc", "--noprofile", "-c", "printf %s "+Quote(w.in)).Output()
		if err != nil || string(out) != w.in {
			t.Errorf("bash reads %s as %q, %v", Quote(w.in), out, err)
		}
	}
}
