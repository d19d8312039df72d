package storetest_test

import (
	"errors"
	"io/fs"
	"maps"
	"testing"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
)

func TestMem(t *testing.T) {
	storetest.Run(t, func(*testing.T) (storage.Storage, string) { return mem.New(), "sp/" })
}

func TestLocal(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (storage.Storage, string) { return local.New(), t.TempDir() + "/" })
}

func TestLocalRelative(t *testing.T) {
	storetest.Run(t, func(t *testing.T) (storage.Storage, string) {
		t.Chdir(t.TempDir())
		return local.New(), "sp/"
	})
}

// The wrappers change nothing unless told to, with and without the abilities.
func TestWrappers(t *testing.T) {
	for name, wrap := range map[string]func(storage.Storage) storage.Storage{
		"Counting":          func(s storage.Storage) storage.Storage { return storetest.NewCounting(s) },
		"CountingAbilities": func(s storage.Storage) storage.Storage { return storetest.NewCounting(s).WithAbilities() },
		"Failing": func(s storage.Storage) storage.Storage {
			return storetest.NewFailing(s, storetest.Faults{OneByte: true})
		},
		"FailingAbilities": func(s storage.Storage) storage.Storage {
			return storetest.NewFailing(s, storetest.Faults{}).WithAbilities()
		},
	} {
		t.Run(name, func(t *testing.T) {
			storetest.Run(t, func(t *testing.T) (storage.Storage, string) { return wrap(mem.New()), "sp/" })
		})
	}
}

// The optional abilities show only when asked for, and then reach the store.
func TestAbilities(t *testing.T) {
	ctx := t.Context()
	dir := t.TempDir() + "/"
	c := storetest.NewCounting(local.New())
	for _, s := range []storage.Storage{c, storetest.NewFailing(local.New(), storetest.Faults{})} {
		_, copier := s.(storage.Copier)
		_, mapper := s.(ability.Mapper)
		_, linker := s.(ability.Linker)
		_, mover := s.(storage.Mover)
		if copier || mapper || linker || mover {
			t.Errorf("%T shows abilities", s)
		}
	}
	s := c.WithAbilities()
	storetest.Put(t, s, dir+"old/x", "data")
	if err := s.(storage.Mover).Move(ctx, dir+"old", dir+"new"); err != nil {
		t.Fatal(err)
	}
	w, err := s.Create(ctx, dir+"y", storage.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer w.Abort(ctx)
	if err := s.(storage.Copier).CopyRange(ctx, w, s, dir+"new/x", 1, 2, ""); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Commit(ctx); err != nil {
		t.Fatal(err)
	}
	if got := storetest.Read(t, s, dir+"y"); got != "at" {
		t.Errorf("got %q", got)
	}
	for kind, err := range map[string]error{
		"map":  func() error { _, err := s.(ability.Mapper).Map(ctx, dir+"missing", ""); return err }(),
		"link": func() error { _, err := s.(ability.Linker).Link(ctx, dir+"z", s, dir+"missing", "", true); return err }(),
	} {
		if !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errors.ErrUnsupported) {
			t.Errorf("%s: %v", kind, err)
		}
	}
	if free, err := s.(storage.SpaceReporter).FreeSpace(ctx, dir); err == nil && free <= 0 {
		t.Errorf("%d bytes free", free)
	}
	if err := s.(storage.Remover).RemoveTree(ctx, dir+"new"); err != nil {
		t.Fatal(err)
	}
	want := map[string]int{"create": 2, "commit": 2, "abort": 1, "read": 1, "move": 1, "copy": 1, "map": 1, "link": 1, "free": 1, "remove": 1}
	if got := c.Counts(); !maps.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if _, _, err := s.(storage.Resolver).Resolve(ctx, "s3://bucket/x"); !errors.Is(err, storage.ErrUnsupported) {
		t.Errorf("an ability that the store lacks: %v", err)
	}
}
