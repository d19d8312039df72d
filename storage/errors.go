package storage

import (
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"unicode"
	"unicode/utf8"
)

// Kinds of errors, for errors.Is. Some are the values of package fs, so that
// errors of package os match too.
var (
	ErrNotExist    = fs.ErrNotExist
	ErrExist       = fs.ErrExist
	ErrPermission  = fs.ErrPermission
	ErrUnsupported = errors.ErrUnsupported
	ErrChanged     = errors.New("changed while it was read")
	ErrUnavailable = errors.New("storage unavailable")
	ErrNoSpace     = errors.New("no space left")
)

// Error is the error of a store: the operation, the object and the cause. Err
// must not hold credentials; credentials in Name, which may be a URI, are left
// out of the message.
type Error struct {
	Op   string // "read", "stat", "list", "create", "write", "commit", …
	Name string
	Err  error
	Hint string // what the user can do; "" if unknown

	// Setting is what the user can set to change it; "" if unknown. Programs say in
	// their own words how.
	Setting Setting
}

// Setting is something that decides how a store is reached.
type Setting string

// The settings.
const (
	SettingCredentials Setting = "credentials"
	SettingEndpoint    Setting = "endpoint"
	SettingRegion      Setting = "region"
	SettingAddressing  Setting = "addressing"
	SettingConditions  Setting = "conditions" // of writes: whether the service or the store checks them
	SettingHadoop      Setting = "hadoop"     // the configuration of Hadoop
	SettingClock       Setting = "clock"      // of this machine
)

func (e *Error) Error() string {
	return fmt.Sprintf("%s %s: %v", e.Op, safeName(e.Name), e.Err)
}

// SafeName returns Name as used in the message: without credentials.
func (e *Error) SafeName() string { return safeName(e.Name) }

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.Err }

// safeName returns a name for a message: without the user part and the query of a
// URI, which can hold credentials and signatures, and without control characters.
func safeName(name string) string {
	if scheme, rest, ok := strings.Cut(name, "://"); ok {
		rest, _, cut := strings.Cut(rest, "?")
		container := "" // of Azure, which is written where other URIs have the user
		if c, after, ok := strings.Cut(rest, "@"); ok && strings.Contains(" abfs abfss wasb wasbs ", " "+strings.ToLower(scheme)+" ") && !strings.ContainsAny(c, ":/@") {
			container, rest = c+"@", after
		}
		host, path, slash := strings.Cut(rest, "/")
		at := strings.LastIndexByte(host, '@')
		if _, port, ok := strings.Cut(host, ":"); ok && at < 0 && strings.Trim(port, "0123456789") != "" {
			at = strings.LastIndexByte(rest, '@') // not a port: a secret with a "/" in it
			host, path, slash = strings.Cut(rest[at+1:], "/")
		} else {
			host = host[at+1:]
		}
		name = scheme + "://" + container + host
		if slash {
			name += "/" + path
		}
		if cut {
			name += "?…"
		}
	}
	if name == "" || !utf8.ValidString(name) || strings.ContainsFunc(name, func(r rune) bool { return !unicode.IsPrint(r) }) {
		return strconv.Quote(name)
	}
	return name
}
