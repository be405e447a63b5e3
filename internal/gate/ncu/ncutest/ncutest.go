// SPDX-License-Identifier: Apache-2.0

// Package ncutest writes CSV as Nsight Compute does, for tests.
package ncutest

import (
	"fmt"
	"strings"

	"github.com/sparsek/sparsek/internal/gate/ncu"
)

// Launch is one launch of a kernel with the figures of its metrics, by short name.
type Launch struct {
	Kernel  string
	Figures ncu.Figures
}

var spelled = map[ncu.Unit]string{ncu.Percent: "%", ncu.Nanoseconds: "ns", ncu.Bytes: "byte"}

// Units that the profiler prints of counters without a dimension.
var counted = map[string]string{"cycles": "cycle", "registers": "register/thread"}

func unit(m ncu.Metric) string {
	if text, ok := counted[m.Name]; ok {
		return text
	}
	return spelled[m.Unit]
}

// Raw is the raw page (--page raw --print-units base), with the lines that the profiler puts before it.
func Raw(launches []Launch) string {
	metrics := ncu.Metrics()
	header, units := describe, strings.Repeat(`"",`, strings.Count(describe, ","))
	for _, m := range metrics {
		header += fmt.Sprintf("%q,", m.Counter)
		units += fmt.Sprintf("%q,", unit(m))
	}
	text := "==PROF== Connected to process 41 (/opt/sparsek)\n" + strings.TrimSuffix(header, ",") + "\n" + strings.TrimSuffix(units, ",") + "\n"
	for i, l := range launches {
		text += fmt.Sprintf(`"%d","41","sparsek","127.0.0.1","%s","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0"`, i, l.Kernel)
		for _, m := range metrics {
			text += fmt.Sprintf(",%q", Thousands(l.Figures[m.Name]))
		}
		text += "\n"
	}
	return text
}

// Long is the long form of the same, in the units that the profiler chooses without the option for base units.
func Long(launches []Launch) string {
	text := describe + `"Section Name","Metric Name","Metric Unit","Metric Value"` + "\n"
	for i, l := range launches {
		for _, m := range ncu.Metrics() {
			v, spelled := l.Figures[m.Name], unit(m)
			switch m.Unit {
			case ncu.Nanoseconds:
				v, spelled = v/1e3, "us"
			case ncu.Bytes:
				v, spelled = v/1e6, "Mbyte"
			}
			text += fmt.Sprintf(`"%d","41","sparsek","127.0.0.1","%s","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0",`+
				`"Command line profiler metrics","%s","%s","%s"`+"\n", i, l.Kernel, m.Counter, spelled, Thousands(v))
		}
	}
	return text
}

const describe = `"ID","Process ID","Process Name","Host Name","Kernel Name","Context","Stream","Block Size","Grid Size","Device","CC",`

// Thousands writes a number with commas between thousands and two decimals, if it has any.
func Thousands(v float64) string {
	text := fmt.Sprintf("%.2f", v)
	whole, decimals, _ := strings.Cut(text, ".")
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	if decimals == "00" {
		return whole
	}
	return whole + "." + decimals
}
