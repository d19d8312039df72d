package command

import (
	"errors"
	"strconv"
	"strings"
	"time"
)

// age is the value of a flag: a duration, also in days.
type age time.Duration

// Set implements pflag.Value.
func (a *age) Set(s string) error {
	d, err := time.ParseDuration(s)
	if days, ok := strings.CutSuffix(s, "d"); ok && err != nil {
		var n int64
		if n, err = strconv.ParseInt(days, 10, 16); err == nil {
			d = time.Duration(n) * 24 * time.Hour
		}
	}
	if err != nil || d < 0 {
		return errors.New("expected a duration such as 90m, 12h or 7d")
	}
	*a = age(d)
	return nil
}

// String implements pflag.Value.
func (a age) String() string {
	if d := time.Duration(a); d >= 48*time.Hour && d%(24*time.Hour) == 0 {
		return strconv.FormatInt(int64(d/(24*time.Hour)), 10) + "d"
	}
	s := time.Duration(a).String()
	if rest, ok := strings.CutSuffix(s, "m0s"); ok {
		s = rest + "m"
	}
	if rest, ok := strings.CutSuffix(s, "h0m"); ok {
		s = rest + "h"
	}
	return s
}

// Type implements pflag.Value.
func (age) Type() string { return "duration" }
