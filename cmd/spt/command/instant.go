package command

import (
	"errors"
	"strconv"
	"time"
)

// instant is the value of a flag: a time in UTC, or in ms since 1970. The zero value
// is not set.
type instant struct{ time.Time }

// instantLayouts are the texts of an instant; without a zone they are in UTC.
var instantLayouts = []string{time.RFC3339Nano, "2006-01-02T15:04:05", "2006-01-02T15:04", time.DateOnly}

// Set implements pflag.Value.
func (t *instant) Set(s string) error {
	if ms, err := strconv.ParseInt(s, 10, 64); err == nil {
		if ms < 0 || ms > lastInstant.UnixMilli() {
			return errors.New("expected 0 or more ms since 1970, up to the year 9999")
		}
		t.Time = time.UnixMilli(ms).UTC()
		return nil
	}
	for _, layout := range instantLayouts {
		if at, err := time.Parse(layout, s); err == nil {
			t.Time = at.UTC()
			return nil
		}
	}
	return errors.New("expected a time such as 2026-01-31T12:00:00Z or 2026-01-31, or ms since 1970")
}

// lastInstant is the last time that has a text of four digits for the year.
var lastInstant = time.Date(9999, 12, 31, 23, 59, 59, 0, time.UTC)

// String implements pflag.Value.
func (t instant) String() string {
	if t.IsZero() {
		return ""
	}
	return t.Format(time.RFC3339Nano)
}

// Type implements pflag.Value.
func (instant) Type() string { return "time" }
