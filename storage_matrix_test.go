package spt_test

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// TestStorageMatrix: the tests that the matrix of docs/storage.md names exist in the
// packages of its columns, and it lists the cases of the suite.
func TestStorageMatrix(t *testing.T) {
	text, err := os.ReadFile(storageDoc)
	if err != nil {
		t.Fatal(err)
	}
	_, section, ok := strings.Cut(string(text), "\n## What is tested\n")
	if !ok {
		t.Fatal("no section on tests")
	}
	// A subtest has its name in quotes.
	columns := [][]string{{"storage/s3"}, {"storage/s3"}, {"storage/gcs"}, {"storage/azure"}, {"storage/hdfs"}, {"storage/web"}, {"storage/local", "internal/storetest"}, {"internal/storetest"}}
	named := regexp.MustCompile(`\bTest\w+(/\w+)?`)
	cells := 0
	for line := range strings.Lines(section) {
		row := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		if len(row) == 1 || strings.HasPrefix(row[0], "---") || row[0] == " case " {
			continue
		}
		if len(row) != 1+len(columns) {
			t.Fatalf("%d cells in %s", len(row), line)
		}
		for i, dirs := range columns {
			for _, name := range named.FindAllString(row[1+i], -1) {
				cells++
				if !slices.ContainsFunc(dirs, func(dir string) bool { return hasTest(t, dir, name) }) {
					t.Errorf("%s of%s is not in %v", name, row[0], dirs)
				}
			}
			if strings.TrimSpace(row[1+i]) == "" {
				t.Errorf("%s has an empty cell", row[0])
			}
		}
	}
	if cells < 60 {
		t.Errorf("%d tests are named", cells)
	}
	suite, err := os.ReadFile("internal/storetest/suite.go")
	if err != nil {
		t.Fatal(err)
	}
	listed, _, _ := strings.Cut(section, "Faults are made")
	for _, m := range regexp.MustCompile(`\{"(\w+)", test\w+\}`).FindAllStringSubmatch(string(suite), -1) {
		if !regexp.MustCompile(`\b` + m[1] + `\b`).MatchString(listed) {
			t.Errorf("the case %s of the suite is not listed", m[1])
		}
	}
}

// hasTest reports whether a directory has a test, or a subtest as TestX/Name.
func hasTest(t *testing.T, dir, name string) bool {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	name, sub, _ := strings.Cut(name, "/")
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "func "+name+"(t *testing.T)") {
			return sub == "" || strings.Contains(string(text), `"`+sub+`"`)
		}
	}
	return false
}
