package s3

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/minio/minio-go/v7"

	"github.com/savepoint-tools/spt/internal/ability"
	"github.com/savepoint-tools/spt/internal/tempname"
	"github.com/savepoint-tools/spt/storage"
)

// Leftover implements ability.Cleaner, for an object of a temporary name.
func (s *Store) Leftover(ctx context.Context, name string) (ability.Leftover, error) {
	info, err := s.Stat(ctx, name)
	if err != nil {
		return ability.Leftover{}, err
	}
	return ability.ObjectLeftover(info), nil
}

// Leftovers implements ability.Cleaner. It yields objects of temporary names, and then
// the unfinished uploads.
func (s *Store) Leftovers(ctx context.Context, name string, depth int) iter.Seq2[ability.Leftover, error] {
	return func(yield func(ability.Leftover, error) bool) {
		prefix := leftoverPrefix(name)
		for info, err := range s.List(ctx, prefix, "") {
			if err != nil {
				yield(ability.Leftover{Name: prefix}, err)
				return
			}
			if tempname.IsOwn(info.Name) && within(prefix, info.Name, depth) && !yield(ability.ObjectLeftover(info), nil) {
				return
			}
		}
		for l, err := range s.Uploads(ctx, name, depth) {
			if !yield(l, err) {
				return
			}
		}
	}
}

// leftoverPrefix returns the prefix of what is below a directory, or of a leftover itself.
func leftoverPrefix(name string) string {
	if name == "" || strings.HasSuffix(name, "/") || tempname.IsOwn(name) {
		return name
	}
	return name + "/"
}

// within reports whether a name is at most depth directories below a prefix.
func within(prefix, name string, depth int) bool {
	return strings.Count(strings.TrimPrefix(name, prefix), "/") <= depth
}

// Uploads implements ability.UploadLister. It yields the unfinished uploads of all
// programs: the service does not say whose they are. Bytes is the size of the parts, if
// they may be listed.
func (s *Store) Uploads(ctx context.Context, name string, depth int) iter.Seq2[ability.Leftover, error] {
	return func(yield func(ability.Leftover, error) bool) {
		prefix := leftoverPrefix(name)
		b, key, err := s.locate("list", prefix)
		if err != nil {
			yield(ability.Leftover{Name: prefix}, err)
			return
		}
		for u, err := range b.uploads(ctx, key) {
			if err != nil {
				yield(ability.Leftover{Name: prefix}, err)
				return
			}
			if l := (ability.Leftover{Name: b.uri(u.Key), Upload: u.UploadID, ModTime: u.Initiated}); within(prefix, l.Name, depth) {
				l.Files, l.Bytes = 1, b.size(ctx, u)
				if !yield(l, nil) {
					return
				}
			}
		}
	}
}

// uploads yields the unfinished uploads of keys with a prefix.
func (b *bucket) uploads(ctx context.Context, prefix string) iter.Seq2[minio.ObjectMultipartInfo, error] {
	return func(yield func(minio.ObjectMultipartInfo, error) bool) {
		for after, id := "", ""; ; {
			var page minio.ListMultipartUploadsResult
			err := b.do(ctx, "list uploads", prefix, &call{}, func(ctx context.Context, core *minio.Core) error {
				var err error
				page, err = core.ListMultipartUploads(ctx, b.name, prefix, after, id, "", 1000)
				return err
			})
			if err != nil {
				yield(minio.ObjectMultipartInfo{}, err)
				return
			}
			for _, u := range page.Uploads {
				// Some services take the prefix for a whole key, or ignore it.
				if strings.HasPrefix(u.Key, prefix) && !yield(u, nil) {
					return
				}
			}
			if after, id = page.NextKeyMarker, page.NextUploadIDMarker; !page.IsTruncated || after == "" {
				return
			}
		}
	}
}

// size returns the bytes of the parts of an upload, as far as they may be listed.
func (b *bucket) size(ctx context.Context, u minio.ObjectMultipartInfo) (bytes int64) {
	for after := 0; ; {
		var page minio.ListObjectPartsResult
		err := b.do(ctx, "list parts", u.Key, &call{}, func(ctx context.Context, core *minio.Core) error {
			var err error
			page, err = core.ListObjectParts(ctx, b.name, u.Key, u.UploadID, after, 1000)
			return err
		})
		if err != nil {
			return bytes
		}
		for _, p := range page.ObjectParts {
			bytes += p.Size
		}
		if after = page.NextPartNumberMarker; !page.IsTruncated || after == 0 {
			return bytes
		}
	}
}

// RemoveLeftover implements ability.Cleaner. An upload is aborted; an upload that does
// not exist any more was completed or aborted: storage.ErrChanged.
func (s *Store) RemoveLeftover(ctx context.Context, l ability.Leftover) error {
	b, key, err := s.object(ctx, "remove", l.Name)
	if err != nil {
		return err
	}
	if l.Upload != "" {
		found := false
		for u, err := range b.uploads(ctx, key) {
			if err != nil {
				return err
			}
			found = found || u.Key == key && u.UploadID == l.Upload && u.Initiated.Equal(l.ModTime)
		}
		if !found {
			return &storage.Error{Op: "remove", Name: l.Name, Err: fmt.Errorf("the upload has ended: %w", storage.ErrChanged)}
		}
		return b.abort(ctx, key, l.Upload)
	}
	now, err := s.Leftover(ctx, l.Name)
	switch {
	case errors.Is(err, storage.ErrNotExist):
		return nil
	case err != nil:
		return err
	case now.Foreign != "":
		return &storage.Error{Op: "remove", Name: l.Name, Err: fmt.Errorf("%s: %w", now.Foreign, storage.ErrUnsupported)}
	case now.Bytes != l.Bytes || !now.ModTime.Equal(l.ModTime):
		return &storage.Error{Op: "remove", Name: l.Name, Err: storage.ErrChanged}
	}
	return b.remove(ctx, key)
}
