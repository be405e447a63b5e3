// SPDX-License-Identifier: Apache-2.0

package doctor

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/machine/gpu"
)

const system = "/usr/lib/x86_64-linux-gnu/libcuda.so.1"

// healthy is a machine that lacks nothing.
func healthy() Machine {
	return Machine{
		Module: "580.159.04",
		Driver: gpu.Driver{Library: system, CUDA: 13000, Devices: []gpu.Device{{Name: "NVIDIA H200", Major: 9}}},
		CUBLAS: Opened{File: "libcublas.so.13"}, CUSPARSE: Opened{File: "libcusparse.so.12"},
		Profiler: "/usr/bin/ncu", ProfilerVersion: "2025.3.1",
		Counters: Counters{Known: true, AdminOnly: true, SysAdmin: true},
	}
}

func find(t *testing.T, r Report, name string) Finding {
	t.Helper()
	for _, f := range r {
		if f.Name == name {
			return f
		}
	}
	t.Fatalf("nothing about %s", name)
	return Finding{}
}

func TestHealthyMachine(t *testing.T) {
	r := healthy().Judge("13.0.88")
	if !r.Works(GPU) {
		t.Error("a GPU job cannot work")
	}
	for _, f := range r {
		if f.State != OK || f.Fix != "" {
			t.Errorf("%+v", f)
		}
	}
}

func TestWhatIsWrong(t *testing.T) {
	const compat = "/usr/local/cuda-13.0/compat"
	for _, test := range []struct {
		what  string
		spoil func(*Machine)
		name  string
		state State
		says  string // in the detail or the fix
		works bool   // a GPU job
	}{
		{"no driver", func(m *Machine) {
			m.Module, m.Driver, m.DriverErr = "", gpu.Driver{}, fmt.Errorf("%w: x", gpu.ErrNoDriver)
		}, "driver", Missing, "install driver 580", false},
		{"no libraries of the driver", func(m *Machine) { m.Driver, m.DriverErr = gpu.Driver{}, gpu.ErrNoDriver },
			"driver", Missing, "NVIDIA_DRIVER_CAPABILITIES", false},
		{"no cgo", func(m *Machine) { m.Driver, m.DriverErr = gpu.Driver{}, gpu.ErrNoCGO }, "driver", Unknown, "sparsek doctor", true},
		{"a driver that hangs", func(m *Machine) { m.Driver, m.DriverErr = gpu.Driver{}, context.DeadlineExceeded },
			"driver", Off, "does not answer", false},
		{"a driver that does not start", func(m *Machine) { m.Driver.Devices, m.DriverErr = nil, errors.New("cuInit: CUDA error 803") },
			"driver", Off, "803", false},
		{"an old driver", func(m *Machine) { m.Module, m.Driver.CUDA = "535.1", 12020 }, "driver", TooOld, "serves CUDA 12.2", false},
		{"an old driver and no package", func(m *Machine) { m.Driver.CUDA = 12020 },
			"forward compatibility", Missing, "cuda-compat-13-0", false},
		{"a package that is not used", func(m *Machine) { m.Driver.CUDA, m.Compat = 12020, []string{compat} },
			"forward compatibility", Off, "LD_LIBRARY_PATH=" + compat, false},
		{"a package in use", func(m *Machine) { m.Driver.Library, m.Compat = compat+"/libcuda.so.1", []string{compat} },
			"forward compatibility", OK, "in use", true},
		{"a newer driver", func(m *Machine) { m.Driver.CUDA = 14010 }, "driver", OK, "14.1", true},
		{"no GPU", func(m *Machine) { m.Driver.Devices = nil }, "GPU", Missing, "CUDA_VISIBLE_DEVICES", false},
		{"an old GPU", func(m *Machine) { m.Driver.Devices = []gpu.Device{{Name: "A100", Major: 8}} }, "GPU", TooOld, "A100", false},
		{"a new GPU", func(m *Machine) { m.Driver.Devices = []gpu.Device{{Name: "B200", Major: 10}} }, "GPU", TooNew, "9.0", false},
		{"a Hopper beside another", func(m *Machine) {
			m.Driver.Devices = append([]gpu.Device{{Name: "B200", Major: 10}}, m.Driver.Devices...)
		}, "GPU", OK, "H200", true},
		{"no cuBLAS", func(m *Machine) { m.CUBLAS.Err = errors.New("x") }, "cuBLAS", Missing, "LD_LIBRARY_PATH", true},
		{"no ncu", func(m *Machine) { m.Profiler = "" }, "Nsight Compute", Missing, "install", true},
		{"an old ncu", func(m *Machine) { m.ProfilerVersion = "2021.1.0" }, "Nsight Compute", TooOld, "2022.3", true},
		{"an ncu that does not run", func(m *Machine) { m.ProfilerVersion = "" }, "Nsight Compute", Damaged, "again", true},
		{"no permission", func(m *Machine) { m.Counters.SysAdmin = false }, "profiling permission", Off, "NVreg_RestrictProfilingToAdminUsers=0", true},
		{"everyone may", func(m *Machine) { m.Counters = Counters{Known: true} }, "profiling permission", OK, "everyone", true},
		{"CAP_PERFMON", func(m *Machine) { m.Counters.SysAdmin, m.Counters.PerfMon = false, true }, "profiling permission", OK, "CAP_PERFMON", true},
		{"CAP_PERFMON with a driver that does not know it", func(m *Machine) {
			m.Counters.SysAdmin, m.Counters.PerfMon, m.Module = false, true, "560.35.03"
		}, "profiling permission", Off, "565", true},
		{"a driver that does not report it", func(m *Machine) { m.Counters = Counters{} }, "profiling permission", Unknown, "", true},
	} {
		m := healthy()
		test.spoil(&m)
		r := m.Judge("13.0.88")
		f := find(t, r, test.name)
		if f.State != test.state || !strings.Contains(f.Detail+f.Fix, test.says) {
			t.Errorf("%s: %+v, want %s and %q", test.what, f, test.state, test.says)
		}
		if f.State != OK && f.State != Unknown && f.Fix == "" {
			t.Errorf("%s: no fix", test.what)
		}
		if r.Works(GPU) != test.works {
			t.Errorf("%s: a GPU job works: %t", test.what, r.Works(GPU))
		}
	}
}

func TestReading(t *testing.T) {
	if got := profilerVersion("NVIDIA (R) Nsight Compute Command Line Profiler\nVersion 2025.3.1.0 (build 36398880)\n"); got != "2025.3.1" {
		t.Errorf("ncu: %q", got)
	}
	root := fstest.MapFS{"usr/local/cuda-13.0/compat/libcuda.so.1": {}, "usr/local/cuda-13.0/lib64/libcudart.so": {}}
	if diff := cmp.Diff([]string{"/usr/local/cuda-13.0/compat"}, compatFolders(root)); diff != "" {
		t.Errorf("compat (-want +got):\n%s", diff)
	}
}

func TestCounters(t *testing.T) {
	const first, nested = "         0          0 4294967295\n", "         0       1000          1\n"
	const all, perf, none = "CapEff:\t000001ffffffffff\n", "CapEff:\t0000004000000000\n", "CapEff:\t0000000000000000\n"
	for _, test := range []struct {
		params, status, uidMap string
		want                   Counters
	}{
		{"RmProfilingAdminOnly: 1\n", all, first, Counters{true, true, true, true}},
		{"RmProfilingAdminOnly: 1\n", all, nested, Counters{true, true, false, false}},
		{"RmProfilingAdminOnly: 1\n", perf, first, Counters{true, true, false, true}},
		{"EnableMSI: 1\nRmProfilingAdminOnly: 0\n", none, first, Counters{true, false, false, false}},
		{"", none, first, Counters{}},
	} {
		if got := counters(test.params, test.status, test.uidMap); got != test.want {
			t.Errorf("%q %q: %+v, want %+v", test.params, test.status, got, test.want)
		}
	}
}

func TestPrint(t *testing.T) {
	m := healthy()
	m.Driver.Devices = nil
	r := m.Judge("13.0.88")
	var text, doc bytes.Buffer
	if err := errors.Join(r.Print(&text), r.PrintJSON(&doc)); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(text.String(), "-> nothing to do for the CPU back-end") || !strings.Contains(text.String(), "GPU job") ||
		strings.Contains(text.String(), "build ") {
		t.Errorf("got\n%s", text.String())
	}
	var got struct {
		Build    *bool
		GPUJob   *bool `json:"gpu_job"`
		Findings []map[string]string
	}
	if err := json.Unmarshal(doc.Bytes(), &got); err != nil {
		t.Fatal(err)
	}
	if got.Build != nil || got.GPUJob == nil || *got.GPUJob || len(got.Findings) != len(r) || got.Findings[0]["state"] != "ok" {
		t.Errorf("got %s", doc.String())
	}
}

// The machine that the tests run on, whatever it is.
func TestLookHere(t *testing.T) {
	r := Look(t.Context(), fstest.MapFS{}).Judge("13.0.88")
	if len(r) != 7 {
		t.Errorf("%d findings", len(r))
	}
}
