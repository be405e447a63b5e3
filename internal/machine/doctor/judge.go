// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/sparsek/sparsek/internal/machine/gpu"
)

const (
	// oldestDriver is the first that serves CUDA 13.
	oldestDriver = "580"
	// perfMonDriver is the first that takes CAP_PERFMON for CAP_SYS_ADMIN.
	perfMonDriver = "565"
	// oldestProfiler is the first that knows Hopper.
	oldestProfiler = "2022.3"
)

// Names of findings that other packages use.
const (
	NameDriver   = "driver"
	NameGPU      = "GPU"
	NameProfiler = "Nsight Compute"
)

// CountersFix is the fix where the driver lets only administrators read the GPU's counters.
const CountersFix = "on the host, not in a container: put \"options nvidia NVreg_RestrictProfilingToAdminUsers=0\" into a file of " +
	"/etc/modprobe.d and reload the module or restart; or run with CAP_SYS_ADMIN (from driver " + perfMonDriver + " on CAP_PERFMON). " +
	"Nothing inside a container that was started without one of these can fix it"

// Judge checks the machine for a library made with CUDA of a version such as
// "13.0.88".
func (m Machine) Judge(cuda string) Report {
	return Report{m.driver(cuda), m.compat(cuda), m.device(),
		library("cuBLAS", m.CUBLAS, cublas), library("cuSPARSE", m.CUSPARSE, cusparse), m.profiler(), m.counters()}
}

// serves reports whether the driver supports CUDA of the version's major
// number: a library runs with any driver for the same major number.
func (m Machine) serves(cuda string) bool {
	v, err := semver.NewVersion(cuda)
	return err != nil || uint64(m.Driver.CUDA/1000) >= v.Major()
}

func (m Machine) driver(cuda string) Finding {
	f := Finding{Name: NameDriver, Needed: GPU}
	what := "kernel module " + m.Module
	if m.Module == "" {
		what = "no kernel module is seen"
	}
	served := fmt.Sprintf("%s, serves CUDA %d.%d (%s)", what, m.Driver.CUDA/1000, m.Driver.CUDA%1000/10, m.Driver.Library)
	switch {
	case errors.Is(m.DriverErr, gpu.ErrNoCGO):
		f.State, f.Detail, f.Fix = Unknown, what+"; "+m.DriverErr.Error(), "ask build/bin/sparsek doctor"
	case errors.Is(m.DriverErr, gpu.ErrNoDriver) && m.Module == "":
		f.State, f.Detail = Missing, "no NVIDIA driver"
		f.Fix = "for products on a GPU: install driver " + oldestDriver + " or newer, or start the container with its GPUs (--gpus all)"
	case errors.Is(m.DriverErr, gpu.ErrNoDriver):
		f.State, f.Detail = Missing, what+", but the loader finds no libcuda.so.1"
		f.Fix = "install the driver's libraries, or start the container with NVIDIA_DRIVER_CAPABILITIES=compute,utility"
	case errors.Is(m.DriverErr, context.DeadlineExceeded):
		f.State, f.Detail, f.Fix = Off, what+", but it does not answer", "see whether nvidia-smi answers; reset the GPU or restart the machine"
	case m.DriverErr != nil && (m.Driver.CUDA == 0 || m.serves(cuda)):
		f.State, f.Detail = Off, what+": "+m.DriverErr.Error()
		f.Fix = "see what nvidia-smi says; module and libraries must be of one version: reload the module or restart the machine"
	case !m.serves(cuda):
		f.State, f.Detail = TooOld, served+"; "+cuda+" is wanted"
		f.Fix = "update to driver " + oldestDriver + " or newer, or see forward compatibility"
	default:
		f.State, f.Detail = OK, served
	}
	return f
}

func (m Machine) compat(cuda string) Finding {
	f := Finding{Name: "forward compatibility", State: OK, Detail: "not needed"}
	switch {
	case errors.Is(m.DriverErr, gpu.ErrNoCGO):
		f.State, f.Detail = Unknown, "not known without the driver's answer"
	case errors.Is(m.DriverErr, gpu.ErrNoDriver):
		f.State, f.Detail = Off, "needs a driver"
	case slices.ContainsFunc(m.Compat, func(dir string) bool { return path.Dir(m.Driver.Library) == dir }):
		f.Detail = "in use: " + m.Driver.Library
	case m.serves(cuda):
	case len(m.Compat) > 0:
		f.State, f.Detail = Off, "installed in "+strings.Join(m.Compat, ", ")+"; the loader takes "+m.Driver.Library
		f.Fix = "put it first: LD_LIBRARY_PATH=" + slices.Max(m.Compat)
	default:
		f.State, f.Detail = Missing, "the driver is older than CUDA "+cuda
		f.Fix = "on a data-centre GPU install the package cuda-compat-" + strings.Join(firstTwo(cuda), "-") + ", else update the driver"
	}
	return f
}

func firstTwo(version string) []string {
	parts := strings.Split(version, ".")
	return parts[:min(2, len(parts))]
}

func (m Machine) device() Finding {
	f := Finding{Name: NameGPU, Needed: GPU}
	if errors.Is(m.DriverErr, gpu.ErrNoCGO) {
		f.State, f.Detail = Unknown, "not known without the driver's answer"
		return f
	}
	var all []string
	newest := 0
	for _, d := range m.Driver.Devices {
		all = append(all, fmt.Sprintf("%s, compute capability %d.%d", d.Name, d.Major, d.Minor))
		if d.Major == 9 && d.Minor == 0 {
			f.State = OK
		}
		newest = max(newest, d.Major)
	}
	f.Detail = strings.Join(all, "; ")
	switch {
	case len(all) == 0:
		f.State, f.Detail = Missing, "none"
		f.Fix = "nothing to do for the CPU back-end; kernels need a Hopper GPU (H100, H200, GH200) that CUDA_VISIBLE_DEVICES does not hide"
	case f.State == OK:
	case newest > 9:
		f.State, f.Fix = TooNew, "the kernels are Hopper's (compute capability 9.0); the CPU back-end works"
	default:
		f.State, f.Fix = TooOld, "the kernels need a Hopper GPU (compute capability 9.0); the CPU back-end works"
	}
	return f
}

// library judges a library that is only used for comparisons.
func library(name string, o Opened, l runtimeLibrary) Finding {
	switch {
	case o.Err == nil:
		return Finding{Name: name, State: OK, Detail: o.File}
	case errors.Is(o.Err, gpu.ErrNoCGO):
		return Finding{Name: name, State: Unknown, Detail: o.Err.Error()}
	}
	return Finding{Name: name, State: Missing, Detail: "only its own kernels and comparisons need it; " + o.Err.Error(),
		Fix: "install it, put its folder on LD_LIBRARY_PATH, or name it with " + l.variable}
}

func (m Machine) profiler() Finding {
	f := Finding{Name: NameProfiler, State: OK, Detail: m.ProfilerVersion + " (" + m.Profiler + ")"}
	switch {
	case m.Profiler == "":
		f.State, f.Detail, f.Fix = Missing, "no ncu; only profiles need it", "install Nsight Compute, or put the folder of ncu on PATH"
	case m.ProfilerVersion == "":
		f.State, f.Detail, f.Fix = Damaged, m.Profiler+" does not report its version", "install Nsight Compute again"
	case before(m.ProfilerVersion, oldestProfiler):
		f.State, f.Fix = TooOld, "install "+oldestProfiler+" or newer: older ones do not know Hopper"
	}
	return f
}

func (m Machine) counters() Finding {
	f := Finding{Name: "profiling permission", State: OK}
	c := m.Counters
	switch {
	case !c.Known:
		f.State, f.Detail = Unknown, "no driver reports it"
	case !c.AdminOnly:
		f.Detail = "the driver lets everyone read counters"
	case c.SysAdmin:
		f.Detail = "for administrators, and this process has CAP_SYS_ADMIN"
	case c.PerfMon && m.Module != "" && !before(m.Module, perfMonDriver):
		f.Detail = "for administrators, and this process has CAP_PERFMON"
	default:
		f.State, f.Detail = Off, "the driver lets only administrators read counters (RmProfilingAdminOnly)"
		f.Fix = CountersFix
	}
	return f
}

// before compares versions; one that cannot be read is not before any.
func before(version, than string) bool {
	v, err := semver.NewVersion(lead(version))
	w, other := semver.NewVersion(than)
	return err == nil && other == nil && v.LessThan(w)
}

// lead is the first two numbers of a version: a third such as in 580.05.06 may
// begin with a zero, which semantic versions may not.
func lead(version string) string {
	parts := firstTwo(version)
	for i, part := range parts {
		if parts[i] = strings.TrimLeft(part, "0"); parts[i] == "" {
			parts[i] = "0"
		}
	}
	return strings.Join(parts, ".")
}
