package gcs

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"golang.org/x/oauth2"
	"golang.org/x/oauth2/google"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/internal/plainhttp"
)

const (
	scope = "https://www.googleapis.com/auth/devstorage.read_write"

	tokenDeadline    = 30 * time.Second // of one try to get a token
	metadataDeadline = time.Second      // of the first request to the metadata server, which machines elsewhere do not have
	metadataServer   = "169.254.169.254"
)

// credentials are an account that makes the requests.
type credentials struct {
	source   string // "GOOGLE_APPLICATION_CREDENTIALS (/keys/a.json)"
	identity string // "spt@project.iam.gserviceaccount.com"
	project  string // that is billed; "" for the project of the bucket
	tokens   oauth2.TokenSource
}

// keyFiles are the keys of a configuration that name a key file, without a prefix or
// with their own.
var keyFiles = []string{"google.cloud.auth.service.account.json.keyfile", "fs.gs.auth.service.account.json.keyfile", "gs.auth.service.account.json.keyfile"}

// credentials finds the credentials, until it has found them.
func (s *Store) credentials(ctx context.Context) (*credentials, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.creds != nil {
		return s.creds, nil
	}
	var err error
	s.creds, err = s.findCredentials(context.WithoutCancel(ctx))
	return s.creds, err
}

func (s *Store) findCredentials(ctx context.Context) (*credentials, error) {
	project := cmp.Or(s.o.Getenv("GOOGLE_CLOUD_QUOTA_PROJECT"), s.setting("requester.pays.project.id"))
	if s.o.Anonymous {
		return &credentials{source: "none"}, nil
	}
	found := func(path, where string) (*credentials, error) {
		c, err := s.fromFile(path, where)
		if err == nil {
			c.project = cmp.Or(project, c.project)
		}
		return c, err
	}
	if path := s.o.Getenv("GOOGLE_APPLICATION_CREDENTIALS"); path != "" {
		return found(path, "GOOGLE_APPLICATION_CREDENTIALS ("+path+")")
	}
	for _, c := range s.o.configs() {
		for _, key := range keyFiles {
			enable := strings.TrimSuffix(key, "json.keyfile") + "enable"
			if path := c.values[key]; path != "" && !strings.EqualFold(c.values[enable], "false") {
				return found(path, key+" of "+c.name+" ("+path+")")
			}
		}
	}
	wellKnown := s.wellKnownFile()
	if _, err := os.Stat(wellKnown); err == nil {
		return found(wellKnown, "application default credentials of gcloud ("+wellKnown+")")
	}
	c, err := s.fromMetadataServer(ctx)
	if err != nil {
		return nil, fmt.Errorf("no Google credentials found; looked for GOOGLE_APPLICATION_CREDENTIALS, a key file in the configuration of Flink or Hadoop, %s and the metadata server (%s)", wellKnown, err.Error())
	}
	c.project = project
	return c, nil
}

// wellKnownFile returns where gcloud keeps the credentials for programs.
func (s *Store) wellKnownFile() string {
	const name = "application_default_credentials.json"
	if dir := s.o.Getenv("CLOUDSDK_CONFIG"); dir != "" {
		return filepath.Join(dir, name)
	}
	if runtime.GOOS == "windows" {
		return filepath.Join(s.o.Getenv("APPDATA"), "gcloud", name)
	}
	return filepath.Join(s.o.Getenv("HOME"), ".config", "gcloud", name)
}

// fromFile reads a file as Google writes it. Its errors have no content of it.
func (s *Store) fromFile(path, where string) (*credentials, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", where, err)
	}
	var file struct {
		Type         string `json:"type"`
		ClientEmail  string `json:"client_email"`
		Account      string `json:"account"`
		Impersonated string `json:"service_account_impersonation_url"`
		Project      string `json:"quota_project_id"`
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return nil, fmt.Errorf("%s: not a JSON file of credentials", where)
	}
	kind := google.CredentialsType(file.Type)
	switch kind {
	case google.ServiceAccount, google.AuthorizedUser, google.ExternalAccount, google.ExternalAccountAuthorizedUser, google.ImpersonatedServiceAccount:
	default:
		return nil, fmt.Errorf("%s: expected a service account, user, external account or impersonated service account, found type %q", where, file.Type)
	}
	// Tokens outlive the request for which the first one is fetched.
	ctx := context.WithValue(context.Background(), oauth2.HTTPClient, &http.Client{Transport: s.client.HTTP().Transport, Timeout: tokenDeadline})
	c, err := google.CredentialsFromJSONWithType(ctx, text, kind, scope)
	if err != nil {
		return nil, fmt.Errorf("%s: incomplete or damaged credentials of type %s", where, file.Type)
	}
	identity := cmp.Or(file.ClientEmail, file.Account)
	if _, after, ok := strings.Cut(file.Impersonated, "/serviceAccounts/"); ok {
		identity, _, _ = strings.Cut(after, ":")
	}
	return &credentials{source: where, identity: identity, project: file.Project, tokens: c.TokenSource}, nil
}

// fromMetadataServer asks the machine's metadata server for its account.
func (s *Store) fromMetadataServer(ctx context.Context) (*credentials, error) {
	if s.o.Getenv("NO_GCE_CHECK") == "true" {
		return nil, errors.New("not asked, because of NO_GCE_CHECK")
	}
	m := &metadata{
		host: cmp.Or(s.o.Getenv("GCE_METADATA_HOST"), s.o.metadataServer, metadataServer),
		http: &http.Client{Transport: &http.Transport{ResponseHeaderTimeout: tokenDeadline}, Timeout: tokenDeadline}, // never through a proxy
	}
	first, cancel := context.WithTimeout(ctx, cmp.Or(s.o.metadataDeadline, metadataDeadline))
	defer cancel()
	email, err := m.get(first, "email")
	if err != nil {
		if first.Err() != nil {
			return nil, errors.New("it does not answer")
		}
		return nil, errors.New(plainhttp.Text(err))
	}
	return &credentials{source: "metadata server of this machine", identity: strings.TrimSpace(string(email)), tokens: oauth2.ReuseTokenSource(nil, m)}, nil
}

// metadata fetches tokens from a metadata server.
type metadata struct {
	host string
	http *http.Client
}

func (m *metadata) get(ctx context.Context, what string) ([]byte, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+m.host+"/computeMetadata/v1/instance/service-accounts/default/"+what, nil)
	if err != nil {
		return nil, err
	}
	req.Header.Set("Metadata-Flavor", "Google")
	resp, err := m.http.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	if plainhttp.Unavailable(resp.StatusCode) {
		return nil, fmt.Errorf("status %d: %w", resp.StatusCode, storage.ErrUnavailable)
	}
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Metadata-Flavor") != "Google" {
		return nil, fmt.Errorf("status %d", resp.StatusCode)
	}
	return io.ReadAll(io.LimitReader(resp.Body, 1<<20))
}

// Token implements oauth2.TokenSource.
func (m *metadata) Token() (*oauth2.Token, error) {
	text, err := m.get(context.Background(), "token")
	if err != nil {
		return nil, err
	}
	var t struct {
		AccessToken string `json:"access_token"`
		ExpiresIn   int64  `json:"expires_in"`
		TokenType   string `json:"token_type"`
	}
	if json.Unmarshal(text, &t) != nil || t.AccessToken == "" {
		return nil, errors.New("the metadata server sent no token")
	}
	return &oauth2.Token{AccessToken: t.AccessToken, TokenType: t.TokenType, Expiry: time.Now().Add(time.Duration(t.ExpiresIn) * time.Second)}, nil
}

// authorize adds a token to a request.
func (s *Store) authorize(r *http.Request, op, name string) error {
	fail := func(err error, hint string, setting storage.Setting) error {
		return &storage.Error{Op: op, Name: name, Err: err, Hint: hint, Setting: setting}
	}
	ctx := r.Context()
	if err := ctx.Err(); err != nil {
		return fail(err, "", "")
	}
	c, err := s.credentials(ctx)
	if err != nil {
		// Only its text: a key file that does not exist is not the object.
		return fail(fmt.Errorf("%s: %w", err.Error(), storage.ErrPermission), "log in with \"gcloud auth application-default login\", name the key file of a service account, or read a public bucket anonymously", storage.SettingCredentials)
	}
	if c.project != "" {
		r.Header.Set("X-Goog-User-Project", c.project)
	}
	if c.tokens == nil {
		return nil
	}
	type result struct {
		token *oauth2.Token
		err   error
	}
	fetched := make(chan result, 1) // fetching knows nothing of the context
	go func() {
		t, err := c.tokens.Token()
		fetched <- result{t, err}
	}()
	var got result
	select {
	case got = <-fetched:
	case <-ctx.Done():
		return fail(ctx.Err(), "", "")
	}
	if got.err == nil {
		got.token.SetAuthHeader(r)
		return nil
	}
	var refused *oauth2.RetrieveError
	if !errors.As(got.err, &refused) {
		kind := storage.ErrPermission // a damaged key, for example
		var of *url.Error
		// The library keeps only the text of some errors of the network.
		if errors.As(got.err, &of) || errors.Is(got.err, storage.ErrUnavailable) || strings.Contains(got.err.Error(), "cannot fetch token") {
			kind = storage.ErrUnavailable
		}
		return fail(fmt.Errorf("no token for the credentials of %s: %s: %w", c.source, plainhttp.Text(got.err), kind), "", storage.SettingCredentials)
	}
	status := 0
	hint, setting := "the credentials are wrong, expired or revoked", storage.SettingCredentials
	if refused.Response != nil {
		status = refused.Response.StatusCode
		if skew := clockOf(refused.Response.Header); skew != "" {
			hint, setting = skew, storage.SettingClock
		}
	}
	kind := storage.ErrPermission
	if plainhttp.Unavailable(status) {
		kind, hint = storage.ErrUnavailable, ""
	}
	// Only these fields: the answer may repeat what was sent.
	var said struct {
		Code        string `json:"error"`
		Description string `json:"error_description"`
	}
	_ = json.Unmarshal(refused.Body, &said) // without them, the status has to do
	text := plainhttp.Clean(strings.TrimSpace(fmt.Sprintf("%d %s %s", status, said.Code, said.Description)))
	return fail(fmt.Errorf("no token for the credentials of %s: %s: %w", c.source, shorten(text), kind), hint, setting)
}

// Access implements storage.AccessReporter, with one request for the clock.
func (s *Store) Access(ctx context.Context, name string) (storage.Access, error) {
	a := storage.Access{Service: "Google Cloud Storage", Endpoint: s.endpoint}
	bucket, _, err := split(name)
	if err != nil {
		return a, err
	}
	r := s.request("access", name, http.MethodGet, s.jsonURL(bucket, "", map[string][]string{"maxResults": {"1"}, "fields": {"kind"}}))
	r.Once = true
	r.Accepts = func(int) bool { return true } // each answer has a time
	sent := time.Now()
	resp, err := s.client.Do(ctx, r)
	if c, cerr := s.credentials(ctx); cerr == nil {
		a.Credentials, a.Identity = c.source, c.identity
		if c.project != "" {
			a.Details = append(a.Details, "billed to project "+c.project)
		}
	}
	if err != nil {
		return a, err
	}
	defer resp.Body.Close() //nolint:errcheck // nothing was written
	a.Clock, a.Clocked = plainhttp.Ahead(resp.Header, sent, time.Now())
	return a, nil
}
