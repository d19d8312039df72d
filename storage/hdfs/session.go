package hdfs

import (
	"context"
	"errors"
	"net"
	"sync"
	"time"

	"github.com/colinmarc/hdfs/v2"

	"github.com/savepoint-tools/spt/storage"
)

const (
	connectWithin = 10 * time.Second
	maxIdle       = 16 // sessions that are kept for the next request
	firstWait     = 100 * time.Millisecond
	maxWait       = 5 * time.Second
)

// cluster is the NameNodes of an authority, and the sessions with them.
type cluster struct {
	authority   string
	options     hdfs.ClientOptions // without the dial functions
	user        string
	credentials string
	answer      time.Duration // how long an answer is waited for

	mu   sync.Mutex
	idle []*session
}

// session is a client with its own connection to the active NameNode. One request, one
// read or one write uses it at a time: a client makes one call after the other, knows no
// context, and its connections are closed to end a call.
type session struct {
	cluster *cluster
	client  *hdfs.Client
	call    caller

	mu      sync.Mutex
	ctx     context.Context // of the use
	conns   map[*conn]struct{}
	refused error // by which the last connection failed
	broken  bool
}

// use binds a session to a context until release is called.
func (s *session) use(ctx context.Context) (release func()) {
	s.mu.Lock()
	s.ctx = ctx
	s.mu.Unlock()
	stop := context.AfterFunc(ctx, s.interrupt)
	return func() {
		if !stop() {
			s.interrupt() // it may not have run yet
		}
		s.mu.Lock()
		s.ctx = context.Background()
		s.mu.Unlock()
	}
}

// interrupt ends what the session does. It is of no use then.
func (s *session) interrupt() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.broken = true
	for c := range s.conns {
		_ = c.Conn.Close() // the reader gets an error
	}
	clear(s.conns)
}

// close ends the session. The client's own end waits for a call that may be running.
func (s *session) close() {
	s.interrupt()
	go func() { _ = s.client.Close() }() // the connection is closed already
}

// dial connects to a NameNode or a DataNode.
func (s *session) dial(_ context.Context, network, address string) (net.Conn, error) {
	s.mu.Lock()
	ctx, broken := s.ctx, s.broken
	s.mu.Unlock()
	if broken {
		return nil, net.ErrClosed
	}
	raw, err := (&net.Dialer{Timeout: connectWithin}).DialContext(ctx, network, address)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.refused = err
	if err != nil {
		return nil, err
	}
	if s.broken {
		_ = raw.Close() // nothing was sent
		return nil, net.ErrClosed
	}
	c := &conn{Conn: raw, session: s}
	s.conns[c] = struct{}{}
	return c, nil
}

// conn is a connection that does not wait forever.
type conn struct {
	net.Conn
	session *session
}

func (c *conn) Read(p []byte) (int, error) {
	if err := c.Conn.SetReadDeadline(time.Now().Add(c.session.cluster.answer)); err != nil {
		return 0, err
	}
	return c.Conn.Read(p)
}

func (c *conn) Write(p []byte) (int, error) {
	if err := c.Conn.SetWriteDeadline(time.Now().Add(c.session.cluster.answer)); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetDeadline does nothing: the client would take the deadlines away.
func (c *conn) SetDeadline(time.Time) error { return nil }

func (c *conn) Close() error {
	c.session.mu.Lock()
	delete(c.session.conns, c)
	c.session.mu.Unlock()
	return c.Conn.Close()
}

// acquire returns a session for one use. fresh is set if it was connected now.
func (c *cluster) acquire(ctx context.Context) (s *session, fresh bool, err error) {
	c.mu.Lock()
	if n := len(c.idle); n > 0 {
		s, c.idle = c.idle[n-1], c.idle[:n-1]
	}
	c.mu.Unlock()
	if s != nil {
		return s, false, nil
	}
	s = &session{cluster: c, ctx: ctx, conns: map[*conn]struct{}{}}
	stop := context.AfterFunc(ctx, s.interrupt)
	defer stop()
	o := c.options
	o.NamenodeDialFunc, o.DatanodeDialFunc = s.dial, s.dial
	if s.client, err = hdfs.NewClient(o); err != nil {
		return nil, true, s.connectError(err)
	}
	if s.call, err = callerOf(s.client); err != nil {
		s.close()
		return nil, true, err
	}
	return s, true, nil
}

// connectError explains why no NameNode could be reached. The client's error is a text.
func (s *session) connectError(err error) error {
	s.mu.Lock()
	refused := s.refused
	s.mu.Unlock()
	if refused == nil {
		if s.cluster.options.KerberosClient != nil {
			return &serviceError{kind: storage.ErrPermission, text: err.Error(), setting: storage.SettingCredentials,
				hint: "check the ticket (klist), the clock of this machine, and dfs.namenode.kerberos.principal"}
		}
		return &serviceError{kind: storage.ErrUnavailable, text: err.Error(), transient: true}
	}
	if dns, ok := errors.AsType[*net.DNSError](refused); ok && dns.IsNotFound {
		return &serviceError{kind: storage.ErrUnavailable, text: refused.Error(), setting: storage.SettingHadoop,
			hint: "if it is a nameservice, the configuration of Hadoop that describes it was not found"}
	}
	return &serviceError{kind: storage.ErrUnavailable, text: refused.Error(), transient: true}
}

// release keeps a session for its next use, or ends it.
func (c *cluster) release(s *session) {
	s.mu.Lock()
	broken := s.broken
	s.mu.Unlock()
	if !broken {
		c.mu.Lock()
		if len(c.idle) < maxIdle {
			c.idle = append(c.idle, s)
			s = nil
		}
		c.mu.Unlock()
	}
	if s != nil {
		s.close()
	}
}

func (c *cluster) closeIdle() {
	c.mu.Lock()
	all := c.idle
	c.idle = nil
	c.mu.Unlock()
	for _, s := range all {
		s.close()
	}
}

// open runs f with a session that f may keep, and repeats it while the service is
// unavailable. If f returns nil, the caller owns the session and must end it with done.
func (s *Store) open(ctx context.Context, op, name string, f func(*session, string) error) (*lease, error) {
	authority, path, err := s.nameOf(name)
	if err != nil {
		return nil, fail(op, name, err)
	}
	if err := ctx.Err(); err != nil {
		return nil, fail(op, name, err)
	}
	c, err := s.cluster(authority)
	if err != nil {
		return nil, settingError(op, name, err)
	}
	end := time.Now().Add(s.o.Deadline)
	wait := firstWait
	for attempt := 1; ; attempt++ {
		l, fresh, err := s.attempt(ctx, c, path, f)
		if err == nil {
			return l, nil
		}
		if cause := ctx.Err(); cause != nil {
			return nil, fail(op, name, cause)
		}
		if !isTransient(err) || time.Now().Add(wait).After(end) {
			return nil, fail(op, name, err)
		}
		if !fresh {
			continue // the connection was stale: that says nothing about the service
		}
		pause := jitter(wait)
		if s.o.Retried != nil {
			s.o.Retried(storage.Retry{Op: op, Name: name, Attempt: attempt, Wait: pause, Err: fail(op, name, err)})
		}
		if err := sleep(ctx, pause); err != nil {
			return nil, fail(op, name, err)
		}
		wait = min(2*wait, maxWait)
	}
}

func (s *Store) attempt(ctx context.Context, c *cluster, path string, f func(*session, string) error) (*lease, bool, error) {
	session, fresh, err := c.acquire(ctx)
	if err != nil {
		return nil, fresh, err
	}
	l := &lease{session: session, release: session.use(ctx)}
	if err := f(session, path); err != nil {
		err = convert(err)
		l.done(err)
		return nil, fresh, err
	}
	return l, fresh, nil
}

// lease is the use of a session.
type lease struct {
	session *session
	release func()
}

// rebind ends the use under one context, and begins one under another.
func (l *lease) rebind(ctx context.Context) {
	l.release()
	l.release = l.session.use(ctx)
}

// done ends the use. After an error of the connection the session is closed.
func (l *lease) done(err error) {
	if err != nil && isTransient(err) {
		l.session.interrupt()
	}
	l.release()
	l.session.cluster.release(l.session)
}

// do is open for an f that needs the session no longer.
func (s *Store) do(ctx context.Context, op, name string, f func(*session, string) error) error {
	l, err := s.open(ctx, op, name, f)
	if err == nil {
		l.done(nil)
	}
	return err
}
