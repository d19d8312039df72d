package azure

import (
	"fmt"
	"sync/atomic"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/storage"
)

var prefixes atomic.Int64

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

// TestAzurite runs what needs the emulator.
func TestAzurite(t *testing.T) {
	a := servertest.StartAzurite(t)
	a.Container(t, "state")
	for name, test := range map[string]func(*testing.T, *servertest.Azurite){
		"Suite": func(t *testing.T, a *servertest.Azurite) {
			storetest.Run(t, func(*testing.T) (storage.Storage, string) { return byKey(a, Options{}), unused(a) })
		},
		"Requests":       testRequests,
		"BusyService":    testBusyService,
		"Attempts":       testAttempts,
		"LostAnswer":     testLostAnswer,
		"Abort":          testAbort,
		"Overtaken":      testOvertaken,
		"CutBody":        testCutBody,
		"HangingService": testHangingService,
		"Refused":        testRefused,
		"Directories":    testDirectories,
		"OddKeys":        testOddKeys,
		"Leftovers":      testLeftovers,
		"Copies":         testCopies,
		"Access":         testAccess,
	} {
		t.Run(name, func(t *testing.T) { test(t, a) })
	}
}

// uploadOptions are those of the client library.
type uploadOptions = blockblob.UploadOptions

func byKeyCredential(t *testing.T, a *servertest.Azurite) *service.SharedKeyCredential {
	t.Helper()
	key, err := service.NewSharedKeyCredential(a.Account, a.Key)
	if err != nil {
		t.Fatal(err)
	}
	return key
}
