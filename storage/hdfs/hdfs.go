package hdfs

import (
	"context"
	"errors"
	"fmt"
	"os/user"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"
	"github.com/colinmarc/hdfs/v2/hadoopconf"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/conf"
	"github.com/savepoint-tools/spt/storage"
)

// Options are the options of New.
type Options struct {
	// Hadoop is the configuration of Hadoop: the properties of core-site.xml and
	// hdfs-site.xml by name. nil: it is searched for as Flink does, with Getenv and Flink.
	Hadoop map[string]string
	// Flink is the configuration of Flink, or nil. It can say where the configuration of
	// Hadoop is, and name a Kerberos keytab.
	Flink map[string]string
	// User is the name of the user without Kerberos; "": HADOOP_USER_NAME, or else the
	// user of the operating system.
	User string
	// Getenv returns a variable of the environment; nil: all are empty.
	Getenv func(string) string
	// Deadline is how long a request is repeated while the service is unavailable; 0: one
	// minute. An answer is waited for half as long.
	Deadline time.Duration
	// Retried is called before a request is repeated, if it is not nil. It must be safe
	// for concurrent use.
	Retried func(storage.Retry)
}

const defaultDeadline = time.Minute

// Store is the storage.Storage of HDFS. Its names are URIs of all clusters.
type Store struct {
	o    Options
	conf map[string]string
	from []string // where conf comes from
	user string
	whom string // where user comes from

	replication int   // of new files; 0: as the NameNode has it
	blockSize   int64 // of new files; 0: as the NameNode has it
	umask       uint32

	mu       sync.Mutex
	clusters map[string]*cluster // by authority

	making sync.Mutex      // keeps directories from being removed between their making and their use
	made   map[string]bool // directories made by Create and not yet removed, by name
}

var (
	_ storage.Storage        = (*Store)(nil)
	_ storage.Resolver       = (*Store)(nil)
	_ storage.Mover          = (*Store)(nil)
	_ storage.Remover        = (*Store)(nil)
	_ storage.Namer          = (*Store)(nil)
	_ storage.SpaceReporter  = (*Store)(nil)
	_ storage.AccessReporter = (*Store)(nil)
	_ ability.Cleaner        = (*Store)(nil)
)

// New returns the store. It reads the configuration of Hadoop, and connects to nothing.
func New(o Options) (*Store, error) {
	if o.Getenv == nil {
		o.Getenv = func(string) string { return "" }
	}
	if o.Deadline <= 0 {
		o.Deadline = defaultDeadline
	}
	s := &Store{o: o, conf: o.Hadoop, clusters: map[string]*cluster{}, made: map[string]bool{}}
	if s.conf == nil {
		found, err := conf.HadoopOf(o.Getenv, o.Flink)
		if err != nil {
			return nil, errors.New("the configuration of Hadoop: " + err.Error()) // a missing file is not a missing object
		}
		s.conf, s.from = found.Properties, found.From
	}
	if err := s.identify(); err != nil {
		return nil, err
	}
	return s, s.settings()
}

// identify finds the user.
func (s *Store) identify() error {
	s.user, s.whom = s.o.User, "given"
	if s.user == "" {
		s.user, s.whom = s.o.Getenv("HADOOP_USER_NAME"), "HADOOP_USER_NAME"
	}
	if s.user == "" {
		u, err := user.Current()
		if err != nil {
			return fmt.Errorf("the user for HDFS: %w", err)
		}
		s.user, s.whom = u.Username, "the user of the operating system"
		if i := strings.LastIndexByte(s.user, '\\'); i >= 0 { // DOMAIN\user of Windows
			s.user = s.user[i+1:]
		}
	}
	return nil
}

// settings reads what applies to new files.
func (s *Store) settings() error {
	s.umask = 0o022
	if text := s.conf["fs.permissions.umask-mode"]; text != "" {
		n, err := strconv.ParseUint(text, 8, 12)
		if err != nil {
			return fmt.Errorf("the configuration of Hadoop: fs.permissions.umask-mode: expected an octal number such as 022, found %q", text)
		}
		s.umask = uint32(n)
	}
	if text := s.conf["dfs.replication"]; text != "" {
		n, err := strconv.ParseUint(text, 10, 15)
		if err != nil || n == 0 {
			return fmt.Errorf("the configuration of Hadoop: dfs.replication: expected a number of copies, found %q", text)
		}
		s.replication = int(n)
	}
	if text := strings.ToLower(s.conf["dfs.blocksize"]); text != "" {
		shift := 0
		if i := strings.IndexByte("kmgtpe", text[len(text)-1]); i >= 0 {
			shift, text = 10*(i+1), text[:len(text)-1]
		}
		n, err := strconv.ParseInt(text, 10, 64)
		if err != nil || n <= 0 || n > 1<<62>>shift {
			return fmt.Errorf("the configuration of Hadoop: dfs.blocksize: expected a number of bytes, found %q", s.conf["dfs.blocksize"])
		}
		s.blockSize = n << shift
	}
	return nil
}

// Close closes the connections that are not in use. The store can be used again.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, c := range s.clusters {
		c.closeIdle()
	}
	return nil
}

// cluster returns the cluster of an authority.
func (s *Store) cluster(authority string) (*cluster, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c := s.clusters[authority]; c != nil {
		return c, nil
	}
	addresses, err := s.addresses(authority)
	if err != nil {
		return nil, err
	}
	o := hdfs.ClientOptionsFromConf(hadoopconf.HadoopConf(s.conf))
	o.Addresses, o.User = addresses, s.user
	c := &cluster{authority: authority, options: o, user: s.user, credentials: s.whom, answer: s.o.Deadline / 2}
	if o.KerberosClient != nil {
		login, err := s.kerberos()
		if err != nil {
			return nil, err
		}
		c.options.KerberosClient, c.user, c.credentials = login.client, login.principal, login.from
		if c.options.KerberosServicePrincipleName == "" {
			return nil, errors.New("the configuration of Hadoop demands Kerberos, but has no dfs.namenode.kerberos.principal")
		}
	}
	// The client misreads the messages in which these protections wrap the bytes of a
	// DataNode, but not the stream that AES encrypts.
	aes := strings.Contains(s.conf["dfs.encrypt.data.transfer.cipher.suites"], "AES/CTR/NoPadding")
	if p := o.DataTransferProtection; p == hdfs.DataTransferProtectionIntegrity || p == hdfs.DataTransferProtectionPrivacy && !aes {
		return nil, &serviceError{kind: storage.ErrUnsupported, text: "the protection " + p + " of the data transfer is not supported", setting: storage.SettingHadoop, hint: protectionHint}
	}
	s.clusters[authority] = c
	return c, nil
}

const protectionHint = "supported are dfs.data.transfer.protection=authentication, and privacy with dfs.encrypt.data.transfer.cipher.suites=AES/CTR/NoPadding"

// Access implements storage.AccessReporter.
func (s *Store) Access(ctx context.Context, name string) (storage.Access, error) {
	authority, _, err := s.nameOf(name)
	if err != nil {
		return storage.Access{}, fail("open", name, err)
	}
	c, err := s.cluster(authority)
	if err != nil {
		return storage.Access{}, settingError("open", name, err)
	}
	a := storage.Access{Service: "HDFS", Endpoint: "hdfs://" + authority, Credentials: c.credentials, Identity: c.user}
	if len(c.options.Addresses) > 1 || c.options.Addresses[0] != authority {
		a.Details = append(a.Details, "NameNodes: "+strings.Join(c.options.Addresses, ", "))
	}
	if c.options.KerberosClient != nil {
		a.Details = append(a.Details, "Kerberos")
	}
	if p := c.options.DataTransferProtection; p != "" {
		a.Details = append(a.Details, "protection of the data transfer: "+p)
	}
	if len(s.from) > 0 {
		a.Details = append(a.Details, "configuration of Hadoop: "+strings.Join(s.from, ", "))
	} else {
		a.Details = append(a.Details, "no configuration of Hadoop")
	}
	return a, ctx.Err()
}

// URI implements storage.Namer: the names are the URIs.
func (s *Store) URI(ctx context.Context, name string) (string, error) {
	if err := ctx.Err(); err != nil {
		return "", fail("open", name, err)
	}
	return name, nil
}
