package conformance

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// ErrUnavailable reports that this machine has no JDK or no Maven.
var ErrUnavailable = errors.New("no Flink here")

// program is what one JVM needs: the java command and its class path.
type program struct {
	java      string
	classPath string
}

// build compiles the Java side for a version, unless it is up to date. It runs
// Maven offline first, and with the network only if something is missing.
func build(version Version) (program, error) {
	java, classPath, err := Build("", "flink-"+string(version))
	return program{java, classPath}, err
}

// Build compiles a Maven project below conformance, "" being conformance itself, with
// one of its profiles, unless it is up to date, and returns the java command and the
// class path. The error is an ErrUnavailable without a JDK or Maven.
func Build(project, profile string) (java, classPath string, err error) {
	p, err := buildProject(project, profile)
	return p.java, p.classPath, err
}

func buildProject(project, profile string) (program, error) {
	java, err := exec.LookPath("java")
	if err != nil {
		return program{}, fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	home, err := projectDir()
	if err != nil {
		return program{}, err
	}
	home = filepath.Join(home, project)
	target := filepath.Join(home, "target", profile)
	stamp := filepath.Join(target, "built")
	unlock, err := lockBuild(home) // test processes and makefixtures share the built classes
	if err != nil {
		return program{}, err
	}
	defer unlock()
	fresh, err := newerThanSources(stamp, home)
	if err != nil {
		return program{}, err
	}
	if !fresh {
		if err := runMaven(home, profile); err != nil {
			return program{}, err
		}
		if err := os.WriteFile(stamp, nil, 0o644); err != nil {
			return program{}, err
		}
	}
	jars, err := os.ReadFile(filepath.Join(target, "classpath.txt"))
	if err != nil {
		return program{}, err
	}
	classes := filepath.Join(target, "classes")
	return program{java: java, classPath: classes + string(os.PathListSeparator) + strings.TrimSpace(string(jars))}, nil
}

// lockBuild keeps other processes from building in the same directory.
func lockBuild(home string) (unlock func(), err error) {
	if err := os.MkdirAll(filepath.Join(home, "target"), 0o777); err != nil {
		return nil, err
	}
	f, err := os.OpenFile(filepath.Join(home, "target", "lock"), os.O_CREATE|os.O_RDWR, 0o666)
	if err != nil {
		return nil, err
	}
	if err := exclusive(f); err != nil {
		return nil, errors.Join(err, f.Close())
	}
	return func() { f.Close() }, nil //nolint:errcheck // it was never written to
}

func runMaven(home, profile string) error {
	maven, err := exec.LookPath("mvn")
	if err != nil {
		return fmt.Errorf("%w: %w", ErrUnavailable, err)
	}
	run := func(more ...string) ([]byte, error) {
		args := append([]string{"-B", "-q", "-P" + profile, "process-classes"}, more...)
		command := exec.Command(maven, args...)
		command.Dir = home
		return command.CombinedOutput()
	}
	if _, err := run("-o"); err == nil {
		return nil
	}
	if output, err := run(); err != nil {
		return fmt.Errorf("maven -P%s: %w\n%s", profile, err, output)
	}
	return nil
}

// newerThanSources reports whether the stamp and the jars on the class path of
// its build exist, and no source is newer.
func newerThanSources(stamp, home string) (bool, error) {
	built, err := os.Stat(stamp)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	jars, err := os.ReadFile(filepath.Join(filepath.Dir(stamp), "classpath.txt"))
	if err != nil {
		return false, nil //nolint:nilerr // half a build: build again
	}
	for _, jar := range filepath.SplitList(strings.TrimSpace(string(jars))) {
		if _, err := os.Stat(jar); err != nil {
			return false, nil //nolint:nilerr // not readable: build again
		}
	}
	var newest time.Time
	for _, root := range []string{"pom.xml", "src"} {
		err := filepath.WalkDir(filepath.Join(home, root), func(_ string, entry fs.DirEntry, err error) error {
			if err != nil {
				return err
			}
			info, err := entry.Info()
			if err != nil {
				return err
			}
			if info.ModTime().After(newest) {
				newest = info.ModTime()
			}
			return nil
		})
		if err != nil {
			return false, err
		}
	}
	return built.ModTime().After(newest), nil
}

// projectDir returns conformance/ of the module in which a test runs.
func projectDir() (string, error) {
	root, err := moduleRoot()
	if err != nil {
		return "", err
	}
	return filepath.Join(root, "conformance"), nil
}

func moduleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("no go.mod above the working directory")
		}
	}
}
