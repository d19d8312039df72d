//go:build unix

package local

import (
	"errors"
	"io"
	"os"
	"syscall"
	"testing"

	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
)

// Opening a pipe would wait for a writer for ever.
func TestPipe(t *testing.T) {
	name := t.TempDir() + "/pipe"
	if err := syscall.Mkfifo(name, 0o666); err != nil {
		testenv.Missing(t, "no pipe", err)
	}
	s := New()
	_, err := s.Stat(ctx, name)
	wantErr(t, err, storage.ErrUnsupported)
	_, _, err = s.ReadRange(ctx, name, 0, 1, "")
	wantErr(t, err, storage.ErrUnsupported)
}

// Stream is for those who wait.
func TestStream(t *testing.T) {
	dir := t.TempDir()
	name := dir + "/pipe"
	if err := syscall.Mkfifo(name, 0o666); err != nil {
		testenv.Missing(t, "no pipe", err)
	}
	write(t, dir+"/file", "text")
	go func() { _ = os.WriteFile(name, []byte("text"), 0) }()
	for _, name := range []string{name, dir + "/file"} {
		body, err := New().Stream(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(body)
		if body.Close(); err != nil || string(text) != "text" {
			t.Errorf("%s: %q, %v", name, text, err)
		}
	}
	for _, name := range []string{dir, dir + "/nothing"} {
		_, err := New().Stream(ctx, name)
		wantErr(t, err, storage.ErrNotExist)
	}
}

// New files have the permissions that the user's mask allows, not those of a
// private temporary file.
func TestPermissions(t *testing.T) {
	name := t.TempDir() + "/x"
	defer syscall.Umask(syscall.Umask(0o027))
	if _, err := create(t, New(), name, storage.CreateOptions{}).Commit(ctx); err != nil {
		t.Fatal(err)
	}
	fi, err := os.Stat(name)
	if err != nil || fi.Mode().Perm() != 0o640 {
		t.Errorf("%v, %v", fi.Mode(), err)
	}
}

func TestTranslate(t *testing.T) {
	for errno, want := range map[syscall.Errno]error{
		syscall.ENOENT:    storage.ErrNotExist,
		syscall.ENOTDIR:   storage.ErrNotExist,
		syscall.EEXIST:    storage.ErrExist,
		syscall.EISDIR:    storage.ErrExist,
		syscall.EACCES:    storage.ErrPermission,
		syscall.ENOSPC:    storage.ErrNoSpace,
		syscall.EDQUOT:    storage.ErrNoSpace,
		syscall.ESTALE:    storage.ErrChanged,
		syscall.ETIMEDOUT: storage.ErrUnavailable,
		syscall.ENOTSUP:   storage.ErrUnsupported,
	} {
		err := fail("write", "x", &os.PathError{Op: "write", Path: "secret-temp", Err: os.NewSyscallError("write", errno)})
		e := wantErr(t, err, want)
		if errors.Is(e, os.ErrInvalid) || len(e.Error()) > 100 {
			t.Errorf("%v", e)
		}
	}
}
