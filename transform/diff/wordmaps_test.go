package diff

import (
	"context"
	"errors"
	"io"
	"strings"

	"github.com/savepoint-tools/spt/format"
)

// wordMaps reads the broadcast states of a view as maps of words: "a=1 b=2".
func wordMaps(in format.View) format.View {
	in.Codecs = wordCodecs{in.Codecs}
	return in
}

type wordCodecs struct{ format.Codecs }

func (c wordCodecs) Codec(id format.CodecID) (format.OperatorCodec, error) {
	codec, err := c.Codecs.Codec(id)
	return wordCodec{codec}, err
}

type wordCodec struct{ format.OperatorCodec }

func (c wordCodec) Entries(ctx context.Context, src format.Source, h *format.OperatorHandle, state string) (format.MapCursor, error) {
	m := &wordCursor{}
	err := format.EachElement(ctx, src, c, h, state, func(e format.Element) error {
		m.words = strings.Fields(string(e.Value))
		return nil
	})
	return m, err
}

type wordCursor struct {
	words []string
	next  int
}

func (m *wordCursor) Next() (format.MapEntry, error) {
	if m.next == len(m.words) {
		return format.MapEntry{}, io.EOF
	}
	k, v, _ := strings.Cut(m.words[m.next], "=")
	m.next++
	return format.MapEntry{Index: int64(m.next - 1), Stored: []byte(m.words[m.next-1]), Key: []byte(k), Value: []byte(v)}, nil
}

func (*wordCursor) Close() error { return nil }

// wordText is the text of an entry of words.
func wordText(context.Context, int, *format.OperatorHandle, int) (func(format.MapEntry) (string, string, error), error) {
	return func(e format.MapEntry) (string, string, error) {
		if len(e.Key) == 0 {
			return "", "", errors.New("an entry without a key")
		}
		return string(e.Key), string(e.Value), nil
	}, nil
}
