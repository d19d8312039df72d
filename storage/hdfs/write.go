package hdfs

import (
	"context"
	"errors"
	"fmt"
	"os"
	"reflect"
	"strings"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/savepoint-tools/spt/internal/fault"
	"github.com/savepoint-tools/spt/internal/objpath"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Create implements storage.Storage. It makes missing directories. After a write that
// failed because a DataNode did, all that is left is to abort.
func (s *Store) Create(ctx context.Context, name string, o storage.CreateOptions) (storage.Writer, error) {
	switch base := objpath.Base(name); base {
	case "", ".", "..":
		return nil, failHint("create", name, storage.ErrUnsupported, "this cannot be the name of a file")
	}
	switch st, err := s.stat(ctx, "create", name); {
	case errors.Is(err, storage.ErrNotExist):
	case err != nil:
		return nil, err
	case st.isDir():
		return nil, failHint("create", name, storage.ErrExist, "a directory has that name")
	case o.IfAbsent:
		return nil, fail("create", name, storage.ErrExist)
	}
	w := &writer{s: s, ctx: ctx, name: name, o: o}
	err := w.begin()
	if errors.Is(err, storage.ErrNotExist) {
		s.making.Lock()
		if err = s.makeDirectories(ctx, directory(name)); err == nil {
			err = w.begin()
		}
		s.making.Unlock()
	}
	if err != nil {
		return nil, errors.Join(err, w.Abort(context.WithoutCancel(ctx)))
	}
	return w, nil
}

// directory returns the directory of a name, without a slash at its end.
func directory(name string) string { return objpath.Clean(objpath.Dir(name)) }

// writer writes a file under a temporary name.
type writer struct {
	s         *Store
	ctx       context.Context
	name      string
	o         storage.CreateOptions
	temps     []string // names that may exist; the last one is written to
	file      *hdfs.FileWriter
	block     reflect.Value // see blockOf
	blockSize int64
	lease     *lease // of the file; nil after it was closed
	id        uint64 // the inode
	size      int64
	err       error // sticky; also set after Commit and Abort
}

var errFinished = errors.New("already committed or aborted")

// begin creates the temporary file. It can be called again after an error.
func (w *writer) begin() error {
	l, err := w.s.open(w.ctx, "create", w.name, func(c *session, path string) error {
		temp := tempname.New(w.name) // a fresh one each time: an earlier one may exist though no answer came
		w.temps = append(w.temps, temp)
		if err := fault.At(w.ctx, "create", temp); err != nil {
			return err
		}
		path = path[:strings.LastIndexByte(path, '/')+1] + objpath.Base(temp)
		replication, blockSize := w.s.replication, w.s.blockSize
		if replication == 0 || blockSize == 0 {
			defaults, err := c.client.ServerDefaults()
			if err != nil {
				return err
			}
			if replication == 0 {
				replication = defaults.Replication
			}
			if blockSize == 0 {
				blockSize = defaults.BlockSize
			}
		}
		file, err := c.client.CreateFile(path, replication, blockSize, os.FileMode(0o666&^w.s.umask))
		if err != nil {
			return c.mayWrite(err, path)
		}
		st, err := c.existing(path)
		if err == nil {
			err = plainFile("create", w.name, st)
		}
		if err != nil {
			return err
		}
		w.file, w.id, w.blockSize = file, st.GetFileId(), blockSize
		w.block, err = blockOf(file)
		return err
	})
	if err != nil {
		return err
	}
	w.lease = l
	return nil
}

// mayWrite asks the NameNode again why a file could not be created in a directory: the
// client does not say it.
func (s *session) mayWrite(err error, path string) error {
	if !errors.Is(err, storage.ErrPermission) {
		return err
	}
	dir := path[:max(1, strings.LastIndexByte(path, '/'))]
	req, again := message("CheckAccessRequestProto", fields{"path": dir})
	if again != nil {
		return err
	}
	m := req.ProtoReflect()
	mode := m.Descriptor().Fields().ByName("mode")
	value := mode.Enum().Values().ByName("WRITE_EXECUTE")
	resp, again := message("CheckAccessResponseProto", nil)
	if value == nil || again != nil {
		return err
	}
	m.Set(mode, enum(value.Number()))
	if again := s.call.Execute("checkAccess", req, resp); again != nil {
		return again
	}
	return err
}

func (w *writer) Write(p []byte) (int, error) {
	if w.err == nil {
		w.err = fail("write", w.name, w.ctx.Err())
	}
	if w.err == nil {
		w.err = fail("write", w.name, fault.At(w.ctx, "write", w.name))
	}
	if w.err != nil {
		return 0, w.err
	}
	if len(p) == 0 {
		return 0, nil // the client would begin a block, and never end it
	}
	n, err := w.send(p)
	if err != nil {
		if cause := w.ctx.Err(); cause != nil {
			err = cause
		}
		w.err = w.lost("write", err)
	}
	return n, w.err
}

// send writes to the DataNodes, in pieces that do not cross the end of a block, so that
// each call of the client begins at most one block, before it takes any byte.
func (w *writer) send(p []byte) (n int, err error) {
	for n < len(p) {
		piece := p[n:][:min(int64(len(p)-n), w.blockSize-w.size%w.blockSize)]
		k, err := w.sendPiece(piece)
		n += k
		w.size += int64(k)
		if err != nil {
			return n, err
		}
	}
	return n, nil
}

// sendPiece repeats the request for a block until the DataNodes have reported the last but
// one.
func (w *writer) sendPiece(p []byte) (int, error) {
	end := time.Now().Add(w.s.o.Deadline)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		block := reflect.ValueOf(w.block.Interface()) // a copy
		n, err := w.file.Write(p)
		if err == nil || !notReplicated(err) || time.Now().After(end) {
			return n, err
		}
		w.block.Set(block)
		if err := sleep(w.ctx, wait); err != nil {
			return n, err
		}
	}
}

// sleep waits, but not longer than the context.
func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// lost explains the error of a write.
func (w *writer) lost(op string, err error) error {
	err = fail(op, w.name, err)
	if e, ok := errors.AsType[*storage.Error](err); ok && e.Hint == "" && errors.Is(err, storage.ErrUnavailable) {
		e.Hint = "a DataNode or the NameNode failed while the file was written; nothing of it is visible: try again"
	}
	return err
}

func (w *writer) Commit(ctx context.Context) (storage.Info, error) {
	if w.err != nil {
		return storage.Info{}, w.err
	}
	info, err := w.commit(ctx)
	if err != nil {
		w.err = w.lost("commit", err)
		return storage.Info{}, w.err
	}
	w.err = fail("write", w.name, errFinished)
	return info, nil
}

func (w *writer) commit(ctx context.Context) (storage.Info, error) {
	if err := ctx.Err(); err != nil {
		return storage.Info{}, err
	}
	if w.o.Size > 0 && w.size != w.o.Size {
		return storage.Info{}, fmt.Errorf("wrote %d bytes, expected %d", w.size, w.o.Size)
	}
	if err := w.complete(ctx); err != nil {
		return storage.Info{}, err
	}
	temp := w.temps[len(w.temps)-1]
	st, err := w.s.stat(ctx, "commit", temp)
	if err != nil {
		return storage.Info{}, err
	}
	if int64(st.GetLength()) != w.size || st.GetFileId() != w.id {
		return storage.Info{}, fmt.Errorf("wrote %d bytes, the file has %d", w.size, st.GetLength())
	}
	if w.o.Replace != "" {
		old, err := w.s.stat(ctx, "commit", w.name)
		if errors.Is(err, storage.ErrNotExist) || err == nil && describe(w.name, old).Version != w.o.Replace {
			err = fail("commit", w.name, storage.ErrChanged)
		}
		if err != nil {
			return storage.Info{}, err
		}
	}
	if err := w.s.rename(ctx, "commit", temp, w.name, w.id, !w.o.IfAbsent); err != nil {
		return storage.Info{}, err
	}
	w.temps = w.temps[:len(w.temps)-1]
	return describe(w.name, st), nil
}

// complete closes the file: the DataNodes have all of it then, and the NameNode knows.
func (w *writer) complete(ctx context.Context) error {
	w.lease.rebind(ctx)
	end := time.Now().Add(w.s.o.Deadline)
	for wait := 10 * time.Millisecond; ; wait = min(2*wait, time.Second) {
		err := fault.At(ctx, "sync", w.name)
		if err == nil {
			err = w.file.Close()
		}
		if err == nil {
			w.lease.done(nil)
			w.lease = nil
			return nil
		}
		if cause := ctx.Err(); cause != nil {
			return cause
		}
		if !hdfs.IsErrReplicating(err) {
			return err
		}
		// The NameNode waits for the DataNodes to report the last block.
		if time.Now().After(end) {
			return &serviceError{kind: storage.ErrUnavailable, text: "the NameNode does not know of enough copies of the last block yet"}
		}
		if err := sleep(ctx, wait); err != nil {
			return err
		}
	}
}

func (w *writer) Abort(ctx context.Context) error {
	if w.err == nil {
		w.err = fail("write", w.name, errFinished)
	}
	ctx = context.WithoutCancel(ctx)
	if w.lease != nil {
		w.lease.session.interrupt() // so that closing sends nothing, and ends the client's goroutines
		if w.file != nil {
			_ = w.file.Close() // it fails
		}
		w.lease.done(nil)
		w.lease = nil
	}
	if len(w.temps) == 0 {
		return nil
	}
	var errs []error
	for _, temp := range w.temps {
		errs = append(errs, w.s.deleteFile(ctx, "abort", temp))
	}
	if err := errors.Join(errs...); err != nil {
		return fail("abort", w.name, err)
	}
	w.temps = nil
	w.s.prune(ctx, directory(w.name))
	return nil
}

// rename renames a file or a directory with a known inode. If no answer came, it looks
// whether it was done.
func (s *Store) rename(ctx context.Context, op, old, new string, id uint64, overwrite bool) error {
	_, to, err := s.nameOf(new)
	if err != nil {
		return fail(op, new, err)
	}
	lost := false
	err = s.do(ctx, op, old, func(c *session, from string) error {
		if err := fault.At(ctx, "rename", new); err != nil {
			return err
		}
		if lost {
			if st, ok, err := c.status(to); err != nil || ok && st.GetFileId() == id {
				return err
			}
		}
		err := c.rename(from, to, overwrite)
		lost = err != nil && isTransient(convert(err))
		return err
	})
	if errors.Is(err, storage.ErrExist) {
		return fail(op, new, storage.ErrExist)
	}
	return err
}

// Delete implements storage.Storage. It refuses directories. Directories that Create made
// are removed with their last file.
func (s *Store) Delete(ctx context.Context, names ...string) error {
	var errs []error
	for _, name := range names {
		err := s.deleteFile(ctx, "delete", name)
		if err == nil {
			s.prune(ctx, directory(name))
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// deleteFile deletes a file, if it exists.
func (s *Store) deleteFile(ctx context.Context, op, name string) error {
	err := s.do(ctx, op, name, func(c *session, path string) error {
		st, err := c.existing(path)
		if err != nil {
			return err
		}
		if st.isDir() { // an empty one would be removed
			return failHint(op, name, storage.ErrUnsupported, "this is a directory, not a file")
		}
		if err := fault.At(ctx, "remove", name); err != nil {
			return err
		}
		return c.remove(path, false)
	})
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	return err
}

// makeDirectories makes a directory and its parents. The caller holds s.making.
func (s *Store) makeDirectories(ctx context.Context, dir string) error {
	var missing []string // the deepest first
	for ; ; dir = directory(dir) {
		st, err := s.stat(ctx, "create", dir)
		if err == nil && !st.isDir() {
			return failHint("create", dir, storage.ErrNotExist, "a file has the name of a directory")
		}
		if err == nil {
			break
		}
		if !errors.Is(err, storage.ErrNotExist) {
			return err
		}
		if _, path, err := s.nameOf(dir); err != nil || path == "/" {
			return err
		}
		missing = append(missing, dir)
	}
	for i := len(missing) - 1; i >= 0; i-- {
		err := s.do(ctx, "create", missing[i], func(c *session, path string) error {
			if err := fault.At(ctx, "mkdir", missing[i]); err != nil {
				return err
			}
			return c.mkdir(path, 0o777&^s.umask)
		})
		if err != nil {
			return err
		}
		s.made[missing[i]] = true
	}
	return nil
}

// prune removes a directory and its parents if Create made them and they are empty.
func (s *Store) prune(ctx context.Context, dir string) {
	s.making.Lock()
	defer s.making.Unlock()
	for s.made[dir] && s.removeEmpty(ctx, dir) == nil {
		delete(s.made, dir)
		dir = directory(dir)
	}
}
