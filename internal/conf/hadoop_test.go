package conf_test

import (
	"errors"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/savepoint-tools/spt/internal/conf"
)

// hadoopDir writes a configuration directory.
func hadoopDir(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func TestHadoop(t *testing.T) {
	t.Setenv("SPT_TEST_HOST", "nn.example")
	dir := hadoopDir(t, map[string]string{
		"core-site.xml": `<?xml version="1.0"?><?xml-stylesheet type="text/xsl" href="configuration.xsl"?>
<configuration>
  <!-- a comment -->
  <property><name>fs.defaultFS</name><value>hdfs://${dfs.nameservices}</value><final>true</final><description>ignored &lt;</description></property>
  <property><name> twice </name><value>1</value></property>
  <property><name>twice</name><value>2</value><final>true</final></property>
  <property><name>deep</name><value>a${b}</value></property>
  <property><name>b</name><value>-${c}-</value></property>
  <property><name>c</name><value>x</value></property>
  <property><name>jvm</name><value>${java.io.tmpdir}/${c}</value></property>
  <property><name>host</name><value>${env.SPT_TEST_HOST}:${env.SPT_TEST_PORT:-8020}${env.SPT_TEST_NONE-}</value></property>
  <property><name>no value</name></property>
  <property name="attribute" value="yes"/>
  <property><name>open</name><value>${c</value></property>
</configuration>`,
		"hdfs-site.xml": `<configuration>
  <property><name>dfs.nameservices</name><value>
    ns1
  </value></property>
  <property><name>fs.defaultFS</name><value>file:///</value></property>
  <property><name>twice</name><value>3</value></property>
  <property><name>c</name><value>y</value></property>
</configuration>`,
		"mapred-site.xml": `not read`,
	})
	got, err := conf.Hadoop(dir)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"fs.defaultFS": "hdfs://ns1", "twice": "2", "deep": "a-y-", "b": "-y-", "c": "y", "jvm": "${java.io.tmpdir}/y",
		"host": "nn.example:8020", "attribute": "yes", "dfs.nameservices": "ns1", "open": "${c",
	}
	if !maps.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestHadoopRefused(t *testing.T) {
	for text, want := range map[string]string{
		`<configuration><property><name>a</name>`: "syntax error",
		`<configuration xmlns:xi="http://www.w3.org/2001/XInclude"><xi:include href="more.xml"/></configuration>`: "includes another file",
		`<html><body/></html>`: "expected <configuration>, found <html>",
		`<configuration><property><name>a</name><value>${b}</value></property><property><name>b</name><value>${a}</value></property></configuration>`: "more than 20 substitutions",
	} {
		_, err := conf.Hadoop(hadoopDir(t, map[string]string{"core-site.xml": text}))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want %q", text, err, want)
		}
	}
	dir := t.TempDir()
	if _, err := conf.Hadoop(dir); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), dir) {
		t.Errorf("an empty directory: %v", err)
	}
}

// The later of several sources counts, as in Flink.
func TestHadoopOf(t *testing.T) {
	one := func(value string) string {
		return `<configuration><property><name>x</name><value>` + value + `</value></property><property><name>` + value + `</name><value>1</value></property></configuration>`
	}
	home, env, old := t.TempDir(), hadoopDir(t, map[string]string{"core-site.xml": one("env")}), hadoopDir(t, map[string]string{"hdfs-site.xml": one("old")})
	if err := os.MkdirAll(filepath.Join(home, "etc", "hadoop"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(home, "etc", "hadoop", "core-site.xml"), []byte(one("home")), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		env, flink map[string]string
		want       []string // the names of the properties; the first is the value of x
	}{
		{map[string]string{"HADOOP_HOME": home}, nil, []string{"home"}},
		{map[string]string{"HADOOP_HOME": home, "HADOOP_CONF_DIR": env}, nil, []string{"env", "home"}},
		{map[string]string{"HADOOP_CONF_DIR": env}, map[string]string{"fs.hdfs.hadoopconf": old}, []string{"env", "old"}},
		{nil, map[string]string{"env.hadoop.conf.dir": env, "fs.hdfs.hdfssite": filepath.Join(old, "hdfs-site.xml")}, []string{"env", "old"}},
		{map[string]string{"HADOOP_CONF_DIR": old}, map[string]string{"env.hadoop.conf.dir": env}, []string{"old"}},
		{map[string]string{"HADOOP_CONF_DIR": env}, map[string]string{"flink.hadoop.x": "flink", "flink.hadoop.flink": "1", "other": "2"}, []string{"flink", "env"}},
	} {
		got, err := conf.HadoopOf(func(name string) string { return c.env[name] }, c.flink)
		if err != nil {
			t.Fatal(err)
		}
		want := map[string]string{"x": c.want[0]}
		for _, name := range c.want {
			want[name] = "1"
		}
		if !maps.Equal(got.Properties, want) || len(got.From) != len(c.want) {
			t.Errorf("%v %v: %v from %q, want %v", c.env, c.flink, got.Properties, got.From, want)
		}
	}
	empty := t.TempDir()
	if _, err := conf.HadoopOf(func(string) string { return empty }, nil); !errors.Is(err, fs.ErrNotExist) || !strings.HasPrefix(err.Error(), "HADOOP_CONF_DIR: ") {
		t.Errorf("error %v", err)
	}
	got, err := conf.HadoopOf(func(string) string { return "" }, nil)
	if err != nil || len(got.From) > 0 && !slices.Equal(got.From, []string{"/etc/hadoop/conf"}) {
		t.Errorf("%v, %v", got, err)
	}
}
