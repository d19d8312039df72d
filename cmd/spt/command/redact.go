package command

import (
	"bytes"
	"context"
	"crypto/rand"
	"encoding/hex"
	"errors"
	"slices"

	"github.com/spf13/pflag"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/metadata"
	"github.com/savepoint-tools/spt/internal/report"
	"github.com/savepoint-tools/spt/reader"
	"github.com/savepoint-tools/spt/transform"
)

// redactOptions say how a snapshot is redacted.
type redactOptions struct {
	names bool
	key   string
	drop  []string
}

// addRedactFlags adds the flags, whose names begin with prefix.
func (o *redactOptions) addRedactFlags(fs *pflag.FlagSet, prefix string) {
	fs.BoolVar(&o.names, prefix+"names", false, "also replace uids, names and ids of operators, names of states, and names of files")
	fs.StringVar(&o.key, prefix+"key", "", "read the secret that determines the replacements from `FILE`, or take it as 32 or more hex digits: then they are the same in every run (default: a new one, which is forgotten)")
	fs.StringArrayVar(&o.drop, prefix+"drop", nil, "drop this `PART`, OPERATOR/STATE or another name from the error about what cannot be redacted; globs, repeatable")
}

// keyBytes is the least number of bytes of a key.
const keyBytes = 16

// secret returns the key.
func (o *redactOptions) secret(ctx context.Context, env *Env, flag string) ([]byte, error) {
	if o.key == "" {
		key := make([]byte, 2*keyBytes)
		_, err := rand.Read(key)
		return key, err
	}
	key, err := hex.DecodeString(o.key)
	if err != nil {
		if key, err = env.readSide(ctx, flag, o.key); err != nil {
			return nil, err
		}
		key = bytes.TrimRight(key, "\r\n")
	}
	if len(key) < keyBytes {
		return nil, usagef("%s: a key of %d bytes, expected %d or more", flag, len(key), keyBytes)
	}
	return key, nil
}

// redact returns the redacted snapshot. flag is the name of the flag with the key.
func (o *redactOptions) redact(ctx context.Context, env *Env, snap *reader.Snapshot, flag string) (*format.Savepoint, *report.Redaction, error) {
	key, err := o.secret(ctx, env, flag)
	if err != nil {
		return nil, nil, err
	}
	stop := env.reading("reading", allState(snap))
	defer stop()
	v, done, err := transform.Redact(ctx, snap.View(), transform.RedactOptions{Key: key, Names: o.names, Drop: o.drop, Values: snap.Values})
	if none := (*format.NoMatchError)(nil); errors.As(err, &none) {
		return nil, nil, &usageError{none.Error(), none.Hint()}
	}
	if err != nil {
		return nil, nil, inContainer(err, snap)
	}
	r := &report.Redaction{Names: o.names, Elements: done.Elements, Entries: done.Entries, KeptKeys: done.KeptKeys}
	for _, part := range done.Dropped {
		r.Dropped = append(r.Dropped, env.run.Text(part))
	}
	slices.Sort(r.Dropped)
	return v.Savepoint, r, nil
}

// redacted is the snapshot as --redact wants it.
func (o *convertOptions) redacted(ctx context.Context, env *Env, snap *reader.Snapshot, out string) (*reader.Snapshot, error) {
	version, _ := metadata.VersionOf(snap.Savepoint)
	if o.redaction.names && version == 2 && o.opts.MetadataVersion == 0 && o.release == 0 && !o.writesSPT(out) {
		return nil, &usageError{"_metadata of version 2 names files by the absolute location of OUT", "--metadata-version 3 has names without a location"}
	}
	sp, r, err := o.redaction.redact(ctx, env, snap, "--redact-key")
	if err != nil {
		return nil, err
	}
	more := o.note
	o.note = func(w *report.Write) {
		if more != nil {
			more(w)
		}
		w.Redacted = r
	}
	return snap.With(sp), nil
}

// redactStep redacts in a recipe.
type redactStep struct{ redactOptions }

func (s *redactStep) addFlags(fs *pflag.FlagSet) { s.addRedactFlags(fs, "") }

func (s *redactStep) validate(*Env) error { return nil }

func (s *redactStep) apply(ctx context.Context, env *Env, snap *reader.Snapshot) (*format.Savepoint, *report.Edit, error) {
	sp, done, err := s.redact(ctx, env, snap, "key")
	if err != nil {
		return nil, nil, err
	}
	r := env.run.NewEdit()
	r.Redacted(done)
	return sp, r, nil
}
