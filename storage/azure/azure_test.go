package azure

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
)

var prefixes atomic.Int64

// start starts an emulator with a container. Tests that share it are subtests.
func start(t *testing.T) *servertest.Azurite {
	t.Helper()
	a := servertest.StartAzurite(t)
	a.Container(t, "state")
	return a
}

// env returns a Getenv of these variables only.
func env(pairs ...string) func(string) string {
	return func(name string) string {
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i] == name {
				return pairs[i+1]
			}
		}
		return ""
	}
}

// base is the URI of the container.
func base(a *servertest.Azurite) string {
	return "abfss://state@" + a.Account + ".dfs.core.windows.net/"
}

// unused returns a prefix that no other test uses.
func unused(a *servertest.Azurite) string {
	return fmt.Sprintf("%st%d/", base(a), prefixes.Add(1))
}

func byKey(a *servertest.Azurite, o Options) *Store {
	o.Getenv = env(envAccount, a.Account, envKey, a.Key)
	if o.Endpoint == "" {
		o.Endpoint = a.Endpoint
	}
	return New(o)
}

func TestSuite(t *testing.T) {
	a := start(t)
	storetest.Run(t, func(t *testing.T) (storage.Storage, string) { return byKey(a, Options{}), unused(a) })
}
