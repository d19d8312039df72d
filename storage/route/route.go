// Package route finds the store of a path or URI, and the object's name in it.
// Only this package knows the syntax of references: Flink's path strings look
// like URIs but are not percent-encoded (spec flink-metadata 7.4). It reads
// nothing.
//
//	r := route.New(local.New())
//	store, name, err := r.Resolve(ctx, "file:/data/sp/_metadata") // local, "/data/sp/_metadata"
package route

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/storage"
)

// Router resolves paths to one local store and URIs to the stores of their
// schemes. It is safe for concurrent use once built.
type Router struct {
	local   storage.Storage
	schemes map[string]Scheme
}

// Scheme resolves the URIs of a scheme: it returns the store of an object and its
// name there.
type Scheme func(ctx context.Context, uri string) (storage.Storage, string, error)

// New returns a router for paths and file: URIs.
func New(local storage.Storage) *Router {
	return &Router{local: local, schemes: map[string]Scheme{}}
}

// Add adds a scheme, such as "s3". It must not be called while the router is in
// use.
func (r *Router) Add(scheme string, f Scheme) { r.schemes[scheme] = f }

// Resolve implements storage.Resolver. An unknown scheme is
// storage.ErrUnsupported.
func (r *Router) Resolve(ctx context.Context, uri string) (storage.Storage, string, error) {
	scheme, rest := objpath.Split(uri)
	switch scheme {
	case "":
		return r.local, uri, nil
	case "file":
		return r.local, objpath.FilePath(rest), nil
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
		Hint: "copy it to a local directory first",
	}
}
