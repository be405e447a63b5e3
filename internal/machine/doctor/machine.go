// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"io/fs"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/machine/gpu"
	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/procfs"
)

// Machine holds the facts about the GPU side of a machine.
type Machine struct {
	Module    string // version of the driver's kernel module; empty: none is seen
	Driver    gpu.Driver
	DriverErr error
	Compat    []string // folders with a forward-compatibility libcuda

	CUBLAS, CUSPARSE Opened

	Profiler        string // path of ncu; empty: none
	ProfilerVersion string
	Counters        Counters
}

// Opened is the result of opening a library.
type Opened struct {
	File string
	Err  error
}

// Counters says which processes may read the GPU's performance counters.
type Counters struct {
	Known     bool // the driver reports it
	AdminOnly bool // it restricts them
	// SysAdmin and PerfMon: this process has the capability, on the whole
	// machine and not in a user namespace of its own only.
	SysAdmin, PerfMon bool
}

// driverTimeout bounds the questions to a driver, which may hang.
const driverTimeout = 20 * time.Second

// Look gathers the facts about the machine. root is its file system: os.DirFS("/").
func Look(ctx context.Context, root fs.FS) Machine {
	m := Machine{Module: gpu.ModuleVersion(root), Compat: compatFolders(root)}
	m.Counters = counters(read(root, "proc/driver/nvidia/params"), read(root, "proc/self/status"), read(root, "proc/self/uid_map"))
	m.Driver, m.DriverErr = query(ctx)
	m.CUBLAS = cublas.open(root, os.Getenv(cublas.variable))
	m.CUSPARSE = cusparse.open(root, os.Getenv(cusparse.variable))
	if m.Profiler = FindProfiler(root); m.Profiler != "" {
		ctx, cancel := context.WithTimeout(ctx, driverTimeout)
		defer cancel()
		out, _ := process.Command{Args: []string{m.Profiler, "--version"}}.Output(ctx)
		m.ProfilerVersion = profilerVersion(out)
	}
	return m
}

// query asks the driver, with a time limit in case it hangs.
func query(ctx context.Context) (gpu.Driver, error) {
	type answer struct {
		driver gpu.Driver
		err    error
	}
	ctx, cancel := context.WithTimeout(ctx, driverTimeout)
	defer cancel()
	answers := make(chan answer, 1)
	go func() {
		d, err := gpu.Query()
		answers <- answer{d, err}
	}()
	select {
	case a := <-answers:
		return a.driver, a.err
	case <-ctx.Done():
		return gpu.Driver{}, ctx.Err()
	}
}

// read returns a file's text, empty where it cannot be read.
func read(root fs.FS, name string) string {
	text, _ := fs.ReadFile(root, name)
	return string(text)
}

// compatFolders lists where forward-compatibility packages put their libcuda.
func compatFolders(root fs.FS) []string {
	files, _ := fs.Glob(root, "usr/local/cuda*/compat/libcuda.so.1")
	more, _ := fs.Glob(root, "usr/local/cuda*/compat/lib.real/libcuda.so.1")
	var folders []string
	for _, file := range append(files, more...) {
		folders = append(folders, "/"+path.Dir(file))
	}
	return folders
}

// The capabilities' numbers in the kernel's sets.
const (
	capSysAdmin = 21
	capPerfMon  = 38
)

// counters reads the driver's parameters, this process's capabilities
// (/proc/self/status) and whether they hold beyond its user namespace
// (/proc/self/uid_map).
func counters(params, status, uidMap string) Counters {
	var c Counters
	if value, ok := procfs.Field(params, "RmProfilingAdminOnly:"); ok {
		c.Known, c.AdminOnly = true, value != "0"
	}
	text, _ := procfs.Field(status, "CapEff:")
	set, err := strconv.ParseUint(text, 16, 64)
	// The first namespace maps all users to themselves.
	if err == nil && slices.Equal(strings.Fields(uidMap), []string{"0", "0", "4294967295"}) {
		c.SysAdmin, c.PerfMon = set&(1<<capSysAdmin) != 0, set&(1<<capPerfMon) != 0
	}
	return c
}

// FindProfiler finds Nsight Compute below the machine's root: on PATH, else where
// its installers put it, the newest by name; "" where there is none.
func FindProfiler(root fs.FS) string {
	if path, err := exec.LookPath("ncu"); err == nil {
		return path
	}
	for _, pattern := range []string{"opt/nvidia/nsight-compute/*/ncu", "usr/local/cuda*/bin/ncu"} {
		if files, _ := fs.Glob(root, pattern); len(files) > 0 {
			return "/" + slices.Max(files)
		}
	}
	return ""
}

var ncuVersion = regexp.MustCompile(`(?m)^Version (\d+\.\d+\.\d+)`)

// profilerVersion reads what "ncu --version" prints.
func profilerVersion(text string) string {
	if m := ncuVersion.FindStringSubmatch(text); m != nil {
		return m[1]
	}
	return ""
}
