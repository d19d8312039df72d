package assign

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// uri is a Flink path as java.net.URI parses it, for its hash code and equality. Flink
// paths have no query and no fragment.
type uri struct {
	scheme, path string
	// host is not empty if the authority is a server (user@host:port); otherwise
	// authority is the whole of it, "" for none.
	user, host, port, authority string
}

// parsePath parses a path as Flink's Path class does: no escapes, repeated slashes
// count as one, a trailing slash is dropped, "." and ".." are resolved.
func parsePath(s string) (uri, error) {
	full := s
	if len(s) >= 2 && s[1] == ':' && isAlpha(s[0]) {
		s = "/" + s // a Windows drive
	}
	var u uri
	hasScheme := false
	if colon := strings.IndexByte(s, ':'); colon >= 0 && !strings.Contains(s[:colon], "/") {
		u.scheme, s, hasScheme = s[:colon], s[colon+1:], true
	}
	if strings.HasPrefix(s, "//") && len(s) > 2 {
		authority := s[2:]
		s = ""
		if slash := strings.IndexByte(authority, '/'); slash >= 0 {
			authority, s = authority[:slash], authority[slash:]
		}
		if err := u.setAuthority(authority); err != nil {
			return uri{}, fmt.Errorf("path %q: %w", full, err)
		}
	}
	s = strings.ReplaceAll(s, `\`, "/")
	for strings.Contains(s, "//") {
		s = strings.ReplaceAll(s, "//", "/")
	}
	if len(s) > 1 && !windowsRoot(s) {
		s = strings.TrimSuffix(s, "/")
	}
	switch {
	case full == "" || hasScheme && !isScheme(u.scheme):
		return uri{}, fmt.Errorf("path %q has no scheme", full)
	case hasScheme && !strings.HasPrefix(s, "/") && (s != "" || u.host+u.authority == ""):
		return uri{}, fmt.Errorf("path %q: relative path in absolute URI", full)
	}
	u.path = normalize(quote(s, ":@&=+$,;/"))
	return u, nil
}

// windowsRoot reports whether s is the root of a drive, where a trailing slash is
// kept.
func windowsRoot(s string) bool {
	if len(s) < 4 || s[0] != '/' || !strings.HasSuffix(s, ":/") {
		return false
	}
	return strings.IndexFunc(s[1:len(s)-2], func(r rune) bool { return r >= utf8.RuneSelf || !isAlpha(byte(r)) }) < 0
}

// setAuthority sets the authority: a server (user@host:port) or a name.
func (u *uri) setAuthority(s string) error {
	if s == "" {
		return nil
	}
	if strings.HasPrefix(s, "[") || strings.Contains(s, "%") {
		// Java has other rules for these, and no store uses them.
		return fmt.Errorf("authority %q is not supported", s)
	}
	quoted := quote(s, "$,;:@&=+")
	if !strings.Contains(quoted, "%") {
		user, rest, ok := strings.Cut(quoted, "@")
		if !ok {
			user, rest = "", quoted
		}
		host, port, hasPort := strings.Cut(rest, ":")
		if isHost(host) && isPort(port) {
			u.user, u.host = user, host
			if ok {
				u.user = "@" + user // an empty user is not the same as none
			}
			if hasPort {
				u.port = port
			}
			return nil
		}
	}
	u.authority = quoted
	return nil
}

func isPort(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	_, err := strconv.ParseInt(s, 10, 32)
	return s == "" || err == nil
}

// isHost reports whether s is an IPv4 address, or labels of letters, digits and inner
// dashes. If there are several labels, the last starts with a letter.
func isHost(s string) bool {
	labels := strings.Split(strings.TrimSuffix(s, "."), ".")
	for _, l := range labels {
		if l == "" || l[0] == '-' || l[len(l)-1] == '-' {
			return false
		}
		for _, c := range []byte(l) {
			if !isAlpha(c) && (c < '0' || c > '9') && c != '-' {
				return false
			}
		}
	}
	return len(labels) == 1 || isAlpha(labels[len(labels)-1][0]) || isIPv4(s)
}

func isIPv4(s string) bool {
	parts := strings.Split(s, ".")
	for _, p := range parts {
		if n, err := strconv.ParseUint(p, 10, 32); err != nil || n > 255 {
			return false
		}
	}
	return len(parts) == 4
}

func isAlpha(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }

func isScheme(s string) bool {
	for i, c := range []byte(s) {
		if !isAlpha(c) && (i == 0 || (c < '0' || c > '9') && !strings.ContainsRune("+-.", rune(c))) {
			return false
		}
	}
	return s != ""
}

// quote escapes what a URI cannot contain: in ASCII all characters except letters,
// digits, the unreserved marks and those in allowed; outside of ASCII only spaces and
// control characters. A percent sign is escaped too.
func quote(s, allowed string) string {
	var b strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		ok := r >= utf8.RuneSelf && !unicode.In(r, unicode.Z) && (r < 0x80 || r > 0x9f)
		if r < utf8.RuneSelf {
			ok = isAlpha(byte(r)) || r >= '0' && r <= '9' || strings.ContainsRune("-_.!~*'()"+allowed, r)
		}
		if ok {
			b.WriteString(s[i : i+n])
		} else {
			for _, c := range []byte(s[i : i+n]) {
				fmt.Fprintf(&b, "%%%02X", c)
			}
		}
		i += n
	}
	return b.String()
}

// normalize resolves the segments "." and ".." like java.net.URI: a ".." without a
// segment before it stays.
func normalize(path string) string {
	if !strings.HasPrefix(path, ".") && !strings.Contains(path, "/.") {
		return path
	}
	root := strings.HasPrefix(path, "/")
	segments := strings.Split(strings.TrimPrefix(path, "/"), "/")
	var kept []string
	for i, s := range segments {
		last := i == len(segments)-1
		switch n := len(kept); {
		case s == ".":
		case s == ".." && n > 0 && kept[n-1] != "../":
			kept = kept[:n-1]
		case last:
			kept = append(kept, s)
		default:
			kept = append(kept, s+"/")
		}
	}
	path = strings.Join(kept, "")
	if root {
		return "/" + path
	}
	return path
}

// hash returns java.net.URI.hashCode. Escapes come from quote and are upper-case; Java
// would treat lower-case ones as equal.
func (u uri) hash() int32 {
	h := hashLower(0, u.scheme)
	h = 127*h + uint32(java.HashString(u.path))
	switch {
	case u.host != "":
		if u.user != "" {
			h = 127*h + uint32(java.HashString(u.user[1:]))
		}
		h = hashLower(h, u.host)
		port := int64(-1)
		if u.port != "" {
			port, _ = strconv.ParseInt(u.port, 10, 32)
		}
		h += uint32(1949 * port)
	case u.authority != "":
		h = 127*h + uint32(java.HashString(u.authority))
	}
	return int32(h)
}

func hashLower(h uint32, s string) uint32 {
	for _, c := range []byte(s) {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		h = 31*h + uint32(c)
	}
	return h
}

// key returns a text that is equal for URIs that are equal in java.net.URI.
func (u uri) key() string {
	port, _ := strconv.ParseInt(u.port, 10, 32)
	if u.port == "" {
		port = -1
	}
	return fmt.Sprintf("%s:%q%q:%d%q%s", strings.ToLower(u.scheme), u.user, strings.ToLower(u.host), port, u.authority, u.path)
}
