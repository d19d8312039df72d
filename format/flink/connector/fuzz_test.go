package connector_test

import (
	"encoding/hex"
	"testing"

	"github.com/savepoint-tools/spt/format/flink/connector"
	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/sptest"
	"github.com/savepoint-tools/spt/internal/testenv"
)

func unhex(t testing.TB, s string) []byte {
	t.Helper()
	p, err := hex.DecodeString(s)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// fuzz checks that whatever a codec reads it writes as the same bytes.
func fuzz(t *testing.T, c value.Codec, p []byte) {
	t.Helper()
	if err := testenv.Agree(c, p); err != nil {
		t.Fatal(err)
	}
	if v, _, err := c.Read(p); err == nil {
		connector.Positions(v)
		connector.Commits(v)
	}
}

// FuzzElements reads elements of all states of connectors.
func FuzzElements(f *testing.F) {
	for _, line := range sptest.ConnectorVectorFiles(f) {
		for _, x := range sptest.ConnectorVectors(f, line) {
			_, p := x.In(f)
			f.Add(p)
		}
	}
	for _, x := range legacy {
		f.Add(unhex(f, x.bytes))
	}
	for _, x := range described {
		f.Add(x.stored(f))
	}
	states := connector.States()
	if len(states) < 10 {
		f.Fatal("not all states")
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		for _, name := range states {
			c, ok := connector.Elements(name, []byte(sptest.AllConnectorSerializers))
			if !ok {
				t.Fatal(name)
			}
			fuzz(t, c, p)
		}
	})
}

// FuzzCoordinator reads the state of coordinators.
func FuzzCoordinator(f *testing.F) {
	for _, line := range sptest.ConnectorVectorFiles(f) {
		for _, x := range sptest.ConnectorVectors(f, line) {
			f.Add(append([]byte{0, 0, 0, 1}, x.Framed()...))
			f.Add(append(append([]byte{0, 0, 0, 0}, x.Framed()...), 0, 0, 0, 1, 0, 0, 0, 0))
		}
	}
	for _, x := range described {
		f.Add(x.stored(f))
	}
	f.Fuzz(func(t *testing.T, p []byte) {
		fuzz(t, connector.Coordinator(""), p)
		fuzz(t, connector.Coordinator("Kafka"), p)
	})
}
