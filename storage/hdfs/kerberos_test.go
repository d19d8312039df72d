package hdfs_test

import (
	"bytes"
	"path/filepath"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/hdfs"
)

// With Kerberos, and the protections of the data transfer and of the calls of the NameNode.
func TestKerberos(t *testing.T) {
	testenv.Long(t, "starts a Kerberos server, and with each protection a NameNode and a DataNode")
	dir := t.TempDir()
	kdc := servertest.StartKDC(t, filepath.Join(dir, "kdc"), "hdfs/localhost", "alice")
	for _, protection := range []string{"authentication", "privacy"} {
		t.Run(protection, func(t *testing.T) {
			h := servertest.StartHDFS(t, filepath.Join(dir, protection), servertest.HDFSOptions{
				KDC: kdc, Core: map[string]string{"hadoop.rpc.protection": protection},
				Site: map[string]string{"dfs.data.transfer.protection": protection, "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding"},
			})
			as := func(principal string, hadoop map[string]string) *hdfs.Store {
				s, err := hdfs.New(hdfs.Options{
					Hadoop: hadoop, Deadline: short,
					Flink: map[string]string{"security.kerberos.login.keytab": kdc.Keytab, "security.kerberos.login.principal": principal},
					Getenv: func(name string) string {
						return map[string]string{"HADOOP_CONF_DIR": h.Conf, "KRB5_CONFIG": kdc.Config, "HADOOP_USER_NAME": "nobody"}[name]
					},
				})
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(func() {
					if err := s.Close(); err != nil {
						t.Error(err)
					}
				})
				return s
			}
			s := as(kdc.Principals[0], nil)
			data := noise(2<<20 + 12345)
			put(t, s, h.URI+"/dir/x", data)
			if got := storetest.Read(t, s, h.URI+"/dir/x"); !bytes.Equal([]byte(got), data) {
				t.Errorf("read %d bytes, want %d", len(got), len(data))
			}
			if err := s.Move(ctx, h.URI+"/dir/x", h.URI+"/y"); err != nil {
				t.Error(err)
			}
			wantErr(t, s.Move(ctx, h.URI+"/y", h.URI+"/dir"), storage.ErrExist)
			a, err := s.Access(ctx, h.URI+"/dir/x")
			if err != nil || a.Identity != kdc.Principals[0] || a.Credentials != "keytab "+kdc.Keytab || !strings.Contains(strings.Join(a.Details, "; "), "Kerberos; protection of the data transfer: "+protection) {
				t.Errorf("%+v, %v", a, err)
			}
			alice := as(kdc.Principals[1], nil)
			_, err = alice.Create(ctx, h.URI+"/z", storage.CreateOptions{})
			if e := wantErr(t, err, storage.ErrPermission); !strings.Contains(e.Error(), "user=alice") {
				t.Error(err)
			}
			if protection == "privacy" { // the client says nothing of AES, and of the protection
				for _, hadoop := range []map[string]string{{"dfs.data.transfer.protection": "privacy"}, {"dfs.data.transfer.protection": "integrity", "dfs.encrypt.data.transfer.cipher.suites": "AES/CTR/NoPadding"}} {
					hadoop["hadoop.security.authentication"], hadoop["dfs.namenode.kerberos.principal"] = "kerberos", kdc.Principals[0]
					_, err := as(kdc.Principals[0], hadoop).Stat(ctx, h.URI+"/y")
					if e := wantErr(t, err, storage.ErrUnsupported); !strings.Contains(e.Hint, "AES/CTR/NoPadding") {
						t.Errorf("%v: hint %q", err, e.Hint)
					}
				}
				return
			}
			// Who is not known to the KDC, and who does not use Kerberos, is refused.
			_, err = as("mallory@EXAMPLE.COM", nil).Stat(ctx, h.URI+"/y")
			if e := wantErr(t, err, storage.ErrPermission); e.Setting != storage.SettingCredentials {
				t.Errorf("%v: setting %q", err, e.Setting)
			}
			_, err = as("", map[string]string{}).Stat(ctx, h.URI+"/y")
			if e := wantErr(t, err, storage.ErrPermission); !strings.Contains(e.Hint, "Kerberos") {
				t.Errorf("%v: hint %q", err, e.Hint)
			}
		})
	}
}
