package main

import (
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/savepoint-tools/spt/internal/servertest"
)

// wrongAccountKey is the key in a configuration of the scripts that belongs to nobody.
const wrongAccountKey = "d3Jvbmcga2V5IG9mIHRoZSBhY2NvdW50"

// TestAzureScripts runs testdata/azure against an emulator of Azure: each script has a
// container of its own, $CONTAINER, in the account $ACCOUNT. $SP is its address, and
// $BLOB the same one for the Blob protocol. No output may have a key.
func TestAzureScripts(t *testing.T) {
	server := servertest.StartAzurite(t)
	fixtures, err := filepath.Abs("../../testdata/savepoints")
	if err != nil {
		t.Fatal(err)
	}
	p := scriptParams("testdata/azure", fixtures)
	setup := p.Setup
	p.Setup = func(e *testscript.Env) error {
		name := strings.TrimPrefix(filepath.Base(e.WorkDir), "script-")
		server.Container(t, name)
		e.Setenv("HOME", e.WorkDir)
		e.Setenv("ACCOUNT", server.Account)
		e.Setenv("CONTAINER", name)
		e.Setenv("SP", fmt.Sprintf("abfss://%s@%s.dfs.core.windows.net", name, server.Account))
		e.Setenv("BLOB", fmt.Sprintf("wasbs://%s@%s.blob.core.windows.net", name, server.Account))
		e.Setenv("ENDPOINT", server.Endpoint)
		e.Setenv("KEY", server.Key)
		e.Setenv("AZURE_STORAGE_CONNECTION_STRING", fmt.Sprintf("AccountName=%s;AccountKey=%s;BlobEndpoint=%s", server.Account, server.Key, server.Endpoint))
		e.Setenv("NOWHERE", fmt.Sprintf("http://127.0.0.1:%d", servertest.Port(t)))
		return setup(e)
	}
	withoutSecrets(t, p, "AZURE_STORAGE_ACCOUNT and AZURE_STORAGE_KEY", server.Key, wrongAccountKey)
}
