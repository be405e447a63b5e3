// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bufio"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/machine/gpu"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// runFacts say what was run, where and when.
type runFacts struct {
	command string
	version string // of the library
	commit  string // of its sources
	device  string // the GPU, or the CPU
	driver  string // the GPU's driver, and the CUDA version it serves; "" on the CPU
	date    string // UTC
}

func describeRun(engine *sparsek.Engine, args []string) (runFacts, error) {
	build, err := engine.Library().BuildInfo()
	if err != nil {
		return runFacts{}, err
	}
	f := runFacts{
		command: "sparsek " + strings.Join(args, " "), version: build.Version, commit: or(build.Commit, "unknown"),
		date: time.Now().UTC().Format(time.DateOnly),
	}
	info := engine.Info()
	if info.Backend != sparsek.CUDA {
		f.device = fmt.Sprintf("%s, %d threads, %s", cpuName(), info.Threads, info.ISA)
		return f, nil
	}
	devices, err := engine.Library().Devices()
	if err != nil {
		return runFacts{}, err
	}
	device := devices[info.Device]
	f.device = device.Name
	f.driver = strings.TrimSpace(fmt.Sprintf("%s (CUDA %d.%d)", gpu.ModuleVersion(os.DirFS("/")), device.DriverVersion/1000, device.DriverVersion%1000/10))
	return f, nil
}

// cpuName is the processor's, "CPU" where the system does not report it.
func cpuName() string {
	f, err := os.Open("/proc/cpuinfo")
	if err != nil {
		return "CPU"
	}
	defer f.Close()
	for lines := bufio.NewScanner(f); lines.Scan(); {
		key, value, ok := strings.Cut(lines.Text(), ":")
		if ok && strings.TrimSpace(key) == "model name" {
			return strings.TrimSpace(value)
		}
	}
	return "CPU"
}
