package conformance

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
)

// FileSystem is a file system of Flink other than the local one, as a JVM has it: its
// jars, and its configuration.
type FileSystem struct {
	Name string
	// Jars are Maven coordinates "group:artifact:version", with all that they need; the
	// version "FLINK" is the one of the running Flink.
	Jars          []string
	Configuration map[string]string
}

// started counts the JVMs with a file system.
var started atomic.Int64

// StartWith is Start with a file system.
func StartWith(version Version, system FileSystem) (*Flink, error) {
	program, err := build(version)
	if err != nil {
		return nil, err
	}
	jars, err := resolve(version, system)
	if err != nil {
		return nil, err
	}
	// In front, as in a plugin, would hide classes of Flink that a jar also has.
	program.classPath += string(os.PathListSeparator) + jars
	dir, err := Base()
	if err != nil {
		return nil, err
	}
	name := fmt.Sprintf("-%s-%d", system.Name, started.Add(1)) // the same system may be on another server later
	file := filepath.Join(dir, ".configuration-"+string(version)+name)
	var text strings.Builder
	for key, value := range system.Configuration {
		fmt.Fprintf(&text, "%s=%s\n", key, strings.ReplaceAll(value, `\`, `\\`))
	}
	if err := os.WriteFile(file, []byte(text.String()), 0o600); err != nil {
		return nil, err
	}
	return start(version, program, name, "-Dspt.configuration="+file)
}

// resolve returns the class path of a file system's jars.
func resolve(version Version, system FileSystem) (string, error) {
	home, err := projectDir()
	if err != nil {
		return "", err
	}
	release, err := releaseOf(home, version)
	if err != nil {
		return "", err
	}
	dir := filepath.Join(home, "target", "file-systems", system.Name+"-"+release)
	unlock, err := lockBuild(home)
	if err != nil {
		return "", err
	}
	defer unlock()
	list := filepath.Join(dir, "classpath.txt")
	pom := pomOf(release, system.Jars)
	if known, err := os.ReadFile(filepath.Join(dir, "pom.xml")); err == nil && string(known) == pom {
		if path, ok := existing(list); ok {
			return path, nil
		}
	}
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return "", err
	}
	if err := os.WriteFile(filepath.Join(dir, "pom.xml"), []byte(pom), 0o666); err != nil {
		return "", err
	}
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return "", fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	run := func(more ...string) ([]byte, error) {
		args := append([]string{"-B", "-q", "org.apache.maven.plugins:maven-dependency-plugin:3.6.0:build-classpath", "-DincludeScope=runtime", "-Dmdep.outputFile=" + list}, more...)
		command := exec.Command(maven, args...)
		command.Dir = dir
		return command.CombinedOutput()
	}
	if _, err := run("-o"); err != nil {
		if output, err := run(); err != nil {
			return "", fmt.Errorf("maven for %s of Flink %s: %w\n%s", system.Name, version, err, output)
		}
	}
	path, ok := existing(list)
	if !ok {
		return "", fmt.Errorf("%s: a jar does not exist", list)
	}
	return path, nil
}

// existing returns a class path whose jars all exist.
func existing(list string) (string, bool) {
	text, err := os.ReadFile(list)
	path := strings.TrimSpace(string(text))
	missing := func(jar string) bool { _, err := os.Stat(jar); return err != nil }
	return path, err == nil && path != "" && !slices.ContainsFunc(filepath.SplitList(path), missing)
}

// pomOf is a Maven project that depends on jars.
func pomOf(release string, jars []string) string {
	var b strings.Builder
	b.WriteString("<project><modelVersion>4.0.0</modelVersion><groupId>spt</groupId><artifactId>file-system</artifactId><version>1</version><packaging>pom</packaging><dependencies>\n")
	for _, jar := range jars {
		part := append(strings.Split(jar, ":"), "", "", "")
		if part[2] == "FLINK" {
			part[2] = release
		}
		fmt.Fprintf(&b, "<dependency><groupId>%s</groupId><artifactId>%s</artifactId><version>%s</version></dependency>\n", part[0], part[1], part[2])
	}
	b.WriteString("</dependencies></project>\n")
	return b.String()
}

// releaseOf reads the release of a version in pom.xml: "1.20.0".
func releaseOf(home string, version Version) (string, error) {
	text, err := os.ReadFile(filepath.Join(home, "pom.xml"))
	if err != nil {
		return "", err
	}
	var project struct {
		Profiles []struct {
			ID      string `xml:"id"`
			Release string `xml:"properties>flink.version"`
		} `xml:"profiles>profile"`
	}
	if err := xml.Unmarshal(text, &project); err != nil {
		return "", err
	}
	for _, p := range project.Profiles {
		if p.ID == "flink-"+string(version) {
			return p.Release, nil
		}
	}
	return "", fmt.Errorf("pom.xml has no profile for Flink %s: %w", version, fs.ErrNotExist)
}

// Remote is a snapshot in another file system. Flink reads it where it is.
type Remote struct {
	Location string // URI of the directory with _metadata
	Options  Options
	Known    string // the directory with truth.json and metadata.json
}

// MakeRemote runs the job of the options and takes its snapshot below options.At, a URI
// of the file system. Flink chooses the name of a savepoint. The records are written to
// out.
func (f *Flink) MakeRemote(options Options, out string) (Remote, error) {
	if !strings.Contains(options.At, "://") {
		return Remote{}, errors.New("no URI: " + options.At)
	}
	if _, err := f.ask(map[string]any{"command": "make", "out": out, "options": options}); err != nil {
		return Remote{}, err
	}
	var about struct {
		Snapshot string `json:"snapshot"`
	}
	err := readJSON(filepath.Join(out, "about.json"), &about)
	return Remote{Location: about.Snapshot, Options: options, Known: out}, err
}

// RestoreRemote restores the job of a snapshot from where it is, and returns what Flink
// assigned to each subtask.
func (f *Flink) RestoreRemote(r Remote, choices Choices) (Content, error) {
	options := r.Options
	options.At = "" // the job's own checkpoints are elsewhere
	var content Content
	var result struct {
		Restored *Content `json:"restored"`
	}
	result.Restored = &content
	line, err := f.ask(map[string]any{"command": "restore", "snapshot": r.Location, "options": options, "choices": choices})
	if err != nil {
		return content, err
	}
	restores.count(f.version)
	return content, json.Unmarshal(line, &result)
}
