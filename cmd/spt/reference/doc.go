// Package reference makes what is written about the command line out of the
// command line itself: a page and a man page for each command, and a JSON Schema
// for each answer. A test fails when the files under docs differ from it.
//
//	files, err := reference.Files() // "cli/inspect.md": …
//
// It is not for texts that people write: those are docs/*.md.
package reference
