// SPDX-License-Identifier: Apache-2.0

package sparsek

import "github.com/sparsek/sparsek/wrapper/internal/native"

// Library is a loaded libsparsek. It may be used from several goroutines at once.
type Library struct{ native *native.Library }

// BuildInfo says what the library was built from.
type BuildInfo struct {
	Version  string // of sparsek
	CUTLASS  string // version and commit
	CUDA     string // nvcc's version; empty in a build without CUDA
	Compiler string // of the host code
	Commit   string // of the source tree, with "-dirty" behind it where it was changed; empty if unknown
}

// Kernel is a kernel of the library.
type Kernel struct {
	Name                string
	Why                 string // the case for which it exists
	Backend             Backend
	DType               DType // of A and B; 0: every one or, of another library, those that it takes
	DTypeB              DType // of B where it is wider than A's, which DType then is alone; else 0
	TileM, TileN, TileK int   // these and Stages: 0 where another library chooses them
	Stages              int
	BlockM              int    // block heights served: this one; 0: every one
	BlockMMultiples     bool   // multiples of BlockM too
	BlockKMultiple      int    // block widths served: multiples of this
	Baseline            bool   // there to be compared with: chosen only by name or, of another library, with PlanOptions.AllowDense
	Library             string // "", or "cuBLAS" or "cuSPARSE": opened when first needed, [ErrNoLibrary] where it is missing
	ReadsAbsent         bool   // multiplies absent blocks as zeros; runs only with PlanOptions.AllowDense
}

// DeviceInfo is a CUDA device as the driver shows it.
type DeviceInfo struct {
	Name                       string
	ComputeMajor, ComputeMinor int
	SMs                        int
	MemoryBytes, L2Bytes       int64
	DriverVersion              int   // of the CUDA driver API, 13000 = 13.0
	ClockHz                    int64 // of the SMs, the highest; 0 where the driver does not report it
	Usable                     bool  // the CUDA back-end runs on it
}

// Path is the file the library was loaded from.
func (l *Library) Path() string { return l.native.Path() }

// BuildInfo says what the library was built from.
func (l *Library) BuildInfo() (BuildInfo, error) {
	info, err := l.native.BuildInfo()
	return BuildInfo(info), err
}

// Kernels lists the kernels of all back-ends, those of each in the order of priority.
func (l *Library) Kernels() ([]Kernel, error) {
	list, err := l.native.Kernels()
	var kernels []Kernel
	for _, k := range list {
		kernels = append(kernels, Kernel{
			Name: k.Name, Why: k.Why, Backend: Backend(k.Backend), DType: DType(k.DType), DTypeB: DType(k.DTypeB),
			TileM: k.TileM, TileN: k.TileN, TileK: k.TileK, Stages: k.Stages,
			BlockM: k.BlockM, BlockMMultiples: k.BlockMMultiple, BlockKMultiple: k.BlockKMultiple,
			Baseline: k.Baseline, Library: k.Library, ReadsAbsent: k.ReadsAbsent,
		})
	}
	return kernels, err
}

// Devices lists the CUDA devices, by ordinal; none where there is no driver.
func (l *Library) Devices() ([]DeviceInfo, error) {
	list, err := l.native.Devices()
	var devices []DeviceInfo
	for _, d := range list {
		devices = append(devices, DeviceInfo(d))
	}
	return devices, err
}
