// SPDX-License-Identifier: Apache-2.0

package term

import (
	"fmt"
	"time"
)

// Unit says what a Bar counts.
type Unit int

const (
	// Bytes are shown in decimal multiples: kB, MB, GB.
	Bytes Unit = iota
	// Count is a number of things: files, cases.
	Count
	// None is for a job whose amount is not known: only its time is shown.
	None
)

func (u Unit) format(n int64) string {
	if u == Bytes {
		return FormatBytes(n)
	}
	return fmt.Sprint(n)
}

// FormatBytes writes n in decimal multiples with three digits at most, as in
// "61.6 MB".
func FormatBytes(n int64) string {
	if n < 1000 {
		return fmt.Sprintf("%d B", n)
	}
	v, units := float64(n)/1000, []string{"kB", "MB", "GB", "TB", "PB", "EB"}
	i := 0
	for v >= 999.5 && i < len(units)-1 {
		v /= 1000
		i++
	}
	if v < 99.95 {
		return fmt.Sprintf("%.1f %s", v, units[i])
	}
	return fmt.Sprintf("%.0f %s", v, units[i])
}

// seconds writes d as people read it: "0.4 s", "12 s", "3 min 20 s", "2 h 5 min".
func seconds(d time.Duration) string {
	switch s := d.Seconds(); {
	case s < 9.95:
		return fmt.Sprintf("%.1f s", s)
	case s < 59.5:
		return fmt.Sprintf("%.0f s", s)
	case s < 3599.5:
		n := int64(s + 0.5)
		return fmt.Sprintf("%d min %d s", n/60, n%60)
	default:
		n := int64(s/60 + 0.5)
		return fmt.Sprintf("%d h %d min", n/60, n%60)
	}
}
