// Command catobject writes the bytes of an object of S3 to standard output, read by the
// driver and nothing else, for measurements:
//
//	go run ./internal/sptest/cmd/catobject s3://bucket/key > /dev/null
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/savepoint-tools/spt/storage/s3"
)

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: catobject s3://BUCKET/KEY")
		os.Exit(2)
	}
	if err := run(context.Background(), os.Args[1], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "catobject:", err)
		os.Exit(1)
	}
}

func run(ctx context.Context, uri string, w io.Writer) error {
	s, err := s3.New(s3.Options{Getenv: os.Getenv})
	if err != nil {
		return err
	}
	store, name, err := s.Resolve(ctx, uri)
	if err != nil {
		return err
	}
	body, _, err := store.ReadRange(ctx, name, 0, -1, "")
	if err != nil {
		return err
	}
	_, err = io.CopyBuffer(struct{ io.Writer }{w}, body, make([]byte, 1<<20))
	return errors.Join(err, body.Close())
}
