package azure

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/cloud"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azidentity"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"github.com/savepoint-tools/spt/storage"
)

// The environment variables.
const (
	envConnection  = "AZURE_STORAGE_CONNECTION_STRING"
	envAccount     = "AZURE_STORAGE_ACCOUNT"
	envKey         = "AZURE_STORAGE_KEY"
	envSAS         = "AZURE_STORAGE_SAS_TOKEN"
	envEndpoint    = "AZURE_STORAGE_BLOB_ENDPOINT"
	envTenant      = "AZURE_TENANT_ID"
	envClient      = "AZURE_CLIENT_ID"
	envSecret      = "AZURE_CLIENT_SECRET"
	envCertificate = "AZURE_CLIENT_CERTIFICATE_PATH"
	envPassword    = "AZURE_CLIENT_CERTIFICATE_PASSWORD"
	envFederated   = "AZURE_FEDERATED_TOKEN_FILE"
	envAuthority   = "AZURE_AUTHORITY_HOST"
)

// machineWithin is how long the managed identity of the machine may take to answer: on
// machines without one, nothing answers.
const machineWithin = 2 * time.Second

// credential is how requests to one account are authorized: by a key, a shared
// access signature, a token, or not at all.
type credential struct {
	source, identity string // for Access
	service          string // URL of the service; "" if the credential does not say it
	key              *service.SharedKeyCredential
	sas              string
	token            azcore.TokenCredential
}

func (c *credential) anonymous() bool { return c.key == nil && c.sas == "" && c.token == nil }

// finder finds the credential of an account.
type finder struct {
	host   host
	o      *Options
	passed []string // what is set, but for something else
}

func (f *finder) env(name string) string { return strings.TrimSpace(f.o.Getenv(name)) }

// find returns the first credential that is set.
func (f *finder) find(container string) (*credential, error) {
	for _, try := range []func() (*credential, error){
		f.none, f.connection, f.accountKey, f.accountSAS, func() (*credential, error) { return f.hadoop(container) }, f.principal, f.machine,
	} {
		c, err := try()
		if err != nil {
			e := &storage.Error{Op: "open", Name: address{host: f.host, container: container}.String(), Err: err, Setting: storage.SettingCredentials}
			e.Hint = strings.Join(append(f.passed, "correct it, or use other credentials"), "; ")
			if errors.Is(err, errUntrusted) {
				e.Hint, e.Setting = "set the endpoint if the host is yours", storage.SettingEndpoint
			}
			return nil, e
		}
		if c != nil {
			return c, nil
		}
	}
	return nil, nil // not reached: machine returns one of both
}

func (f *finder) none() (*credential, error) {
	if f.o.Anonymous {
		return &credential{source: "none"}, nil
	}
	return nil, nil
}

// connection reads AZURE_STORAGE_CONNECTION_STRING.
func (f *finder) connection() (*credential, error) {
	text := f.env(envConnection)
	if text == "" {
		return nil, nil
	}
	parts := map[string]string{}
	for part := range strings.SplitSeq(text, ";") {
		if name, value, ok := strings.Cut(part, "="); ok {
			parts[strings.ToLower(strings.TrimSpace(name))] = strings.TrimSpace(value)
		}
	}
	account, endpoint := strings.ToLower(parts["accountname"]), parts["blobendpoint"]
	if endpoint == "" && account != "" {
		scheme, suffix := parts["defaultendpointsprotocol"], parts["endpointsuffix"]
		if scheme == "" {
			scheme = "https"
		}
		if suffix == "" {
			suffix = "core.windows.net"
		}
		endpoint = scheme + "://" + account + ".blob." + suffix
	}
	if account == "" {
		account = accountOf(endpoint)
	}
	if account == "" || parts["accountkey"] == "" && parts["sharedaccesssignature"] == "" {
		return nil, fmt.Errorf("%s: expected AccountName or BlobEndpoint, and AccountKey or SharedAccessSignature", envConnection)
	}
	if account != f.host.account() {
		f.passed = append(f.passed, fmt.Sprintf("%s is for the account %s", envConnection, account))
		return nil, nil
	}
	c := &credential{source: envConnection, identity: account, service: endpoint}
	if key := parts["accountkey"]; key != "" {
		return c, f.sign(c, account, key, envConnection)
	}
	c.sas = strings.TrimPrefix(parts["sharedaccesssignature"], "?")
	return c, nil
}

// accountOf returns the account in the URL of a service, "" if it does not say it:
// the first element of the path, or else of the host.
func accountOf(endpoint string) string {
	u, err := url.Parse(endpoint)
	if err != nil {
		return ""
	}
	first, _, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
	if first == "" && net.ParseIP(u.Hostname()) == nil && strings.Contains(u.Hostname(), ".blob.") {
		first, _, _ = strings.Cut(u.Hostname(), ".")
	}
	return strings.ToLower(first)
}

// sign makes a credential of an account key.
func (f *finder) sign(c *credential, account, key, source string) error {
	signer, err := service.NewSharedKeyCredential(account, key)
	if err != nil { // the error may quote the key
		return fmt.Errorf("%s: the account key is not base64", source)
	}
	c.key, c.identity = signer, account
	return nil
}

// accountKey reads AZURE_STORAGE_KEY.
func (f *finder) accountKey() (*credential, error) {
	key, account := f.env(envKey), strings.ToLower(f.env(envAccount))
	switch {
	case key == "":
		return nil, nil
	case account == "":
		f.passed = append(f.passed, fmt.Sprintf("%s is set, but %s is not", envKey, envAccount))
		return nil, nil
	case account != f.host.account():
		f.passed = append(f.passed, fmt.Sprintf("%s is for the account %s", envKey, account))
		return nil, nil
	}
	c := &credential{source: envKey}
	return c, f.sign(c, account, key, envKey)
}

// accountSAS reads AZURE_STORAGE_SAS_TOKEN, which is for every account unless
// AZURE_STORAGE_ACCOUNT names one.
func (f *finder) accountSAS() (*credential, error) {
	sas, account := strings.TrimPrefix(f.env(envSAS), "?"), strings.ToLower(f.env(envAccount))
	if sas == "" {
		return nil, nil
	}
	if account != "" && account != f.host.account() {
		f.passed = append(f.passed, fmt.Sprintf("%s is for the account %s", envSAS, account))
		return nil, nil
	}
	if err := f.trusted(); err != nil {
		return nil, err
	}
	return &credential{source: envSAS, sas: sas}, nil
}

// trusted returns an error if the host is not one to send tokens and signatures to:
// it may have come from a snapshot.
func (f *finder) trusted() error {
	if f.host.known() || f.o.endpoint() != "" {
		return nil
	}
	return fmt.Errorf("%w: %s is not a host of Azure", errUntrusted, f.host.dfs())
}

var errUntrusted = fmt.Errorf("%w to send a token or a signature", storage.ErrPermission)

// hadoop reads the settings of Hadoop's file systems.
func (f *finder) hadoop(container string) (*credential, error) {
	for i := range f.o.Config {
		h := hadoop{&f.o.Config[i], f.host}
		c, err := f.fromHadoop(h, container)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", h.source.Name, err)
		}
		if c != nil {
			return c, nil
		}
	}
	return nil, nil
}

// hadoop are the settings of one configuration for one account.
type hadoop struct {
	source *Config
	host   host
}

// get returns a setting, named fs.azure.NAME.HOST or fs.azure.NAME in Hadoop.
// Flink also has azure. for fs.azure.
func (h hadoop) get(name string) (value, key string) {
	for _, host := range []string{"." + h.host.dfs(), "." + h.host.blob(), ""} {
		for _, prefix := range []string{"fs.azure.", "azure.", "flink.hadoop.fs.azure."} {
			key := prefix + name + host
			if value := strings.TrimSpace(h.source.Values[key]); value != "" {
				return value, key
			}
		}
	}
	return "", ""
}

// last returns the last element of the name of a class.
func last(class string) string {
	return class[strings.LastIndexAny(class, ".$")+1:]
}

func (f *finder) fromHadoop(h hadoop, container string) (*credential, error) {
	named := func(key string) *credential { return &credential{source: key + " of " + h.source.Name} }
	auth, authKey := h.get("account.auth.type")
	switch strings.ToLower(auth) {
	case "oauth":
		return f.oauth(h, named(authKey))
	case "sas":
		sas, key := h.get("sas.fixed.token")
		if sas == "" {
			return nil, fmt.Errorf("%s is SAS, but fs.azure.sas.fixed.token is not set", authKey)
		}
		c := named(key)
		c.sas = strings.TrimPrefix(sas, "?")
		return c, f.trusted()
	case "custom":
		return nil, fmt.Errorf("%s is Custom, which only Hadoop can run: %w", authKey, storage.ErrUnsupported)
	}
	if value, key := h.get("account.key"); value != "" {
		c := named(key)
		return c, f.sign(c, f.host.account(), value, key)
	}
	if class, key := h.get("account.keyprovider"); last(class) == "EnvironmentVariableKeyProvider" {
		value := f.env(envKey)
		if value == "" {
			return nil, fmt.Errorf("%s names %s, which is not set", key, envKey)
		}
		c := &credential{source: envKey + ", which " + key + " of " + h.source.Name + " names"}
		return c, f.sign(c, f.host.account(), value, envKey)
	}
	if sas, key := h.get("sas." + container); sas != "" { // of WASB
		c := named(key)
		c.sas = strings.TrimPrefix(sas, "?")
		return c, f.trusted()
	}
	if class, key := h.get("account.oauth.provider.type"); class != "" {
		return f.oauth(h, named(key))
	}
	return nil, nil
}

// oauth makes a credential of the settings fs.azure.account.oauth*.
func (f *finder) oauth(h hadoop, c *credential) (*credential, error) {
	if err := f.trusted(); err != nil {
		return nil, err
	}
	class, key := h.get("account.oauth.provider.type")
	id, _ := h.get("account.oauth2.client.id")
	c.identity = id
	var err error
	switch last(class) {
	case "ClientCredsTokenProvider":
		secret, _ := h.get("account.oauth2.client.secret")
		endpoint, endpointKey := h.get("account.oauth2.client.endpoint")
		u, perr := url.Parse(endpoint)
		if perr != nil || u.Host == "" {
			return nil, errors.New("fs.azure.account.oauth2.client.endpoint: expected https://login.microsoftonline.com/TENANT/oauth2/token")
		}
		tenant, _, _ := strings.Cut(strings.Trim(u.Path, "/"), "/")
		if id == "" || secret == "" || tenant == "" {
			return nil, fmt.Errorf("%s names %s, which needs fs.azure.account.oauth2.client.id, .secret and a tenant in %s", key, last(class), endpointKey)
		}
		c.token, err = azidentity.NewClientSecretCredential(tenant, id, secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: f.o.identityOptions(u.Scheme + "://" + u.Host + "/")})
	case "MsiTokenProvider":
		c.token, err = f.o.managed(id)
	case "WorkloadIdentityTokenProvider":
		tenant, _ := h.get("account.oauth2.msi.tenant")
		file, _ := h.get("account.oauth2.token.file")
		c.token, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{
			ClientOptions: f.o.identityOptions(f.env(envAuthority)), ClientID: id, TenantID: tenant, TokenFilePath: file,
		})
	default:
		return nil, fmt.Errorf("%s names %q; known are ClientCredsTokenProvider, MsiTokenProvider and WorkloadIdentityTokenProvider: %w", key, class, storage.ErrUnsupported)
	}
	if err != nil {
		return nil, errors.New(line(err.Error()))
	}
	return c, nil
}

// principal reads the service principal of the environment.
func (f *finder) principal() (*credential, error) {
	tenant, id := f.env(envTenant), f.env(envClient)
	secret, certificate, federated := f.env(envSecret), f.env(envCertificate), f.env(envFederated)
	if tenant == "" || id == "" || secret == "" && certificate == "" && federated == "" {
		if secret != "" || certificate != "" || federated != "" {
			f.passed = append(f.passed, fmt.Sprintf("a service principal needs %s and %s", envTenant, envClient))
		}
		return nil, nil
	}
	if err := f.trusted(); err != nil {
		return nil, err
	}
	c := &credential{identity: id}
	options := f.o.identityOptions(f.env(envAuthority))
	var err error
	switch {
	case secret != "":
		c.source = envSecret
		c.token, err = azidentity.NewClientSecretCredential(tenant, id, secret, &azidentity.ClientSecretCredentialOptions{ClientOptions: options})
	case certificate != "":
		c.source = envCertificate
		data, rerr := os.ReadFile(certificate)
		if rerr != nil {
			return nil, rerr
		}
		certs, key, perr := azidentity.ParseCertificates(data, []byte(f.env(envPassword)))
		if perr != nil {
			return nil, fmt.Errorf("%s: %w", certificate, perr)
		}
		c.token, err = azidentity.NewClientCertificateCredential(tenant, id, certs, key, &azidentity.ClientCertificateCredentialOptions{ClientOptions: options})
	default:
		c.source = envFederated
		c.token, err = azidentity.NewWorkloadIdentityCredential(&azidentity.WorkloadIdentityCredentialOptions{ClientOptions: options, ClientID: id, TenantID: tenant, TokenFilePath: federated})
	}
	if err != nil {
		return nil, errors.New(line(err.Error()))
	}
	return c, nil
}

// machine returns the credentials that need no setting: the identity of the machine, or
// the login of the Azure CLI. The first request finds out which of them exists.
func (f *finder) machine() (*credential, error) {
	if err := f.trusted(); err != nil {
		return nil, err
	}
	found := &lastResort{passed: slices.Clone(f.passed)}
	id := f.env(envClient)
	if m, err := f.o.managed(id); err == nil {
		found.add("managed identity", m, f.env("IDENTITY_ENDPOINT") == "" && f.env("MSI_ENDPOINT") == "")
	}
	if cli, err := azidentity.NewAzureCLICredential(nil); err == nil {
		found.add("Azure CLI", cli, false)
	}
	return &credential{token: found}, nil
}

// identityOptions are for clients of the token service.
func (o *Options) identityOptions(authority string) azcore.ClientOptions {
	c := azcore.ClientOptions{Transport: o.Client, Retry: policy.RetryOptions{MaxRetries: 2, MaxRetryDelay: 5 * time.Second}}
	if authority != "" {
		c.Cloud = cloud.Configuration{ActiveDirectoryAuthorityHost: authority}
	}
	return c
}

func (o *Options) managed(id string) (azcore.TokenCredential, error) {
	mo := &azidentity.ManagedIdentityCredentialOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: 2}}}
	if id != "" {
		mo.ID = azidentity.ClientID(id)
	}
	return azidentity.NewManagedIdentityCredential(mo)
}

// lastResort gets tokens from the first of several sources that has one, and stays
// with it.
type lastResort struct {
	names  []string
	from   []azcore.TokenCredential
	short  []bool // answers soon or never
	passed []string

	mu    sync.Mutex
	found int // 1 + index; 0: not yet
}

func (l *lastResort) add(name string, from azcore.TokenCredential, short bool) {
	l.names, l.from, l.short = append(l.names, name), append(l.from, from), append(l.short, short)
}

// source returns where the tokens come from, as far as that is known.
func (l *lastResort) source() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found == 0 {
		return strings.Join(l.names, " or ")
	}
	return l.names[l.found-1]
}

// GetToken implements azcore.TokenCredential.
func (l *lastResort) GetToken(ctx context.Context, o policy.TokenRequestOptions) (azcore.AccessToken, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.found > 0 {
		return l.from[l.found-1].GetToken(ctx, o)
	}
	why := []string{}
	for i, from := range l.from {
		tctx, cancel := ctx, context.CancelFunc(func() {})
		if l.short[i] {
			tctx, cancel = context.WithTimeout(ctx, machineWithin)
		}
		token, err := from.GetToken(tctx, o)
		cancel()
		if err == nil {
			l.found = i + 1
			return token, nil
		}
		if ctx.Err() != nil {
			return azcore.AccessToken{}, ctx.Err()
		}
		why = append(why, l.names[i]+": "+shorten(err))
	}
	c := call{"open", ""}
	if of, ok := ctx.Value(callKey{}).(call); ok {
		c = of
	}
	return azcore.AccessToken{}, &noCredentials{&storage.Error{
		Op: c.op, Name: c.name, Err: fmt.Errorf("no credentials (%s): %w", strings.Join(why, "; "), storage.ErrPermission), Setting: storage.SettingCredentials,
		Hint: strings.Join(append(l.passed, "use a key, a signature or an identity"), "; "),
	}}
}

// shorten returns why a source has no token, in a few words.
func shorten(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "no answer"
	}
	var failed *azidentity.AuthenticationFailedError
	if errors.As(err, &failed) && failed.RawResponse != nil {
		return tokenMessage(failed)
	}
	text := strings.TrimPrefix(strings.TrimPrefix(line(err.Error()), "ManagedIdentityCredential: "), "AzureCLICredential: ")
	if i := strings.Index(text, ". To troubleshoot"); i >= 0 {
		text = text[:i]
	}
	return text
}

// noCredentials is not worth another attempt.
type noCredentials struct{ cause *storage.Error }

func (e *noCredentials) Error() string { return e.cause.Error() }
func (e *noCredentials) Unwrap() error { return e.cause }

// NonRetriable is how errors tell the SDK.
func (e *noCredentials) NonRetriable() {}
