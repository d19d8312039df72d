package report

import (
	"cmp"
	"errors"
	"io/fs"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/storage"
)

// Error is an error in JSON, one line on standard error.
type Error struct {
	Error  string `json:"error"`
	Hint   string `json:"hint,omitempty" jsonschema:"description=what to do next"`
	Code   int    `json:"exit_code"`
	File   string `json:"file,omitempty"`
	Offset *int64 `json:"offset,omitempty" jsonschema:"description=byte of the file"`
	Path   string `json:"path,omitempty" jsonschema:"description=path inside the file"`
}

// NewError reports an error with its message, what to do about it, and the exit code.
func (r *Run) NewError(err error, message, hint string, code int) Error {
	e := Error{Error: message, Hint: hint, Code: code}
	at := locate(err)
	e.File, e.Path = r.Hide(at.File), r.Hide(at.Path)
	if at.Offset >= 0 {
		e.Offset = &at.Offset
	}
	return e
}

// locate collects the file, the offset and the path of an error from all that it wraps:
// an outer error may name the file, and an inner one the offset in it. If none names a
// file, it is the one that the store or the system could not read.
func locate(err error) format.Error {
	found := format.Error{Offset: -1}
	var at *format.Error
	for in := err; errors.As(in, &at); in = at.Err {
		if found.File != "" && at.File != "" && at.File != found.File {
			break // the rest is about another file
		}
		found.File = cmp.Or(found.File, at.File)
		if found.Offset < 0 && found.Path == "" { // below a path, offsets are in what the path leads to
			found.Offset = at.Offset
		}
		switch {
		case found.Path == "":
			found.Path = at.Path
		case at.Path != "":
			found.Path += "/" + at.Path
		}
	}
	var of *storage.Error
	var sys *fs.PathError
	switch {
	case found.File != "":
	case errors.As(err, &of):
		found.File = of.SafeName()
	case errors.As(err, &sys):
		found.File = sys.Path
	}
	return found
}
