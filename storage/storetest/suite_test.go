package storetest_test

import (
	"testing"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/local"
	"github.com/savepoint-tools/spt/storage/mem"
	"github.com/savepoint-tools/spt/storage/storetest"
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
