package opstate

import (
	"bytes"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
	"github.com/savepoint-tools/spt/format/flink/types"
)

// Versions of the envelope, and values of its fields. Wire format: never change.
const (
	minVersion     = 1
	maxVersion     = 6
	minWritten     = 5 // in earlier versions serializers are Java objects
	flagVersion    = 6 // from here on the envelope says whether data is compressed
	optionsVersion = 4 // from here on states have a kind and options
	splitVersion   = 2 // in earlier versions the length of an entry is unknown

	kindOperator  = 1
	kindBroadcast = 2

	modeOption = "OPERATOR_STATE_DISTRIBUTION_MODE"
)

var modeNames = map[string]format.Mode{
	"SPLIT_DISTRIBUTE": format.ModeList,
	"UNION":            format.ModeUnion,
	"BROADCAST":        format.ModeBroadcast,
}

// optionOf returns the name of a mode in the envelope.
func optionOf(m format.Mode) string {
	for name, mode := range modeNames {
		if mode == m {
			return name
		}
	}
	return ""
}

// envelope is the head of a stream.
type envelope struct {
	states []describedState
	size   int
}

type describedState struct {
	name        format.Text
	mode        format.Mode
	bytes       []byte // verbatim
	modeAt      [2]int // range of the option's value in bytes, from version 4
	serializers []types.Serializer
}

// head is the fields before the states. They determine the layout of the rest.
type head struct {
	version    int32
	compressed bool
}

// readHead reads int version, and from version 6 on bool compressed.
func readHead(c *java.Cursor) head {
	h := head{version: c.I32()}
	if c.Err() == nil && (h.version < minVersion || h.version > maxVersion) {
		c.Fail(0, format.ErrVersion, "unknown version %d of operator state; supported: %d to %d", h.version, minVersion, maxVersion)
	}
	if h.version >= flagVersion {
		h.compressed = c.Bool("the compression flag")
	}
	return h
}

// parseEnvelope reads an envelope (spec A3):
//
//	int    version
//	bool   compressed             from version 6
//	short  n, n list states
//	short  b, b broadcast states  from version 3
//	int    n again                before version 3
//
// With ErrTruncated, p may be only the start of an envelope.
func parseEnvelope(p []byte) (*envelope, error) {
	c := java.NewCursor(p)
	h := readHead(c)
	if c.Err() == nil && h.version < splitVersion {
		c.Fail(0, errNoExtent, "%v", errNoExtent)
	}
	e := &envelope{}
	for _, kind := range [...]int32{kindOperator, kindBroadcast} {
		if kind == kindBroadcast && h.version < 3 {
			break
		}
		off := c.Offset()
		n := int16(c.U16())
		if n < 0 {
			c.Fail(off, format.ErrCorrupt, "invalid count of states %d", n)
		}
		c.CheckCount(off, int(n), "states", 2)
		for i := int16(0); i < n && c.Err() == nil; i++ {
			e.states = append(e.states, readState(c, h.version, kind))
		}
		if err := c.Err(); err != nil {
			if k := len(e.states); k > 0 {
				err = format.At(err, "state %q", e.states[k-1].name)
			}
			return e, err
		}
	}
	if h.version < 3 {
		// Releases with these versions write the count after the envelope, and
		// never read it.
		off := c.Offset()
		if n := c.I32(); c.Err() == nil && int(n) != len(e.states) {
			c.Fail(off, format.ErrCorrupt, "the envelope has %d states, but the count after it is %d", len(e.states), n)
		}
	}
	e.size = c.Offset()
	return e, c.Err()
}

// readState reads the entry of one state (spec A4):
//
//	version  2, 3                 4                    5, 6
//	UTF      name                 name                 name
//	         byte mode            int kind             int kind
//	                              int n, n x 2 UTF     int n, n x 2 UTF   options
//	                              int n, n UTF         int n, n x (UTF, serializer snapshot)
//	         serializer block     serializer block
func readState(c *java.Cursor, version, kind int32) describedState {
	start := c.Offset()
	s := describedState{name: c.Name(), mode: 0xff}
	off := c.Offset()
	var keys []string
	if version < optionsVersion {
		s.mode = format.Mode(c.U8())
		keys = []string{"VALUE_SERIALIZER"}
		if kind == kindBroadcast {
			keys = []string{"KEY_SERIALIZER", "VALUE_SERIALIZER"}
		}
	} else {
		if k := c.I32(); c.Err() == nil && k != kind {
			c.Fail(off, format.ErrCorrupt, "expected states of kind %[2]d, found kind %[1]d", k, kind)
		}
		off = c.Offset()
		for range c.Count("options", 4) {
			k, at := c.Name().String(), c.Offset()
			if v := c.Name().String(); k == modeOption {
				s.modeAt = [2]int{at - start, c.Offset() - start}
				if m, ok := modeNames[v]; ok {
					s.mode = m
				} else {
					c.Fail(off, format.ErrCorrupt, "unknown mode %q", v)
				}
			}
		}
		for range c.Count("serializers", 2) {
			keys = append(keys, c.Name().String())
			if version > optionsVersion {
				snap := java.Part(c, types.Skip)
				if c.Err() != nil {
					break
				}
				s.serializers = append(s.serializers, types.Serializer{Key: keys[len(keys)-1], Snapshot: snap})
			}
		}
	}
	if c.Err() == nil && (s.mode > format.ModeBroadcast || (s.mode == format.ModeBroadcast) != (kind == kindBroadcast)) {
		c.Fail(off, format.ErrCorrupt, "unexpected mode %v of a state of kind %d", s.mode, kind)
	}
	if version <= optionsVersion && c.Err() == nil {
		off = c.Offset()
		snaps := java.Part(c, types.SkipBlock)
		if c.Err() == nil && len(snaps) != len(keys) {
			c.Fail(off, format.ErrCorrupt, "expected %d serializers, found %d", len(keys), len(snaps))
		}
		for i := 0; i < len(snaps) && c.Err() == nil; i++ {
			s.serializers = append(s.serializers, types.Serializer{Key: keys[i], Snapshot: snaps[i]})
		}
	}
	if c.Err() == nil {
		s.bytes = bytes.Clone(c.Since(start))
	}
	return s
}
