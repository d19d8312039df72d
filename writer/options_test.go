package writer_test

import (
	"context"
	"errors"
	"math"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/internal/testenv"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/writer"
)

// use opens a local snapshot and does everything that takes options with it.
func use(t *testing.T, fixture string, o allOptions) error {
	t.Helper()
	ctx := t.Context()
	t.Chdir(t.TempDir())
	if err := os.CopyFS("sp-001", os.DirFS(fixture)); err != nil {
		t.Fatal(err)
	}
	snap, err := reader.Open(ctx, "sp-001", o.open)
	if err != nil {
		return err
	}
	defer snap.Close() //nolint:errcheck // only read
	_, err1 := snap.Verify(ctx, o.verify, nil)
	entries, err2 := reader.List(ctx, ".", o.list)
	if err2 == nil && len(entries) != 1 {
		t.Errorf("%d entries", len(entries))
	}
	_, err3 := writer.Write(ctx, snap.View(), o.target, o.write)
	err4 := buildOwn(ctx, o.build)
	return errors.Join(err1, err2, err3, err4)
}

func buildOwn(ctx context.Context, o *writer.BuilderOptions) error {
	b, err := writer.NewBuilder(ctx, "own.spt", o)
	if err != nil {
		return err
	}
	_, err = b.Seal(ctx)
	return errors.Join(err, b.Close())
}

type allOptions struct {
	open   *reader.Options
	verify reader.VerifyOptions
	list   reader.ListOptions
	write  *writer.Options
	build  *writer.BuilderOptions
	target string
}

// TestZeroOptions: options that are not given, or zero, read and write local files.
func TestZeroOptions(t *testing.T) {
	fixture := testenv.Fixture(t, "sp-001")
	for _, target := range []string{"out", "out.spt"} {
		for _, o := range []allOptions{{}, {open: &reader.Options{}, write: &writer.Options{}, build: &writer.BuilderOptions{}}} {
			o.target = target
			if err := use(t, fixture, o); err != nil {
				t.Errorf("%s: %v", target, err)
			}
			if _, err := os.Stat(filepath.FromSlash(target)); err != nil {
				t.Error(err)
			}
		}
	}
}

// TestInvalidOptions: each field that has a number or a name refuses values that it
// does not have.
func TestInvalidOptions(t *testing.T) {
	fixture, checked := testenv.Fixture(t, "sp-001"), 0
	for _, sample := range []any{reader.Options{}, reader.VerifyOptions{}, reader.ListOptions{}, writer.Options{}, writer.BuilderOptions{}} {
		typ := reflect.TypeOf(sample)
		for i := range typ.NumField() {
			f := typ.Field(i)
			v := reflect.New(typ)
			field := v.Elem().Field(i)
			if field.Kind() == reflect.Pointer {
				field.Set(reflect.New(field.Type().Elem()))
				field = field.Elem()
			}
			switch {
			case field.Kind() == reflect.String:
				field.SetString("nothing that exists")
			case field.CanInt():
				field.SetInt(-3)
			case field.CanUint():
				field.SetUint(math.MaxUint8)
			default:
				continue // bools, functions, stores and lists
			}
			o := allOptions{target: "out.spt"}
			switch v := v.Interface().(type) {
			case *reader.Options:
				o.open = v
			case *reader.VerifyOptions:
				o.verify = *v
			case *reader.ListOptions:
				o.list = *v
			case *writer.Options:
				if o.write = v; f.Name == "MetadataVersion" {
					o.target = "out"
				}
			case *writer.BuilderOptions:
				o.build = v
			}
			checked++
			if err := use(t, fixture, o); err == nil {
				t.Errorf("%s.%s: %v is no error", typ, f.Name, field)
			} else if !errors.Is(err, format.ErrUnsupported) && f.Name != "Level" && f.Name != "Compression" && f.Name != "Jobs" {
				t.Errorf("%s.%s: %v", typ, f.Name, err)
			}
		}
	}
	if checked < 12 {
		t.Errorf("%d fields", checked)
	}
}
