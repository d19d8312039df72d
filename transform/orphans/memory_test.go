package orphans_test

import (
	"context"
	"fmt"
	"iter"
	"runtime"
	"testing"

	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/transform/orphans"
)

// many lists very many files of one job without holding them.
type many struct{ *mem.Store }

const manyFiles = 300_000

func (many) List(_ context.Context, prefix, _ string) iter.Seq2[storage.Info, error] {
	return func(yield func(storage.Info, error) bool) {
		for i := range manyFiles {
			name := fmt.Sprintf("%s%s/shared/%08x-0b0a-0908-0706-050403020100", prefix, jobA, i)
			if !yield(storage.Info{Name: name, Size: 1, ModTime: old, Version: storage.Version(fmt.Sprintf("etag-%d", i))}, nil) {
				return
			}
		}
	}
}

// A file takes so many bytes, as long as the result is used: all are unreferenced, which
// is the most.
func TestMemoryOfManyFiles(t *testing.T) {
	const perFile = 330
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	r, err := orphans.Find(ctx, []string{"mem:ckpt"}, orphans.Options{Reader: reader.Options{Stores: stores(many{mem.New()})}, Now: now, OlderThan: week})
	check(t, err)
	runtime.GC()
	runtime.ReadMemStats(&after)
	if len(r.Removable()) != manyFiles {
		t.Fatalf("%d files", len(r.Files))
	}
	if n := int64(after.HeapAlloc-before.HeapAlloc) / manyFiles; n > perFile {
		t.Errorf("%d bytes for each file, more than %d", n, perFile)
	} else {
		t.Logf("%d bytes for each file", n)
	}
	runtime.KeepAlive(r)
}
