// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/stats"
)

// Samples are the values of metrics by short name, one for each launch.
type Samples map[string][]float64

// Figures are metrics by short name.
type Figures map[string]float64

// Sample takes metrics out of launches, which must all be of one kernel and have all of them.
func Sample(launches []Launch, metrics []Metric) (Samples, error) {
	if len(launches) == 0 {
		return nil, fmt.Errorf("ncu: %w", ErrEmpty)
	}
	s := Samples{}
	for _, l := range launches {
		if l.Kernel != launches[0].Kernel {
			return nil, fmt.Errorf("ncu: launches of several kernels, of %q and of %q: choose one", launches[0].Kernel, l.Kernel)
		}
		for _, m := range metrics {
			v, err := l.Value(m)
			if err != nil {
				return nil, fmt.Errorf("ncu: %w", err)
			}
			s[m.Name] = append(s[m.Name], v)
		}
	}
	return s, nil
}

// Medians are those of the samples.
func (s Samples) Medians() Figures {
	f := Figures{}
	for name := range s {
		f[name] = s.summary(name).Median
	}
	return f
}

// Spread is the distance of a metric's quartiles.
func (s Samples) Spread(name string) float64 { return s.summary(name).Distance() }

// summary describes the values of a metric; all is NaN where there are none.
func (s Samples) summary(name string) stats.Summary[float64] {
	if len(s[name]) == 0 {
		nan := math.NaN()
		return stats.Summary[float64]{Median: nan, Quarter: nan, ThreeQuarters: nan}
	}
	return stats.Summarise(s[name])
}

// Normal is the normal form: a line "key: %.2f" for each figure, sorted by key, and an empty line that ends it.
func (f Figures) Normal() string {
	var text strings.Builder
	for _, name := range slices.Sorted(maps.Keys(f)) {
		fmt.Fprintf(&text, "%s: %.2f\n", name, f[name])
	}
	text.WriteByte('\n')
	return text.String()
}

// ParseNormal reads a normal form and refuses whatever Normal would not have written.
func ParseNormal(text string) (Figures, error) {
	f := Figures{}
	for line := range strings.Lines(strings.TrimSuffix(text, "\n")) {
		name, value, ok := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		v, err := strconv.ParseFloat(value, 64)
		if !ok || err != nil {
			return nil, fmt.Errorf("normal form: %q is no line \"key: value\"", line)
		}
		f[name] = v
	}
	if len(f) == 0 {
		return nil, fmt.Errorf("normal form: it is empty")
	}
	if f.Normal() != text {
		return nil, fmt.Errorf("normal form: lines are not sorted, unique, with two decimals, or ended by an empty one")
	}
	return f, nil
}

// Hash is the sha256 of a text, in hexadecimal digits.
func Hash(text []byte) string {
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}

// HashLine is what sha256sum prints of a file with that hash, and reads with -c.
func HashLine(hash, file string) string { return hash + "  " + file + "\n" }
