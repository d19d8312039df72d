package conformance

import (
	"bufio"
	"encoding/hex"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestListensOnLoopbackOnly reads the sockets of each JVM while it has a cluster:
// anybody who reaches Flink's REST port can run code.
func TestListensOnLoopbackOnly(t *testing.T) {
	eachVersion(t, func(t *testing.T, version Version) {
		f := Use(t, version)
		s := madeOnce(t, f, Options{Shape: "operator"}) // a job has run: all services are up
		restoredOnce(t, f, s, Choices{})
		listening := listeningSockets(t, f.process.Process.Pid)
		if len(listening) == 0 {
			t.Fatal("no listening socket found: not even that of the REST server")
		}
		for _, at := range listening {
			if !at.IP.IsLoopback() {
				t.Errorf("Flink %s listens on %s", version, at)
			}
		}
		t.Logf("Flink %s listens on %v", version, listening)
	})
}

// listeningSockets returns the addresses of a process's listening TCP sockets.
func listeningSockets(t *testing.T, pid int) []*net.TCPAddr {
	t.Helper()
	proc := fmt.Sprintf("/proc/%d", pid)
	descriptors, err := filepath.Glob(proc + "/fd/*")
	if err != nil || len(descriptors) == 0 {
		t.Fatalf("no descriptors of process %d: %v", pid, err)
	}
	own := map[string]bool{}
	for _, d := range descriptors {
		if target, err := os.Readlink(d); err == nil { // it may be closed by now
			own[target] = true
		}
	}
	var all []*net.TCPAddr
	for _, table := range []string{"tcp", "tcp6"} {
		file, err := os.Open(filepath.Join(proc, "net", table))
		if err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(file)
		for lines.Scan() {
			// sl local_address rem_address st tx:rx tr:tm retrnsmt uid timeout inode
			field := strings.Fields(lines.Text())
			if len(field) < 10 || field[3] != "0A" || !own["socket:["+field[9]+"]"] { // 0A: TCP_LISTEN
				continue
			}
			address, port, _ := strings.Cut(field[1], ":")
			ip, err := hex.DecodeString(address)
			if err != nil {
				t.Fatal(err)
			}
			for word := range slices.Chunk(ip, 4) { // 32-bit words in the machine's order, little-endian here
				slices.Reverse(word)
			}
			at := &net.TCPAddr{IP: ip}
			if _, err := fmt.Sscanf(port, "%X", &at.Port); err != nil {
				t.Fatal(err)
			}
			all = append(all, at)
		}
		if err := lines.Err(); err != nil {
			t.Fatal(err)
		}
		if err := file.Close(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}
