package azure

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"github.com/savepoint-tools/spt/storage"
)

func TestResolve(t *testing.T) {
	s := New(Options{Getenv: env()})
	for uri, expected := range map[string]string{
		"abfss://c@prod.dfs.core.windows.net/a//b%2F?x#y":        "abfss://c@prod.dfs.core.windows.net/a//b%2F?x#y",
		"abfs://c@prod.dfs.core.windows.net/a":                   "abfss://c@prod.dfs.core.windows.net/a",
		"wasb://c@prod.blob.core.windows.net/a":                  "abfss://c@prod.dfs.core.windows.net/a",
		"WASBS://$root@Prod.blob.core.Windows.net/A":             "abfss://$root@prod.dfs.core.windows.net/A",
		"wasbs://c@prod.z01.blob.storage.azure.net/a/":           "abfss://c@prod.z01.dfs.storage.azure.net/a/",
		"abfss://c@prod.dfs.core.windows.net":                    "abfss://c@prod.dfs.core.windows.net/",
		"abfss://c@prod.dfs.cloud.example/a":                     "abfss://c@prod.dfs.cloud.example/a",
		"abfss://prod.dfs.core.windows.net/a":                    "",
		"abfss:/a":                                               "",
		"abfss://c@prod/a":                                       "",
		"abfss://c@prod.core.windows.net/a":                      "",
		"abfss://..@prod.dfs.core.windows.net/a":                 "",
		"abfss://c:secret@prod.dfs.core.windows.net/a":           "",
		"abfss://c%2Fd@prod.dfs.core.windows.net/a":              "",
		"abfss://c@prod.dfs.core.windows.net:443/a":              "",
		"abfss://c@evil.example/?.dfs.core.windows.net":          "",
		"s3://bucket/a":                                          "",
		"abfss://c@user@prod.dfs.core.windows.net/a":             "",
		"abfss://c@prod.dfs.core.windows.net\\@evil.example.com": "",
	} {
		store, name, err := s.Resolve(t.Context(), uri)
		if expected == "" {
			if err == nil || !strings.Contains(err.Error(), "expected "+expectedURI) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %q, %v", uri, name, err)
			}
			continue
		}
		if err != nil || name != expected || store != storage.Storage(s) {
			t.Errorf("%s: %q, %v, expected %q", uri, name, err, expected)
		}
	}
	for _, key := range []string{"", ".", ".."} {
		_, err := s.Stat(t.Context(), "abfss://c@prod.dfs.core.windows.net/"+key)
		want(t, err, storage.ErrNotExist)
	}
}

const (
	key1 = "a2V5IG9uZSBvZiB0aGUgdGVzdA=="
	key2 = "a2V5IHR3byBvZiB0aGUgdGVzdA=="
	sig  = "sv=2024-01-01&sig=c2lnbmF0dXJl"
	conn = "DefaultEndpointsProtocol=https;AccountName=prod;AccountKey=" + key1 + ";EndpointSuffix=core.windows.net"
)

func TestCredentials(t *testing.T) {
	hadoop := func(pairs ...string) Options {
		values := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			values[pairs[i]] = pairs[i+1]
		}
		return Options{Config: []Config{{"empty", nil}, {"the Flink configuration", values}}}
	}
	const dfs, blob = ".prod.dfs.core.windows.net", ".prod.blob.core.windows.net"
	for _, c := range []struct {
		what, uri string // "": prod in Azure
		env       []string
		o         Options
		kind      string // key, sas, token, none
		source    string
		identity  string
		endpoint  string
		fails     string
	}{
		{what: "anonymous wins", env: []string{envConnection, conn}, o: Options{Anonymous: true}, kind: "none", source: "none"},
		{what: "connection string", env: []string{envConnection, conn, envAccount, "prod", envKey, key2}, kind: "key", source: envConnection, identity: "prod"},
		{what: "connection string with a signature", env: []string{envConnection, "BlobEndpoint=https://prod.blob.core.windows.net;SharedAccessSignature=" + sig}, kind: "sas", source: envConnection, identity: "prod"},
		{what: "connection string of an emulator", env: []string{envConnection, "AccountName=prod;AccountKey=" + key1 + ";BlobEndpoint=http://127.0.0.1:1/prod"}, kind: "key", source: envConnection, identity: "prod", endpoint: "http://127.0.0.1:1/prod"},
		{what: "connection string of another account", env: []string{envConnection, strings.Replace(conn, "prod", "other", 1), envSAS, sig}, kind: "sas", source: envSAS},
		{what: "broken connection string", env: []string{envConnection, "AccountKey=" + key1}, fails: "expected AccountName or BlobEndpoint"},
		{what: "key that is not one", env: []string{envAccount, "prod", envKey, "not base64 but secret"}, fails: "is not base64"},
		{what: "key", env: []string{envAccount, "Prod", envKey, key2, envSAS, sig}, kind: "key", source: envKey, identity: "prod"},
		{what: "key of another account", env: []string{envAccount, "other", envKey, key2}, kind: "token"},
		{what: "key without account", env: []string{envKey, key2, envSAS, "?" + sig}, kind: "sas", source: envSAS},
		{what: "signature", env: []string{envSAS, sig}, kind: "sas", source: envSAS},
		{what: "signature of another account", env: []string{envAccount, "other", envSAS, sig}, kind: "token"},
		{what: "signature before the configuration", env: []string{envSAS, sig}, o: hadoop("fs.azure.account.key"+dfs, key1), kind: "sas", source: envSAS},
		{what: "Hadoop, dfs", o: hadoop("fs.azure.account.key"+dfs, key1), kind: "key", source: "fs.azure.account.key" + dfs + " of the Flink configuration", identity: "prod"},
		{what: "Flink, blob", o: hadoop("azure.account.key"+blob, key1), kind: "key", source: "azure.account.key" + blob + " of the Flink configuration", identity: "prod"},
		{what: "Hadoop, other account", o: hadoop("fs.azure.account.key.other.dfs.core.windows.net", key1), kind: "token"},
		{what: "Hadoop, fixed signature", o: hadoop("fs.azure.account.auth.type"+dfs, "SAS", "fs.azure.sas.fixed.token"+dfs, sig), kind: "sas", source: "fs.azure.sas.fixed.token" + dfs + " of the Flink configuration"},
		{what: "Hadoop, signature of a container", o: hadoop("fs.azure.sas.c"+blob, sig), kind: "sas", source: "fs.azure.sas.c" + blob + " of the Flink configuration"},
		{what: "Hadoop, signature missing", o: hadoop("fs.azure.account.auth.type", "SAS"), fails: "fs.azure.sas.fixed.token is not set"},
		{what: "Flink, key provider", env: []string{envKey, key2}, o: hadoop("fs.azure.account.keyprovider"+blob, "org.apache.flink.fs.azurefs.EnvironmentVariableKeyProvider"), kind: "key", source: envKey + ", which fs.azure.account.keyprovider" + blob + " of the Flink configuration names", identity: "prod"},
		{what: "Hadoop, client", o: hadoop("fs.azure.account.auth.type", "OAuth", "fs.azure.account.oauth.provider.type", "org.apache.hadoop.fs.azurebfs.oauth2.ClientCredsTokenProvider", "fs.azure.account.oauth2.client.id", "app", "fs.azure.account.oauth2.client.secret", key1, "fs.azure.account.oauth2.client.endpoint", "https://login.microsoftonline.com/tenant/oauth2/token"), kind: "token", source: "fs.azure.account.auth.type of the Flink configuration", identity: "app"},
		{what: "Hadoop, client without secret", o: hadoop("fs.azure.account.oauth.provider.type", "x.ClientCredsTokenProvider", "fs.azure.account.oauth2.client.id", "app", "fs.azure.account.oauth2.client.endpoint", "https://login.microsoftonline.com/tenant/oauth2/token"), fails: "needs fs.azure.account.oauth2.client.id"},
		{what: "Hadoop, machine", o: hadoop("fs.azure.account.oauth.provider.type", "x.MsiTokenProvider"), kind: "token", source: "fs.azure.account.oauth.provider.type of the Flink configuration"},
		{what: "Hadoop, own class", o: hadoop("fs.azure.account.oauth.provider.type", "com.example.Mine"), fails: "known are"},
		{what: "principal", env: []string{envTenant, "tenant", envClient, "app", envSecret, key1}, kind: "token", source: envSecret, identity: "app"},
		{what: "workload", env: []string{envTenant, "tenant", envClient, "app", envFederated, "token"}, kind: "token", source: envFederated, identity: "app"},
		{what: "certificate", env: []string{envTenant, "tenant", envClient, "app", envCertificate, "missing.pem"}, fails: "missing.pem"},
		{what: "host of others", uri: "abfss://c@prod.dfs.evil.example/x", env: []string{envTenant, "tenant", envClient, "app", envSecret, key1}, fails: "is not a host of Azure"},
		{what: "host of others, signature", uri: "abfss://c@prod.dfs.evil.example/x", env: []string{envSAS, sig}, fails: "is not a host of Azure"},
		{what: "host of others, machine", uri: "abfss://c@prod.dfs.evil.example/x", fails: "is not a host of Azure"},
		{what: "private cloud", uri: "abfss://c@prod.dfs.cloud.example/x", env: []string{envSAS, sig, envEndpoint, "https://prod.blob.cloud.example"}, kind: "sas", source: envSAS, endpoint: "https://prod.blob.cloud.example"},
		{what: "endpoint of another account", env: []string{envSAS, sig}, o: Options{Endpoint: "http://127.0.0.1:1/other"}, fails: "is for the account other, expected prod"},
		{what: "endpoint without account", env: []string{envSAS, sig}, o: Options{Endpoint: "http://127.0.0.1:1"}, kind: "sas", source: envSAS, endpoint: "http://127.0.0.1:1/prod"},
		{what: "endpoint that is not a URL", env: []string{envSAS, sig}, o: Options{Endpoint: "127.0.0.1"}, fails: "expected the URL of a Blob service"},
		{what: "national cloud", uri: "wasbs://c@prod.blob.core.chinacloudapi.cn/x", env: []string{envSAS, sig}, kind: "sas", source: envSAS, endpoint: "https://prod.blob.core.chinacloudapi.cn"},
	} {
		t.Run(c.what, func(t *testing.T) {
			o := c.o
			o.Getenv = env(c.env...)
			uri := c.uri
			if uri == "" {
				uri = "abfss://c@prod.dfs.core.windows.net/x"
			}
			at, err := parse("open", uri)
			if err != nil {
				t.Fatal(err)
			}
			a, err := New(o).account(at)
			if c.fails != "" {
				want(t, err, err, key1, key2, sig, "not base64 but secret")
				if !strings.Contains(err.Error(), c.fails) {
					t.Errorf("%v, expected %s", err, c.fails)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			kind := "none"
			switch {
			case a.credential.key != nil:
				kind = "key"
			case a.credential.sas != "":
				kind = "sas"
			case a.credential.token != nil:
				kind = "token"
			}
			endpoint := c.endpoint
			if endpoint == "" {
				endpoint = "https://prod.blob.core.windows.net"
			}
			if kind != c.kind || a.credential.source != c.source || a.credential.identity != c.identity || a.endpoint != endpoint {
				t.Errorf("%s, source %q, identity %q, endpoint %q", kind, a.credential.source, a.credential.identity, a.endpoint)
			}
			if a.credential.sas != "" && a.credential.sas != sig {
				t.Errorf("signature %q", a.credential.sas)
			}
		})
	}
}

// tokens is a source of tokens; "" has none.
type tokens string

func (s tokens) GetToken(ctx context.Context, _ policy.TokenRequestOptions) (azcore.AccessToken, error) {
	switch s {
	case "":
		return azcore.AccessToken{}, errors.New("AzureCLICredential: not logged in. To troubleshoot, visit …")
	case "hangs":
		<-ctx.Done()
		return azcore.AccessToken{}, ctx.Err()
	}
	return azcore.AccessToken{Token: string(s)}, nil
}

func TestLastResort(t *testing.T) {
	ctx := with(t.Context(), "read", "abfss://c@prod.dfs.core.windows.net/x")
	l := &lastResort{}
	l.add("managed identity", tokens("hangs"), true)
	l.add("Azure CLI", tokens("cli"), false)
	if l.source() != "managed identity or Azure CLI" {
		t.Error(l.source())
	}
	if token, err := l.GetToken(ctx, policy.TokenRequestOptions{}); err != nil || token.Token != "cli" || l.source() != "Azure CLI" {
		t.Errorf("%v, %v, %s", token, err, l.source())
	}
	l = &lastResort{passed: []string{"AZURE_STORAGE_KEY is for the account other"}}
	l.add("managed identity", tokens(""), false)
	l.add("Azure CLI", tokens(""), false)
	_, err := l.GetToken(ctx, policy.TokenRequestOptions{})
	e := want(t, explain(ctx, "stat", "other", fmt.Errorf("SDK: %w", err)), storage.ErrPermission)
	if e.Op != "read" || e.Setting != storage.SettingCredentials || !strings.Contains(e.Hint, "for the account other") || !strings.Contains(e.Error(), "Azure CLI: not logged in)") {
		t.Errorf("%v, %+v", e, e)
	}
	if temporary(nil, err) {
		t.Error("missing credentials are asked for again")
	}
}

// Errors of the network show no URL and so no signature.
func TestExplainNetwork(t *testing.T) {
	refused := &url.Error{Op: "Get", URL: "https://prod.blob.core.windows.net/c/x?" + sig, Err: &net.OpError{Op: "dial", Err: errors.New("connection refused")}}
	if e := want(t, explain(t.Context(), "read", "x", refused), storage.ErrUnavailable, "c2lnbmF0dXJl"); e.Setting != storage.SettingEndpoint || e.Hint == "" {
		t.Errorf("%+v", e)
	}
	unknown := &url.Error{Op: "Get", URL: "https://prod.blob.core.windows.net", Err: &net.DNSError{Name: "prod.blob.core.windows.net", IsNotFound: true}}
	if e := want(t, explain(t.Context(), "read", "x", unknown), storage.ErrUnavailable); e.Setting != storage.SettingEndpoint {
		t.Errorf("%+v", e)
	}
	slow := fmt.Errorf("dial: %w", context.DeadlineExceeded) // of a connection, not of the caller
	if err := explain(t.Context(), "read", "x", slow); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, context.DeadlineExceeded) {
		t.Error(err)
	}
	if got := line("refused: https://h/c?sv=1&sig=c2lnbmF0dXJl&se=2\nmore"); got != "refused: https://h/c?sv=1&sig=…&se=2" {
		t.Error(got)
	}
}

// Whatever the order in which a service lists directories, names are sorted.
func TestSorter(t *testing.T) {
	for seed := range uint64(3000) {
		r := rand.New(rand.NewPCG(seed, 7))
		pick := func() string { return []string{"a", "b", "a-b", "a.b", "a0", "ab", "a b", "c"}[r.IntN(8)] }
		files, dirs := map[string]bool{}, map[string]bool{}
		for range r.IntN(12) {
			name := ""
			for depth := r.IntN(4); depth > 0; depth-- {
				name += pick() + "/"
				dirs[strings.TrimSuffix(name, "/")] = true
			}
			files[name+pick()] = true
		}
		var entries []entry
		for d := range dirs {
			delete(files, d)
			entries = append(entries, entry{info: storage.Info{Name: d}, directory: true, skip: true})
		}
		var expected []string
		for f := range files {
			if slices.ContainsFunc(slices.Collect(parents(f)), func(d string) bool { return files[d] }) {
				continue
			}
			entries = append(entries, entry{info: storage.Info{Name: f}})
			expected = append(expected, f)
		}
		slices.Sort(expected)
		hierarchical := r.IntN(2) == 0
		slices.SortFunc(entries, func(a, b entry) int {
			if hierarchical { // "/" before everything else
				return slices.Compare(strings.Split(a.info.Name, "/"), strings.Split(b.info.Name, "/"))
			}
			return strings.Compare(a.info.Name, b.info.Name)
		})
		stop := r.IntN(2 * (len(expected) + 1))
		var got []string
		s := &sorter{yield: func(info storage.Info) bool { got = append(got, info.Name); return len(got) != stop }}
		for _, e := range entries {
			if !s.add(e) {
				break
			}
		}
		s.flush()
		if stop > 0 && stop < len(expected) {
			expected = expected[:stop]
		}
		if !slices.Equal(got, expected) {
			t.Fatalf("seed %d: %q, expected %q", seed, got, expected)
		}
	}
}

// parents yields the directories of a name.
func parents(name string) func(func(string) bool) {
	return func(yield func(string) bool) {
		for i, c := range name {
			if c == '/' && !yield(name[:i]) {
				return
			}
		}
	}
}
