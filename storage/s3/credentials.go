package s3

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/minio/minio-go/v7/pkg/credentials"

	"github.com/savepoint-tools/spt/storage"
)

// Limits of requests for credentials.
const (
	askWithin      = 20 * time.Second // of other services, and of programs
	metadataWithin = time.Second      // of a machine at AWS; elsewhere nothing answers
)

// finder finds credentials, in the order of the package documentation.
type finder struct {
	s      *Store
	client *http.Client

	once  sync.Once // reads the profiles
	name  string    // of the profile that was asked for; "" if none was
	from  string    // what asked for it
	asked profile
	def   profile
	err   error

	mu   sync.Mutex
	made map[keys]*source // by the keys of a configuration
}

func newFinder(s *Store) *finder {
	f := &finder{s: s, client: &http.Client{Timeout: askWithin, Transport: s.o.Transport}, made: map[keys]*source{}}
	if s.o.Transport == nil {
		f.client.Transport = nil
	}
	return f
}

func (f *finder) profiles() {
	f.once.Do(func() {
		f.name, f.from = f.s.o.Profile, "as stated"
		if f.name == "" {
			f.name, f.from = f.s.o.Getenv("AWS_PROFILE"), "AWS_PROFILE"
		}
		if f.name != "" {
			if f.asked, f.err = f.s.profile(f.name); f.err == nil && !f.asked.exists {
				config, creds := f.s.files()
				f.err = fmt.Errorf("profile %q (%s) is neither in %s nor in %s", f.name, f.from, config, creds)
			}
		} else {
			f.def, f.err = f.s.profile("default")
		}
		if f.err != nil {
			f.err = &storage.Error{Op: "open", Name: f.s.scheme + "://", Setting: storage.SettingCredentials, Err: f.s.clean(f.err)}
		}
	})
}

// named returns the profile that was asked for; the zero one if none was.
func (f *finder) named() (profile, error) {
	f.profiles()
	return f.asked, f.err
}

// ofDefault returns the default profile, if none was asked for.
func (f *finder) ofDefault() (profile, error) {
	f.profiles()
	return f.def, f.err
}

// source is a provider of credentials with a name.
type source struct {
	credentials.Provider
	f      *finder
	what   string // "AWS_ACCESS_KEY_ID in the environment"
	static bool
	creds  *credentials.Credentials
}

// RetrieveWithCredContext implements credentials.Provider. It keeps requests for
// credentials apart from those to the service.
func (s *source) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	ctx := context.Background()
	if cc != nil && cc.Context != nil {
		ctx = cc.Context
	}
	ctx = context.WithValue(ctx, callKey{}, nil)
	v, err := s.Provider.RetrieveWithCredContext(&credentials.CredContext{Client: s.f.client, Context: ctx})
	s.f.s.hide(v.SecretAccessKey, v.SessionToken)
	if err == nil && (v.AccessKeyID == "" || v.SecretAccessKey == "") && !v.SignerType.IsAnonymous() {
		err = errors.New("no access key")
	}
	if err != nil {
		var of *url.Error
		if errors.As(err, &of) {
			err = fmt.Errorf("%w: %w", of.Err, storage.ErrUnavailable)
		}
		return credentials.Value{}, &credentialsError{s.what, s.f.s.clean(err)}
	}
	return v, nil
}

// credentialsError is why a source has no credentials.
type credentialsError struct {
	what string
	err  error
}

func (e *credentialsError) Error() string { return "credentials from " + e.what + ": " + e.err.Error() }
func (e *credentialsError) Unwrap() error { return e.err }

// Retrieve implements credentials.Provider.
func (s *source) Retrieve() (credentials.Value, error) { return s.RetrieveWithCredContext(nil) }

// of returns the credentials for a bucket, and whether they cannot be renewed.
func (f *finder) of(set settings) (*credentials.Credentials, bool) {
	src := f.source(set)
	return src.creds, src.static
}

func (f *finder) source(set settings) *source {
	f.mu.Lock()
	defer f.mu.Unlock()
	if src := f.made[set.keys]; src != nil {
		return src
	}
	src := f.choose(set)
	src.f, src.creds = f, credentials.New(src)
	f.made[set.keys] = src
	return src
}

func static(id, secret, token, what string) *source {
	return &source{Provider: &credentials.Static{Value: credentials.Value{
		AccessKeyID: id, SecretAccessKey: secret, SessionToken: token, SignerType: credentials.SignatureV4,
	}}, what: what, static: true}
}

func anonymous(what string) *source {
	return &source{Provider: &credentials.Static{Value: credentials.Value{SignerType: credentials.SignatureAnonymous}}, what: what, static: true}
}

// choose finds the first source that is set. It makes no request.
func (f *finder) choose(set settings) *source {
	env, asked, def := f.s.o.Getenv, f.asked, f.def
	idName, secretName, tokenName := "AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"
	if f.s.o.OSS {
		idName, secretName, tokenName = "OSS_ACCESS_KEY_ID", "OSS_ACCESS_KEY_SECRET", "OSS_SESSION_TOKEN"
	}
	switch {
	case f.s.o.Anonymous:
		return anonymous("none")
	case f.s.o.Profile != "" && !f.s.o.OSS:
		return f.ofProfile(asked, set, nil)
	case env(idName) != "" || env(secretName) != "":
		if env(idName) == "" || env(secretName) == "" {
			return broken("the environment", fmt.Errorf("only one of %s and %s is set", idName, secretName))
		}
		f.s.hide(env(secretName), env(tokenName))
		return static(env(idName), env(secretName), env(tokenName), idName+" in the environment")
	case asked.exists:
		return f.ofProfile(asked, set, nil)
	case !set.keys.empty():
		k := set.keys
		if k.anonymous {
			return anonymous("none, as " + k.from + " says")
		}
		src := static(k.id, k.secret, k.token, k.from)
		if k.role != "" {
			return f.assume(src, k.role, k.external, "", set.region, "role "+k.role+" of "+k.from)
		}
		return src
	case f.s.o.OSS:
		return broken("the environment and the configurations", errors.New("no access key was found"))
	case def.credentials():
		return f.ofProfile(def, set, nil)
	case env("AWS_WEB_IDENTITY_TOKEN_FILE") != "":
		return f.web(env("AWS_WEB_IDENTITY_TOKEN_FILE"), env("AWS_ROLE_ARN"), env("AWS_ROLE_SESSION_NAME"), set.region, "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE")
	case env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI") != "" || env("AWS_CONTAINER_CREDENTIALS_FULL_URI") != "":
		return &source{Provider: &container{f: f}, what: "the container"}
	case strings.EqualFold(env("AWS_EC2_METADATA_DISABLED"), "true"):
		return broken("the environment, the shared files and the configurations", errors.New("no credentials were found, and the instance metadata is disabled"))
	}
	return &source{Provider: &instance{IAM: credentials.IAM{
		Endpoint: strings.TrimSuffix(env("AWS_EC2_METADATA_SERVICE_ENDPOINT"), "/"),
		Client:   &http.Client{Timeout: metadataWithin, Transport: &http.Transport{Proxy: nil}},
	}}, what: "the instance metadata"}
}

// ofProfile returns the credentials of a profile, and of the profiles that it names.
func (f *finder) ofProfile(p profile, set settings, seen []string) *source {
	what := "profile " + p.name
	if p.file != "" {
		what += " of " + p.file
	}
	for _, name := range seen {
		if name == p.name {
			return broken(what, errors.New("its source profiles are a loop"))
		}
	}
	seen = append(seen, p.name)
	switch {
	case p.role != "" && p.webToken != "":
		return f.web(p.webToken, p.role, p.session, set.region, what)
	case p.role != "" && p.mfa:
		return broken(what, fmt.Errorf("its role needs a one-time password, which cannot be asked for: %w", storage.ErrUnsupported))
	case p.role != "" && p.source != "" && p.source != p.name:
		of, err := f.s.profile(p.source)
		if err == nil && !of.exists {
			err = fmt.Errorf("its source profile %q does not exist", p.source)
		}
		if err != nil {
			return broken(what, err)
		}
		return f.assume(f.ofProfile(of, set, seen), p.role, p.external, p.session, set.region, what)
	case p.role != "" && p.credentialSource != "":
		var base *source
		switch p.credentialSource {
		case "Ec2InstanceMetadata":
			base = &source{Provider: &instance{IAM: credentials.IAM{Client: &http.Client{Timeout: metadataWithin}}}, what: "the instance metadata"}
		case "EcsContainer":
			base = &source{Provider: &container{f: f}, what: "the container"}
		case "Environment":
			env := f.s.o.Getenv
			f.s.hide(env("AWS_SECRET_ACCESS_KEY"), env("AWS_SESSION_TOKEN"))
			base = static(env("AWS_ACCESS_KEY_ID"), env("AWS_SECRET_ACCESS_KEY"), env("AWS_SESSION_TOKEN"), "AWS_ACCESS_KEY_ID in the environment")
		default:
			return broken(what, fmt.Errorf("credential_source %q: %w", p.credentialSource, storage.ErrUnsupported))
		}
		return f.assume(base, p.role, p.external, p.session, set.region, what)
	case p.id != "" && p.secret != "":
		src := static(p.id, p.secret, p.token, what)
		if p.role != "" { // source_profile names the profile itself
			return f.assume(src, p.role, p.external, p.session, set.region, what)
		}
		return src
	case p.id != "" || p.secret != "":
		return broken(what, errors.New("it has only one of aws_access_key_id and aws_secret_access_key"))
	case p.sso:
		return &source{Provider: &credentials.FileAWSCredentials{Filename: p.ssoFile, Profile: p.name}, what: what + " (single sign-on)"}
	case p.process != "":
		return &source{Provider: &process{line: p.process}, what: what + " (credential_process)"}
	}
	return broken(what, errors.New("it has no credentials"))
}

// broken returns a source that says why it has none.
func broken(what string, err error) *source {
	return &source{Provider: failing{err}, what: what, static: true}
}

type failing struct{ err error }

func (p failing) RetrieveWithCredContext(*credentials.CredContext) (credentials.Value, error) {
	return credentials.Value{}, p.err
}
func (p failing) Retrieve() (credentials.Value, error) { return credentials.Value{}, p.err }
func (p failing) IsExpired() bool                      { return true }

// instance asks the metadata service of a machine at AWS.
type instance struct{ credentials.IAM }

// RetrieveWithCredContext implements credentials.Provider.
func (p *instance) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	v, err := p.IAM.RetrieveWithCredContext(cc)
	if err != nil {
		var of *url.Error
		var timeout net.Error
		if errors.As(err, &of) || errors.As(err, &timeout) { // not worth another attempt: most machines have none
			err = errors.New("it does not answer, and no other credentials were found")
		}
	}
	return v, err
}

// stsEndpoint is where roles are assumed.
func (f *finder) stsEndpoint(region string) string {
	if e := first(f.s.env("AWS_ENDPOINT_URL_STS"), f.s.env("AWS_ENDPOINT_URL")).value; e != "" {
		return e
	}
	suffix := ".amazonaws.com"
	if strings.HasPrefix(region, "cn-") {
		suffix += ".cn"
	}
	return "https://sts." + region + suffix
}

func (f *finder) web(file, role, session, region, what string) *source {
	p := &credentials.IAM{Endpoint: f.stsEndpoint(region), Region: region, Client: f.client}
	p.EKSIdentity.TokenFile, p.EKSIdentity.RoleARN, p.EKSIdentity.RoleSessionName = file, role, cmp.Or(session, "spt")
	return &source{Provider: p, what: what}
}

// assume returns a source of the credentials of a role.
func (f *finder) assume(base *source, role, external, session, region, what string) *source {
	base.f = f
	return &source{Provider: &assumed{f: f, base: credentials.New(base), o: credentials.STSAssumeRoleOptions{
		RoleARN: role, ExternalID: external, RoleSessionName: cmp.Or(session, "spt"), Location: region,
	}}, what: what}
}

// assumed is a role.
type assumed struct {
	credentials.Expiry
	f    *finder
	base *credentials.Credentials
	o    credentials.STSAssumeRoleOptions
}

// RetrieveWithCredContext implements credentials.Provider.
func (p *assumed) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	v, err := p.base.GetWithContext(cc)
	if err != nil {
		return credentials.Value{}, err
	}
	o := p.o
	o.AccessKey, o.SecretKey, o.SessionToken = v.AccessKeyID, v.SecretAccessKey, v.SessionToken
	v, err = (&credentials.STSAssumeRole{Client: p.f.client, STSEndpoint: p.f.stsEndpoint(o.Location), Options: o}).RetrieveWithCredContext(cc)
	if err == nil {
		p.SetExpiration(v.Expiration, credentials.DefaultExpiryWindow)
	}
	return v, err
}

// Retrieve implements credentials.Provider.
func (p *assumed) Retrieve() (credentials.Value, error) { return p.RetrieveWithCredContext(nil) }

// issued are credentials as programs and containers print them.
type issued struct {
	AccessKeyID     string `json:"AccessKeyId"` //nolint:tagliatelle // AWS's name
	SecretAccessKey string
	SessionToken    string // of a program
	Token           string // of a container
	Expiration      time.Time
}

func (i issued) value(e *credentials.Expiry) credentials.Value {
	if i.Expiration.IsZero() {
		i.Expiration = time.Now().AddDate(1, 0, 0) // they do not expire
	}
	e.SetExpiration(i.Expiration, credentials.DefaultExpiryWindow)
	return credentials.Value{
		AccessKeyID: i.AccessKeyID, SecretAccessKey: i.SecretAccessKey, SessionToken: cmp.Or(i.SessionToken, i.Token),
		Expiration: i.Expiration, SignerType: credentials.SignatureV4,
	}
}

// process is the program of a profile.
type process struct {
	credentials.Expiry
	line string
}

// RetrieveWithCredContext implements credentials.Provider.
func (p *process) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	ctx, cancel := context.WithTimeout(cc.Context, askWithin)
	defer cancel()
	shell, flag := "sh", "-c"
	if runtime.GOOS == "windows" {
		shell, flag = "cmd", "/C"
	}
	cmd := exec.CommandContext(ctx, shell, flag, p.line) //nolint:gosec // the user's own configuration says so
	cmd.WaitDelay = time.Second
	out, err := cmd.Output()
	if err != nil {
		return credentials.Value{}, fmt.Errorf("its program failed: %w", err) // what it printed can hold secrets
	}
	var i issued
	if json.Unmarshal(out, &i) != nil {
		return credentials.Value{}, errors.New("its program did not print credentials as JSON")
	}
	return i.value(&p.Expiry), nil
}

// Retrieve implements credentials.Provider.
func (p *process) Retrieve() (credentials.Value, error) {
	return p.RetrieveWithCredContext(&credentials.CredContext{Context: context.Background()})
}

// container asks the service that the environment of a container at AWS names.
type container struct {
	credentials.Expiry
	f *finder
}

// RetrieveWithCredContext implements credentials.Provider.
func (p *container) RetrieveWithCredContext(cc *credentials.CredContext) (credentials.Value, error) {
	env := p.f.s.o.Getenv
	from := env("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if rel := env("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); rel != "" {
		from = credentials.DefaultECSRoleEndpoint + rel
	}
	if err := allowedContainer(from); err != nil {
		return credentials.Value{}, err
	}
	req, err := http.NewRequestWithContext(cc.Context, http.MethodGet, from, nil)
	if err != nil {
		return credentials.Value{}, errors.New("its URI is not one")
	}
	token := env("AWS_CONTAINER_AUTHORIZATION_TOKEN")
	if file := env("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
		text, err := os.ReadFile(file)
		if err != nil {
			return credentials.Value{}, err
		}
		token = strings.TrimSpace(string(text))
	}
	if token != "" {
		p.f.s.hide(token)
		req.Header.Set("Authorization", token)
	}
	res, err := cc.Client.Do(req)
	if err != nil {
		return credentials.Value{}, err
	}
	defer res.Body.Close() //nolint:errcheck // it was read
	text, err := io.ReadAll(io.LimitReader(res.Body, 1<<20))
	if err != nil {
		return credentials.Value{}, err
	}
	var i issued
	if res.StatusCode != http.StatusOK || json.Unmarshal(text, &i) != nil {
		return credentials.Value{}, fmt.Errorf("expected credentials, found %s", res.Status)
	}
	return i.value(&p.Expiry), nil
}

// Retrieve implements credentials.Provider.
func (p *container) Retrieve() (credentials.Value, error) {
	return p.RetrieveWithCredContext(&credentials.CredContext{Context: context.Background(), Client: p.f.client})
}

// allowedContainer keeps the token from hosts that are not the machine's own, as the
// SDKs of AWS do.
func allowedContainer(from string) error {
	u, err := url.Parse(from)
	if err != nil {
		return errors.New("its URI is not one")
	}
	host := u.Hostname()
	ip := net.ParseIP(host)
	if u.Scheme == "https" || host == "localhost" || ip != nil && (ip.IsLoopback() || ip.IsLinkLocalUnicast() || ip.Equal(net.ParseIP("fd00:ec2::23"))) {
		return nil
	}
	return fmt.Errorf("expected https or an address of this machine, found host %q", host)
}

// hide keeps secrets out of all texts of the store.
func (s *Store) hide(secrets ...string) {
	s.hidden.Lock()
	defer s.hidden.Unlock()
	for _, text := range secrets {
		if len(text) >= 8 {
			s.secrets[text] = true
		}
	}
}

// scrub returns a text without the secrets of the store.
func (s *Store) scrub(text string) string {
	s.hidden.Lock()
	defer s.hidden.Unlock()
	for secret := range s.secrets {
		text = strings.ReplaceAll(text, secret, "***")
	}
	return text
}
