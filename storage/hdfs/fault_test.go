package hdfs_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/savepoint-tools/spt/internal/ranged"
	"github.com/savepoint-tools/spt/internal/servertest"
	"github.com/savepoint-tools/spt/internal/storetest"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/storage"
	"github.com/savepoint-tools/spt/storage/hdfs"
)

func write(t testing.TB, name, text string) string {
	t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return name
}

// short is a deadline for services that do not come back.
const short = 3 * time.Second

func TestFaults(t *testing.T) {
	testenv.Long(t, "starts a NameNode and a DataNode, and kills them")
	h := servertest.StartHDFS(t, t.TempDir(), servertest.HDFSOptions{})
	data := noise(9 << 20)
	name := h.URI + "/data"
	s := open(t, h, hdfs.Options{Deadline: 2 * time.Minute})
	info := put(t, s, name, data)

	t.Run("DataNodeKilledInRead", func(t *testing.T) { testKilledInRead(t, h, name, data) })
	t.Run("DataNodeDown", func(t *testing.T) { testDataNodeDown(t, h, name) })
	t.Run("NameNodeDown", func(t *testing.T) { testNameNodeDown(t, h, name, info) })
	t.Run("SafeMode", func(t *testing.T) { testSafeMode(t, h, name) })
	t.Run("AnswerLost", func(t *testing.T) { testAnswerLost(t, h) })
	t.Run("Stalled", testStalled)
	t.Run("Unreachable", testUnreachable)
}

func put(t testing.TB, s storage.Storage, name string, data []byte) storage.Info {
	t.Helper()
	w := create(t, s, name, storage.CreateOptions{IfAbsent: true, Size: int64(len(data))})
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	info, err := w.Commit(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return info
}

// A read goes on where it was interrupted when the DataNode is back, at the same version.
func testKilledInRead(t *testing.T, h *servertest.HDFS, name string, data []byte) {
	retried := make(chan storage.Retry, 100)
	s := open(t, h, hdfs.Options{Deadline: 2 * time.Minute, Retried: func(r storage.Retry) { retried <- r }})
	body, _, err := ranged.NewReader(s, name, "").Open(ctx, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got := make([]byte, 100_000)
	if _, err := io.ReadFull(body, got); err != nil {
		t.Fatal(err)
	}
	h.KillDataNode()
	rest := make(chan error)
	go func() {
		p, err := io.ReadAll(body)
		got = slices.Concat(got, p)
		rest <- err
	}()
	r := <-retried // it noticed
	if r.Op != "read" || r.Name != name || r.Attempt != 1 || !errors.Is(r.Err, storage.ErrUnavailable) {
		t.Errorf("%+v", r)
	}
	h.StartDataNode()
	if err := <-rest; err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, want %d: %v", len(got), len(data), err)
	}
}

// Without a DataNode, reads and writes end in ErrUnavailable; a read can be cancelled.
func testDataNodeDown(t *testing.T, h *servertest.HDFS, name string) {
	s := open(t, h, hdfs.Options{Deadline: short})
	w := create(t, s, h.URI+"/broken", storage.CreateOptions{})
	if _, err := w.Write(noise(200_000)); err != nil {
		t.Fatal(err)
	}
	h.KillDataNode()
	var err error
	for err == nil {
		_, err = w.Write(noise(100_000))
	}
	wantErr(t, err, storage.ErrUnavailable)
	_, err = w.Commit(ctx)
	wantErr(t, err, storage.ErrUnavailable)
	if err := w.Abort(ctx); err != nil {
		t.Fatal(err)
	}
	_, _, err = s.ReadRange(ctx, name, 0, -1, "")
	wantErr(t, err, storage.ErrUnavailable)
	if _, err := s.Stat(ctx, name); err != nil { // the NameNode knows
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	waiting := open(t, h, hdfs.Options{Deadline: time.Hour, Retried: func(storage.Retry) { cancel() }})
	_, _, err = waiting.ReadRange(cancelled, name, 0, -1, "")
	wantErr(t, err, context.Canceled)
	h.StartDataNode()
	wantTree(t, s, h.URI+"/", "data")
}

// Requests wait for a NameNode that comes back, up to the deadline.
func testNameNodeDown(t *testing.T, h *servertest.HDFS, name string, info storage.Info) {
	s := open(t, h, hdfs.Options{Deadline: short})
	storetest.Names(t, s, h.URI+"/", "") // so that there is a connection, which is stale then
	h.KillNameNode(0)
	_, err := s.Stat(ctx, name)
	if e := wantErr(t, err, storage.ErrUnavailable); !strings.Contains(err.Error(), "connection refused") {
		t.Errorf("%+v", e)
	}
	for _, err := range []error{
		s.Delete(ctx, name), s.Move(ctx, name, name+"2"), s.RemoveTree(ctx, name),
		func() error { _, err := s.Create(ctx, h.URI+"/x", storage.CreateOptions{}); return err }(),
	} {
		wantErr(t, err, storage.ErrUnavailable)
	}
	var once sync.Once
	noticed := make(chan bool)
	patient := open(t, h, hdfs.Options{Deadline: 5 * time.Minute, Retried: func(storage.Retry) { once.Do(func() { close(noticed) }) }})
	answer := make(chan error)
	go func() {
		got, err := patient.Stat(ctx, name)
		if err == nil && got != info {
			err = fmt.Errorf("%+v, want %+v", got, info)
		}
		answer <- err
	}()
	<-noticed
	h.StartNameNode(0)
	if err := <-answer; err != nil {
		t.Error(err)
	}
	if _, err := s.Stat(ctx, name); err != nil { // the store that had failed works again
		t.Error(err)
	}
}

// In safe mode the NameNode is read and not written.
func testSafeMode(t *testing.T, h *servertest.HDFS, name string) {
	s := open(t, h, hdfs.Options{Deadline: short})
	h.Admin("-safemode", "enter")
	_, err := s.Create(ctx, h.URI+"/x", storage.CreateOptions{})
	if e := wantErr(t, err, storage.ErrUnavailable); !strings.Contains(e.Hint, "safe mode") {
		t.Errorf("%v: hint %q", err, e.Hint)
	}
	if _, err := s.Stat(ctx, name); err != nil {
		t.Error(err)
	}
	h.Admin("-safemode", "leave")
	wantTree(t, s, h.URI+"/", "data")
}

// proxy forwards connections to a NameNode. It closes the connection of the first request
// that calls method when the answer comes, or at once if before is set: then the NameNode
// never sees the request.
type proxy struct {
	net.Listener
	to, method string
	before     bool
	cut        atomic.Bool
}

func startProxy(t *testing.T, to, method string, before bool) *proxy {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	p := &proxy{Listener: l, to: to, method: method, before: before}
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			go p.serve(c)
		}
	}()
	return p
}

func (p *proxy) serve(c net.Conn) {
	defer c.Close()
	up, err := net.Dial("tcp", p.to)
	if err != nil {
		return
	}
	defer up.Close()
	var drop atomic.Bool
	go func() {
		defer up.Close()
		defer c.Close()
		buf := make([]byte, 64<<10)
		for {
			n, err := c.Read(buf)
			if err != nil {
				return
			}
			if bytes.Contains(buf[:n], []byte(p.method)) && p.cut.CompareAndSwap(false, true) {
				if p.before {
					return
				}
				drop.Store(true)
			}
			if _, err := up.Write(buf[:n]); err != nil {
				return
			}
		}
	}()
	buf := make([]byte, 64<<10)
	for {
		n, err := up.Read(buf)
		if err != nil || drop.Load() {
			return
		}
		if _, err := c.Write(buf[:n]); err != nil {
			return
		}
	}
}

// What the NameNode did although its answer was lost is not done twice, and not taken for
// the work of others.
func testAnswerLost(t *testing.T, h *servertest.HDFS) {
	for i, method := range []string{"getFileInfo", "create", "complete", "rename2", "delete", "mkdirs", "getListing"} {
		for _, before := range []bool{false, true} {
			p := startProxy(t, strings.TrimPrefix(h.URI, "hdfs://"), method, before)
			uri := "hdfs://" + p.Addr().String()
			retries := 0
			s := open(t, h, hdfs.Options{Deadline: time.Minute, Hadoop: map[string]string{}, Retried: func(storage.Retry) { retries++ }})
			dir := fmt.Sprintf("%s/lost/%d-%v/", uri, i, before) // without the name of a method
			w, err := s.Create(ctx, dir+"sub/x", storage.CreateOptions{IfAbsent: true})
			if err != nil {
				t.Fatalf("%s %v: %v", method, before, err)
			}
			if _, err := w.Write([]byte("mine")); err != nil {
				t.Fatalf("%s %v: %v", method, before, err)
			}
			_, err = w.Commit(ctx)
			if method == "complete" {
				// Whether the file is closed is not known, and it cannot be written again.
				wantErr(t, err, storage.ErrUnavailable)
				if err := w.Abort(ctx); err != nil {
					t.Fatal(err)
				}
				wantTree(t, s, dir)
				continue
			}
			if err != nil {
				t.Fatalf("%s %v: %v", method, before, err)
			}
			if got := storetest.Read(t, s, dir+"sub/x"); got != "mine" {
				t.Errorf("%s %v: read %q", method, before, got)
			}
			if err := w.Abort(ctx); err != nil {
				t.Fatal(err)
			}
			wantTree(t, s, dir, "sub/x")
			_, err = s.Create(ctx, dir+"sub/x", storage.CreateOptions{IfAbsent: true})
			wantErr(t, err, storage.ErrExist)
			if err := s.Move(ctx, dir+"sub", dir+"moved"); err != nil {
				t.Errorf("%s %v: %v", method, before, err)
			}
			if err := s.Delete(ctx, dir+"moved/x"); err != nil {
				t.Errorf("%s %v: %v", method, before, err)
			}
			wantTree(t, s, dir)
			if !p.cut.Load() {
				t.Errorf("%s %v: never called", method, before)
			}
		}
	}
}

// A NameNode that accepts connections and never answers is noticed.
func testStalled(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	s, err := hdfs.New(hdfs.Options{User: "u", Hadoop: map[string]string{}, Deadline: short})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Stat(ctx, "hdfs://"+l.Addr().String()+"/x")
	if wantErr(t, err, storage.ErrUnavailable); !strings.Contains(err.Error(), "timeout") {
		t.Error(err)
	}
	cancelled, cancel := context.WithCancel(ctx)
	patient, err := hdfs.New(hdfs.Options{User: "u", Hadoop: map[string]string{}, Deadline: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	go cancel()
	_, err = patient.Stat(cancelled, "hdfs://"+l.Addr().String()+"/x")
	wantErr(t, err, context.Canceled)
}

func testUnreachable(t *testing.T) {
	s, err := hdfs.New(hdfs.Options{User: "u", Hadoop: map[string]string{}, Deadline: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	_, err = s.Stat(ctx, fmt.Sprintf("hdfs://127.0.0.1:%d/x", servertest.Port(t)))
	wantErr(t, err, storage.ErrUnavailable)
	_, err = s.Stat(ctx, "hdfs://no-such-nameservice.invalid/x")
	wantErr(t, err, storage.ErrUnavailable)
	// A server that is not a NameNode.
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = io.WriteString(c, "HTTP/1.1 400 Bad Request\r\n\r\n") // the client may be gone
			c.Close()
		}
	}()
	_, err = s.Stat(ctx, "hdfs://"+l.Addr().String()+"/x")
	wantErr(t, err, storage.ErrUnavailable)
}

// With a nameservice, another NameNode takes over when the active one fails, also in the
// middle of a read; a standby is never asked for long.
func TestFailover(t *testing.T) {
	testenv.Long(t, "starts two NameNodes and a DataNode")
	h := servertest.StartHDFS(t, t.TempDir(), servertest.HDFSOptions{Nameservice: "prod"})
	s := open(t, h, hdfs.Options{Deadline: 2 * time.Minute})
	data := noise(3 << 20)
	info := put(t, s, "hdfs://prod/dir/x", data)
	body, _, err := ranged.NewReader(s, "hdfs://prod/dir/x", info.Version).Open(ctx, 0, -1)
	if err != nil {
		t.Fatal(err)
	}
	defer body.Close()
	got := make([]byte, 100_000)
	if _, err := io.ReadFull(body, got); err != nil {
		t.Fatal(err)
	}
	h.Activate(1) // both run, the first is standby now
	rest, err := io.ReadAll(body)
	if err != nil || !bytes.Equal(slices.Concat(got, rest), data) {
		t.Fatalf("%d bytes: %v", len(got)+len(rest), err)
	}
	put(t, s, "hdfs://prod/dir/y", data)
	h.Activate(0)
	h.KillNameNode(0)
	w := make(chan error)
	go func() {
		_, err := s.Stat(ctx, "hdfs://prod/dir/y")
		w <- err
	}()
	h.Activate(1)
	if err := <-w; err != nil {
		t.Error(err)
	}
	wantTree(t, s, "hdfs://prod/", "dir/x", "dir/y")
	put(t, s, "hdfs://prod/dir/z", data[:10])
	if _, name, err := s.Resolve(ctx, "hdfs:///dir/z"); err != nil || storetest.Read(t, s, name) != string(data[:10]) {
		t.Errorf("%s: %v", name, err)
	}
}
