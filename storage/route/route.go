// Package route finds the store that a path or URI belongs to, and the
// object's name in it. It is the one place that knows how references are
// spelled: Flink's path strings look like URIs and are not percent-encoded
// (spec flink-metadata 7.4).
//
//	r := route.New(local.New())
//	store, name, err := r.Resolve(ctx, "file:/data/sp/_metadata") // local, "/data/sp/_metadata"
package route

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/storage"
)

// Router resolves paths to one local store and URIs to the stores of their
// schemes. It is safe for concurrent use once built.
type Router struct {
	local   storage.Storage
	schemes map[string]Scheme
}

// Scheme makes the name of an object from a URI: the store it is in and the
// name there.
type Scheme func(ctx context.Context, uri string) (storage.Storage, string, error)

// New is a router for paths and file: URIs.
func New(local storage.Storage) *Router {
	return &Router{local: local, schemes: map[string]Scheme{}}
}

// Add adds a scheme ("s3"). Call it before the router is used.
func (r *Router) Add(scheme string, f Scheme) { r.schemes[scheme] = f }

// Resolve implements storage.Resolver. An unknown scheme is
// storage.ErrUnsupported.
func (r *Router) Resolve(ctx context.Context, uri string) (storage.Storage, string, error) {
	scheme, rest := Split(uri)
	switch scheme {
	case "":
		return r.local, uri, nil
	case "file":
		return r.local, filePath(rest), nil
	}
	if f := r.schemes[scheme]; f != nil {
		return f(ctx, uri)
	}
	known := []string{"file"}
	for s := range r.schemes {
		known = append(known, s)
	}
	slices.Sort(known)
	return nil, "", &storage.Error{
		Op: "open", Name: uri,
		Err:  fmt.Errorf("no storage for scheme %q (available: %s): %w", scheme, strings.Join(known, ", "), storage.ErrUnsupported),
		Hint: "copy it to a local folder first",
	}
}

// Split divides a URI into scheme and rest; the scheme is "" for a plain path.
// A scheme ends at a ":" before the first "/", and has more than one letter: C:
// is a drive.
func Split(uri string) (scheme, rest string) {
	colon := strings.IndexByte(uri, ':')
	if colon < 2 || strings.ContainsAny(uri[:colon], `/\`) {
		return "", uri
	}
	return strings.ToLower(uri[:colon]), uri[colon+1:]
}

// Host is the machine that a file: URI names, "" for this one and for every other
// URI: file://host/x, but not file:///x, file:/x or file://localhost/x.
func Host(uri string) string {
	scheme, rest := Split(uri)
	after, ok := strings.CutPrefix(rest, "//")
	if scheme != "file" || !ok {
		return ""
	}
	host, _, ok := strings.Cut(after, "/")
	if !ok || strings.EqualFold(host, "localhost") {
		return ""
	}
	return strings.ToLower(host)
}

// filePath is the path of a file: URI: file:/x, file:///x and file:x.
func filePath(rest string) string {
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if slash := strings.IndexByte(after, '/'); slash >= 0 {
			rest = after[slash:] // the authority, empty or localhost, is not looked at
		}
	}
	if len(rest) > 2 && rest[0] == '/' && hasDrive(rest[1:]) { // file:/C:/x
		rest = rest[1:]
	}
	return rest
}

// Join puts a name into a directory.
func Join(dir, name string) string {
	switch {
	case dir == "" || dir == ".":
		return name
	case strings.HasSuffix(dir, "/"), strings.HasSuffix(dir, `\`) && isWindowsPath(dir):
		return dir + name
	}
	return dir + "/" + name
}

// Dir is the directory that a name lies in, "" for a name without one, and Base
// the name in it.
func Dir(name string) string {
	i := cut(name)
	if i < 0 {
		return ""
	}
	if i == 0 {
		return name[:1]
	}
	return name[:i]
}

// Base is the last element of a name.
func Base(name string) string { return name[cut(name)+1:] }

func cut(name string) int {
	if isWindowsPath(name) {
		return strings.LastIndexAny(name, `/\`)
	}
	return strings.LastIndexByte(name, '/')
}

func isWindowsPath(name string) bool {
	return hasDrive(name) || strings.HasPrefix(name, `\\`)
}

// hasDrive reports whether a name begins as C: does. Flink takes it for a drive on
// every system.
func hasDrive(name string) bool {
	return len(name) > 1 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
}

// Clean drops slashes at the end, so that "sp/" and "sp" are one directory. The
// root of a scheme or a drive stays.
func Clean(name string) string {
	for len(name) > 1 && name[len(name)-2] != ':' && (strings.HasSuffix(name, "/") || isWindowsPath(name) && len(name) > 3 && strings.HasSuffix(name, `\`)) {
		name = name[:len(name)-1]
	}
	return name
}
