package s3_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage/s3"
)

// cloud answers as S3, as the service that assumes roles, as the service of a
// container and as the metadata of an instance do. Every one of them issues a key of
// its own.
func cloud(t *testing.T) (url string, used func() string) {
	t.Helper()
	last := ""
	later := time.Now().Add(time.Hour).UTC().Format(time.RFC3339)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		say := func(format string, args ...any) { fmt.Fprintf(w, format, args...) } //nolint:errcheck // of a test
		switch {
		case r.Method == http.MethodPost:
			if err := r.ParseForm(); err != nil {
				t.Error(err)
			}
			action, by := r.Form.Get("Action"), "WEB"+r.Form.Get("WebIdentityToken")
			if action == "AssumeRole" {
				_, by, _ = strings.Cut(r.Header.Get("Authorization"), "Credential=")
				by, _, _ = strings.Cut(by, "/")
			}
			say(`<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>ROLE-%[2]s-%[3]s</AccessKeyId><SecretAccessKey>secret-of-role</SecretAccessKey><SessionToken>token-of-role</SessionToken><Expiration>%[4]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`,
				action, by, r.Form.Get("RoleArn"), later)
		case r.URL.Path == "/container":
			say(`{"AccessKeyId":"CONTAINER-%s","SecretAccessKey":"secret-of-container","Token":"t","Expiration":%q}`, r.Header.Get("Authorization"), later)
		case r.URL.Path == "/latest/api/token":
			say("token")
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/":
			say("role-of-machine")
		case r.URL.Path == "/latest/meta-data/iam/security-credentials/role-of-machine":
			say(`{"Code":"Success","AccessKeyId":"MACHINE-%s","SecretAccessKey":"secret-of-machine","Token":"t","Expiration":%q}`, r.Header.Get("X-Aws-Ec2-Metadata-Token"), later)
		default:
			_, last, _ = strings.Cut(r.Header.Get("Authorization"), "Credential=")
			last, _, _ = strings.Cut(last, "/2")
			if r.URL.Query().Has("list-type") {
				say(`<ListBucketResult></ListBucketResult>`)
				return
			}
			object(w, "x")
		}
	}))
	t.Cleanup(server.Close)
	return server.URL, func() string { return last }
}

// TestCredentials: where credentials are found, and which of several count.
func TestCredentials(t *testing.T) {
	url, used := cloud(t)
	home := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(home, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	config := file(".aws/config", `[default]
region = eu-west-1
[profile config]
aws_access_key_id = KEY-CONFIG
aws_secret_access_key = secret-of-config
region = eu-west-2
[profile role]
role_arn = arn-role
source_profile = files
[profile chain]
role_arn = arn-chain
source_profile = role
[profile web]
role_arn = arn-web
web_identity_token_file = `+file("token", "TOKEN")+`
[profile machine]
role_arn = arn-machine
credential_source = EcsContainer
[profile loop]
role_arn = arn-loop
source_profile = pool
[profile pool]
role_arn = arn-pool
source_profile = loop
[profile mfa]
role_arn = arn-mfa
source_profile = files
mfa_serial = arn-device
[profile service]
aws_access_key_id = KEY-SERVICE
aws_secret_access_key = secret-of-service
services = local
[services local]
dynamodb =
  endpoint_url = http://127.0.0.1:1
s3 =
  endpoint_url = `+url+`
[profile empty]
region = eu-west-3
`)
	creds := file(".aws/credentials", `[default]
aws_access_key_id = KEY-DEFAULT
aws_secret_access_key = secret-of-default
[files]
aws_access_key_id = KEY-FILES
aws_secret_access_key = secret-of-files
aws_session_token = token-of-files
[half]
aws_access_key_id = KEY-HALF
`)
	container := []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI", url + "/container", "AWS_CONTAINER_AUTHORIZATION_TOKEN", "auth"}
	keys := []string{"AWS_ACCESS_KEY_ID", "KEY-ENV", "AWS_SECRET_ACCESS_KEY", "secret-of-env"}
	machine := []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT", url}
	flink := map[string]string{"s3.access-key": "KEY-FLINK", "s3.secret-key": "secret-of-flink", "s3.bucket.own.access-key": "KEY-OWN", "s3.bucket.own.secret-key": "secret-of-own"}
	hadoop := map[string]string{"fs.s3a.access.key": "KEY-HADOOP", "fs.s3a.secret.key": "secret-of-hadoop"}
	homed := []string{"HOME", home, "USERPROFILE", home}
	join := func(all ...[]string) (env []string) {
		for _, a := range all {
			env = append(env, a...)
		}
		return env
	}
	for _, c := range []struct {
		what   string
		env    []string
		o      s3.Options
		bucket string
		key    string // or the error
		source string
	}{
		{"anonymous before all", join(keys, homed), s3.Options{Anonymous: true, Flink: flink}, "", "", "none"},
		{"environment", join(keys, homed), s3.Options{Flink: flink, Hadoop: hadoop}, "", "KEY-ENV", "AWS_ACCESS_KEY_ID in the environment"},
		{"stated profile before the environment", join(keys, homed), s3.Options{Profile: "files", Flink: flink}, "", "KEY-FILES", "profile files of " + creds},
		{"environment before AWS_PROFILE", join(keys, homed, []string{"AWS_PROFILE", "files"}), s3.Options{}, "", "KEY-ENV", "AWS_ACCESS_KEY_ID in the environment"},
		{"AWS_PROFILE before Flink", join(homed, []string{"AWS_PROFILE", "config"}), s3.Options{Flink: flink}, "", "KEY-CONFIG", "profile config of " + config},
		{"Flink before Hadoop and the default profile", homed, s3.Options{Flink: flink, Hadoop: hadoop}, "", "KEY-FLINK", "the Flink configuration"},
		{"Flink, of the bucket", homed, s3.Options{Flink: flink}, "own", "KEY-OWN", "the Flink configuration"},
		{"Flink, a role", homed, s3.Options{Flink: map[string]string{"fs.s3a.access.key": "KEY-F", "s3.secret.key": "secret-of-f", "s3.assume-role.arn": "arn-f"}}, "", "ROLE-KEY-F-arn-f", "role arn-f of the Flink configuration"},
		{"Hadoop before the default profile", homed, s3.Options{Hadoop: hadoop}, "", "KEY-HADOOP", "the Hadoop configuration"},
		{"Hadoop, anonymous", homed, s3.Options{Hadoop: map[string]string{"fs.s3a.aws.credentials.provider": "org.apache.hadoop.fs.s3a.AnonymousAWSCredentialsProvider"}}, "", "", "none, as the Hadoop configuration says"},
		{"default profile before the web identity", join(homed, container, []string{"AWS_WEB_IDENTITY_TOKEN_FILE", filepath.Join(home, "token")}), s3.Options{}, "", "KEY-DEFAULT", "profile default of " + creds},
		{"other files", []string{"AWS_SHARED_CREDENTIALS_FILE", creds, "AWS_CONFIG_FILE", config, "AWS_PROFILE", "files"}, s3.Options{}, "", "KEY-FILES", "profile files of " + creds},
		{"role of a profile", homed, s3.Options{Profile: "role"}, "", "ROLE-KEY-FILES-arn-role", "profile role of " + config},
		{"role of a role", homed, s3.Options{Profile: "chain"}, "", "ROLE-ROLE-KEY-FILES-arn-role-arn-chain", "profile chain of " + config},
		{"web identity of a profile", homed, s3.Options{Profile: "web"}, "", "ROLE-WEBTOKEN-arn-web", "profile web of " + config},
		{"role of a container", join(homed, container), s3.Options{Profile: "machine"}, "", "ROLE-CONTAINER-auth-arn-machine", "profile machine of " + config},
		{"web identity before the container", join(container, []string{"AWS_WEB_IDENTITY_TOKEN_FILE", filepath.Join(home, "token"), "AWS_ROLE_ARN", "arn-pod"}), s3.Options{}, "", "ROLE-WEBTOKEN-arn-pod", "the web identity of AWS_WEB_IDENTITY_TOKEN_FILE"},
		{"container before the instance", join(container, machine), s3.Options{}, "", "CONTAINER-auth", "the container"},
		{"instance", machine, s3.Options{}, "", "MACHINE-token", "the instance metadata"},
		{"endpoint of a service", join(homed, []string{"AWS_ENDPOINT_URL", "", "AWS_ENDPOINT_URL_S3", ""}), s3.Options{Profile: "service"}, "", "KEY-SERVICE", "profile service of " + config},

		{"half of a key", homed, s3.Options{Profile: "half"}, "", "error: only one of aws_access_key_id and aws_secret_access_key", "profile half of " + creds},
		{"empty profile", homed, s3.Options{Profile: "empty"}, "", "error: it has no credentials", ""},
		{"loop", homed, s3.Options{Profile: "loop"}, "", "error: its source profiles are a loop", ""},
		{"one-time password", homed, s3.Options{Profile: "mfa"}, "", "error: one-time password", ""},
		{"half of a key of Flink", nil, s3.Options{Flink: map[string]string{"s3.access-key": "KEY-F"}}, "", "error: the Flink configuration has only one of access key and secret key", ""},
		{"container elsewhere", []string{"AWS_CONTAINER_CREDENTIALS_FULL_URI", "http://example.org/c"}, s3.Options{}, "", `error: expected https or an address of this machine, found host "example.org"`, ""},
		{"no instance", []string{"AWS_EC2_METADATA_SERVICE_ENDPOINT", "http://127.0.0.1:1"}, s3.Options{}, "", "error: it does not answer", ""},
		{"disabled", []string{"AWS_EC2_METADATA_DISABLED", "true"}, s3.Options{}, "", "error: no credentials were found", ""},
	} {
		t.Run(c.what, func(t *testing.T) {
			env := append([]string{"AWS_ENDPOINT_URL", url}, c.env...)
			c.o.Getenv = func(name string) string {
				value := ""
				for i := 0; i < len(env); i += 2 {
					if env[i] == name {
						value = env[i+1]
					}
				}
				return value
			}
			c.o.Retries, c.o.Pause = 1, time.Millisecond
			bucket := c.bucket
			if bucket == "" {
				bucket = "bucket"
			}
			s := open(t, c.o)
			name := "s3://" + bucket + "/x"
			_, err := s.Stat(ctx, name)
			if text, isError := strings.CutPrefix(c.key, "error: "); isError {
				if err == nil || !strings.Contains(err.Error(), text) || strings.Contains(err.Error(), "secret-of") {
					t.Fatalf("%v, expected %q", err, text)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if used() != c.key {
				t.Errorf("key %q, expected %q", used(), c.key)
			}
			a, err := s.Access(ctx, name)
			if err != nil || a.Credentials != c.source {
				t.Errorf("%+v, %v, expected %q", a, err, c.source)
			}
			if text := fmt.Sprintf("%+v", a); strings.Contains(text, "secret-of") || strings.Contains(text, "token-of") {
				t.Error(text)
			}
		})
	}
}

// TestConfigured: endpoint, region and addressing.
func TestConfigured(t *testing.T) {
	for _, c := range []struct {
		what             string
		env              []string
		o                s3.Options
		endpoint, region string
		style            string
	}{
		{"AWS", nil, s3.Options{}, "https://s3.amazonaws.com", "us-east-1", "by host"},
		{"AWS_REGION", []string{"AWS_REGION", "eu-west-1", "AWS_DEFAULT_REGION", "eu-west-2"}, s3.Options{}, "https://s3.amazonaws.com", "eu-west-1", "by host"},
		{"AWS_DEFAULT_REGION", []string{"AWS_DEFAULT_REGION", "eu-west-2"}, s3.Options{}, "https://s3.amazonaws.com", "eu-west-2", "by host"},
		{"region of the endpoint", nil, s3.Options{Endpoint: "https://s3.eu-west-3.amazonaws.com"}, "https://s3.eu-west-3.amazonaws.com", "eu-west-3", "by host"},
		{"AWS_ENDPOINT_URL_S3", []string{"AWS_ENDPOINT_URL", "http://a", "AWS_ENDPOINT_URL_S3", "http://b:9000"}, s3.Options{}, "http://b:9000", "us-east-1", "by path"},
		{"ignored", []string{"AWS_ENDPOINT_URL", "http://a", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS", "true"}, s3.Options{}, "https://s3.amazonaws.com", "us-east-1", "by host"},
		{"stated", []string{"AWS_ENDPOINT_URL_S3", "http://b"}, s3.Options{Endpoint: "http://c/", Region: "r", Addressing: s3.Host}, "http://c", "r", "by host"},
		{"Google", nil, s3.Options{Endpoint: "https://storage.googleapis.com"}, "https://storage.googleapis.com", "us-east-1", "by host"},
		{"Flink", nil, s3.Options{Flink: map[string]string{"s3.endpoint": "minio:9000", "s3.region": "f"}}, "https://minio:9000", "f", "by path"},
		{"Flink 2", nil, s3.Options{Flink: map[string]string{"s3.endpoint.value": "http://minio:9000"}}, "http://minio:9000", "us-east-1", "by path"},
		{"Flink without TLS", nil, s3.Options{Flink: map[string]string{"fs.s3a.endpoint": "minio:9000", "fs.s3a.connection.ssl.enabled": "false"}}, "http://minio:9000", "us-east-1", "by path"},
		{"Flink, by path", nil, s3.Options{Flink: map[string]string{"s3.path.style.access": "true"}}, "https://s3.amazonaws.com", "us-east-1", "by path"},
		{"Flink, of the bucket", nil, s3.Options{Flink: map[string]string{"s3.endpoint": "http://a", "s3.bucket.bucket.endpoint": "http://b"}}, "http://b", "us-east-1", "by path"},
		{"Hadoop", nil, s3.Options{Hadoop: map[string]string{"fs.s3a.endpoint": "http://h", "fs.s3a.endpoint.region": "hr"}}, "http://h", "hr", "by path"},
	} {
		t.Run(c.what, func(t *testing.T) {
			c.o.Getenv = func(name string) string {
				for i := 0; i < len(c.env); i += 2 {
					if c.env[i] == name {
						return c.env[i+1]
					}
				}
				return ""
			}
			c.o.Anonymous, c.o.Retries = true, 1
			c.o.Transport = &http.Transport{Proxy: nil, DialContext: dialOnly("127.0.0.1:1")} // no request leaves the machine
			a, err := open(t, c.o).Access(ctx, "s3://bucket/")
			if err == nil || a.Endpoint != c.endpoint || a.Region != c.region || !strings.Contains(strings.Join(a.Details, "\n"), c.style) {
				t.Errorf("%+v, %v\nexpected %s, %s, %s", a, err, c.endpoint, c.region, c.style)
			}
		})
	}
}

// Single sign-on takes the token that the AWS CLI has cached. The portal's address is
// fixed, so only what comes before a request to it is seen here.
func TestSingleSignOn(t *testing.T) {
	if runtime.GOOS == "windows" {
		testenv.NotTested(t, "NOT TESTED on Windows, single sign-on: HOME does not decide where the cache is")
	}
	home := t.TempDir()
	t.Setenv("HOME", home)
	if err := os.MkdirAll(filepath.Join(home, ".aws"), 0o700); err != nil {
		t.Fatal(err)
	}
	config := "[profile sso]\nsso_session = corp\nsso_account_id = 1\nsso_role_name = reader\n[sso-session corp]\nsso_start_url = https://corp\nsso_region = eu-west-1\n"
	if err := os.WriteFile(filepath.Join(home, ".aws", "config"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	s := open(t, s3.Options{Profile: "sso", Retries: 1, Getenv: func(name string) string { return map[string]string{"HOME": home}[name] }})
	_, err := s.Stat(ctx, "s3://bucket/x")
	if err == nil || !strings.Contains(err.Error(), "profile sso of") || !strings.Contains(err.Error(), "aws sso login") {
		t.Errorf("%v, expected that a login is needed", err)
	}
}
