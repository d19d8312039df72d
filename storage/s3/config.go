package s3

import (
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/minio/minio-go/v7"
	"github.com/minio/minio-go/v7/pkg/encrypt"
	"github.com/minio/minio-go/v7/pkg/s3utils"
	"gopkg.in/ini.v1"

	"github.com/savepoint-tools/spt/storage"
)

// settings are how a bucket is reached.
type settings struct {
	endpoint     *url.URL
	endpointFrom string
	region       string
	regionFrom   string
	addressing   Addressing
	sse          encrypt.ServerSide
	sseErr       error // why nothing can be written
	keys         keys  // of the configurations; zero: see finder
}

// keys are an access key in a configuration.
type keys struct {
	id, secret, token string
	anonymous         bool
	role, external    string // assumed with the key
	from              string // "the Flink configuration"
}

func (k keys) empty() bool { return k.id == "" && k.secret == "" && !k.anonymous }

const defaultRegion = "us-east-1"

// found is a value and where it was found.
type found struct{ value, from string }

func first(all ...found) found {
	for _, f := range all {
		if f.value != "" {
			return f
		}
	}
	return found{}
}

// settings finds how a bucket is reached.
func (s *Store) settings(bucket string) (settings, error) {
	flink, hadoop := s.flink(bucket), s.hadoop(bucket)
	endpoint := found{s.o.Endpoint, "as stated"}
	region := found{s.o.Region, "as stated"}
	if s.o.OSS {
		endpoint = first(endpoint, s.env("OSS_ENDPOINT"), flink.find("endpoint"), hadoop.find("endpoint"))
		region = first(region, s.env("OSS_REGION"))
		if endpoint.value == "" {
			return settings{}, &storage.Error{
				Op: "open", Name: s.scheme + "://" + bucket, Setting: storage.SettingEndpoint,
				Err:  errors.New("the endpoint of the service is unknown"),
				Hint: "state it, such as https://oss-eu-central-1.aliyuncs.com",
			}
		}
	} else {
		named, err := s.find.named()
		if err != nil {
			return settings{}, err
		}
		def, err := s.find.ofDefault()
		if err != nil {
			return settings{}, err
		}
		if !strings.EqualFold(s.o.Getenv("AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"), "true") {
			endpoint = first(endpoint, s.env("AWS_ENDPOINT_URL_S3"), s.env("AWS_ENDPOINT_URL"), named.find(named.endpoint))
		}
		region = first(region, s.env("AWS_REGION"), s.env("AWS_DEFAULT_REGION"), named.find(named.region))
		endpoint = first(endpoint, flink.find("endpoint", "endpoint.value"), hadoop.find("endpoint"), def.find(def.endpoint), found{"https://s3.amazonaws.com", "AWS"})
		region = first(region, flink.find("region", "endpoint.region"), hadoop.find("endpoint.region"), def.find(def.region))
	}
	plain := flink.find("connection.ssl.enabled", "ssl.enabled")
	if plain.value == "" {
		plain = hadoop.find("connection.ssl.enabled")
	}
	u, err := parseEndpoint(endpoint.value, plain.value != "false")
	if err != nil {
		return settings{}, &storage.Error{Op: "open", Name: s.scheme + "://" + bucket, Setting: storage.SettingEndpoint, Err: fmt.Errorf("endpoint %s: %w", endpoint.from, err)}
	}
	if region.value == "" {
		region = first(found{s3utils.GetRegionFromURL(*u), "the endpoint"}, found{ossRegion(u.Hostname()), "the endpoint"}, found{defaultRegion, "by default"})
	}
	set := settings{endpoint: u, endpointFrom: endpoint.from, region: region.value, regionFrom: region.from, addressing: s.o.Addressing}
	if set.addressing == Auto && !s.o.OSS {
		path := flink.find("path-style-access", "path.style.access")
		if path.value == "" {
			path = hadoop.find("path.style.access")
		}
		if path.value == "true" {
			set.addressing = Path
		}
	}
	for _, c := range []conf{flink, hadoop} {
		if kind := c.find("sse.type", "encryption.algorithm", "server-side-encryption-algorithm").value; kind != "" {
			set.sse, set.sseErr = sse(kind, c.find("sse.kms.key-id", "sse.kms-key-id", "encryption.key", "server-side-encryption.key").value, c.from)
			break
		}
	}
	for _, c := range []conf{flink, hadoop} {
		if k := c.keys(); set.keys.empty() {
			set.keys = k
		}
	}
	if (set.keys.id == "") != (set.keys.secret == "") {
		return settings{}, &storage.Error{Op: "open", Name: s.scheme + "://" + bucket, Setting: storage.SettingCredentials, Err: fmt.Errorf("%s has only one of access key and secret key", set.keys.from)}
	}
	s.hide(set.keys.secret, set.keys.token)
	return set, nil
}

// ossRegion returns the region that signatures for a host of Alibaba Cloud have.
func ossRegion(host string) string {
	name, _, ok := strings.Cut(host, ".")
	if !ok || !strings.HasSuffix(host, ".aliyuncs.com") {
		return ""
	}
	return strings.TrimSuffix(name, "-internal")
}

// sse returns the encryption that a configuration asks for.
func sse(kind, key, from string) (encrypt.ServerSide, error) {
	switch strings.ToLower(strings.ReplaceAll(kind, "_", "-")) {
	case "none":
		return nil, nil //nolint:nilnil // the bucket's own
	case "sse-s3", "aes256", "s3":
		return encrypt.NewSSE(), nil
	case "sse-kms", "aws:kms", "kms":
		return encrypt.NewSSEKMS(key, nil)
	}
	return nil, fmt.Errorf("%s asks for the encryption %q, expected sse-s3 or sse-kms: %w", from, kind, storage.ErrUnsupported)
}

func (s *Store) env(name string) found { return found{s.o.Getenv(name), name} }

// parseEndpoint reads the URL of a service. Configurations often leave out the scheme.
func parseEndpoint(text string, tls bool) (*url.URL, error) {
	if !strings.Contains(text, "://") {
		scheme := "http"
		if tls {
			scheme = "https"
		}
		text = scheme + "://" + text
	}
	u, err := url.Parse(text)
	if err != nil {
		return nil, errors.New("expected a URL such as https://host:port")
	}
	if u.User != nil {
		return nil, errors.New("expected a URL without user and password")
	}
	if u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || strings.Trim(u.Path, "/") != "" || u.RawQuery != "" || u.Fragment != "" {
		return nil, fmt.Errorf("expected a URL such as https://host:port, found %q", text)
	}
	u.Path = ""
	return u, nil
}

// pathStyle reports whether addresses have the bucket in their path.
func (set settings) pathStyle() bool { return set.lookup() == minio.BucketLookupPath }

func (set settings) lookup() minio.BucketLookupType {
	switch set.addressing {
	case Path:
		return minio.BucketLookupPath
	case Host:
		return minio.BucketLookupDNS
	}
	u := *set.endpoint
	if s3utils.IsAmazonEndpoint(u) || s3utils.IsGoogleEndpoint(u) || strings.HasSuffix(u.Hostname(), ".aliyuncs.com") {
		return minio.BucketLookupAuto // except for names that a certificate does not cover
	}
	return minio.BucketLookupPath
}

// conf is the part of a configuration that is about a bucket.
type conf struct {
	all      map[string]string
	prefixes []string
	bucket   string
	from     string
}

// The prefixes of keys that Flink's file systems read, and pass on to Hadoop's.
var (
	flinkPrefixes = []string{"s3.", "s3a.", "s3p.", "fs.s3a.", "presto.s3.", "flink.hadoop.fs.s3a.", "fs.s3."}
	ossPrefixes   = []string{"fs.oss.", "oss.", "flink.hadoop.fs.oss."}
)

func (s *Store) flink(bucket string) conf {
	c := conf{s.o.Flink, flinkPrefixes, bucket, "the Flink configuration"}
	if s.o.OSS {
		c.prefixes = ossPrefixes
	}
	return c
}

func (s *Store) hadoop(bucket string) conf {
	c := conf{s.o.Hadoop, []string{"fs.s3a."}, bucket, "the Hadoop configuration"}
	if s.o.OSS {
		c.prefixes = []string{"fs.oss."}
	}
	return c
}

// find returns the first of the keys that is set, for the bucket or else for all.
func (c conf) find(names ...string) found {
	for _, of := range []string{"bucket." + c.bucket + ".", ""} {
		for _, prefix := range c.prefixes {
			for _, name := range names {
				if v := strings.TrimSpace(c.all[prefix+of+name]); v != "" {
					return found{v, c.from}
				}
			}
		}
	}
	return found{}
}

func (c conf) keys() keys {
	k := keys{
		id:       c.find("access-key", "access.key", "access-key-id", "accessKeyId").value,
		secret:   c.find("secret-key", "secret.key", "secret-access-key", "accessKeySecret").value,
		token:    c.find("session-token", "session.token", "securityToken").value,
		role:     c.find("assume-role.arn", "assumed.role.arn").value,
		external: c.find("assume-role.external-id", "assumed.role.external.id").value,
		from:     c.from,
	}
	k.anonymous = k.id == "" && strings.Contains(c.find("aws.credentials.provider", "credentials.provider").value, "AnonymousAWSCredentialsProvider")
	return k
}

// profile is a profile of the shared files of AWS.
type profile struct {
	name, file        string // file: where its credentials are, or else its configuration
	exists            bool
	id, secret, token string
	process           string
	sso               bool
	ssoFile           string
	role, external    string
	session, source   string
	credentialSource  string
	webToken          string
	mfa               bool
	region, endpoint  string
}

func (p profile) find(value string) found { return found{value, "profile " + p.name} }

// credentials reports whether the profile says how to get credentials.
func (p profile) credentials() bool {
	return p.id != "" || p.process != "" || p.sso || p.role != ""
}

// home returns the directory of the user.
func (s *Store) home() string {
	name := "HOME"
	if runtime.GOOS == "windows" {
		name = "USERPROFILE"
	}
	return s.o.Getenv(name)
}

// files returns the shared files of AWS.
func (s *Store) files() (config, creds string) {
	config, creds = s.o.Getenv("AWS_CONFIG_FILE"), s.o.Getenv("AWS_SHARED_CREDENTIALS_FILE")
	if home := s.home(); home != "" {
		if config == "" {
			config = filepath.Join(home, ".aws", "config")
		}
		if creds == "" {
			creds = filepath.Join(home, ".aws", "credentials")
		}
	}
	return config, creds
}

// load reads a shared file; a missing one is empty.
func load(name string) (*ini.File, error) {
	o := ini.LoadOptions{AllowNestedValues: true, SkipUnrecognizableLines: true, IgnoreInlineComment: true}
	if name == "" {
		return ini.Empty(o), nil
	}
	text, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return ini.Empty(o), nil
	case err != nil:
		return nil, err
	}
	f, err := ini.LoadSources(o, text)
	if err != nil {
		return nil, fmt.Errorf("%s is not an AWS configuration: it cannot be parsed", name) // without its lines, which can have secrets
	}
	return f, nil
}

// profile reads a profile. The file of credentials overrides the configuration.
func (s *Store) profile(name string) (profile, error) {
	p := profile{name: name}
	configName, credsName := s.files()
	config, err := load(configName)
	if err != nil {
		return p, err
	}
	creds, err := load(credsName)
	if err != nil {
		return p, err
	}
	title := "profile " + name
	if name == "default" && !config.HasSection(title) {
		title = name
	}
	read := func(f *ini.File, section, file string) {
		if !f.HasSection(section) {
			return
		}
		p.exists = true
		get := func(to *string, key string) {
			if v := f.Section(section).Key(key).Value(); v != "" {
				*to = v
			}
		}
		before := p.id
		get(&p.id, "aws_access_key_id")
		get(&p.secret, "aws_secret_access_key")
		get(&p.token, "aws_session_token")
		if p.file == "" || p.id != before {
			p.file = file
		}
		get(&p.process, "credential_process")
		get(&p.role, "role_arn")
		get(&p.external, "external_id")
		get(&p.session, "role_session_name")
		get(&p.source, "source_profile")
		get(&p.credentialSource, "credential_source")
		get(&p.webToken, "web_identity_token_file")
		get(&p.region, "region")
		get(&p.endpoint, "endpoint_url")
		if f.Section(section).Key("sso_role_name").Value() != "" || f.Section(section).Key("sso_session").Value() != "" {
			p.sso, p.ssoFile = true, file
		}
		p.mfa = p.mfa || f.Section(section).Key("mfa_serial").Value() != ""
		if services := f.Section(section).Key("services").Value(); services != "" {
			if v := nested(f, "services "+services, "s3", "endpoint_url"); v != "" {
				p.endpoint = v
			}
		}
	}
	read(config, title, configName)
	read(creds, name, credsName)
	s.hide(p.secret, p.token)
	return p, nil
}

// nested returns a value of an indented block.
func nested(f *ini.File, section, block, key string) string {
	if !f.HasSection(section) {
		return ""
	}
	for _, line := range f.Section(section).Key(block).NestedValues() {
		if k, v, ok := strings.Cut(line, "="); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}
