package conf

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"strings"
)

// hadoopFiles are the files of a configuration of Hadoop that say how its file systems
// are reached. A later file overrides an earlier one.
var hadoopFiles = []string{"core-site.xml", "hdfs-site.xml"}

// Hadoop reads the configuration of Hadoop in a directory: the properties of
// core-site.xml and hdfs-site.xml. It is fs.ErrNotExist if the directory has neither.
func Hadoop(dir string) (map[string]string, error) {
	h := &hadoop{values: map[string]string{}, final: map[string]bool{}}
	if err := h.directory(dir); err != nil {
		return nil, err
	}
	if err := h.substitute(os.Getenv); err != nil {
		return nil, err
	}
	return h.values, nil
}

// FoundHadoop is a configuration of Hadoop, and where it comes from.
type FoundHadoop struct {
	Properties map[string]string
	From       []string // directories and files, in the order in which they were read
}

// HadoopOf returns the configuration of Hadoop as Flink finds it. flink is the
// configuration of Flink, or nil. Of what is set, the later one counts:
//
//   - the directory etc/hadoop, or else conf, of HADOOP_HOME
//   - of Flink: fs.hdfs.hdfsdefault, fs.hdfs.hdfssite (files), fs.hdfs.hadoopconf
//   - HADOOP_CONF_DIR; or else of Flink: env.hadoop.conf.dir
//   - of Flink: the keys that begin with flink.hadoop.
//
// Where none is set, the directory /etc/hadoop/conf counts if it exists. A directory that is named
// in HADOOP_CONF_DIR or by Flink must have a configuration; the directory of HADOOP_HOME need not.
func HadoopOf(getenv func(string) string, flink map[string]string) (*FoundHadoop, error) {
	h := &hadoop{values: map[string]string{}, final: map[string]bool{}}
	var from []string
	optional := func(dir string) (bool, error) {
		err := h.directory(dir)
		if errors.Is(err, fs.ErrNotExist) {
			return false, nil
		}
		if err == nil {
			from = append(from, dir)
		}
		return err == nil, err
	}
	named := func(setting, dir string, read func(string) error) error {
		if dir == "" {
			return nil
		}
		if err := read(dir); err != nil {
			return fmt.Errorf("%s: %w", setting, err)
		}
		from = append(from, dir)
		return nil
	}
	if home := getenv("HADOOP_HOME"); home != "" {
		for _, sub := range []string{filepath.Join("etc", "hadoop"), "conf"} {
			if found, err := optional(filepath.Join(home, sub)); err != nil {
				return nil, fmt.Errorf("HADOOP_HOME: %w", err)
			} else if found {
				break
			}
		}
	}
	for _, key := range []string{"fs.hdfs.hdfsdefault", "fs.hdfs.hdfssite"} {
		if err := named(key, flink[key], h.file); err != nil {
			return nil, err
		}
	}
	if err := named("fs.hdfs.hadoopconf", flink["fs.hdfs.hadoopconf"], h.directory); err != nil {
		return nil, err
	}
	setting, dir := "HADOOP_CONF_DIR", getenv("HADOOP_CONF_DIR")
	if dir == "" {
		setting, dir = "env.hadoop.conf.dir", flink["env.hadoop.conf.dir"]
	}
	if err := named(setting, dir, h.directory); err != nil {
		return nil, err
	}
	if len(from) == 0 {
		if _, err := optional("/etc/hadoop/conf"); err != nil {
			return nil, err
		}
	}
	own := false
	for key, value := range flink {
		if name, ok := strings.CutPrefix(key, "flink.hadoop."); ok {
			h.values[name], own = value, true
		}
	}
	if own {
		from = append(from, "flink.hadoop.* of Flink")
	}
	if err := h.substitute(getenv); err != nil {
		return nil, err
	}
	return &FoundHadoop{h.values, from}, nil
}

// hadoop collects properties.
type hadoop struct {
	values map[string]string
	final  map[string]bool // they keep their value
}

// directory reads the files of a directory; fs.ErrNotExist if it has neither.
func (h *hadoop) directory(dir string) error {
	found := false
	for _, name := range hadoopFiles {
		err := h.file(filepath.Join(dir, name))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		found = found || err == nil
	}
	if !found {
		return fmt.Errorf("%s has no configuration of Hadoop: expected %s: %w", dir, strings.Join(hadoopFiles, " or "), fs.ErrNotExist)
	}
	return nil
}

// file reads one file.
func (h *hadoop) file(name string) error {
	f, err := os.Open(name)
	if err != nil {
		return err
	}
	defer f.Close()
	return h.read(name, f)
}

func (h *hadoop) read(name string, r io.Reader) error {
	d := xml.NewDecoder(r)
	final := map[string]bool{}
	for depth := 0; ; {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		switch e := token.(type) {
		case xml.EndElement:
			depth--
		case xml.StartElement:
			depth++
			switch {
			case e.Name.Local == "include":
				return fmt.Errorf("%s: it includes another file (xi:include), which is not supported: %w", name, errors.ErrUnsupported)
			case depth == 1 && e.Name.Local != "configuration":
				return fmt.Errorf("%s: expected <configuration>, found <%s>", name, e.Name.Local)
			case e.Name.Local == "property":
				var p property
				if err := d.DecodeElement(&p, &e); err != nil {
					return fmt.Errorf("%s: %w", name, err)
				}
				depth--
				h.set(p, final)
			}
		}
	}
	maps.Copy(h.final, final) // within a file the last one counts
	return nil
}

// property is a property, written as elements or as attributes.
type property struct {
	Name   string  `xml:"name"`
	Value  *string `xml:"value"`
	Final  string  `xml:"final"`
	NameA  string  `xml:"name,attr"`
	ValueA *string `xml:"value,attr"`
	FinalA string  `xml:"final,attr"`
}

func (h *hadoop) set(p property, final map[string]bool) {
	name := strings.TrimSpace(p.Name)
	if name == "" {
		name = p.NameA
	}
	value := p.Value
	if value == nil {
		value = p.ValueA
	}
	if name == "" || value == nil || h.final[name] {
		return
	}
	h.values[name] = strings.TrimSpace(*value)
	final[name] = strings.TrimSpace(p.Final) == "true" || p.FinalA == "true"
}

// maxSubstitutions is how often Hadoop substitutes in one value.
const maxSubstitutions = 20

// substitute replaces ${name} by the value of another property, and ${env.NAME},
// ${env.NAME-default} and ${env.NAME:-default} by a variable of the environment. What is
// not known stays as it is, as in Hadoop: it may be a property of the JVM.
func (h *hadoop) substitute(getenv func(string) string) error {
	result := make(map[string]string, len(h.values))
	for key, value := range h.values {
		at := 0
		for n := 0; ; {
			start := strings.Index(value[at:], "${")
			if start < 0 {
				break
			}
			start += at
			length := strings.IndexByte(value[start:], '}')
			if length < 0 {
				break
			}
			name := value[start+2 : start+length]
			with, ok := h.lookup(name, getenv)
			if !ok {
				at = start + length + 1
				continue
			}
			if n++; n > maxSubstitutions {
				return fmt.Errorf("the configuration of Hadoop: more than %d substitutions in the value of %s", maxSubstitutions, key)
			}
			value = value[:start] + with + value[start+length+1:]
		}
		result[key] = value
	}
	h.values = result
	return nil
}

func (h *hadoop) lookup(name string, getenv func(string) string) (string, bool) {
	if of, ok := strings.CutPrefix(name, "env."); ok {
		otherwise, has := "", false
		if i := strings.IndexByte(of, '-'); i > 0 {
			otherwise, has = of[i+1:], true
			of = strings.TrimSuffix(of[:i], ":")
		}
		if v := getenv(of); v != "" {
			return v, true
		}
		return otherwise, has
	}
	if name == "user.name" {
		if v := getenv("USER"); v != "" {
			return v, true
		}
	}
	v, ok := h.values[name]
	return v, ok
}
