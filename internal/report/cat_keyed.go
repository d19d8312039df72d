package report

import (
	"bytes"
	"strconv"
	"time"

	"github.com/savepoint-tools/spt/format/value"
	"github.com/savepoint-tools/spt/internal/ui"
)

// CatKeyed is an entry of keyed state: a value, or an entry of a map, or a timer.
type CatKeyed struct {
	KeyGroup                       int32
	Size                           int64 // bytes of its parts
	Key, Namespace, UserKey, Value CatPart
	Stored                         []byte // instead of the parts, where they are not known
	Timer                          bool
	Time                           int64 // at which a timer fires, in ms since 1970

	ttl value.Value // see TTL
}

// CatPart is a part of an entry.
type CatPart struct {
	Has     bool
	Stored  []byte // set unless Decoded
	Decoded bool
	Value   value.Value
}

// Clone returns a copy whose bytes are its own.
func (k *CatKeyed) Clone() CatKeyed {
	c := *k
	for _, p := range []*[]byte{&c.Key.Stored, &c.Namespace.Stored, &c.UserKey.Stored, &c.Value.Stored, &c.Stored} {
		*p = bytes.Clone(*p)
	}
	return c
}

// SplitTTL takes the times at which a value with a time to live was updated out of the
// value: of a list, of each element.
func (k *CatKeyed) SplitTTL(list bool) {
	v := k.Value.Value
	if !list {
		if v.Len() == 2 {
			k.ttl, k.Value.Value = v.At(0), v.At(1)
		}
		return
	}
	times, values := make([]value.Value, v.Len()), make([]value.Value, v.Len())
	for i := range values {
		if e := v.At(i); e.Len() == 2 {
			times[i], values[i] = e.At(0), e.At(1)
		}
	}
	if k.Value.Decoded {
		k.ttl, k.Value.Value = value.List(times), value.List(values)
	}
}

// TTL returns when a value with a time to live was last updated, in ms since 1970: of
// a list an array. It is null for other values.
func (k *CatKeyed) TTL() value.Value { return k.ttl }

// appendKeyed appends the members of an entry of keyed state.
func (e *CatEncoder) appendKeyed(b []byte, k *CatKeyed, count int64) []byte {
	b = strconv.AppendInt(append(b, `,"key_group":`...), int64(k.KeyGroup), 10)
	b = strconv.AppendInt(append(b, `,"size":`...), k.Size, 10)
	if count > 0 {
		b = strconv.AppendInt(append(b, `,"count":`...), count, 10)
	}
	b = e.appendPart(b, "stored", CatPart{Has: k.Stored != nil, Stored: k.Stored})
	b = e.appendPart(b, "key", k.Key)
	if k.showsNamespace() {
		b = e.appendPart(b, "namespace", k.Namespace)
	}
	b = e.appendPart(b, "user_key", k.UserKey)
	if k.Timer {
		b = strconv.AppendInt(append(b, `,"time":`...), k.Time, 10)
	}
	if !k.ttl.IsNull() && e.Decode() {
		b = AppendValue(append(b, `,"ttl_timestamp":`...), k.ttl, e.Format)
	}
	return e.appendPart(b, "value", k.Value)
}

// entry returns an entry of keyed state as an object, without what is known of its state.
func (e *CatEncoder) entry(it *CatItem) []byte {
	b := strconv.AppendInt([]byte(`{"subtask":`), int64(it.Subtask), 10)
	return append(e.appendKeyed(b, it.Keyed, 0), '}')
}

// showsNamespace reports whether the namespace says something: most states have one
// that is always null.
func (k *CatKeyed) showsNamespace() bool {
	return k.Namespace.Has && !(k.Namespace.Decoded && k.Namespace.Value.IsNull())
}

// appendPart appends a part: its value, or its bytes under a name that says how they
// are written.
func (e *CatEncoder) appendPart(b []byte, name string, p CatPart) []byte {
	if !p.Has {
		return b
	}
	b = append(append(b, `,"`...), name...)
	if p.Decoded && e.Decode() {
		return AppendValue(append(b, `":`...), p.Value, e.Format)
	}
	b = append(append(append(b, '_'), e.bytesEncoding()...), `":`...)
	return appendStored(b, p.Stored, e.Format)
}

// texts returns the parts of an entry for rows, and how each that is not JSON is
// encoded.
func (o *CatOptions) texts(k *CatKeyed) (encoding, key, namespace, userKey, val string) {
	text := func(p CatPart) string {
		switch {
		case !p.Has:
			return ""
		case p.Decoded && o.Decode():
			return string(AppendValue(nil, p.Value, o.Format))
		}
		return o.bytesText(p.Stored)
	}
	encoding = "json"
	if p := k.Value; p.Has && !(p.Decoded && o.Decode()) || k.Stored != nil || k.Key.Has && !(k.Key.Decoded && o.Decode()) {
		encoding = o.bytesEncoding()
	}
	key = text(k.Key)
	if k.Stored != nil {
		key = o.bytesText(k.Stored)
	}
	if k.showsNamespace() {
		namespace = text(k.Namespace)
	}
	return encoding, key, namespace, text(k.UserKey), text(k.Value)
}

// row returns the columns of keyed state in CSV: key_group, namespace, user_key, time,
// ttl_timestamp.
func (o *CatOptions) row(k *CatKeyed, namespace, userKey string) []string {
	if k == nil {
		return make([]string, 5)
	}
	row := []string{strconv.Itoa(int(k.KeyGroup)), namespace, userKey, "", ""}
	if k.Timer {
		row[3] = strconv.FormatInt(k.Time, 10)
	}
	if !k.ttl.IsNull() && o.Decode() {
		row[4] = string(AppendValue(nil, k.ttl, o.Format))
	}
	return row
}

// lastShown is the last time that has a text: Flink sets later ones for "never".
const lastShown = 253402300799999

// timeOfMillis returns a time in ms since 1970 for people.
func timeOfMillis(ms int64) string {
	if ms < -lastShown || ms > lastShown {
		return strconv.FormatInt(ms, 10)
	}
	return time.UnixMilli(ms).UTC().Format("2006-01-02T15:04:05.999Z07:00")
}

// bytesEncoding returns how bytes are written.
func (o *CatOptions) bytesEncoding() string {
	if o.Format == ui.FormatAuto {
		return "base64"
	}
	return o.Format.String()
}

// bytesText returns bytes as text for rows.
func (o *CatOptions) bytesText(p []byte) string {
	switch o.Format {
	case ui.FormatAuto, ui.FormatBase64:
		return ui.Value(p, ui.FormatBase64, 0)
	case ui.FormatText:
		return ui.Printable(string(p))
	}
	return ui.Value(p, o.Format, 0)
}
