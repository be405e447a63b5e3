// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"context"
	_ "embed"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
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
	separator := string(os.PathListSeparator)
	path := strings.Trim(strings.Join(append(moduleFolders(profiler), os.Getenv("PYTHONPATH")), separator), separator)
	text, err := process.Command{Args: args, Env: append(os.Environ(), "PYTHONPATH="+path)}.Output(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading %s takes Python and the module ncu_report of Nsight Compute (extras/python beside ncu); "+
			"without them make CSV of it: ncu --import %s --csv --page raw --print-kernel-base mangled: %w", file, file, err)
	}
	return []byte(text), nil
}

// moduleFolders are those in which the module lies that came with a profiler: beside it, or, where that is a script
// of a CUDA toolkit, in the toolkit's folder of Nsight Compute.
func moduleFolders(profiler string) []string {
	if profiler == "" {
		return nil
	}
	if real, err := filepath.EvalSymlinks(profiler); err == nil {
		profiler = real
	}
	var folders []string
	for _, pattern := range []string{"extras/python", "../nsight-compute*/extras/python"} {
		found, err := filepath.Glob(filepath.Join(filepath.Dir(profiler), pattern))
		if err == nil { // else the folder's name is a pattern itself, and a broken one
			folders = append(folders, found...)
		}
	}
	return folders
}
