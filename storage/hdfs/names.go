package hdfs

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net"
	"slices"
	"strings"

	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/storage"
)

// defaultPort is the port of a NameNode that is named without one.
const defaultPort = "8020"

// Resolve implements storage.Resolver for hdfs: and viewfs: URIs. It reads nothing.
func (s *Store) Resolve(ctx context.Context, uri string) (storage.Storage, string, error) {
	if err := ctx.Err(); err != nil {
		return nil, "", fail("open", uri, err)
	}
	name, err := s.canonical(uri)
	if err != nil {
		return nil, "", err
	}
	return s, name, nil
}

// canonical returns the name of the object of a URI.
func (s *Store) canonical(uri string) (string, error) {
	authority, path, err := split(uri)
	if err != nil {
		return "", &storage.Error{Op: "open", Name: uri, Err: err}
	}
	if scheme, _ := objpath.Split(uri); scheme == "viewfs" {
		target, err := s.mounted(authority, path)
		if err != nil {
			return "", &storage.Error{Op: "open", Name: uri, Err: err, Setting: storage.SettingHadoop}
		}
		if scheme, _ := objpath.Split(target); scheme != "hdfs" {
			return "", &storage.Error{Op: "open", Name: uri, Err: fmt.Errorf("its mount point leads to %s: only mount points that lead to hdfs: are followed: %w", scheme, storage.ErrUnsupported)}
		}
		return s.canonical(target)
	}
	if authority == "" {
		if authority, err = s.defaultAuthority(); err != nil {
			return "", &storage.Error{Op: "open", Name: uri, Err: err, Setting: storage.SettingHadoop,
				Hint: "name the NameNode or the nameservice: hdfs://NAME/…"}
		}
	}
	return "hdfs://" + s.plain(authority) + path, nil
}

// split divides a URI, hdfs://authority/path or hdfs:/path.
func split(uri string) (authority, path string, err error) {
	scheme, rest := objpath.Split(uri)
	if scheme != "hdfs" && scheme != "viewfs" {
		return "", "", fmt.Errorf("expected hdfs://NAME/PATH, found the scheme %q: %w", scheme, storage.ErrUnsupported)
	}
	path = rest
	if after, ok := strings.CutPrefix(rest, "//"); ok {
		authority, path = after, "/"
		if i := strings.IndexByte(after, '/'); i >= 0 {
			authority, path = after[:i], after[i:]
		}
	}
	if !strings.HasPrefix(path, "/") {
		return "", "", fmt.Errorf("expected %s://NAME/PATH: the path must begin with a slash", scheme)
	}
	if strings.ContainsAny(authority, "@?# ") {
		return "", "", fmt.Errorf("expected %s://NAME/PATH, where NAME is a nameservice, or a host with or without a port", scheme)
	}
	return authority, path, nil
}

// nameOf divides a canonical name, and returns an error for any other.
func (s *Store) nameOf(name string) (authority, path string, err error) {
	authority, path, err = split(name)
	if err == nil && (authority == "" || !strings.HasPrefix(name, "hdfs://")) {
		err = fmt.Errorf("expected hdfs://NAME/PATH: %w", storage.ErrUnsupported)
	}
	return authority, path, err
}

// defaultAuthority returns the authority of fs.defaultFS.
func (s *Store) defaultAuthority() (string, error) {
	uri := s.conf["fs.defaultFS"]
	if uri == "" {
		uri = s.conf["fs.default.name"]
	}
	if uri == "" {
		return "", errors.New("the URI names no NameNode, and no configuration of Hadoop with fs.defaultFS was found")
	}
	authority, _, err := split(strings.TrimRight(uri, "/") + "/")
	if scheme, _ := objpath.Split(uri); err != nil || scheme != "hdfs" || authority == "" {
		return "", fmt.Errorf("the URI names no NameNode, and fs.defaultFS is %s: expected hdfs://NAME", uri)
	}
	return authority, nil
}

// plain returns the one spelling of an authority.
func (s *Store) plain(authority string) string {
	if s.isNameservice(authority) {
		return authority
	}
	return strings.TrimSuffix(strings.ToLower(authority), ":"+defaultPort)
}

func (s *Store) isNameservice(name string) bool {
	return slices.Contains(list(s.conf["dfs.nameservices"]), name) || s.conf["dfs.ha.namenodes."+name] != ""
}

// list divides a value of the configuration that is a list.
func list(value string) (all []string) {
	for _, v := range strings.Split(value, ",") {
		if v = strings.TrimSpace(v); v != "" {
			all = append(all, v)
		}
	}
	return all
}

// addresses returns the addresses of the NameNodes of an authority.
func (s *Store) addresses(authority string) ([]string, error) {
	const key = "dfs.namenode.rpc-address."
	var all []string
	if nodes := list(s.conf["dfs.ha.namenodes."+authority]); len(nodes) > 0 {
		for _, node := range nodes {
			if a := s.conf[key+authority+"."+node]; a != "" {
				all = append(all, withPort(a))
			}
		}
		if len(all) == 0 {
			return nil, fmt.Errorf("the configuration of Hadoop has no %s%s.%s", key, authority, nodes[0])
		}
		return all, nil
	}
	if a := s.conf[key+authority]; a != "" {
		return []string{withPort(a)}, nil
	}
	if slices.Contains(list(s.conf["dfs.nameservices"]), authority) && !strings.ContainsAny(authority, ".:") {
		return nil, fmt.Errorf("the configuration of Hadoop names the nameservice %s, but has neither dfs.ha.namenodes.%s nor %s%s", authority, authority, key, authority)
	}
	return []string{withPort(authority)}, nil
}

func withPort(address string) string {
	if _, _, err := net.SplitHostPort(address); err == nil {
		return address
	}
	return net.JoinHostPort(strings.Trim(address, "[]"), defaultPort)
}

// mounted returns the URI to which the mount table of a viewfs: URI leads.
func (s *Store) mounted(table, path string) (string, error) {
	if table == "" {
		table = "default"
		if t := s.conf["fs.viewfs.mounttable.default.name.key"]; t != "" {
			table = t
		}
		if scheme, _ := objpath.Split(s.conf["fs.defaultFS"]); scheme == "viewfs" {
			if a, _, err := split(strings.TrimRight(s.conf["fs.defaultFS"], "/") + "/"); err == nil && a != "" {
				table = a
			}
		}
	}
	prefix := "fs.viewfs.mounttable." + table + "."
	target, rest, exists := "", "", false
	var points []string
	for _, key := range slices.Sorted(maps.Keys(s.conf)) {
		of, ok := strings.CutPrefix(key, prefix)
		if !ok {
			continue
		}
		exists = true
		kind, at, _ := strings.Cut(of, ".")
		switch kind {
		case "link":
			at = "/" + strings.Trim(at, "/")
			points = append(points, at)
			if below, ok := under(path, at); ok && (target == "" || len(below) < len(rest)) {
				target, rest = s.conf[key], below
			}
		case "linkMergeSlash":
			return join(s.conf[key], path), nil
		case "linkMerge", "linkNfly": // several file systems at one path
			if i := strings.IndexByte(at, '/'); i >= 0 {
				if _, ok := under(path, at[i:]); ok {
					return "", fmt.Errorf("the mount table %s has a %s at %s, which leads to several file systems: %w", table, kind, at[i:], storage.ErrUnsupported)
				}
			}
		}
	}
	if target == "" {
		target, rest = s.conf[prefix+"linkFallback"], path
	}
	switch {
	case target != "" && strings.Contains(target, ","):
		return "", fmt.Errorf("a mount point of the table %s leads to several file systems: %w", table, storage.ErrUnsupported)
	case target != "":
		return join(target, rest), nil
	case !exists:
		return "", fmt.Errorf("the configuration of Hadoop has no mount table %s: expected properties fs.viewfs.mounttable.%s.link./PATH", table, table)
	}
	return "", fmt.Errorf("no mount point of the table %s fits: it has %s: %w", table, strings.Join(points, ", "), storage.ErrNotExist)
}

// under returns the part of a path below a mount point, which begins with a slash or
// is empty.
func under(path, point string) (string, bool) {
	point = strings.TrimSuffix(point, "/")
	rest, ok := strings.CutPrefix(path, point)
	return rest, ok && (rest == "" || rest[0] == '/')
}

func join(target, rest string) string { return strings.TrimRight(target, "/") + rest }
