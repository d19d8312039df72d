// Package number formats numbers for messages. It is for text made below the
// commands, such as findings; internal/ui has the rest.
//
//	number.Bytes(100_000_000) // "95.4 MiB"
//	number.Count(1_000_000)   // "1,000,000"
package number

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/dustin/go-humanize"
)

// Bytes returns n in the largest IEC unit in which it is at least 1, with one
// decimal from KiB on, rounded half up: "212 B", "95.4 MiB".
func Bytes(n int64) string {
	sign, u := split(n)
	if u < 1024 {
		return fmt.Sprintf("%s%d B", sign, u)
	}
	const units = "KMGTPE"
	i := 0
	for i+1 < len(units) && u>>(10*(i+2)) > 0 {
		i++
	}
	unit := uint64(1) << (10 * (i + 1))
	whole, tenths := u/unit, (u%unit*10+unit/2)/unit // below 2^60 * 10 + 2^59: fits
	if tenths == 10 {
		whole, tenths = whole+1, 0
	}
	if whole == 1024 && i+1 < len(units) { // 1023.97 KiB is 1.0 MiB, not 1024.0 KiB
		whole, i = 1, i+1
	}
	return fmt.Sprintf("%s%d.%d %ciB", sign, whole, tenths, units[i])
}

// Count returns n with its thousands separated: "1,000,000".
func Count(n int64) string { return humanize.Comma(n) }

// split returns the sign and the magnitude, also for the smallest int64.
func split(n int64) (sign string, magnitude uint64) {
	if n < 0 {
		return "-", -uint64(n)
	}
	return "", uint64(n)
}

// Subtasks names subtasks by their sorted indexes: "subtask 3", "subtasks 0–2,
// 5".
func Subtasks(all []int32) string {
	const most = 5
	var parts []string
	for i := 0; i < len(all); {
		k := i
		for k+1 < len(all) && all[k+1] == all[k]+1 {
			k++
		}
		if len(parts) == most {
			parts = append(parts, fmt.Sprintf("%d more", len(all)-i))
			break
		}
		part := strconv.Itoa(int(all[i]))
		if k > i {
			part += "–" + strconv.Itoa(int(all[k]))
		}
		parts = append(parts, part)
		i = k + 1
	}
	if len(all) == 1 {
		return "subtask " + parts[0]
	}
	return "subtasks " + strings.Join(parts, ", ")
}
