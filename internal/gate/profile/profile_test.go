// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/ncu/ncutest"
	"github.com/sparsek/sparsek/internal/machine/doctor"
)

//go:embed testdata/ncu.sh
var fakeNCU []byte

//go:embed testdata/smi.sh
var fakeSMI []byte

// Kernels that several functions serve, of which the slots of a row group choose one, and functions of one base name.
const (
	tmaSymbol      = "_ZN7cutlass13device_kernelIiEEvT_"
	gather16Symbol = "_ZN7sparsek4cuda19wgmma_gather_kernel6kernelIN7cutlass10bfloat16_tELi16ELi4EEEvNS1_6ParamsE"
	gather1Symbol  = "_ZN7sparsek4cuda19wgmma_gather_kernel6kernelIN7cutlass10bfloat16_tELi1ELi4EEEvNS1_6ParamsE"
	skinnySymbol   = "_ZN7sparsek4cuda13skinny_kernel6kernelIN7cutlass10bfloat16_tELi64ELi64EEEvNS1_6ParamsE"
)

func kernels() *kernelreport.Report {
	source := func(codes ...string) (s kernelreport.Source) { // symbol, hash, symbol, hash ...
		for i := 0; i < len(codes); i += 2 {
			s.Functions = append(s.Functions, kernelreport.Function{Symbol: codes[i], SASS: codes[i+1], Opcodes: map[string]int{"HGMMA": 4 + i}})
		}
		return s
	}
	return &kernelreport.Report{Library: "1234", Kernels: []kernelreport.Kernel{
		{Name: "tma", Source: source(tmaSymbol, "aa")}, {Name: "gather", Source: source(gather1Symbol, "b1", gather16Symbol, "b16")},
		{Name: "skinny", Source: source(skinnySymbol, "cc")},
	}}
}

func figures(cycles float64) ncu.Figures {
	return ncu.Figures{"sm_active": 72.3, "tensor_core": 65.8, "dram_bw": 45.2, "cycles": cycles, "duration_ns": 45120, "registers": 168,
		"l2_bytes": 412000000, "dram_bytes": 78123520, "occupancy": 14.28}
}

// machine is a folder with a profiler and an nvidia-smi that print what the test sets.
type machine struct {
	t   *testing.T
	dir string
}

func newMachine(t *testing.T, csv string, launched Launched) machine {
	t.Helper()
	m := machine{t, t.TempDir()}
	m.write("ncu", fakeNCU)
	m.write("nvidia-smi", fakeSMI)
	m.write("state", []byte("GPU-1, 580.1, 1980, 3201, 40, 350.5, 0x0000000000000001\n"))
	m.write("csv", []byte(csv))
	text, err := json.Marshal(launched)
	if err != nil {
		t.Fatal(err)
	}
	m.write("stdout", append([]byte("==PROF== Connected to process 41\n"), text...))
	return m
}

func (m machine) write(name string, text []byte) {
	m.t.Helper()
	if err := os.WriteFile(filepath.Join(m.dir, name), text, 0o777); err != nil {
		m.t.Fatal(err)
	}
}

func (m machine) take() (*Profile, error) {
	return Take(context.Background(), Options{
		Program: "sparsek", Cases: []string{"one", "two"}, Launches: 2, Kernels: kernels(),
		Profiler: filepath.Join(m.dir, "ncu"), SMI: filepath.Join(m.dir, "nvidia-smi"), NCU: "2025.3.1",
	})
}

// twoCases are a checked launch and two more of each of two cases.
func twoCases() (string, Launched) {
	var rows []ncutest.Launch
	for _, c := range []struct {
		symbol string
		cycles []float64
	}{{tmaSymbol, []float64{9999, 1000, 1002}}, {gather16Symbol, []float64{9999, 2000, 2004}}} {
		for _, cycles := range c.cycles {
			rows = append(rows, ncutest.Launch{Kernel: c.symbol, Figures: figures(cycles)})
		}
	}
	return ncutest.Raw(rows), Launched{GPU: "NVIDIA H200", Commit: "c0ffee", Cases: []LaunchedCase{
		{Name: "one", Launches: 3, Kernel: "tma", FLOP: 1e9}, {Name: "two", Launches: 3, Kernel: "gather", FLOP: 2e9},
	}}
}

func TestTake(t *testing.T) {
	csv, launched := twoCases()
	m := newMachine(t, csv, launched)
	p, err := m.take()
	if err != nil {
		t.Fatal(err)
	}
	args, err := os.ReadFile(filepath.Join(m.dir, "args"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"--clock-control none", "--cache-control all", "--page raw", "regex:^(device_kernel|kernel)$", "dram__throughput.avg",
		" sparsek bench --suite gate --device gpu --json --launches 2 one two"} {
		if !strings.Contains(string(args), want) {
			t.Errorf("the profiler was not called with %q: %s", want, args)
		}
	}
	if p.GPU != "NVIDIA H200" || p.Driver != "580.1" || p.NCU != "2025.3.1" || p.Commit != "c0ffee" || p.Start == "" || p.State.SMClock != 1980 {
		t.Errorf("%+v", p)
	}
	// The launch that warms up does not count, and each case has its own.
	one, two := p.Cases[0], p.Cases[1]
	if f := one.Figures(); f["cycles"] != 1001 || one.SASS != "aa" || one.Symbol != tmaSymbol {
		t.Errorf("%v, %+v", f, one)
	}
	if f := two.Figures(); f["cycles"] != 2002 || two.SASS != "b16" || two.Symbol != gather16Symbol || two.Opcodes["HGMMA"] != 6 || two.FLOP != 2e9 {
		t.Errorf("%v, %+v", f, two)
	}
	testFolder(t, p)
}

// What is written is what is read, and a CSV that was exchanged is found.
func testFolder(t *testing.T, p *Profile) {
	dir := filepath.Join(t.TempDir(), "profile")
	if _, err := Read(dir); !errors.Is(err, ErrNoProfile) {
		t.Errorf("no profile: %v", err)
	}
	if err := p.Write(filepath.Join(dir, "run-1")); err != nil {
		t.Fatal(err)
	}
	if err := p.Write(filepath.Join(dir, "run-2")); err != nil {
		t.Fatal(err)
	}
	list, err := ReadAll(dir)
	if err != nil || len(list) != 2 || list[1].Cases[1].Figures()["cycles"] != 2002 || list[0].State != p.State {
		t.Fatalf("%+v, %v", list, err)
	}
	file := filepath.Join(dir, "run-1", "one.csv")
	for name, text := range map[string]string{
		"changed": strings.Replace(string(p.Cases[0].CSV), "1,000", "1,001", 1), "swapped": string(p.Cases[1].CSV), "empty": "",
	} {
		if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
		if _, err := ReadAll(dir); err == nil || !strings.Contains(err.Error(), "one.csv") {
			t.Errorf("%s: %v", name, err)
		}
	}
	record := filepath.Join(dir, "run-2", recordName)
	text, err := os.ReadFile(record)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(record, bytes.ReplaceAll(text, []byte(tmaSymbol), []byte(skinnySymbol)), 0o666); err != nil {
		t.Fatal(err)
	}
	if _, err := Read(filepath.Dir(record)); err == nil || !strings.Contains(err.Error(), "another kernel") {
		t.Errorf("a record of another function: %v", err)
	}
	if err := os.WriteFile(record, text, 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Remove(filepath.Join(dir, "run-1")); err != nil {
		t.Fatal(err)
	}
	if list, err := ReadAll(dir); err != nil || len(list) != 1 {
		t.Errorf("after one was removed: %d, %v", len(list), err)
	}
}

func TestWhatCannotBeMeasured(t *testing.T) {
	csv, launched := twoCases()
	for name, c := range map[string]struct {
		csv, state string
		want       error
	}{
		"counters forbidden": {"==ERROR== ERR_NVGPUCTRPERM - The user does not have permission to access NVIDIA GPU Performance Counters\n", "", ncu.ErrPermission},
		"unknown counter":    {"==ERROR== Failed to find metric dram__bytes.sum\n", "", ncu.ErrUnsupported},
		"another profiler":   {"==ERROR== Profiling failed because a driver resource was unavailable. Ensure that no other tool (like DCGM) is concurrently collecting profiling data.\n", "", ncu.ErrBusy},
		"too hot":            {csv, "GPU-1, 580.1, 900, 3201, 91, 350.5, 0x0000000000000020\n", ErrThrottled},
	} {
		m := newMachine(t, c.csv, launched)
		if c.state != "" {
			m.write("state", []byte(c.state))
		}
		_, err := m.take()
		var not *NotMeasurable
		if !errors.Is(err, c.want) || !errors.As(Explain(err), &not) || not.Fix == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := Take(context.Background(), Options{Kernels: kernels(), Profiler: "/nowhere/ncu", SMI: "/nowhere/nvidia-smi"})
	var not *NotMeasurable
	if !errors.Is(err, ncu.ErrNoProfiler) || !errors.As(Explain(err), &not) {
		t.Errorf("ncu absent: %v", err)
	}
	if err := Explain(context.Canceled); err != context.Canceled {
		t.Errorf("an interrupt became %v", err)
	}
}

// What the profiler hands over and must not pass.
func TestDamagedOutput(t *testing.T) {
	csv, launched := twoCases()
	lines := strings.SplitAfter(csv, "\n")
	for name, text := range map[string]string{
		"nothing":        "",
		"no launches":    strings.Join(lines[:3], ""),
		"one is missing": strings.Join(append(append([]string{}, lines[:4]...), lines[5:]...), ""),
		"one too many":   csv + strings.Replace(lines[len(lines)-2], `"5"`, `"6"`, 1),
		"cut off":        csv[:len(csv)-30],
		"other kernel":   strings.ReplaceAll(csv, "device_kernel", "other_kernel"),
		"another's":      strings.ReplaceAll(csv, gather16Symbol, skinnySymbol),
		"two functions":  strings.Replace(csv, gather16Symbol+`","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0","72.30"`, gather1Symbol+`","1","7","(384, 1, 1)","(132, 1, 1)","0","9.0","72.30"`, 2),
		"other counter":  strings.ReplaceAll(csv, "lts__t_bytes.sum", "lts__t_bytes.max"),
	} {
		if p, err := newMachine(t, text, launched).take(); err == nil {
			t.Errorf("%s: %+v and no error", name, p)
		}
	}
}

// A program that fails under the profiler is reported, with its output.
func TestFailingProgram(t *testing.T) {
	csv, launched := twoCases()
	m := newMachine(t, csv, launched)
	m.write("code", []byte("1"))
	if _, err := m.take(); err == nil || !strings.Contains(err.Error(), "one: wrong result") {
		t.Errorf("got %v", err)
	}
}

func TestReady(t *testing.T) {
	ok := doctor.Report{{Name: doctor.NameDriver, State: doctor.OK}, {Name: "cuBLAS", State: doctor.Missing}, {Name: doctor.NameGPU, State: doctor.Unknown}}
	if err := Ready(ok); err != nil {
		t.Error(err)
	}
	err := Ready(append(ok, doctor.Finding{Name: doctor.NameProfiler, State: doctor.Missing, Detail: "no ncu", Fix: "install it"}))
	var not *NotMeasurable
	if !errors.As(err, &not) || not.Fix != "install it" || !strings.Contains(err.Error(), "no ncu") {
		t.Errorf("got %v", err)
	}
}
