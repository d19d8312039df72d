package rocksdb

import (
	"encoding/binary"
	"math"

	"github.com/savepoint-tools/spt/format"
)

// Tags of the fields of an edit, as varint32 (spec flink-keyed-state B.2). A str is a
// varint length and bytes. Wire format: never change.
const (
	tagComparator      = 1  // str
	tagLogNumber       = 2  // varint, as the other numbers
	tagNextFile        = 3  //
	tagLastSequence    = 4  //
	tagCompactCursor   = 5  // level, str
	tagDeletedFile     = 6  // level, number
	tagNewFile         = 7  // level, number, size, str smallest, str largest
	tagPrevLog         = 9  //
	tagMinLogToKeep    = 10 //
	tagNewFile2        = 100
	tagNewFile3        = 102
	tagNewFile4        = 103
	tagFamily          = 200 // id of the column family of the edit
	tagFamilyAdd       = 201 // str name
	tagFamilyDrop      = 202
	tagMaxFamily       = 203
	tagAtomicGroup     = 300 // number of edits of the group that follow
	tagBlobAddition    = 400
	tagBlobGarbage     = 401
	tagIgnore          = 1 << 13 // flag: readers that do not know the field skip a str
	customEnd          = 1       // of a tagNewFile4
	customPath         = 65
	customMustKnow     = 1 << 6 // flag: readers must know the field
	maxLevel           = 255
	maxLiveTables      = 1 << 24
	rangeSentinelTrail = maxSequence<<8 | uint64(kindRange)
)

// edit is one record of a MANIFEST: a change of one column family.
type edit struct {
	family     uint64
	comparator string
	add        string
	adds       bool
	drops      bool
	deleted    []liveKey
	added      []*LiveTable
	inGroup    bool
	remaining  uint64 // edits of the atomic group after this one
	last       uint64 // sequence number of the database; 0: not in the edit
}

type liveKey struct {
	level  int
	number uint64
}

// fields reads the fields of an edit, and keeps the first error.
type fields struct {
	p   []byte
	err error
}

func (f *fields) fail(err error) {
	if f.err == nil {
		f.err = err
		f.p = nil
	}
}

func (f *fields) number(what string) uint64 {
	v, n := binary.Uvarint(f.p)
	if n <= 0 {
		f.fail(corrupt("%s of an edit is not a number", what))
		return 0
	}
	f.p = f.p[n:]
	return v
}

func (f *fields) str(what string) []byte {
	n := f.number(what)
	if f.err == nil && n > uint64(len(f.p)) {
		f.fail(corrupt("%s of %d bytes in an edit, %d are left", what, n, len(f.p)))
	}
	if f.err != nil {
		return nil
	}
	v := f.p[:n:n]
	f.p = f.p[n:]
	return v
}

func (f *fields) level() int {
	v := f.number("a level")
	if v > maxLevel {
		f.fail(corrupt("level %d", v))
	}
	return int(v)
}

// readEdit decodes an edit.
func readEdit(p []byte) (*edit, error) {
	e, f := &edit{}, &fields{p: p}
	for len(f.p) > 0 {
		tag := f.number("a tag")
		switch tag {
		case tagComparator:
			e.comparator = string(f.str("a comparator"))
		case tagLogNumber, tagNextFile, tagPrevLog, tagMinLogToKeep, tagMaxFamily:
			f.number("a field")
		case tagLastSequence:
			e.last = f.number("a sequence number")
		case tagCompactCursor:
			f.level()
			f.str("a key")
		case tagDeletedFile:
			l := f.level()
			e.deleted = append(e.deleted, liveKey{l, f.number("a file")})
		case tagNewFile, tagNewFile2, tagNewFile3, tagNewFile4:
			e.added = append(e.added, f.table(tag))
		case tagFamily:
			e.family = f.number("a column family")
		case tagFamilyAdd:
			e.add, e.adds = string(f.str("the name of a column family")), true
		case tagFamilyDrop:
			e.drops = true
		case tagAtomicGroup:
			e.inGroup, e.remaining = true, f.number("a number of edits")
		case tagBlobAddition, tagBlobGarbage:
			f.fail(format.Errorf(format.ErrUnsupported, "values in blob files"))
		default:
			if tag&tagIgnore == 0 || tag > math.MaxUint32 {
				f.fail(format.Errorf(format.ErrUnsupported, "unknown field %d of an edit", tag))
			}
			f.str("a field")
		}
		if f.err != nil {
			return nil, f.err
		}
	}
	return e, nil
}

// table reads a new file.
func (f *fields) table(tag uint64) *LiveTable {
	t := &LiveTable{Level: f.level(), Number: f.number("a file")}
	if tag == tagNewFile3 {
		f.number("a path")
	}
	size := f.number("a size")
	if size > math.MaxInt64 {
		f.fail(corrupt("a table of %d bytes", size))
	}
	t.Size = int64(size)
	smallest, largest := f.internal("the smallest key"), f.internal("the largest key")
	if f.err != nil {
		return nil
	}
	n, m := len(smallest)-trailer, len(largest)-trailer
	t.bounds = keyRange{smallest: smallest[:n:n], largest: largest[:m:m], open: trailerOf(largest) == rangeSentinelTrail}
	t.FirstSequence, t.LastSequence = 0, unknownSequence
	if tag != tagNewFile {
		t.FirstSequence, t.LastSequence = f.number("a sequence number"), f.number("a sequence number")
	}
	if tag != tagNewFile4 {
		return t
	}
	for f.err == nil {
		custom := f.number("a tag")
		if custom == customEnd {
			break
		}
		f.str("a field")
		if f.err == nil && custom&customMustKnow != 0 && custom != customPath {
			f.fail(format.Errorf(format.ErrUnsupported, "unknown field %d of a table in an edit", custom))
		}
	}
	return t
}

// internal reads an internal key. The record is reused, so it is copied.
func (f *fields) internal(what string) []byte {
	p := f.str(what)
	if f.err == nil && len(p) < trailer {
		f.fail(corrupt("%s has %d bytes", what, len(p)))
	}
	return append([]byte(nil), p...)
}
