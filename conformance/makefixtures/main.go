// Makefixtures runs Flink to make the snapshots that tests need without a JVM. It
// keeps what exists.
//
//	go run ./conformance/makefixtures               makes what testdata/savepoints lacks
//	go run ./conformance/makefixtures -check        makes all again in another directory and compares the truth
package main

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"

	"github.com/savepoint-tools/spt/conformance"
)

func main() {
	check := flag.Bool("check", false, "make all again in a temporary directory and compare the truth with what is there")
	dir := flag.String("dir", filepath.Join("testdata", "savepoints"), "where the fixtures are")
	flag.Parse()
	if err := run(*dir, *check); err != nil {
		fmt.Fprintln(os.Stderr, "makefixtures:", err)
		os.Exit(1)
	}
}

func run(dir string, check bool) (err error) {
	target := dir
	if check {
		target, err = os.MkdirTemp("", "fixtures-")
		if err != nil {
			return err
		}
		defer os.RemoveAll(target) //nolint:errcheck // temporary
	} else if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	flinks := map[conformance.Version]*conformance.Flink{}
	defer func() {
		for _, f := range flinks {
			err = errors.Join(err, f.Close())
		}
		err = errors.Join(err, conformance.RemoveBase())
	}()
	different := 0
	for _, fixture := range conformance.Fixtures() {
		there := filepath.Join(dir, fixture.Name)
		if _, err := os.Stat(there); (err == nil) != check {
			continue // it exists already, or there is nothing to check
		}
		f := flinks[fixture.Version]
		if f == nil {
			f, err = conformance.Start(fixture.Version)
			if err != nil {
				return err
			}
			flinks[fixture.Version] = f
		}
		made, err := f.MakeFixture(fixture, target)
		if err != nil {
			return fmt.Errorf("%s: %w", fixture.Name, err)
		}
		if !check {
			fmt.Println("made", there)
			continue
		}
		diff, err := compare(there, made)
		if err != nil {
			return err
		}
		if diff == "" {
			fmt.Println("same", there)
		} else {
			different++
			fmt.Printf("DIFFERENT %s (-there +again):\n%s", there, diff)
		}
	}
	if different > 0 {
		return fmt.Errorf("%d fixtures have another truth when made again", different)
	}
	return nil
}

func compare(there string, made conformance.Snapshot) (string, error) {
	old, err := conformance.OpenSnapshot(there)
	if err != nil {
		return "", err
	}
	want, err := old.Truth()
	if err != nil {
		return "", err
	}
	got, err := made.Truth()
	if err != nil {
		return "", err
	}
	return conformance.Diff(want, got), nil
}
