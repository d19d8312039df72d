package azure

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// unfinished is why blocks are not removed.
const unfinished = "unfinished blocks, which only Azure removes: a week after the last one was sent"

// Leftover implements ability.Cleaner, for an object of a temporary name.
func (s *Store) Leftover(ctx context.Context, name string) (ability.Leftover, error) {
	info, err := s.Stat(ctx, name)
	if err != nil {
		return ability.Leftover{}, err
	}
	return ability.ObjectLeftover(info), nil
}

// Leftovers implements ability.Cleaner. It yields objects of temporary names, and names
// for which there are only blocks, of this or of other programs.
func (s *Store) Leftovers(ctx context.Context, name string, depth int) iter.Seq2[ability.Leftover, error] {
	return func(yield func(ability.Leftover, error) bool) {
		prefix := name
		if !strings.HasSuffix(prefix, "/") && !tempname.IsOwn(prefix) {
			prefix += "/"
		}
		ctx := with(ctx, "list", prefix)
		var failed error
		err := s.list(ctx, prefix, "", true, func(info storage.Info) bool {
			if strings.Count(strings.TrimPrefix(info.Name, prefix), "/") > depth {
				return true
			}
			var l ability.Leftover
			switch {
			case info.Size == 0:
				var err error
				if l, err = s.blocks(ctx, info); err != nil {
					failed = err
					return false
				}
				if l.Name == "" && tempname.IsOwn(info.Name) {
					l = ability.ObjectLeftover(info)
				}
			case tempname.IsOwn(info.Name):
				l = ability.ObjectLeftover(info)
			}
			return l.Name == "" || yield(l, nil)
		})
		if err := errors.Join(err, failed); err != nil {
			yield(ability.Leftover{Name: prefix}, err)
		}
	}
}

// blocks describes the blocks that were sent for a name and not made an object. Without
// blocks, the result has no Name.
func (s *Store) blocks(ctx context.Context, info storage.Info) (ability.Leftover, error) {
	at, a, err := s.object(ctx, "list", info.Name)
	if err != nil {
		return ability.Leftover{}, err
	}
	got, err := a.blob(at).GetBlockList(ctx, blockblob.BlockListTypeUncommitted, nil)
	if err != nil {
		err = explain(ctx, "list", info.Name, err)
		if errors.Is(err, storage.ErrNotExist) { // it is gone
			err = nil
		}
		return ability.Leftover{}, err
	}
	l := ability.Leftover{Foreign: unfinished, Files: 1, ModTime: info.ModTime}
	for _, b := range got.UncommittedBlocks {
		l.Name, l.Upload = info.Name, "blocks"
		l.Bytes += value(b.Size)
	}
	return l, nil
}

// RemoveLeftover implements ability.Cleaner. Azure has no request that removes blocks.
func (s *Store) RemoveLeftover(ctx context.Context, l ability.Leftover) error {
	if l.Upload != "" {
		return &storage.Error{Op: "remove", Name: l.Name, Err: fmt.Errorf("%s: %w", unfinished, storage.ErrUnsupported)}
	}
	info, err := s.Stat(ctx, l.Name)
	if errors.Is(err, storage.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	switch now := ability.ObjectLeftover(info); {
	case now.Foreign != "":
		return &storage.Error{Op: "remove", Name: l.Name, Err: fmt.Errorf("%s: %w", now.Foreign, storage.ErrUnsupported)}
	case now.Bytes != l.Bytes || !now.ModTime.Equal(l.ModTime):
		return &storage.Error{Op: "remove", Name: l.Name, Err: storage.ErrChanged}
	}
	return s.delete(ctx, l.Name, info.Version)
}
