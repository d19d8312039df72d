package azure

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/storage"
)

// Schemes are the schemes of the URIs that a Store resolves.
var Schemes = []string{"abfs", "abfss", "wasb", "wasbs"}

// expectedURI is what every URI must look like.
const expectedURI = "abfss://CONTAINER@ACCOUNT.dfs.core.windows.net/PATH"

// address is a parsed URI.
type address struct {
	host      host
	container string
	key       string // "" for the container
}

// host names an account and the cloud it is in, prod and core.windows.net. Accounts
// in DNS zones have the zone in label, prod.z01.
type host struct {
	label, suffix string
}

func (h host) account() string {
	account, _, _ := strings.Cut(h.label, ".")
	return account
}

// dfs and blob are the hosts of the two protocols.
func (h host) dfs() string  { return h.label + ".dfs." + h.suffix }
func (h host) blob() string { return h.label + ".blob." + h.suffix }

// clouds are the suffixes of Microsoft's hosts.
var clouds = []string{
	"core.windows.net", "core.chinacloudapi.cn", "core.usgovcloudapi.net", "core.cloudapi.de", "storage.azure.net", "fabric.microsoft.com",
}

// known reports whether the host is one of Microsoft's, to which a token may be sent.
func (h host) known() bool { return slices.Contains(clouds, h.suffix) }

// String returns the canonical URI.
func (a address) String() string {
	return "abfss://" + a.container + "@" + a.host.dfs() + "/" + a.key
}

// parse parses a URI of any of the schemes. What follows the host is the key,
// neither cleaned nor decoded.
func parse(op, uri string) (address, error) {
	wrong := func(found string) (address, error) {
		return address{}, &storage.Error{Op: op, Name: uri, Err: fmt.Errorf("expected %s, found %s", expectedURI, found)}
	}
	scheme, rest := objpath.Split(uri)
	if !slices.Contains(Schemes, scheme) {
		return wrong(fmt.Sprintf("scheme %q", scheme))
	}
	rest, ok := strings.CutPrefix(rest, "//")
	if !ok {
		return wrong("no //")
	}
	authority, key, _ := strings.Cut(rest, "/")
	container, name, ok := strings.Cut(authority, "@")
	if !ok {
		return wrong("no container")
	}
	if !isContainer(container) {
		return wrong("a container that Azure cannot have")
	}
	name = strings.ToLower(name)
	label, suffix, ok := strings.Cut(name, ".dfs.")
	if !ok {
		label, suffix, ok = strings.Cut(name, ".blob.")
	}
	if !ok || !isHost(label) || !isHost(suffix) {
		return wrong("another host")
	}
	return address{host{label, suffix}, container, key}, nil
}

// isContainer keeps out what has a meaning in the path of a URL.
func isContainer(name string) bool {
	return strings.Trim(name, ".") != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("-_.$", r))
	})
}

func isHost(name string) bool {
	return name != "" && !strings.ContainsFunc(name, func(r rune) bool {
		return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9' || strings.ContainsRune("-.", r))
	})
}

var errNoKey = errors.New("the name of a container, expected the name of an object")

// parseObject parses the name of an object. The client library takes "." and ".."
// for directories.
func parseObject(op, uri string) (address, error) {
	a, err := parse(op, uri)
	if err != nil {
		return address{}, err
	}
	if a.key == "" {
		return address{}, &storage.Error{Op: op, Name: uri, Err: fmt.Errorf("%w: %w", errNoKey, storage.ErrNotExist)}
	}
	if a.key == "." || a.key == ".." {
		return address{}, &storage.Error{Op: op, Name: uri, Err: fmt.Errorf("an object cannot be named %q: %w", a.key, storage.ErrNotExist)}
	}
	return a, nil
}
