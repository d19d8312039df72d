// Package tempname makes and recognizes the names of incomplete output and of
// files that a run moves aside.
package tempname

import (
	"crypto/rand"
	"encoding/hex"
	"os"
	"strings"
	"unicode/utf8"
)

// Prefix begins the last element of every temporary name. Such a name without a
// running writer is a leftover and safe to delete.
const Prefix = ".spt-tmp-"

// asidePrefix begins the last element of the name to which a snapshot is moved
// while another replaces it, if the two cannot be exchanged atomically.
const asidePrefix = ".spt-old-"

// New returns a fresh temporary name next to name.
func New(name string) string { return fresh(Prefix, name) }

// Aside returns a fresh name next to name, to which its content is moved while it
// is replaced.
func Aside(name string) string { return fresh(asidePrefix, name) }

const (
	randomBytes = 6
	maxBase     = 200 // file systems allow 255 bytes
)

func fresh(prefix, name string) string {
	i := lastElement(name)
	base := name[i:]
	for len(base) > maxBase {
		_, n := utf8.DecodeLastRuneInString(base)
		base = base[:len(base)-n]
	}
	var b [randomBytes]byte
	rand.Read(b[:]) // never fails
	return name[:i] + prefix + hex.EncodeToString(b[:]) + "-" + base
}

// nameAfter returns the part of a name made by fresh that follows the prefix and
// the random part.
func nameAfter(prefix, name string) (base string, ok bool) {
	name = strings.TrimSuffix(name, "/")
	rest, ok := strings.CutPrefix(name[lastElement(name):], prefix)
	if !ok || len(rest) < 2*randomBytes+2 || rest[2*randomBytes] != '-' {
		return "", false
	}
	if _, err := hex.DecodeString(rest[:2*randomBytes]); err != nil {
		return "", false
	}
	return rest[2*randomBytes+1:], true
}

// IsAside reports whether Aside made name, and returns the last element of the
// original name. A very long base is cut.
func IsAside(name string) (base string, ok bool) { return nameAfter(asidePrefix, name) }

// AsideOf reports whether Aside(name) can return aside.
func AsideOf(aside, name string) bool {
	base, ok := IsAside(aside)
	name = strings.TrimSuffix(name, "/")
	name = name[lastElement(name):]
	return ok && (base == name || len(name) > maxBase && strings.HasPrefix(name, base))
}

// IsOwn reports whether name has exactly the syntax of New or Aside; it is
// stricter than Is.
func IsOwn(name string) bool {
	_, temp := nameAfter(Prefix, name)
	_, aside := nameAfter(asidePrefix, name)
	return temp || aside
}

// Is reports whether name is a temporary name. A directory may end in "/".
func Is(name string) bool {
	name = strings.TrimSuffix(name, "/")
	return strings.HasPrefix(name[lastElement(name):], Prefix)
}

func lastElement(name string) int {
	return 1 + strings.LastIndexAny(name, "/"+string(os.PathSeparator))
}
