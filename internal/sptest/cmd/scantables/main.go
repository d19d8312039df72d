// Command scantables reads every entry of tables of RocksDB, with the checksum of every
// block, and prints the number of entries, for measurements:
//
//	go run ./internal/sptest/cmd/scantables DIR/*.sst
package main

import (
	"context"
	"fmt"
	"io"
	"os"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/rocksdb"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: scantables TABLE...")
		os.Exit(2)
	}
	entries := 0
	for _, name := range os.Args[1:] {
		n, err := scan(context.Background(), name)
		if err != nil {
			fmt.Fprintf(os.Stderr, "scantables: %s: %v\n", name, err)
			os.Exit(1)
		}
		entries += n
	}
	fmt.Println(entries)
}

// file is a source of one file.
type file struct{ *os.File }

func (f file) ReadAt(_ context.Context, _ format.Stream, p []byte, off int64) (int, error) {
	return f.File.ReadAt(p, off)
}

func scan(ctx context.Context, name string) (entries int, err error) {
	f, err := os.Open(name) //nolint:gosec // the argument of a measurement
	if err != nil {
		return 0, err
	}
	defer f.Close() //nolint:errcheck // it was only read
	info, err := f.Stat()
	if err != nil {
		return 0, err
	}
	t, err := rocksdb.OpenTable(ctx, file{f}, &format.File{Path: format.NewText(name), Length: info.Size()}, rocksdb.Options{})
	if err != nil {
		return 0, err
	}
	for c := t.Scan(ctx, nil); ; entries++ {
		if _, err := c.Next(); err == io.EOF {
			return entries, nil
		} else if err != nil {
			return entries, err
		}
	}
}
