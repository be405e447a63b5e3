// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"fmt"
	"strings"
)

// Metric is a figure by a short name and the counter of the profiler that stands behind it.
type Metric struct {
	Name    string
	Counter string
	Unit    Unit
}

// Metrics are all that are recorded.
func Metrics() []Metric {
	return []Metric{
		{"sm_active", "sm__cycles_active.avg.pct_of_peak_sustained_elapsed", Percent},
		{"tensor_core", "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed", Percent},
		{"dram_bw", "dram__throughput.avg.pct_of_peak_sustained_elapsed", Percent},
		{"cycles", "sm__cycles_elapsed.max", Count},
		{"duration_ns", "gpu__time_duration.sum", Nanoseconds},
		{"registers", "launch__registers_per_thread", Count},
		// Local memory that is touched is spilled registers: no kernel has arrays of its own there.
		{"spill_loads", "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum", Count},
		{"spill_stores", "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum", Count},
		{"l2_bytes", "lts__t_bytes.sum", Bytes},
		{"dram_bytes", "dram__bytes.sum", Bytes},
		{"occupancy", "sm__warps_active.avg.pct_of_peak_sustained_active", Percent},
	}
}

// Headline names the metrics of the headline baseline.
func Headline() []string { return []string{"sm_active", "tensor_core", "dram_bw"} }

// Names gives the short names of metrics.
func Names(list []Metric) []string {
	var names []string
	for _, m := range list {
		names = append(names, m.Name)
	}
	return names
}

// FindMetrics gives the metrics of those short names.
func FindMetrics(names []string) ([]Metric, error) {
	var list []Metric
	for _, name := range names {
		found := false
		for _, m := range Metrics() {
			if m.Name == name {
				list, found = append(list, m), true
			}
		}
		if !found {
			return nil, fmt.Errorf("there is no metric %q: take some of %s", name, strings.Join(Names(Metrics()), ", "))
		}
	}
	return list, nil
}

// Legend says in lines "name: counter" what stands behind each name.
func Legend() string {
	var text strings.Builder
	for _, m := range Metrics() {
		fmt.Fprintf(&text, "%s: %s\n", m.Name, m.Counter)
	}
	return text.String()
}
