// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/process"
)

//go:embed report.py
var reportScript string

// ReportSuffix is how names of the profiler's own reports end.
const ReportSuffix = ".ncu-rep"

// ReadReport gives what a report of the profiler holds of the metrics, as CSV in long form. It takes Python and the
// module ncu_report, which comes with Nsight Compute: from where profiler (ncu's path, or "") lies, or from PYTHONPATH.
func ReadReport(ctx context.Context, profiler, file string, metrics []Metric) ([]byte, error) {
	args := []string{"python3", "-c", reportScript, file}
	for _, m := range metrics {
		args = append(args, m.Counter)
	}
	env := os.Environ()
	if profiler != "" {
		if real, err := filepath.EvalSymlinks(profiler); err == nil {
			profiler = real
		}
		module := filepath.Join(filepath.Dir(profiler), "extras", "python")
		env = append(env, "PYTHONPATH="+strings.Trim(module+string(os.PathListSeparator)+os.Getenv("PYTHONPATH"), string(os.PathListSeparator)))
	}
	text, err := process.Command{Args: args, Env: env}.Output(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s takes Python and the module ncu_report of Nsight Compute (extras/python beside ncu); "+
			"without them make CSV of it: ncu --import %s --csv --page raw --print-kernel-base mangled: %w", file, file, err)
	}
	return []byte(text), nil
}
