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
	for name, values := range s {
		f[name] = quantile(values, 0.5)
	}
	return f
}

// Spread is the distance of a metric's quartiles.
func (s Samples) Spread(name string) float64 {
	return quantile(s[name], 0.75) - quantile(s[name], 0.25)
}

// quantile is interpolated between the values next to it; NaN where there are no values.
func quantile(values []float64, q float64) float64 {
	if len(values) == 0 {
		return math.NaN()
	}
	sorted := slices.Sorted(slices.Values(values))
	place := q * float64(len(sorted)-1)
	low := int(place)
	high := min(low+1, len(sorted)-1)
	return sorted[low] + (place-float64(low))*(sorted[high]-sorted[low])
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
