package gcs

import (
	"context"
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/storage"
)

// The secrets of these tests: none may appear in an error, an access or a retry.
const (
	secretToken   = "ya29.SECRET-TOKEN"
	secretRefresh = "1//SECRET-REFRESH"
	secretClient  = "SECRET-CLIENT"
)

// account is a service with accounts: of tokens, of metadata and of objects.
type account struct {
	*httptest.Server
	key     string // a PEM, whose content is secret
	status  int    // of tokens
	answer  string // of tokens
	date    time.Time
	tokens  int
	headers []http.Header // of requests of objects
}

func newAccount(t *testing.T) *account {
	t.Helper()
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	a := &account{key: string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: der})), status: 200}
	a.answer = fmt.Sprintf(`{"access_token":%q,"expires_in":3600,"token_type":"Bearer"}`, secretToken)
	a.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !a.date.IsZero() {
			w.Header().Set("Date", a.date.UTC().Format(http.TimeFormat))
		}
		switch {
		case r.URL.Path == "/token":
			a.tokens++
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(a.status)
			body, _ := io.ReadAll(r.Body)
			io.WriteString(w, strings.ReplaceAll(a.answer, "ECHO", string(body)))
		case strings.HasPrefix(r.URL.Path, "/computeMetadata/"):
			if r.Header.Get("Metadata-Flavor") != "Google" {
				w.WriteHeader(http.StatusForbidden)
				return
			}
			w.Header().Set("Metadata-Flavor", "Google")
			if strings.HasSuffix(r.URL.Path, "/email") {
				io.WriteString(w, "machine@project.iam.gserviceaccount.com\n")
				return
			}
			io.WriteString(w, a.answer)
		default:
			a.headers = append(a.headers, r.Header.Clone())
			switch r.Header.Get("Authorization") {
			case "Bearer " + secretToken, "":
				io.WriteString(w, `{"name":"x","generation":"1","size":"5","updated":"2026-01-02T03:04:05.678Z"}`)
			default:
				w.WriteHeader(http.StatusUnauthorized)
				io.WriteString(w, `{"error":{"code":401,"message":"Invalid Credentials","errors":[{"reason":"authError"}]}}`)
			}
		}
	}))
	t.Cleanup(a.Close)
	return a
}

func (a *account) last() http.Header { return a.headers[len(a.headers)-1] }

// clean fails if a text has a secret.
func (a *account) clean(t *testing.T, what any) {
	t.Helper()
	text := fmt.Sprintf("%v %+v %#v", what, what, what)
	var e *storage.Error
	if err, ok := what.(error); ok && errors.As(err, &e) {
		text += e.Hint + e.SafeName()
	}
	secrets := []string{secretToken, secretRefresh, secretClient, "SECRET", "assertion="}
	secrets = append(secrets, strings.Split(a.key, "\n")[1:3]...)
	for _, s := range secrets {
		if strings.Contains(text, s) {
			t.Errorf("a secret in %s", text)
		}
	}
}

func (a *account) file(t *testing.T, fields map[string]string) string {
	t.Helper()
	text, err := json.Marshal(fields)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(t.TempDir(), "key.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func (a *account) service(t *testing.T) string {
	return a.file(t, map[string]string{"type": "service_account", "client_email": "spt@project.iam.gserviceaccount.com", "private_key": a.key, "private_key_id": "1", "token_uri": a.URL + "/token"})
}

func (a *account) store(t *testing.T, o Options, env map[string]string) *Store {
	t.Helper()
	o.Endpoint, o.Getenv, o.pause = a.URL, func(k string) string { return env[k] }, time.Millisecond
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return s
}

func TestCredentials(t *testing.T) {
	a := newAccount(t)
	service := a.service(t)
	other := a.file(t, map[string]string{"type": "service_account", "client_email": "other@project.iam.gserviceaccount.com", "private_key": a.key, "token_uri": a.URL + "/token"})
	host := strings.TrimPrefix(a.URL, "http://")
	home := t.TempDir()
	gcloud := filepath.Join(home, ".config", "gcloud")
	if err := os.MkdirAll(gcloud, 0o755); err != nil {
		t.Fatal(err)
	}
	user := fmt.Sprintf(`{"type":"authorized_user","client_id":"id","client_secret":%q,"refresh_token":%q,"account":"me@example.com","quota_project_id":"mine"}`, secretClient, secretRefresh)
	if err := os.WriteFile(filepath.Join(gcloud, "application_default_credentials.json"), []byte(user), 0o600); err != nil {
		t.Fatal(err)
	}
	config := func(kv ...string) Options {
		values := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			values[kv[i]] = kv[i+1]
		}
		return Options{Hadoop: values, Flink: map[string]string{"gs.storage.root.url": "unused"}}
	}
	for name, c := range map[string]struct {
		o                Options
		env              map[string]string
		source, identity string
		project          string
		noToken, offline bool
	}{
		"anonymous first":       {o: Options{Anonymous: true}, env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": service}, source: "none", noToken: true},
		"variable":              {o: config(keyFiles[0], other), env: map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": service, "HOME": home}, source: "GOOGLE_APPLICATION_CREDENTIALS (" + service + ")", identity: "spt@project.iam.gserviceaccount.com"},
		"configuration":         {o: config("google.cloud.auth.service.account.json.keyfile", other), env: map[string]string{"HOME": home}, source: "google.cloud.auth.service.account.json.keyfile of Hadoop's configuration (" + other + ")", identity: "other@project.iam.gserviceaccount.com"},
		"newer configuration":   {o: config("fs.gs.auth.service.account.json.keyfile", other), source: "fs.gs.auth.service.account.json.keyfile of Hadoop's configuration (" + other + ")", identity: "other@project.iam.gserviceaccount.com"},
		"disabled, gcloud":      {o: config("google.cloud.auth.service.account.json.keyfile", other, "google.cloud.auth.service.account.enable", "false"), env: map[string]string{"HOME": home}, source: "application default credentials of gcloud (" + gcloud + "/application_default_credentials.json)", identity: "me@example.com", project: "mine", offline: true},
		"gcloud elsewhere":      {env: map[string]string{"CLOUDSDK_CONFIG": gcloud}, source: "application default credentials of gcloud (" + gcloud + "/application_default_credentials.json)", identity: "me@example.com", project: "mine", offline: true},
		"metadata server":       {env: map[string]string{"GCE_METADATA_HOST": host}, source: "metadata server of this machine", identity: "machine@project.iam.gserviceaccount.com"},
		"project":               {o: config("fs.gs.requester.pays.project.id", "payer"), env: map[string]string{"GCE_METADATA_HOST": host}, source: "metadata server of this machine", identity: "machine@project.iam.gserviceaccount.com", project: "payer"},
		"project of a variable": {o: config("gs.requester.pays.project.id", "payer"), env: map[string]string{"GCE_METADATA_HOST": host, "GOOGLE_CLOUD_QUOTA_PROJECT": "env"}, source: "metadata server of this machine", identity: "machine@project.iam.gserviceaccount.com", project: "env"},
	} {
		t.Run(name, func(t *testing.T) {
			s := a.store(t, c.o, c.env)
			if c.offline { // its tokens are Google's
				got, err := s.credentials(context.Background())
				if err != nil || got.source != c.source || got.identity != c.identity || got.project != c.project {
					t.Errorf("%+v, %v", got, err)
				}
				return
			}
			info, err := s.Stat(context.Background(), "gs://bucket/x")
			if err != nil || info.Size != 5 || info.Version != "1" || !info.ModTime.Equal(time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)) {
				t.Fatalf("%+v, %v", info, err)
			}
			if got := a.last().Get("Authorization"); (got == "") != c.noToken {
				t.Errorf("token: %v", got != "")
			}
			if got := a.last().Get("X-Goog-User-Project"); got != c.project {
				t.Errorf("project %q", got)
			}
			access, err := s.Access(context.Background(), "gs://bucket/x")
			if err != nil {
				t.Fatal(err)
			}
			a.clean(t, access)
			if access.Credentials != c.source || access.Identity != c.identity || access.Endpoint != a.URL || !access.Clocked || access.Clock.Abs() > time.Hour {
				t.Errorf("%+v", access)
			}
		})
	}
	if a.tokens > 5 {
		t.Errorf("%d tokens fetched: they are not kept", a.tokens)
	}
}

func TestRefusedCredentials(t *testing.T) {
	ctx := context.Background()
	damaged := func(a *account, t *testing.T) string {
		return a.file(t, map[string]string{"type": "service_account", "client_email": "x@y", "private_key": "-----BEGIN PRIVATE KEY-----\n" + secretClient + "\n-----END PRIVATE KEY-----\n", "token_uri": a.URL + "/token"})
	}
	for name, c := range map[string]struct {
		file    func(*account, *testing.T) string
		change  func(*account)
		env     map[string]string
		kind    error
		says    string
		setting storage.Setting
	}{
		"revoked": {change: func(a *account) {
			a.status, a.answer = 400, `{"error":"invalid_grant","error_description":"Account has been deleted"}`
		}, kind: storage.ErrPermission, says: "invalid_grant Account has been deleted", setting: storage.SettingCredentials},
		"repeats the sent": {change: func(a *account) { a.status, a.answer = 400, `ECHO` }, kind: storage.ErrPermission, says: "400", setting: storage.SettingCredentials},
		"clock": {change: func(a *account) {
			a.status, a.answer, a.date = 400, `{"error":"invalid_grant","error_description":"Invalid JWT"}`, time.Now().Add(time.Hour)
		}, kind: storage.ErrPermission, says: "clock", setting: storage.SettingClock},
		"overloaded": {change: func(a *account) { a.status, a.answer = 503, `ECHO` }, kind: storage.ErrUnavailable, says: "503"},
		"expired token": {change: func(a *account) {
			a.answer = `{"access_token":"ya29.SECRET-OLD","expires_in":3600,"token_type":"Bearer"}`
		}, kind: storage.ErrPermission, says: "401 authError: Invalid Credentials", setting: storage.SettingCredentials},
		"damaged key":  {file: damaged, kind: storage.ErrPermission, says: "no token for the credentials of GOOGLE_APPLICATION_CREDENTIALS", setting: storage.SettingCredentials},
		"missing file": {file: func(*account, *testing.T) string { return "missing.json" }, kind: storage.ErrPermission, says: "missing.json", setting: storage.SettingCredentials},
		"not JSON": {file: func(_ *account, t *testing.T) string {
			path := filepath.Join(t.TempDir(), "x.json")
			if err := os.WriteFile(path, []byte(secretClient), 0o600); err != nil {
				t.Fatal(err)
			}
			return path
		}, kind: storage.ErrPermission, says: "not a JSON file of credentials", setting: storage.SettingCredentials},
		"another type": {file: func(a *account, t *testing.T) string { return a.file(t, map[string]string{"type": "aws"}) }, kind: storage.ErrPermission, says: `found type "aws"`, setting: storage.SettingCredentials},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAccount(t)
			file := a.service
			if c.file != nil {
				file = func(t *testing.T) string { return c.file(a, t) }
			}
			if c.change != nil {
				c.change(a)
			}
			s := a.store(t, Options{Retries: 1, Retried: func(r storage.Retry) { a.clean(t, r.Err) }}, map[string]string{"GOOGLE_APPLICATION_CREDENTIALS": file(t)})
			_, err := s.Stat(ctx, "gs://bucket/x")
			var e *storage.Error
			if !errors.Is(err, c.kind) || !errors.As(err, &e) || !strings.Contains(err.Error()+e.Hint, c.says) || c.setting != "" && e.Setting != c.setting {
				t.Errorf("%v: %+v", err, e)
			}
			if errors.Is(err, storage.ErrNotExist) {
				t.Error("a missing key file is a missing object")
			}
			a.clean(t, err)
			access, err := s.Access(ctx, "gs://bucket/x")
			a.clean(t, access)
			a.clean(t, err)
		})
	}
}

// Where nothing names credentials and no metadata server answers, the wait is short.
func TestNoCredentials(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close()
	a := newAccount(t)
	s := a.store(t, Options{metadataServer: silent.Addr().String(), metadataDeadline: 10 * time.Millisecond}, map[string]string{"HOME": t.TempDir()})
	_, err = s.Stat(context.Background(), "gs://bucket/x")
	var e *storage.Error
	if !errors.Is(err, storage.ErrPermission) || !errors.As(err, &e) || e.Setting != storage.SettingCredentials || !strings.Contains(err.Error(), "metadata server (it does not answer)") {
		t.Error(err)
	}
	s = a.store(t, Options{}, map[string]string{"HOME": t.TempDir(), "NO_GCE_CHECK": "true"})
	if _, err = s.Stat(context.Background(), "gs://bucket/x"); !errors.Is(err, storage.ErrPermission) {
		t.Error(err)
	}
	if len(a.headers) > 0 {
		t.Error("requests without credentials")
	}
}

func TestEndpoint(t *testing.T) {
	for name, c := range map[string]struct {
		o         Options
		emulator  string
		want      string
		anonymous bool
	}{
		"Google's":      {want: "https://storage.googleapis.com"},
		"emulator":      {emulator: "localhost:4443", want: "http://localhost:4443", anonymous: true},
		"emulator URL":  {emulator: "https://localhost:4443/", want: "https://localhost:4443", anonymous: true},
		"configuration": {o: Options{Flink: map[string]string{"gs.storage.root.url": "https://example.com/"}, Hadoop: map[string]string{"fs.gs.storage.root.url": "https://other.example/"}}, want: "https://example.com"},
		"option":        {o: Options{Endpoint: "http://127.0.0.1:1"}, emulator: "x", want: "http://127.0.0.1:1"},
		"not a URL":     {o: Options{Endpoint: "example.com"}},
		"a password":    {o: Options{Endpoint: "https://me:SECRET@example.com"}},
	} {
		c.o.Getenv = func(k string) string { return map[string]string{"STORAGE_EMULATOR_HOST": c.emulator}[k] }
		s, err := New(c.o)
		if c.want == "" {
			if !errors.Is(err, storage.ErrUnsupported) || strings.Contains(err.Error(), "SECRET") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || s.endpoint != c.want || s.o.Anonymous != c.anonymous {
			t.Errorf("%s: %+v, %v", name, s, err)
		}
	}
}

// The service's answers, each with its kind of error.
func TestExplain(t *testing.T) {
	for _, c := range []struct {
		status int
		body   string
		kind   error
		says   string
	}{
		{404, `{"error":{"code":404,"message":"No such object: bucket/x","errors":[{"reason":"notFound"}]}}`, storage.ErrNotExist, "404 notFound: No such object: bucket/x"},
		{404, `<?xml version='1.0' encoding='UTF-8'?><Error><Code>NoSuchBucket</Code><Message>The specified bucket does not exist.</Message></Error>`, errNoBucket, "404 NoSuchBucket"},
		{403, `<?xml version='1.0' encoding='UTF-8'?><Error><Code>AccessDenied</Code><Message>Access denied.</Message><Details>a@b does not have storage.objects.get access</Details></Error>`, storage.ErrPermission, "403 AccessDenied: Access denied. a@b does not have storage.objects.get access"},
		{403, `{"error":{"code":403,"message":"Slow down","errors":[{"reason":"userRateLimitExceeded"}]}}`, storage.ErrUnavailable, "Slow down"},
		{412, ``, storage.ErrChanged, "412 Precondition Failed"},
		{429, `<html>x</html>`, storage.ErrUnavailable, "429 Too Many Requests"},
		{500, `text with https://u:SECRET@h/x?SECRET and a` + "\n" + `line`, storage.ErrUnavailable, "500 Internal Server Error: text with https://…@h/x?… and a line"},
		{501, ``, nil, "501"},
		{302, ``, storage.ErrUnsupported, "302 Found"},
		{400, strings.Repeat("ä", 10000), nil, "400 Bad Request: äää"},
	} {
		e := explain(c.status, http.Header{}, []byte(c.body))
		if c.kind != nil && !errors.Is(e, c.kind) || !strings.Contains(e.Error(), c.says) || strings.Contains(e.Error(), "SECRET") || len(e.Error()) > 700 {
			t.Errorf("%d %s: %v", c.status, c.body[:min(len(c.body), 100)], e)
		}
		if c.kind == nil && errors.Is(e, storage.ErrUnavailable) {
			t.Errorf("%d is tried again", c.status)
		}
	}
}
