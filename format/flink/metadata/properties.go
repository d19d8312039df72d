package metadata

import (
	"strings"

	"github.com/savepoint-tools/spt/format"
	"github.com/savepoint-tools/spt/format/flink/internal/java"
)

// The properties object (spec flink-metadata 4.8) is a Java-serialized
// CheckpointProperties, or null. Its bytes are kept unchanged. This file builds the
// nine shapes that releases of Flink write, to recognize them.

// propertiesFlagsAt is the position of the seven booleans in every shape.
const (
	propertiesFlagsAt = 258
	propertiesFlags   = 7
)

// nullProperties is written by the State Processor API.
const nullProperties = "\xac\xed\x00\x05\x70"

// shape is a kind of snapshot and its properties object, with all flags 0.
type shape struct {
	kind format.SnapshotKind
	tail string
}

var shapes = makeShapes()

func makeShapes() []shape {
	var all []shape
	for _, t := range []format.SnapshotType{format.TypeCheckpoint, format.TypeFullCheckpoint} {
		all = append(all, shape{format.SnapshotKind{Type: t}, properties(format.SnapshotKind{Type: t})})
	}
	for _, t := range []format.SnapshotType{format.TypeSavepoint, format.TypeSuspendSavepoint, format.TypeTerminateSavepoint} {
		for _, f := range []format.SavepointFormat{format.FormatCanonical, format.FormatNative} {
			k := format.SnapshotKind{Type: t, Format: f}
			all = append(all, shape{k, properties(k)})
		}
	}
	return all
}

// properties builds the object for a kind. Wire format: never change.
func properties(k format.SnapshotKind) string {
	const rt, suid0 = "org.apache.flink.runtime.checkpoint.", "\x00\x00\x00\x00\x00\x00\x00\x00"
	utf := func(s string) string { return string([]byte{byte(len(s) >> 8), byte(len(s))}) + s }
	str := func(s string) string { return "\x74" + utf(s) }
	sig := func(class string) string { return str("L" + strings.ReplaceAll(class, ".", "/") + ";") }
	class := func(name, suid string, flags byte, fields ...string) string {
		return "\x72" + utf(name) + suid + string([]byte{flags, 0, byte(len(fields))}) + strings.Join(fields, "") + "\x78"
	}
	obj := func(name, class string) string { return "L" + utf(name) + sig(class) }
	enumSuper := class("java.lang.Enum", suid0, 0x12) + "\x70"
	enum := func(name, super, value string) string {
		return "\x7e" + class(name, suid0, 0x12) + super + str(value)
	}
	var b strings.Builder
	b.WriteString("\xac\xed\x00\x05\x73")
	var fields []string
	for _, f := range []string{"discardCancelled", "discardFailed", "discardFinished", "discardSubsumed", "discardSuspended", "forced", "unclaimed"} {
		fields = append(fields, "Z"+utf(f))
	}
	fields = append(fields, obj("checkpointType", rt+"SnapshotType"))
	b.WriteString(class(rt+"CheckpointProperties", "\x00\x00\x00\x00\x00\x00\x00\x02", 0x02, fields...) + "\x70")
	b.WriteString(strings.Repeat("\x00", propertiesFlags))
	if !k.Type.IsSavepoint() {
		name, sharing := "Checkpoint", "FORWARD_BACKWARD"
		if k.Type == format.TypeFullCheckpoint {
			name, sharing = "Full Checkpoint", "FORWARD"
		}
		b.WriteString("\x73" + class(rt+"CheckpointType", "\xd6\xde\x4f\x03\x05\xae\x1d\x3a", 0x02,
			obj("name", "java.lang.String"), obj("sharingFilesStrategy", rt+"SnapshotType$SharingFilesStrategy")) + "\x70")
		b.WriteString(str(name) + enum(rt+"SnapshotType$SharingFilesStrategy", enumSuper, sharing))
		return b.String()
	}
	formatName, name, action := "CANONICAL", "Savepoint", "NONE"
	if k.Format == format.FormatNative {
		formatName = "NATIVE"
	}
	switch k.Type {
	case format.TypeSuspendSavepoint:
		name, action = "Suspend Savepoint", "SUSPEND"
	case format.TypeTerminateSavepoint:
		name, action = "Terminate Savepoint", "TERMINATE"
	}
	// The signature of the name repeats no string of the checkpoint variant, so
	// both variants have the same handles up to the Enum class, 7e0009.
	const enumAgain = "\x71\x00\x7e\x00\x09"
	b.WriteString("\x73" + class(rt+"SavepointType", "\xa0\x87\xd3\x08\xa4\x58\x14\xb8", 0x02,
		obj("formatType", "org.apache.flink.core.execution.SavepointFormatType"), obj("name", "java.lang.String"),
		obj("postCheckpointAction", rt+"SavepointType$PostCheckpointAction")) + "\x70")
	b.WriteString(enum("org.apache.flink.core.execution.SavepointFormatType", enumSuper, formatName))
	b.WriteString(str(name) + enum(rt+"SavepointType$PostCheckpointAction", enumAgain, action))
	return b.String()
}

// decodeProperties reads the object at the end of a file. A shape that no known
// release writes is kept and has no kind.
func decodeProperties(c *java.Cursor) (format.SnapshotKind, string, error) {
	off := c.Offset()
	java.SkipObject(c)
	if n := c.Remaining(); n > 0 {
		c.Fail(c.Offset(), format.ErrCorrupt, "%d bytes after the end of the snapshot", n)
	}
	if err := c.Err(); err != nil {
		return format.SnapshotKind{}, "", format.At(err, "properties")
	}
	tail := string(c.Since(off))
	return kindOf(tail), tail, nil
}

func kindOf(tail string) format.SnapshotKind {
	for _, s := range shapes {
		if len(tail) == len(s.tail) && tail[:propertiesFlagsAt] == s.tail[:propertiesFlagsAt] &&
			tail[propertiesFlagsAt+propertiesFlags:] == s.tail[propertiesFlagsAt+propertiesFlags:] {
			return s.kind
		}
	}
	return format.SnapshotKind{}
}

// KnownProperties reports whether a release of Flink writes the properties object
// of sp. It is true for versions without properties.
func KnownProperties(sp *format.Savepoint) bool {
	w, ok := parseFileWire(sp.Wire)
	return !ok || !w.version.hasProperties() || w.tail == nullProperties || kindOf(w.tail) != format.SnapshotKind{}
}

// propertiesFor returns the object for a snapshot without one: the one that Flink
// would write for the savepoint or retained checkpoint, or null if the kind is
// unknown.
func propertiesFor(k format.SnapshotKind) string {
	if k.Type == format.TypeUnknown {
		return nullProperties
	}
	if k.Type.IsSavepoint() && k.Format == format.FormatUnknown {
		k.Format = format.FormatCanonical
	}
	t := []byte(properties(k))
	if !k.Type.IsSavepoint() { // retained on cancellation: discard when finished or subsumed
		t[propertiesFlagsAt+2], t[propertiesFlagsAt+3] = 1, 1
	}
	return string(t)
}
