// Package reference generates the reference of the command line from the commands
// themselves: a page and a man page for each command, and a JSON Schema for each
// JSON value, and the page of serializers. A test fails if the files under docs differ.
//
//	files, err := reference.Files() // "cli/inspect.md": …
//
// It does not generate the other documents, docs/*.md, except docs/types.md.
package reference
