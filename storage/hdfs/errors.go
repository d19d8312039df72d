package hdfs

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/colinmarc/hdfs/v2"

	"github.com/savepoint-tools/spt/storage"
)

// serviceError is an error that the service returned, or the lack of an answer.
type serviceError struct {
	kind      error // of package storage; nil: none of them
	text      string
	hint      string
	setting   storage.Setting
	transient bool // it may be gone when the request is repeated
}

func (e *serviceError) Error() string {
	if e.kind == nil {
		return e.text
	}
	return fmt.Sprintf("%v: %s", e.kind, e.text)
}

func (e *serviceError) Unwrap() error { return e.kind }

// fail converts an error to a storage.Error.
func fail(op, name string, err error) error {
	if err == nil {
		return nil
	}
	if done, ok := errors.AsType[*storage.Error](err); ok {
		return done
	}
	e := &storage.Error{Op: op, Name: name, Err: convert(err)}
	if of, ok := errors.AsType[*serviceError](e.Err); ok {
		e.Hint, e.Setting = of.hint, of.setting
	}
	return e
}

func failHint(op, name string, err error, hint string) error {
	return &storage.Error{Op: op, Name: name, Err: err, Hint: hint}
}

// settingError is the error for a configuration by which a cluster cannot be reached.
func settingError(op, name string, err error) error {
	if done, ok := errors.AsType[*serviceError](err); ok {
		return fail(op, name, done)
	}
	return &storage.Error{Op: op, Name: name, Err: err, Setting: storage.SettingHadoop}
}

func isTransient(err error) bool {
	e, ok := errors.AsType[*serviceError](err)
	return ok && e.transient
}

// kinds are the exceptions of Hadoop by the last part of their names.
var kinds = map[string]serviceError{
	"FileNotFoundException":               {kind: storage.ErrNotExist},
	"PathNotFoundException":               {kind: storage.ErrNotExist},
	"ParentNotDirectoryException":         {kind: storage.ErrNotExist},
	"AccessControlException":              {kind: storage.ErrPermission, setting: storage.SettingCredentials},
	"AuthorizationException":              {kind: storage.ErrPermission, setting: storage.SettingCredentials},
	"FileAlreadyExistsException":          {kind: storage.ErrExist},
	"AlreadyBeingCreatedException":        {kind: storage.ErrExist},
	"NSQuotaExceededException":            {kind: storage.ErrNoSpace, hint: "the quota of names of a directory is used up"},
	"DSQuotaExceededException":            {kind: storage.ErrNoSpace, hint: "the space quota of a directory is used up"},
	"QuotaByStorageTypeExceededException": {kind: storage.ErrNoSpace, hint: "the space quota of a directory is used up"},
	"SafeModeException":                   {kind: storage.ErrUnavailable, transient: true, hint: "the NameNode is in safe mode: it leaves it when the DataNodes have reported their blocks, or by hdfs dfsadmin -safemode leave"},
	"StandbyException":                    {kind: storage.ErrUnavailable, transient: true, hint: "this NameNode is not the active one"},
	"RetriableException":                  {kind: storage.ErrUnavailable, transient: true},
	"ObserverRetryOnActiveException":      {kind: storage.ErrUnavailable, transient: true},
	"NotReplicatedYetException":           {kind: storage.ErrUnavailable, transient: true},
	"ServerNotReadyException":             {kind: storage.ErrUnavailable, transient: true},
	"RpcNoSuchMethodException":            {kind: storage.ErrUnsupported},
	"UnsupportedOperationException":       {kind: storage.ErrUnsupported},
	"InvalidPathException":                {kind: storage.ErrUnsupported, hint: "HDFS allows no empty elements, no . and .., and no colon in a path"},
	"HadoopIllegalArgumentException":      {kind: storage.ErrUnsupported},
	"PathIsNotEmptyDirectoryException":    {hint: "the directory is not empty"},
}

// convert turns an error of the client into one with a kind.
func convert(err error) error {
	if _, ok := errors.AsType[*serviceError](err); ok {
		return err
	}
	if _, ok := errors.AsType[*storage.Error](err); ok || err == context.Canceled || err == context.DeadlineExceeded { //nolint:errorlint // a timeout of package net matches, too
		return err
	}
	for _, kind := range []error{storage.ErrNotExist, storage.ErrExist, storage.ErrPermission, storage.ErrChanged, storage.ErrUnsupported, storage.ErrNoSpace, storage.ErrUnavailable} {
		if errors.Is(err, kind) {
			if _, ok := errors.AsType[*fs.PathError](err); ok {
				return kind // the caller adds the name
			}
			return err
		}
	}
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	remote, ok := err.(hdfs.Error) //nolint:errorlint // the client does not wrap it
	if !ok {
		return networkError(err)
	}
	short := remote.Exception()[strings.LastIndexByte(remote.Exception(), '.')+1:]
	text, _, _ := strings.Cut(remote.Message(), "\n")
	if text = strings.TrimSpace(text); text == "" {
		text = remote.Desc()
	}
	e := kinds[short]
	e.text = fmt.Sprintf("%s (%s of %s)", text, short, remote.Method())
	switch {
	case short == "InvalidPathException" && remote.Method() != "create" && remote.Method() != "mkdirs" && remote.Method() != "rename2":
		e.kind = storage.ErrNotExist // such a name cannot exist
	case short == "IOException" && strings.Contains(text, "must both be directories"):
		e.kind = storage.ErrExist // a rename of a directory onto a file
	case strings.Contains(text, "could only be written to 0 of the"):
		e.kind, e.hint = storage.ErrUnavailable, "no DataNode takes the block: check that DataNodes run and have space"
	case strings.Contains(remote.Desc(), "TOO_BUSY"), strings.Contains(text, "Server too busy"):
		e.kind, e.transient = storage.ErrUnavailable, true
	}
	return &e
}

// notReplicated reports whether the NameNode waits for reports of the DataNodes.
func notReplicated(err error) bool {
	if path, ok := errors.AsType[*fs.PathError](err); ok {
		err = path.Err
	}
	remote, ok := err.(hdfs.Error) //nolint:errorlint // the client does not wrap it
	return ok && strings.HasSuffix(remote.Exception(), ".NotReplicatedYetException")
}

// networkError is the error for an answer that did not come.
func networkError(err error) error {
	text := err.Error()
	switch {
	case strings.Contains(text, "unexpected sequence number"): // the answer is to no call: the NameNode refuses the connection
		return &serviceError{kind: storage.ErrPermission, text: "the NameNode refuses the connection: " + text, setting: storage.SettingHadoop,
			hint: "it may demand Kerberos: check hadoop.security.authentication in the configuration of Hadoop"}
	case strings.Contains(text, "invalid response"):
		return &serviceError{kind: storage.ErrUnavailable, text: text, hint: "check that this is the RPC port of a NameNode, not its web port", setting: storage.SettingEndpoint}
	case strings.Contains(text, "invalid wire-format"), strings.Contains(text, "HMAC Integrity Check failed"):
		return &serviceError{kind: storage.ErrUnsupported, text: "the answer of a DataNode cannot be read; it may protect the data transfer: " + text, setting: storage.SettingHadoop, hint: protectionHint}
	case strings.Contains(text, "negotiating data protection"):
		return &serviceError{kind: storage.ErrPermission, text: text, setting: storage.SettingHadoop, hint: "check dfs.data.transfer.protection in the configuration of Hadoop"}
	case strings.HasPrefix(text, "internal error"):
		return err
	}
	return &serviceError{kind: storage.ErrUnavailable, text: text, transient: true}
}
