package hdfs_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/hdfs"
)

func TestResolve(t *testing.T) {
	base := map[string]string{
		"fs.defaultFS": "hdfs://prod", "dfs.nameservices": "prod, single,bare", "dfs.ha.namenodes.prod": "nn1, nn2",
		"dfs.namenode.rpc-address.prod.nn1": "a.example:9000", "dfs.namenode.rpc-address.prod.nn2": "b.example", "dfs.namenode.rpc-address.single": "c.example:8021",
		"fs.viewfs.mounttable.T.link./data":                      "hdfs://prod/real",
		"fs.viewfs.mounttable.T.link./data/deep":                 "hdfs://d.example:8020/deeper/",
		"fs.viewfs.mounttable.T.link./local":                     "file:///x",
		"fs.viewfs.mounttable.T.link./top":                       "hdfs://prod",
		"fs.viewfs.mounttable.T.linkNfly.minReplication=2./many": "hdfs://prod/a,hdfs://single/a",
		"fs.viewfs.mounttable.F.link./data":                      "hdfs://prod/real",
		"fs.viewfs.mounttable.F.linkFallback":                    "hdfs://single/rest",
		"fs.viewfs.mounttable.M.linkMergeSlash":                  "hdfs://prod/all",
		"fs.viewfs.mounttable.default.link./x":                   "hdfs://single/x",
	}
	viewed := maps.Clone(base)
	viewed["fs.defaultFS"] = "viewfs://F/"
	none := map[string]string{}
	for _, c := range []struct {
		conf            map[string]string
		uri, want, fail string
	}{
		{base, "hdfs://prod/a/b", "hdfs://prod/a/b", ""},
		{base, "hdfs:///a/b", "hdfs://prod/a/b", ""},
		{base, "hdfs:/a/b", "hdfs://prod/a/b", ""},
		{base, "HDFS://prod/a", "hdfs://prod/a", ""},
		{base, "hdfs://prod", "hdfs://prod/", ""},
		{base, "hdfs://prod/a%20b//c/../x?y#z@w", "hdfs://prod/a%20b//c/../x?y#z@w", ""},
		{base, "hdfs://NN.example:8020/a", "hdfs://nn.example/a", ""},
		{base, "hdfs://nn.example:8021/a", "hdfs://nn.example:8021/a", ""},
		{base, "hdfs://[::1]:8020/a", "hdfs://[::1]/a", ""},
		{base, "viewfs://T/data/x", "hdfs://prod/real/x", ""},
		{base, "viewfs://T/data", "hdfs://prod/real", ""},
		{base, "viewfs://T/data/deep/x", "hdfs://d.example/deeper/x", ""},
		{base, "viewfs://T/data/deeper", "hdfs://prod/real/deeper", ""},
		{base, "viewfs://T/top/x", "hdfs://prod/x", ""},
		{base, "viewfs://F/data/x", "hdfs://prod/real/x", ""},
		{base, "viewfs://F/other/x", "hdfs://single/rest/other/x", ""},
		{base, "viewfs://M/other/x", "hdfs://prod/all/other/x", ""},
		{base, "viewfs:///x/y", "hdfs://single/x/y", ""},
		{viewed, "viewfs:///data/x", "hdfs://prod/real/x", ""},
		{none, "hdfs://nn/a", "hdfs://nn/a", ""},

		{base, "viewfs://T/elsewhere", "", "no mount point of the table T fits: it has /data, /data/deep, /local, /top"},
		{base, "viewfs://T/local/x", "", "only mount points that lead to hdfs:"},
		{base, "viewfs://T/many/x", "", "several file systems"},
		{base, "viewfs://missing/x", "", "no mount table missing"},
		{viewed, "hdfs:///x", "", "fs.defaultFS is viewfs://F/"},
		{none, "hdfs:///x", "", "no configuration of Hadoop with fs.defaultFS was found"},
		{none, "hdfs:x", "", "must begin with a slash"},
		{none, "hdfs://user:secret@nn/x", "", "expected hdfs://NAME/PATH"},
		{none, "s3://bucket/x", "", "scheme \"s3\""},
	} {
		s, err := hdfs.New(hdfs.Options{Hadoop: c.conf})
		if err != nil {
			t.Fatal(err)
		}
		got, name, err := s.Resolve(ctx, c.uri)
		if c.fail != "" {
			var e *storage.Error
			if err == nil || !errors.As(err, &e) || !strings.Contains(err.Error(), c.fail) || strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: %q, error %v, want %q", c.uri, name, err, c.fail)
			}
			continue
		}
		if err != nil || name != c.want || got != storage.Storage(s) {
			t.Errorf("%s: %q, %v; want %q", c.uri, name, err, c.want)
		}
		if _, again, err := s.Resolve(ctx, name); err != nil || again != name {
			t.Errorf("%s: a name resolves to %q, %v", name, again, err)
		}
	}
}

// The addresses of an authority are shown by Access, which connects to none.
func TestAddresses(t *testing.T) {
	s, err := hdfs.New(hdfs.Options{User: "u", Hadoop: map[string]string{
		"dfs.nameservices": "prod,single,bare", "dfs.ha.namenodes.prod": "nn1,nn2", "dfs.ha.namenodes.wrong": "nn1",
		"dfs.namenode.rpc-address.prod.nn1": "a.example:9000", "dfs.namenode.rpc-address.prod.nn2": "b.example", "dfs.namenode.rpc-address.single": "c.example:8021",
		"dfs.data.transfer.protection": "integrity,privacy", "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding",
	}})
	if err != nil {
		t.Fatal(err)
	}
	for authority, want := range map[string]string{
		"prod": "NameNodes: a.example:9000, b.example:8020", "single": "NameNodes: c.example:8021", "nn": "NameNodes: nn:8020", "nn:9000": "protection of the data transfer: privacy",
	} {
		a, err := s.Access(ctx, "hdfs://"+authority+"/x")
		if err != nil || a.Endpoint != "hdfs://"+authority || !strings.Contains(strings.Join(a.Details, "; "), want) {
			t.Errorf("%s: %+v, %v", authority, a, err)
		}
	}
	for authority, want := range map[string]string{"bare": "has neither dfs.ha.namenodes.bare", "wrong": "has no dfs.namenode.rpc-address.wrong.nn1"} {
		_, err := s.Stat(ctx, "hdfs://"+authority+"/x")
		var e *storage.Error
		if !errors.As(err, &e) || e.Setting != storage.SettingHadoop || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", authority, err)
		}
	}
}

func TestSettings(t *testing.T) {
	for key, wrong := range map[string]string{"dfs.replication": "many", "dfs.blocksize": "1x", "fs.permissions.umask-mode": "u=rwx"} {
		if _, err := hdfs.New(hdfs.Options{Hadoop: map[string]string{key: wrong}}); err == nil || !strings.Contains(err.Error(), key) || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", key, err)
		}
	}
	if _, err := hdfs.New(hdfs.Options{Hadoop: map[string]string{"dfs.replication": "2", "dfs.blocksize": "128M", "fs.permissions.umask-mode": "027"}}); err != nil {
		t.Error(err)
	}
	if _, err := hdfs.New(hdfs.Options{Getenv: func(string) string { return "/does/not/exist" }}); err == nil || !strings.Contains(err.Error(), "HADOOP_CONF_DIR") {
		t.Errorf("error %v", err)
	}
}

// Kerberos without a usable ticket ends in an error that says what is missing.
func TestKerberosCredentials(t *testing.T) {
	dir := t.TempDir()
	krb5 := write(t, dir+"/krb5.conf", "[libdefaults]\n default_realm = EXAMPLE.COM\n[realms]\n EXAMPLE.COM = {\n  kdc = 127.0.0.1:1\n }\n")
	for _, c := range []struct {
		env, flink map[string]string
		want       string
	}{
		{map[string]string{"KRB5_CONFIG": dir + "/none"}, nil, "the Kerberos configuration"},
		{map[string]string{"KRB5_CONFIG": krb5, "KRB5CCNAME": "FILE:" + dir + "/cache"}, nil, "the Kerberos ticket cache"},
		{map[string]string{"KRB5_CONFIG": krb5, "KRB5CCNAME": write(t, dir+"/empty", "")}, nil, "the Kerberos ticket cache"},
		{map[string]string{"KRB5_CONFIG": krb5, "KRB5CCNAME": "KEYRING:persistent:0"}, nil, "expected a file, found the type KEYRING"},
		{map[string]string{"KRB5_CONFIG": krb5}, map[string]string{"security.kerberos.login.keytab": dir + "/keys", "security.kerberos.login.principal": "flink@EXAMPLE.COM"}, "the keytab of Flink's configuration"},
	} {
		s, err := hdfs.New(hdfs.Options{Hadoop: map[string]string{"hadoop.security.authentication": "kerberos", "dfs.namenode.kerberos.principal": "nn/_HOST@EXAMPLE.COM"},
			Flink: c.flink, Getenv: func(name string) string { return c.env[name] }})
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.Stat(context.Background(), "hdfs://nn/x")
		if e := wantErr(t, err, storage.ErrPermission); !strings.Contains(err.Error(), c.want) || e.Setting != storage.SettingCredentials {
			t.Errorf("%v: %v", c, err)
		}
	}
}
