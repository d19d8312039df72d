package command

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
)

// A snapshot can name files in any number of folders. The directories around it are
// searched for those of a few folders only: of the others the advice has a blank.
func TestMissingFilesOfManyFolders(t *testing.T) {
	const folders = 3 * maxSearches
	base := realTemp(t)
	op := &format.Operator{ID: format.OperatorIDOf("x"), Parallelism: folders, MaxParallelism: 128}
	for i := range folders {
		name := fmt.Sprintf("state-%d", i)
		put(t, base+"/ck/job/copies/"+name, "x")
		op.Subtasks = append(op.Subtasks, &format.Subtask{Index: int32(i), Managed: &format.OperatorHandle{
			Codec:  format.CodecFlink,
			Data:   &format.File{Path: format.NewText(fmt.Sprintf("file:/nowhere/%02d/%s", i, name)), Length: 1},
			States: []format.NamedState{{Name: format.NewText("s"), Offsets: format.OffsetSlice{0}}},
		}})
	}
	var b bytes.Buffer
	if err := metadata.Encode(context.Background(), &b, &format.Savepoint{ID: 7, Operators: []*format.Operator{op}}, nil); err != nil {
		t.Fatal(err)
	}
	put(t, base+"/ck/job/chk-7/_metadata", b.String())
	for _, command := range []string{"verify", "check"} {
		var out bytes.Buffer
		env := OSEnv()
		env.Stdout, env.Stderr, env.stdoutFile, env.stderrFile = &out, &out, nil, nil
		env.Getenv = func(string) string { return "" }
		code, stdout := Main(context.Background(), []string{command, base + "/ck/job/chk-7"}, env), out.String()
		for _, want := range []string{
			fmt.Sprintf("error  %d of this kind", maxSearches), "it is in " + base,
			fmt.Sprintf("error  %d of this kind", folders-maxSearches), "if there is a copy in DIR",
		} {
			if code != exitFindings || !strings.Contains(stdout, want) {
				t.Errorf("%s: exit %d, no %q:\n%s", command, code, want, stdout)
			}
		}
	}
}
