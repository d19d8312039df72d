package servertest

import (
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// azuriteVersion is what is installed, by npm.
const azuriteVersion = "3.35.0"

// Azurite is a running emulator of Azure Blob Storage with one account.
type Azurite struct {
	*Process
	Endpoint string // URL of the service, with the account
	Account  string
	Key      string // of the account
}

// StartAzurite starts the emulator, which needs Node.js and npm.
func StartAzurite(t testing.TB) *Azurite {
	t.Helper()
	main := installAzurite(t)
	node, err := exec.LookPath("node")
	if err != nil {
		testenv.Missing(t, "Azurite", err)
	}
	key := make([]byte, 64)
	rand.Read(key) //nolint:errcheck // it does not fail
	a := &Azurite{Account: "teststate", Key: base64.StdEncoding.EncodeToString(key)}
	port := Port(t)
	address := net.JoinHostPort("127.0.0.1", strconv.Itoa(port))
	a.Endpoint = "http://" + address + "/" + a.Account
	cmd := exec.Command(node, main, "--silent", "--disableTelemetry", "--skipApiVersionCheck", "--blobHost", "127.0.0.1", "--blobPort", strconv.Itoa(port), "--location", t.TempDir())
	cmd.Dir = t.TempDir()
	cmd.Env = append(os.Environ(), "AZURITE_ACCOUNTS="+a.Account+":"+a.Key)
	a.Process = Start(t, cmd, func() error {
		c, err := net.DialTimeout("tcp", address, time.Second)
		if err != nil {
			return err
		}
		return c.Close()
	})
	return a
}

// Container makes a container.
func (a *Azurite) Container(t testing.TB, name string) {
	t.Helper()
	if _, err := a.Client(t).NewContainerClient(name).Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
}

// Client returns a client of Azure's library for the account.
func (a *Azurite) Client(t testing.TB) *service.Client {
	t.Helper()
	key, err := service.NewSharedKeyCredential(a.Account, a.Key)
	if err != nil {
		t.Fatal(err)
	}
	c, err := service.NewClientWithSharedKeyCredential(a.Endpoint, key, nil)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// installAzurite installs Azurite once into the cache directory of the user, and
// returns the path of its program.
func installAzurite(t testing.TB) string {
	t.Helper()
	npm, err := exec.LookPath("npm")
	if err != nil {
		testenv.Missing(t, "Azurite", err)
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		testenv.Missing(t, "Azurite", err)
	}
	dir := filepath.Join(cache, "spt-test-servers", "azurite-"+azuriteVersion)
	main := filepath.Join("node_modules", "azurite", "dist", "src", "blob", "main.js")
	if _, err := os.Stat(filepath.Join(dir, main)); err == nil {
		return filepath.Join(dir, main)
	}
	if err := os.MkdirAll(filepath.Dir(dir), 0o755); err != nil {
		t.Fatal(err)
	}
	building, err := os.MkdirTemp(filepath.Dir(dir), "azurite-") // other packages may install it too
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(building) //nolint:errcheck // it was renamed, or is left over
	wants := fmt.Sprintf(`{"private": true, "dependencies": {"azurite": %q}}`, azuriteVersion)
	if err := os.WriteFile(filepath.Join(building, "package.json"), []byte(wants), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run(building, nil, npm, "install", "--no-audit", "--no-fund", "--ignore-scripts"); err != nil {
		testenv.Missing(t, "Azurite", err)
	}
	if err := os.Rename(building, dir); err != nil {
		if _, serr := os.Stat(filepath.Join(dir, main)); serr != nil {
			t.Fatal(err)
		}
	}
	return filepath.Join(dir, main)
}
