// SPDX-License-Identifier: Apache-2.0

package sparsek

/*
#include "shim.h"
*/
import "C"

// Library is a loaded libsparsek. It may be used from several goroutines at once.
type Library struct {
	api  *C.sparsek_api
	path string
}

// BuildInfo is what the library was made of.
type BuildInfo struct {
	Version  string // of sparsek
	CUTLASS  string // version and commit
	CUDA     string // nvcc's version; empty in a build without CUDA
	Compiler string // of the host code
	Commit   string // of the source tree, "-dirty" behind it where it was changed; empty if unknown
}

// Kernel is a kernel of the library.
type Kernel struct {
	Name                string
	Why                 string // the case for which it exists
	Backend             Backend
	DType               string // of A and B: "bf16", "fp16", "fp32"; empty: every one, or of another library: bf16 and fp16
	TileM, TileN, TileK int    // these and Stages: 0 where another library chooses them
	Stages              int
	BlockM              int    // block heights served: this one; 0: every one
	BlockMMultiples     bool   // multiples of BlockM too
	BlockKMultiple      int    // block widths served: multiples of this
	Baseline            bool   // there to be compared with; runs only where it is asked for by name
	Library             string // "", or "cuBLAS" or "cuSPARSE": opened when it is first needed, [ErrNoLibrary] where it is not there
	ReadsAbsent         bool   // multiplies absent blocks as zeros; runs only with PlanOptions.AllowDense
}

// DeviceInfo is a CUDA device as the driver shows it.
type DeviceInfo struct {
	Name                       string
	ComputeMajor, ComputeMinor int
	SMs                        int
	MemoryBytes, L2Bytes       int64
	DriverVersion              int   // of the CUDA driver API, 13000 = 13.0
	ClockHz                    int64 // of the SMs, the highest; 0 where the driver does not tell
	Usable                     bool  // the CUDA back-end runs on it
}

// Path is the file the library was loaded from.
func (l *Library) Path() string { return l.path }

// BuildInfo says what the library was made of.
func (l *Library) BuildInfo() (BuildInfo, error) {
	var out C.sparsek_build_info
	if err := end("describe build", C.shim_build_info(l.api, &out)); err != nil {
		return BuildInfo{}, err
	}
	return BuildInfo{
		Version:  C.GoString(out.version),
		CUTLASS:  C.GoString(out.cutlass),
		CUDA:     C.GoString(out.cuda),
		Compiler: C.GoString(out.compiler),
		Commit:   C.GoString(out.commit),
	}, nil
}

// Kernels lists the kernels of all back-ends, those of each in the order of priority.
func (l *Library) Kernels() ([]Kernel, error) {
	kernels := make([]Kernel, C.shim_kernel_count(l.api))
	for i := range kernels {
		var out C.sparsek_kernel_info
		if err := end("describe kernel", C.shim_kernel_info(l.api, C.int32_t(i), &out)); err != nil {
			return nil, err
		}
		kernels[i] = Kernel{
			Name:    C.GoString(out.name),
			Why:     C.GoString(out.why),
			Backend: Backend(out.backend),
			DType:   dtypeName(int32(out.dtype)),
			TileM:   int(out.tile_m), TileN: int(out.tile_n), TileK: int(out.tile_k),
			Stages:          int(out.stages),
			BlockM:          int(out.block_m),
			BlockMMultiples: out.block_m_multiple != 0,
			BlockKMultiple:  int(out.block_k_multiple),
			Baseline:        out.baseline != 0,
			Library:         C.GoString(out.library),
			ReadsAbsent:     out.reads_absent != 0,
		}
	}
	return kernels, nil
}

// Devices lists the CUDA devices, by ordinal; none where there is no driver.
func (l *Library) Devices() ([]DeviceInfo, error) {
	devices := make([]DeviceInfo, C.shim_device_count(l.api))
	for i := range devices {
		var out C.sparsek_device_info
		if err := end("describe device", C.shim_device_info(l.api, C.int32_t(i), &out)); err != nil {
			return nil, err
		}
		devices[i] = DeviceInfo{
			Name:         C.GoString(&out.name[0]),
			ComputeMajor: int(out.compute_major), ComputeMinor: int(out.compute_minor),
			SMs:         int(out.sm_count),
			MemoryBytes: int64(out.memory_bytes), L2Bytes: int64(out.l2_bytes),
			DriverVersion: int(out.driver_version),
			ClockHz:       int64(out.clock_hz),
			Usable:        out.usable != 0,
		}
	}
	return devices, nil
}

func dtypeName(dtype int32) string {
	switch dtype {
	case C.SPARSEK_BF16:
		return "bf16"
	case C.SPARSEK_FP16:
		return "fp16"
	case C.SPARSEK_FP32:
		return "fp32"
	}
	return ""
}
