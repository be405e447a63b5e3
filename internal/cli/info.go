// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/sparsek/sparsek/internal/build/provenance"
	"github.com/sparsek/sparsek/internal/sys/term"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// infoResult is what info prints as JSON.
type infoResult struct {
	Library  string       `json:"library"`
	Version  string       `json:"version"`
	Commit   string       `json:"commit"`
	CUTLASS  string       `json:"cutlass"`
	CUDA     string       `json:"cuda"`
	Compiler string       `json:"compiler"`
	Default  defaultInfo  `json:"default_backend"`
	Kernels  []kernelInfo `json:"kernels"`
	Devices  []deviceInfo `json:"devices"`
}

type defaultInfo struct {
	Backend string `json:"backend"`
	Device  int    `json:"device"`
	Threads int    `json:"threads"`
	ISA     string `json:"isa"`
	Reason  string `json:"reason"`
}

type kernelInfo struct {
	Name            string `json:"name"`
	Backend         string `json:"backend"`
	DType           string `json:"dtype"`             // empty: every one
	DTypeB          string `json:"b_dtype,omitempty"` // of B where it is another than A's
	Tile            [3]int `json:"tile"`
	Stages          int    `json:"stages"`
	BlockM          int    `json:"block_m"` // 0: every one
	BlockMMultiples bool   `json:"block_m_multiples"`
	BlockKMultiple  int    `json:"block_k_multiple"`
	Baseline        bool   `json:"baseline"`          // no candidate of a plan by itself, see purpose
	Library         string `json:"library,omitempty"` // of NVIDIA's, opened when it is first needed
	ReadsAbsent     bool   `json:"reads_absent"`      // multiplies absent blocks as zeros: runs only with --allow-dense
	Why             string `json:"why"`
}

type deviceInfo struct {
	Name        string `json:"name"`
	Compute     string `json:"compute_capability"`
	SMs         int    `json:"sms"`
	MemoryBytes int64  `json:"memory_bytes"`
	L2Bytes     int64  `json:"l2_bytes"`
	ClockHz     int64  `json:"clock_hz"` // of the SMs, the highest
	Driver      string `json:"driver"`
	Usable      bool   `json:"usable"`
}

// infoCommand is "sparsek info".
type infoCommand struct {
	jsonFlag
	Matrix     string `group:"Output" placeholder:"FILE" xor:"what" help:"Show what blocks of several sizes would store of a sparse matrix, instead."`
	Provenance bool   `group:"Output" xor:"what" help:"Print what the library was made of and how, an in-toto statement."`
}

func (*infoCommand) Help() string {
	return `Examples:
  sparsek info
  sparsek info --matrix A.npz`
}

// Run shows.
func (o *infoCommand) Run(ctx context.Context, e *environment) error {
	if o.Matrix != "" {
		return describeMatrix(ctx, e, o.Matrix, o.JSON)
	}
	if o.Provenance {
		return printProvenance(e)
	}
	result, err := gatherInfo()
	if err != nil {
		return err
	}
	if o.JSON {
		return printJSON(e.stdout, result)
	}
	return printInfo(e, result)
}

// printProvenance prints what the library's file says of itself.
func printProvenance(e *environment) error {
	lib, err := sparsek.Default()
	if err != nil {
		return fail(exitNoLibrary, err)
	}
	statement, err := provenance.Read(lib.Path())
	if err != nil {
		return fail(exitNoLibrary, err)
	}
	text, err := statement.Encode()
	if err != nil {
		return err
	}
	_, err = e.stdout.Write(text)
	return fail(exitBadOutput, err)
}

func gatherInfo() (r infoResult, err error) {
	lib, err := sparsek.Default()
	if err != nil {
		return r, fail(exitNoLibrary, err)
	}
	build, err := lib.BuildInfo()
	if err != nil {
		return r, err
	}
	kernels, err := lib.Kernels()
	if err != nil {
		return r, err
	}
	devices, err := lib.Devices()
	if err != nil {
		return r, err
	}
	engine, err := lib.NewEngine(sparsek.EngineOptions{})
	if err != nil {
		return r, err
	}
	defer func() { err = errors.Join(err, engine.Close()) }()
	chosen := engine.Info()
	r = infoResult{
		Library: lib.Path(), Version: build.Version, Commit: build.Commit, CUTLASS: build.CUTLASS, CUDA: build.CUDA, Compiler: build.Compiler,
		Default: defaultInfo{backendName(chosen), chosen.Device, chosen.Threads, chosen.ISA, chosen.Reason},
		Kernels: []kernelInfo{}, Devices: []deviceInfo{}, // empty lists, not null, in JSON
	}
	for _, k := range kernels {
		r.Kernels = append(r.Kernels, kernelInfo{
			k.Name, backendName(sparsek.EngineInfo{Backend: k.Backend}), dtypeName(k.DType), dtypeName(k.DTypeB), [3]int{k.TileM, k.TileN, k.TileK}, k.Stages,
			k.BlockM, k.BlockMMultiples, k.BlockKMultiple, k.Baseline, k.Library, k.ReadsAbsent, k.Why,
		})
	}
	for _, d := range devices {
		r.Devices = append(r.Devices, deviceInfo{
			d.Name, fmt.Sprintf("%d.%d", d.ComputeMajor, d.ComputeMinor), d.SMs, d.MemoryBytes, d.L2Bytes, d.ClockHz,
			fmt.Sprintf("%d.%d", d.DriverVersion/1000, d.DriverVersion%1000/10), d.Usable,
		})
	}
	return r, nil
}

func printInfo(e *environment, r infoResult) error {
	t := &table{left: 2}
	t.add("version", or(r.Version, "unknown"))
	t.add("commit", or(r.Commit, "unknown"))
	t.add("library", r.Library)
	t.add("CUTLASS", or(r.CUTLASS, "none"))
	t.add("CUDA", or(r.CUDA, "none: built without"))
	t.add("compiler", r.Compiler)
	t.add("default", r.Default.Backend+": "+r.Default.Reason)
	t.add("threads", fmt.Sprintf("%d, %s", r.Default.Threads, or(r.Default.ISA, "on the GPU")))
	for i, d := range r.Devices {
		usable := "usable"
		if !d.Usable {
			usable = "not usable: compute capability 9.0 is needed"
		}
		t.add(fmt.Sprintf("device %d", i), fmt.Sprintf("%s, compute capability %s, %d SMs at up to %.2f GHz, %s, driver for CUDA %s: %s",
			d.Name, d.Compute, d.SMs, float64(d.ClockHz)/1e9, term.FormatBytes(d.MemoryBytes), d.Driver, usable))
	}
	if len(r.Devices) == 0 {
		t.add("devices", "none")
	}
	if err := t.print(e.stdout); err != nil {
		return err
	}
	fmt.Fprintln(e.stdout)
	k := &table{left: 7}
	k.add("kernel", "back-end", "type", "tile", "block height", "block width", "for")
	for _, kernel := range r.Kernels {
		k.add(kernel.Name, kernel.Backend, dtypesOf(kernel), tile(kernel), blockHeights(kernel), multiples(kernel.BlockKMultiple), purpose(kernel))
	}
	return k.print(e.stdout)
}

// dtypeName is empty for 0, which stands for every type.
func dtypeName(d sparsek.DType) string {
	if d == 0 {
		return ""
	}
	return d.String()
}

// dtypesOf names the types of A and B.
func dtypesOf(k kernelInfo) string {
	if k.Library != "" {
		return "bf16, fp16"
	}
	if k.DTypeB != "" {
		return k.DType + "*" + k.DTypeB
	}
	return or(k.DType, "every")
}

// purpose says what the kernel is for, and when it is chosen where none is named.
func purpose(k kernelInfo) string {
	switch {
	case k.ReadsAbsent:
		return "chosen only with --allow-dense: " + k.Why
	case k.Library != "":
		return "chosen only where it was measured to be the fastest: " + k.Why
	case k.Baseline:
		return "never chosen, runs by name: " + k.Why
	}
	return k.Why
}

// tile writes MxNxK; a height of 0 is that of the block row.
func tile(k kernelInfo) string {
	t := k.Tile
	if k.Library != "" {
		return "by " + k.Library
	}
	if t[0] == 0 {
		return fmt.Sprintf("rowx%dx%d", t[1], t[2])
	}
	return fmt.Sprintf("%dx%dx%d", t[0], t[1], t[2])
}

func blockHeights(k kernelInfo) string {
	switch {
	case k.BlockM == 0:
		return "every"
	case k.BlockMMultiples:
		return multiples(k.BlockM)
	}
	return fmt.Sprint(k.BlockM)
}

func multiples(n int) string {
	if n <= 1 {
		return "every"
	}
	return fmt.Sprintf("multiples of %d", n)
}

func or(text, other string) string {
	if text == "" {
		return other
	}
	return text
}
