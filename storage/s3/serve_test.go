package s3_test

import (
	"context"
	"errors"
	"net"
	"net/http"
	"testing"
)

// serve starts a server on a free port and returns its URL.
func serve(t *testing.T, s *http.Server) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			t.Error(err)
		}
	}()
	return "http://" + l.Addr().String()
}

// dialOnly connects to one address, whatever the host of a URL is.
func dialOnly(address string) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
}
