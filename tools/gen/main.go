// Command gen writes the files under docs that are generated from the commands:
//
//	cd tools && go run ./gen          # write them
//	cd tools && go run ./gen -check   # fail if they differ
package main

import (
	"bytes"
	"flag"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"

	"github.com/savepoint-tools/spt/cmd/spt/reference"
)

func main() {
	check := flag.Bool("check", false, "write nothing, fail if a file differs")
	docs := flag.String("docs", "../docs", "the directory of the documents")
	flag.Parse()
	if err := run(*docs, *check); err != nil {
		fmt.Fprintln(os.Stderr, "gen:", err)
		os.Exit(1)
	}
}

func run(docs string, check bool) error {
	files, err := reference.Files()
	if err != nil {
		return err
	}
	differs := 0
	for _, name := range slices.Sorted(maps.Keys(files)) {
		to := filepath.Join(docs, filepath.FromSlash(name))
		if got, err := os.ReadFile(to); err == nil && bytes.Equal(got, files[name]) {
			continue
		}
		differs++
		fmt.Println(to)
		if check {
			continue
		}
		if err := os.MkdirAll(filepath.Dir(to), 0o777); err != nil {
			return err
		}
		if err := os.WriteFile(to, files[name], 0o666); err != nil {
			return err
		}
	}
	for _, dir := range reference.Directories() {
		old, err := os.ReadDir(filepath.Join(docs, dir))
		if err != nil {
			return err
		}
		for _, e := range old {
			if _, ok := files[dir+"/"+e.Name()]; ok {
				continue
			}
			differs++
			fmt.Println("not generated:", filepath.Join(docs, dir, e.Name()))
			if !check {
				if err := os.Remove(filepath.Join(docs, dir, e.Name())); err != nil {
					return err
				}
			}
		}
	}
	if check && differs > 0 {
		return fmt.Errorf("%d files differ; run: cd tools && go run ./gen", differs)
	}
	return nil
}
