package hdfs

import (
	"fmt"
	"os/user"
	"strings"

	"github.com/jcmturner/gokrb5/v8/client"
	"github.com/jcmturner/gokrb5/v8/config"
	"github.com/jcmturner/gokrb5/v8/credentials"
	"github.com/jcmturner/gokrb5/v8/keytab"

	"github.com/savepoint-tools/spt/storage"
)

// login is a Kerberos client that can get tickets for services.
type login struct {
	client    *client.Client
	principal string
	from      string // where the credentials come from
}

// kerberos logs in: with the keytab of Flink's configuration if it has one, or else with
// the ticket cache.
func (s *Store) kerberos() (*login, error) {
	path := s.o.Getenv("KRB5_CONFIG")
	if path == "" {
		path = "/etc/krb5.conf"
	}
	krb5, err := config.Load(path)
	if err != nil {
		return nil, loginError(fmt.Sprintf("the Kerberos configuration: %v", err), "name it in KRB5_CONFIG")
	}
	if file, principal := s.o.Flink["security.kerberos.login.keytab"], s.o.Flink["security.kerberos.login.principal"]; file != "" && principal != "" {
		return keytabLogin(krb5, file, principal)
	}
	return s.cacheLogin(krb5)
}

func loginError(text, hint string) error {
	return &serviceError{kind: storage.ErrPermission, text: text, hint: hint, setting: storage.SettingCredentials}
}

func keytabLogin(krb5 *config.Config, file, principal string) (*login, error) {
	keys, err := keytab.Load(file)
	if err != nil {
		return nil, loginError(fmt.Sprintf("the keytab of Flink's configuration: %v", err), "")
	}
	name, realm, ok := strings.Cut(principal, "@")
	if !ok {
		realm = krb5.LibDefaults.DefaultRealm
	}
	c := client.NewWithKeytab(name, realm, keys, krb5, client.DisablePAFXFAST(true))
	if err := c.Login(); err != nil {
		return nil, loginError(fmt.Sprintf("Kerberos login of %s: %v", principal, err), "")
	}
	return &login{c, name + "@" + realm, "keytab " + file}, nil
}

// cacheLogin uses the ticket that kinit got.
func (s *Store) cacheLogin(krb5 *config.Config) (*login, error) {
	path := s.o.Getenv("KRB5CCNAME")
	if kind, rest, ok := strings.Cut(path, ":"); ok && kind != "" && !strings.ContainsAny(kind, `/\`) {
		if kind != "FILE" {
			return nil, loginError(fmt.Sprintf("the ticket cache %s: expected a file, found the type %s", path, kind), "run kinit with KRB5CCNAME=FILE:/PATH, and set the same here")
		}
		path = rest
	}
	if path == "" {
		u, err := user.Current()
		if err != nil {
			return nil, err
		}
		path = "/tmp/krb5cc_" + u.Uid
	}
	cache, err := loadCache(path)
	if err != nil {
		return nil, loginError(fmt.Sprintf("the Kerberos ticket cache: %v", err), "run kinit, or name the cache in KRB5CCNAME")
	}
	c, err := client.NewFromCCache(cache, krb5)
	if err != nil {
		return nil, loginError(fmt.Sprintf("the Kerberos ticket cache %s: %v", path, err), "run kinit")
	}
	principal := cache.DefaultPrincipal.PrincipalName.PrincipalNameString() + "@" + cache.DefaultPrincipal.Realm
	return &login{c, principal, "ticket cache " + path}, nil
}

// loadCache reads a ticket cache. The library panics on a damaged one.
func loadCache(path string) (cache *credentials.CCache, err error) {
	defer func() {
		if recover() != nil {
			err = fmt.Errorf("%s is not a ticket cache, or damaged", path)
		}
	}()
	return credentials.LoadCCache(path)
}
