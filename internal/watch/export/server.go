package export

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
	"github.com/prometheus/common/expfmt"
)

// Server serves the metrics of a collector at /metrics, and "ok" at /healthz.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// Bounds of the server.
const (
	atOnce       = 4 // requests for metrics that are answered at the same time
	headerTime   = 5 * time.Second
	answerTime   = 30 * time.Second
	shutdownTime = time.Second
	headerBytes  = 16 << 10
)

// Listen opens the address, HOST:PORT. The caller must call Serve.
func Listen(ctx context.Context, address string, c *Collector) (*Server, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("GET /metrics", promhttp.HandlerFor(registry(c), promhttp.HandlerOpts{MaxRequestsInFlight: atOnce, Timeout: answerTime}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "ok\n") })
	return &Server{listener: l, http: &http.Server{
		Handler: mux, ReadHeaderTimeout: headerTime, ReadTimeout: headerTime, WriteTimeout: 2 * answerTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: headerBytes,
	}}, nil
}

// Address returns the address that is served, with its port.
func (s *Server) Address() string { return s.listener.Addr().String() }

// Serve answers requests until the context ends.
func (s *Server) Serve(ctx context.Context) error {
	stop := context.AfterFunc(ctx, func() {
		ending, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTime)
		defer cancel()
		if s.http.Shutdown(ending) != nil {
			_ = s.http.Close()
		}
	})
	defer stop()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}

func registry(c *Collector) *prometheus.Registry {
	r := prometheus.NewPedanticRegistry()
	r.MustRegister(c)
	return r
}

// WriteFile writes the metrics to a local file for the textfile collector of the node
// exporter: under a name that it does not read, and then with the file's own.
func WriteFile(name string, c *Collector) error { return prometheus.WriteToTextfile(name, registry(c)) }

// Text returns the metrics in the text format.
func Text(c *Collector) ([]byte, error) {
	families, err := registry(c).Gather()
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, f := range families {
		if _, err := expfmt.MetricFamilyToText(&b, f); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}
