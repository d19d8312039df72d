// Package objpath splits and joins the names of objects: paths, also of Windows,
// and URIs. Flink's path strings look like URIs and are not percent-encoded (spec
// flink-metadata 7.4).
package objpath

import "strings"

// Split divides a URI into scheme and rest; the scheme of a plain path is "". A
// scheme ends at a ":" before the first "/", and has more than one letter: C: is
// a drive.
func Split(uri string) (scheme, rest string) {
	colon := strings.IndexByte(uri, ':')
	if colon < 2 || strings.ContainsAny(uri[:colon], `/\`) {
		return "", uri
	}
	return strings.ToLower(uri[:colon]), uri[colon+1:]
}

// Host returns the machine that a file: URI names, as in file://host/x. It is ""
// for file:///x, file:/x, file://localhost/x and every other URI.
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

// FilePath returns the path of a file: URI, given the part after the scheme:
// file:/x, file:///x and file:x.
func FilePath(rest string) string {
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		if slash := strings.IndexByte(after, '/'); slash >= 0 {
			rest = after[slash:] // the authority is ignored: it is empty or localhost
		}
	}
	if len(rest) > 2 && rest[0] == '/' && hasDrive(rest[1:]) { // file:/C:/x
		rest = rest[1:]
	}
	return rest
}

// Join returns the name of an object in a directory.
func Join(dir, name string) string {
	switch {
	case dir == "" || dir == ".":
		return name
	case strings.HasSuffix(dir, "/"), strings.HasSuffix(dir, `\`) && isWindowsPath(dir):
		return dir + name
	}
	return dir + "/" + name
}

// IsTop reports whether a name is the top of a store: "s3://bucket", with a slash at
// the end or without.
func IsTop(name string) bool {
	_, rest, ok := strings.Cut(name, "://")
	return ok && !strings.Contains(strings.TrimSuffix(rest, "/"), "/")
}

// Dir returns the directory of a name, "" for a name without one. The top of a store
// has none.
func Dir(name string) string {
	if IsTop(name) {
		return ""
	}
	i := cut(name)
	if i < 0 {
		return ""
	}
	if i == 0 {
		return name[:1]
	}
	return name[:i]
}

// Prefix returns the beginning of the names of all objects below a directory. It is
// empty for "." and for "".
func Prefix(dir string) string {
	switch {
	case dir == "" || dir == ".":
		return ""
	case strings.HasSuffix(dir, "/"):
		return dir
	}
	return dir + "/"
}

// Base returns the last element of a name.
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

// hasDrive reports whether a name begins with a drive such as C:. Flink treats it
// as a drive on every system.
func hasDrive(name string) bool {
	return len(name) > 1 && name[1] == ':' && (name[0]|0x20) >= 'a' && (name[0]|0x20) <= 'z'
}

// Clean removes trailing slashes, so that "sp/" and "sp" are one directory. The
// root of a scheme or a drive is unchanged.
func Clean(name string) string {
	for len(name) > 1 && name[len(name)-2] != ':' && (strings.HasSuffix(name, "/") || isWindowsPath(name) && len(name) > 3 && strings.HasSuffix(name, `\`)) {
		name = name[:len(name)-1]
	}
	return name
}

// entropyMarker is what Flink replaces by random characters in the addresses of state
// files, and by nothing in the address of _metadata (s3.entropy.key, unless configured).
const entropyMarker = "_entropy_"

// WithoutEntropy returns the address of _metadata for an address of a store that was
// copied from a configuration, with its marker.
func WithoutEntropy(uri string) string {
	scheme, rest, ok := strings.Cut(uri, "://")
	before, after, marked := strings.Cut(rest, entropyMarker)
	if !ok || !marked || strings.EqualFold(scheme, "file") {
		return uri
	}
	if strings.HasSuffix(before, "/") {
		after = strings.TrimPrefix(after, "/")
	}
	return scheme + "://" + before + after
}

// random is the number of characters that Flink puts in place of the marker
// (s3.entropy.length, unless configured).
const random = 4

const alphanumeric = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz"

// WithoutRandom returns the addresses without the directory that may be the random
// characters in place of the marker: state files have it where _metadata, of the same
// configured address, has nothing.
func WithoutRandom(uri string) (all []string) {
	scheme, rest, ok := strings.Cut(uri, "://")
	if !ok {
		return nil
	}
	parts := strings.Split(rest, "/")
	for i, part := range parts {
		if i > 0 && i < len(parts)-1 && len(part) == random && strings.Trim(part, alphanumeric) == "" {
			all = append(all, scheme+"://"+strings.Join(append(parts[:i:i], parts[i+1:]...), "/"))
		}
	}
	return all
}
