package servertest

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/testenv"
)

// hadoopVersion is the release of the servers. The client of Flink in the conformance
// tests is of the same.
const hadoopVersion = "3.4.2"

// jars are the libraries of a server in Java, as Maven coordinates.
type jars struct {
	name string // with the version, of a directory
	of   []string
}

var (
	hdfsJars = jars{"hdfs-" + hadoopVersion, []string{"org.apache.hadoop:hadoop-common:" + hadoopVersion, "org.apache.hadoop:hadoop-hdfs:" + hadoopVersion, "org.apache.hadoop:hadoop-hdfs-client:" + hadoopVersion}}
	kdcJars  = jars{"minikdc-" + hadoopVersion, []string{"org.apache.hadoop:hadoop-minikdc:" + hadoopVersion}}
)

// pom returns a Maven project that depends on the jars.
func (j jars) pom() string {
	var b strings.Builder
	b.WriteString("<project><modelVersion>4.0.0</modelVersion><groupId>spt</groupId><artifactId>test-server</artifactId><version>1</version><packaging>pom</packaging><dependencies>\n")
	for _, c := range j.of {
		part := strings.SplitN(c, ":", 3)
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", part[0], part[1], part[2])
	}
	b.WriteString("</dependencies></project>\n")
	return b.String()
}

// HDFSOptions are the options of an HDFS.
type HDFSOptions struct {
	// Nameservice makes a high-availability service of this name with two NameNodes,
	// nn1 and nn2; nn1 is active.
	Nameservice string
	// Core and Site are further properties of core-site.xml and hdfs-site.xml.
	Core, Site map[string]string
	// KDC makes the servers demand Kerberos. They act as its first principal.
	KDC *KDC
}

// HDFS is a running HDFS: one NameNode, or two, and one DataNode. Blocks have 1 MiB.
type HDFS struct {
	Conf string // the directory with core-site.xml and hdfs-site.xml, as of HADOOP_CONF_DIR
	URI  string // "hdfs://127.0.0.1:8021", or "hdfs://" and the nameservice
	User string // the superuser

	t         testing.TB
	dir       string
	o         HDFSOptions
	lib       string
	rpc, http []int // ports of the NameNodes
	data      int   // port of the DataNode
	nameNodes []*Process
	dataNode  *Process
}

// StartHDFS starts an HDFS with an empty file system, and waits until it can be written
// to. Its files are below dir, which is made if it does not exist.
func StartHDFS(t testing.TB, dir string, o HDFSOptions) *HDFS {
	t.Helper()
	h := &HDFS{t: t, dir: dir, Conf: filepath.Join(dir, "conf"), o: o, lib: hdfsJars.resolved(t)}
	n := 1
	if o.Nameservice != "" {
		n = 2
	}
	for range n {
		h.rpc, h.http = append(h.rpc, Port(t)), append(h.http, Port(t))
	}
	h.data = Port(t)
	h.configure(Port(t), Port(t))
	h.run("org.apache.hadoop.hdfs.server.namenode.NameNode", append(h.name(0), "-format", "-force", "-nonInteractive")...)
	h.nameNodes = make([]*Process, n)
	if n == 2 {
		if err := os.CopyFS(filepath.Join(dir, "name-1"), os.DirFS(filepath.Join(dir, "name-0"))); err != nil {
			t.Fatal(err)
		}
	}
	for i := range n {
		h.launchNameNode(i)
	}
	if n == 2 {
		h.Activate(0)
	}
	h.StartDataNode()
	return h
}

// resolved returns the directory of the jars. Maven resolves them once; then they are in
// the cache directory of the user.
func (j jars) resolved(t testing.TB) string {
	t.Helper()
	for _, program := range []string{"java", "mvn"} {
		if _, err := exec.LookPath(program); err != nil {
			testenv.Missing(t, j.name, err)
		}
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		testenv.Missing(t, j.name, err)
	}
	lib := filepath.Join(cache, "spt-test-servers", j.name)
	if _, err := os.Stat(lib); err == nil {
		return lib
	}
	resolving := fmt.Sprintf("%s.%d", lib, os.Getpid()) // other packages may resolve it too
	if err := os.MkdirAll(resolving, 0o755); err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(resolving) //nolint:errcheck // it was renamed, or is of no use
	pom := filepath.Join(t.TempDir(), "pom.xml")
	if err := os.WriteFile(pom, []byte(j.pom()), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := run(filepath.Dir(pom), nil, "mvn", "-B", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:copy-dependencies", "-DincludeScope=runtime", "-DoutputDirectory="+resolving); err != nil {
		testenv.Missing(t, j.name, err)
	}
	if err := os.Rename(resolving, lib); err != nil {
		if _, done := os.Stat(lib); done != nil {
			t.Fatal(err)
		}
	}
	return lib
}

// name returns the options that say which NameNode of a nameservice one is.
func (h *HDFS) name(i int) []string {
	if h.o.Nameservice == "" {
		return nil
	}
	return []string{"-D", fmt.Sprintf("dfs.ha.namenode.id=nn%d", i+1)}
}

func loopback(port int) string { return fmt.Sprintf("127.0.0.1:%d", port) }

// configure writes the directory of the configuration.
func (h *HDFS) configure(ipc, web int) {
	h.t.Helper()
	core := map[string]string{"hadoop.tmp.dir": filepath.Join(h.dir, "tmp"), "ipc.client.connect.max.retries": "1"}
	site := map[string]string{
		"dfs.replication":                                      "1",
		"dfs.blocksize":                                        "1048576",
		"dfs.datanode.data.dir":                                filepath.Join(h.dir, "data"),
		"dfs.datanode.hostname":                                "127.0.0.1",
		"dfs.datanode.address":                                 loopback(h.data),
		"dfs.datanode.ipc.address":                             loopback(ipc),
		"dfs.datanode.http.address":                            loopback(web),
		"dfs.namenode.safemode.extension":                      "0",
		"dfs.namenode.datanode.registration.ip-hostname-check": "false",
	}
	if ns := h.o.Nameservice; ns != "" {
		h.URI = "hdfs://" + ns
		site["dfs.nameservices"], site["dfs.ha.namenodes."+ns] = ns, "nn1,nn2"
		site["dfs.namenode.shared.edits.dir"] = "file://" + filepath.Join(h.dir, "edits")
		site["dfs.ha.fencing.methods"] = "shell(true)"
		site["dfs.ha.tail-edits.period"] = "1"
		site["dfs.client.failover.proxy.provider."+ns] = "org.apache.hadoop.hdfs.server.namenode.ha.ConfiguredFailoverProxyProvider"
		for i := range h.rpc {
			of := fmt.Sprintf("%s.nn%d", ns, i+1)
			site["dfs.namenode.rpc-address."+of], site["dfs.namenode.http-address."+of] = loopback(h.rpc[i]), loopback(h.http[i])
			site["dfs.namenode.name.dir."+of] = filepath.Join(h.dir, fmt.Sprintf("name-%d", i))
		}
		if err := os.MkdirAll(filepath.Join(h.dir, "edits"), 0o755); err != nil {
			h.t.Fatal(err)
		}
	} else {
		h.URI = "hdfs://" + loopback(h.rpc[0])
		site["dfs.namenode.rpc-address"], site["dfs.namenode.http-address"] = loopback(h.rpc[0]), loopback(h.http[0])
		site["dfs.namenode.name.dir"] = filepath.Join(h.dir, "name-0")
	}
	core["fs.defaultFS"] = h.URI
	if k := h.o.KDC; k != nil {
		core["hadoop.security.authentication"] = "kerberos"
		for _, of := range []string{"dfs.namenode.kerberos.principal", "dfs.datanode.kerberos.principal", "dfs.web.authentication.kerberos.principal"} {
			site[of] = k.Principals[0]
		}
		for _, of := range []string{"dfs.namenode.keytab.file", "dfs.datanode.keytab.file", "dfs.web.authentication.kerberos.keytab"} {
			site[of] = k.Keytab
		}
		site["dfs.block.access.token.enable"] = "true"
		core["ignore.secure.ports.for.testing"] = "true" // else the ports of a DataNode must be below 1024
		site["ignore.secure.ports.for.testing"] = "true"
	}
	for k, v := range h.o.Core {
		core[k] = v
	}
	for k, v := range h.o.Site {
		site[k] = v
	}
	for _, empty := range []string{"webapps/hdfs/WEB-INF", "webapps/datanode/WEB-INF"} { // a server looks for them on its class path
		if err := os.MkdirAll(filepath.Join(h.Conf, empty), 0o755); err != nil {
			h.t.Fatal(err)
		}
	}
	for name, text := range map[string]string{
		"core-site.xml": hadoopXML(core),
		"hdfs-site.xml": hadoopXML(site),
		"log4j.properties": "log4j.rootLogger=WARN, out\nlog4j.appender.out=org.apache.log4j.ConsoleAppender\nlog4j.appender.out.target=System.err\n" +
			"log4j.appender.out.layout=org.apache.log4j.PatternLayout\nlog4j.appender.out.layout.ConversionPattern=%d{HH:mm:ss} %p %c{1}: %m%n\n",
	} {
		if err := os.WriteFile(filepath.Join(h.Conf, name), []byte(text), 0o644); err != nil {
			h.t.Fatal(err)
		}
	}
	if user, err := run(h.dir, nil, "id", "-un"); err == nil {
		h.User = strings.TrimSpace(user)
	}
}

// hadoopXML returns the text of a configuration file of Hadoop.
func hadoopXML(properties map[string]string) string {
	var b strings.Builder
	b.WriteString("<?xml version=\"1.0\"?>\n<configuration>\n")
	names := make([]string, 0, len(properties))
	for k := range properties {
		names = append(names, k)
	}
	slices.Sort(names)
	for _, k := range names {
		b.WriteString("  <property><name>")
		_ = xml.EscapeText(&b, []byte(k)) // it does not fail
		b.WriteString("</name><value>")
		_ = xml.EscapeText(&b, []byte(properties[k]))
		b.WriteString("</value></property>\n")
	}
	b.WriteString("</configuration>\n")
	return b.String()
}

// java returns the command that runs a class of Hadoop.
func (h *HDFS) java(class string, args ...string) *exec.Cmd {
	all := []string{"-Xmx256m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "--add-opens=java.base/java.lang=ALL-UNNAMED"}
	if h.o.KDC != nil {
		all = append(all, "-Djava.security.krb5.conf="+h.o.KDC.Config)
	}
	all = append(all, "-cp", h.Conf+string(os.PathListSeparator)+filepath.Join(h.lib, "*"), class)
	cmd := exec.Command("java", append(all, args...)...)
	cmd.Dir = h.dir
	cmd.Env = append(os.Environ(), "HADOOP_CONF_DIR="+h.Conf)
	return cmd
}

func (h *HDFS) run(class string, args ...string) {
	h.t.Helper()
	if err := h.try(class, args...); err != nil {
		h.t.Fatal(err)
	}
}

func (h *HDFS) try(class string, args ...string) error {
	if text, err := h.java(class, args...).CombinedOutput(); err != nil {
		return fmt.Errorf("%s %s: %w\n%s", class, strings.Join(args, " "), err, text)
	}
	return nil
}

// Admin runs a command of hdfs dfsadmin, such as "-safemode", "enter".
func (h *HDFS) Admin(args ...string) {
	h.t.Helper()
	h.run("org.apache.hadoop.hdfs.tools.DFSAdmin", args...)
}

// Shell runs a command of hdfs dfs, such as "-chmod", "700", "/x".
func (h *HDFS) Shell(args ...string) error { return h.try("org.apache.hadoop.fs.FsShell", args...) }

// ErasureCode sets the policy by which new files of a directory are erasure coded.
func (h *HDFS) ErasureCode(policy, dir string) {
	h.t.Helper()
	const admin = "org.apache.hadoop.hdfs.tools.ECAdmin"
	h.run(admin, "-enablePolicy", "-policy", policy)
	h.run(admin, "-setPolicy", "-path", dir, "-policy", policy)
}

// Activate makes a NameNode of a nameservice the active one, 0 or 1, and the other
// standby if it runs.
func (h *HDFS) Activate(i int) {
	h.t.Helper()
	const admin = "org.apache.hadoop.hdfs.tools.DFSHAAdmin"
	if other := h.nameNodes[1-i]; other != nil {
		h.run(admin, "-transitionToStandby", fmt.Sprintf("nn%d", 2-i))
	}
	h.run(admin, "-transitionToActive", "--forceactive", fmt.Sprintf("nn%d", i+1)) // without asking the other, which may be dead
}

func (h *HDFS) launchNameNode(i int) {
	h.t.Helper()
	h.nameNodes[i] = Start(h.t, h.java("org.apache.hadoop.hdfs.server.namenode.NameNode", h.name(i)...), func() error {
		_, err := h.state(i)
		return err
	})
}

// state returns what a NameNode says of itself.
func (h *HDFS) state(i int) (string, error) {
	client := http.Client{Timeout: 10 * time.Second}
	answer, err := client.Get("http://" + loopback(h.http[i]) + "/jmx?qry=Hadoop:service=NameNode,name=FSNamesystemState")
	if err != nil {
		return "", err
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	if err == nil && !strings.Contains(string(text), `"NumLiveDataNodes"`) {
		err = errors.New("it does not tell its state yet")
	}
	return string(text), err
}

// serving returns nil if a DataNode is known and files can be changed.
func (h *HDFS) serving() error {
	for i, p := range h.nameNodes {
		if p == nil {
			continue
		}
		state, err := h.state(i)
		if err != nil {
			return err
		}
		if !strings.Contains(state, `"NumLiveDataNodes" : 1`) || !strings.Contains(state, `"FSState" : "Operational"`) {
			return errors.New(state)
		}
	}
	return nil
}

// StartDataNode starts the DataNode again, with the blocks that it had.
func (h *HDFS) StartDataNode() {
	h.t.Helper()
	h.dataNode = Start(h.t, h.java("org.apache.hadoop.hdfs.server.datanode.DataNode"), func() error {
		c, err := net.Dial("tcp", loopback(h.data)) // the NameNode takes a dead one for alive for minutes
		if err != nil {
			return err
		}
		return errors.Join(c.Close(), h.serving())
	})
}

// KillDataNode ends the DataNode as a crash would.
func (h *HDFS) KillDataNode() { h.dataNode.Kill() }

// KillNameNode ends a NameNode as a crash would: 0, or 1 of a nameservice.
func (h *HDFS) KillNameNode(i int) {
	h.nameNodes[i].Kill()
	h.nameNodes[i] = nil
}

// StartNameNode starts a NameNode again, and waits until the service can be written to.
func (h *HDFS) StartNameNode(i int) {
	h.t.Helper()
	h.launchNameNode(i)
	for deadline := time.Now().Add(readyWithin); ; time.Sleep(50 * time.Millisecond) {
		err := h.serving()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			h.t.Fatalf("the NameNode does not serve after %v: %v\n%s", readyWithin, err, h.nameNodes[i].Log())
		}
	}
}

// Log returns what the servers printed.
func (h *HDFS) Log() string {
	var b strings.Builder
	for _, p := range append(slices.Clone(h.nameNodes), h.dataNode) {
		if p != nil {
			b.WriteString(p.Log())
		}
	}
	return b.String()
}

// KDC is a running Kerberos server.
type KDC struct {
	Config     string   // the krb5.conf
	Keytab     string   // the keys of the principals
	Principals []string // NAME@REALM
}

// StartKDC starts a Kerberos server with principals, which are names without a realm.
func StartKDC(t testing.TB, dir string, principals ...string) *KDC {
	t.Helper()
	lib := kdcJars.resolved(t)
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	properties := filepath.Join(dir, "kdc.properties")
	text := fmt.Sprintf("org.name=EXAMPLE\norg.domain=COM\nkdc.bind.address=127.0.0.1\nkdc.port=%d\ninstance=SptTest\nmax.ticket.lifetime=86400000\nmax.renewable.lifetime=604800000\ntransport=TCP\ndebug=false\n", Port(t))
	if err := os.WriteFile(properties, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	k := &KDC{Config: filepath.Join(dir, "krb5.conf"), Keytab: filepath.Join(dir, "keytab")}
	args := append([]string{"-Xmx128m", "-cp", filepath.Join(lib, "*"), "org.apache.hadoop.minikdc.MiniKdc", dir, properties, k.Keytab}, principals...)
	cmd := exec.Command("java", args...)
	cmd.Dir = dir
	Start(t, cmd, func() error {
		// It writes the keys last.
		if _, err := os.Stat(k.Config); err != nil {
			return err
		}
		info, err := os.Stat(k.Keytab)
		if err == nil && info.Size() == 0 {
			err = errors.New("no keys yet")
		}
		return err
	})
	for _, name := range principals {
		k.Principals = append(k.Principals, name+"@EXAMPLE.COM")
	}
	return k
}
