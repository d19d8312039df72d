package conformance

import (
	"encoding/xml"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// FileSystem is a file system on which Flink keeps snapshots: what its JVM needs more
// than for local files.
type FileSystem struct {
	Name string // in file names
	// Jars are the Maven coordinates, group:artifact:version, of what goes on the class
	// path.
	Jars []string
	// Config are keys of Flink's configuration.
	Config map[string]string
	// Env are further variables of the environment of the JVM, NAME=value.
	Env []string
}

// StartWith is Start for a Flink that has a file system more. Nothing of it is shared
// with the Flink of Use.
func StartWith(version Version, fs FileSystem) (*Flink, error) {
	jars, err := resolve(version, fs)
	if err != nil {
		return nil, err
	}
	return start(version, jars, fs)
}

// resolve returns the class path of the jars of a file system. Maven resolves them once.
func resolve(version Version, fs FileSystem) (string, error) {
	home, err := projectDir()
	if err != nil {
		return "", err
	}
	unlock, err := lockBuild(home)
	if err != nil {
		return "", err
	}
	defer unlock()
	dir := filepath.Join(home, "target", "filesystem-"+fs.Name+"-"+string(version))
	pom := pomOf(fs.Jars)
	listed := filepath.Join(dir, "classpath.txt")
	if before, err := os.ReadFile(filepath.Join(dir, "pom.xml")); err == nil && string(before) == pom {
		if text, err := os.ReadFile(listed); err == nil && allExist(string(text)) {
			return strings.TrimSpace(string(text)), nil
		}
	}
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	if err := errors.Join(os.MkdirAll(dir, 0o777), os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom), 0o666)); err != nil {
		return "", err
	}
	command := exec.Command(maven, "-B", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:build-classpath", "-DincludeScope=runtime", "-Dmdep.outputFile="+listed)
	command.Dir = dir
	if output, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("maven for %s: %w\n%s", fs.Name, err, output)
	}
	text, err := os.ReadFile(listed)
	return strings.TrimSpace(string(text)), err
}

func allExist(classPath string) bool {
	for _, jar := range filepath.SplitList(strings.TrimSpace(classPath)) {
		if _, err := os.Stat(jar); err != nil {
			return false
		}
	}
	return true
}

// pomOf returns a project that depends on jars.
func pomOf(jars []string) string {
	var b strings.Builder
	b.WriteString("<project xmlns=\"http://maven.apache.org/POM/4.0.0\">\n  <modelVersion>4.0.0</modelVersion>\n" +
		"  <groupId>spt</groupId>\n  <artifactId>filesystem</artifactId>\n  <version>1</version>\n  <packaging>pom</packaging>\n  <dependencies>\n")
	for _, jar := range jars {
		part := append(strings.Split(jar, ":"), "", "")
		fmt.Fprintf(&b, "    <dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", escape(part[0]), escape(part[1]), escape(part[2]))
	}
	b.WriteString("  </dependencies>\n</project>\n")
	return b.String()
}

func escape(s string) string {
	var b strings.Builder
	_ = xml.EscapeText(&b, []byte(s)) // it does not fail
	return b.String()
}

// MakeAt is Make for a snapshot on the file system of StartWith: at is the URI of a
// directory that does not exist. The snapshot stays there; out gets the records.
func (f *Flink) MakeAt(options Options, at, out string) (Snapshot, error) {
	options.At = at
	if _, err := f.ask(map[string]any{"command": "make", "out": out, "options": options}); err != nil {
		return Snapshot{}, err
	}
	return OpenSnapshot(out)
}

// Location is the URI of a snapshot that MakeAt made.
func (s Snapshot) Location() string {
	if s.Path == "." {
		return s.At
	}
	return s.At + "/" + filepath.ToSlash(s.Path)
}

// RestoreAt is Restore from the URI of a snapshot of the same job, which is read where it
// is.
func (f *Flink) RestoreAt(s Snapshot, location string, choices Choices) (Content, error) {
	line, err := f.ask(map[string]any{"command": "restore", "snapshot": location, "options": s.Options, "choices": choices})
	if err != nil {
		return Content{}, err
	}
	restores.count(f.version)
	return restored(line)
}
