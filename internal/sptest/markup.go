package sptest

import (
	"bytes"
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
)

// Markup are names that a page of HTML would take for markup or for a script, each for
// another part of the page. If one of them works, it sets the variable taken.
var Markup = []string{
	`<script>taken=1</script>`,
	`"><img src=x onerror=taken=1>`,
	`</title></style></script><svg onload=taken=1>`,
	`' onmouseover='taken=1`,
	`javascript:taken=1`,
	`{{.Path}}`,
	"&lt;b&gt;\u202e\x00",
}

// MarkupSnapshot writes a snapshot whose operators, states and elements have such names,
// and returns its directory.
func MarkupSnapshot(t testing.TB) string {
	t.Helper()
	sp := &format.Savepoint{ID: 7, Kind: format.SnapshotKind{Type: format.TypeSavepoint}}
	for _, name := range Markup {
		op := Operator(name)
		op.Name, op.Parallelism = format.NewText("name "+name), 2
		for i := range int32(2) {
			data, offsets := Blobs(name, name, name)
			op.Subtasks = append(op.Subtasks, &format.Subtask{Index: i, Managed: &format.OperatorHandle{
				Codec: format.CodecFlink, Data: Inline(name, string(data)),
				States: []format.NamedState{{Name: format.NewText(name), Mode: format.ModeUnion, Offsets: format.OffsetSlice(offsets)}},
			}})
		}
		sp.Operators = append(sp.Operators, op)
	}
	dir := filepath.Join(t.TempDir(), "sp")
	var b bytes.Buffer
	if err := metadata.Encode(context.Background(), &b, sp, nil); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(dir, 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "_metadata"), b.Bytes(), 0o666); err != nil {
		t.Fatal(err)
	}
	return dir
}
