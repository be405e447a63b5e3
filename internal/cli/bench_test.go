// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// runBench is "sparsek bench" with its error.
func runBench(stdout io.Writer, args ...string) error {
	return dispatch(context.Background(), &environment{stdout: stdout, stderr: io.Discard, args: append([]string{"bench"}, args...)})
}

func TestBenchFlags(t *testing.T) {
	folder := t.TempDir()
	for _, c := range []struct {
		args  []string
		speak string
	}{
		{[]string{"--suite", "none"}, "want one of basic, sweep"},
		{[]string{"--suite", "files"}, "or --matrix FILE"},
		{[]string{"--suite", "sweep", "--matrix", "a.mtx"}, "leave out --suite"},
		{[]string{"--size", "8x8x8"}, "--size is not for --suite basic"},
		{[]string{"--dtype", "fp32"}, "--dtype is not for --suite basic"},
		{[]string{"--suite", "sweep", "--density", "0.5"}, "--density is not for --suite sweep"},
		{[]string{"--suite", "sweep", "--sparsity", "0.5"}, "--sparsity is not for --suite sweep"},
		{[]string{"--suite", "sweep", "--block", "32"}, "--block is not for"},
		{[]string{"--suite", "decode", "--n", "4"}, "--n is not for"},
		{[]string{"--suite", "patterns", "--density", "0"}, "leaves no blocks"},
		{[]string{"--matrix", "a.mtx", "--size", "8x8x8"}, "--size is not for --matrix"},
		{[]string{"--matrix", "a.mtx", "--n", "0"}, "--n: 0"},
		{[]string{"--repeats", "0"}, "--repeats: 0"},
		{[]string{"--rounds", "0"}, "--rounds: 0"},
		{[]string{"--launches", "3", "--json", "--device", "cpu"}, "--launches is for a GPU"},
		{[]string{"--sustained", "2h"}, "a time from 0 to 1m"},
		{[]string{"--from", "a.json", "--from", "b.json"}, "need --markdown"},
		{[]string{"--list", "--suite", "sweep", "no-such"}, "there is no case"},
		{[]string{"--json", "--csv"}, "can't be used together"},
		{[]string{"--gobench", "--markdown"}, "can't be used together"},
		{[]string{"--against", "mkl"}, "there is no \"mkl\""},
		{[]string{"b64-random"}, "there is no case"},
		{[]string{"--suite", "roofline", "--seed", "3"}, "--seed is not for"},
		{[]string{"--suite", "roofline", "--rounds", "0"}, "--rounds: 0"},
		{[]string{"--suite", "roofline", "--json", "--markdown"}, "can't be used together"},
		{[]string{"--suite", "roofline", "--launches", "2"}, "needs --json"},
		{[]string{"--suite", "roofline", "--launches", "2", "--json", "--html", "a.html"}, "no other output"},
		{[]string{"--suite", "roofline", "--device", "cpu"}, "leave out --device cpu"},
		{[]string{"--suite", "roofline", "random-64"}, "there is no case"},
	} {
		err := runBench(io.Discard, c.args...)
		if exitCode(err) != exitUsage || !strings.Contains(err.Error(), c.speak) {
			t.Errorf("%v: %v, want it to speak of %q", c.args, err, c.speak)
		}
	}
	for _, args := range [][]string{{"--html", filepath.Join(folder, "none", "a.html")}, {"--html", folder}, {"--plots", write(t, filepath.Join(folder, "file"), "")}} {
		if err := runBench(io.Discard, args...); exitCode(err) != exitBadOutput {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// A suite that has other cases on a GPU than on the CPU: names of either, until the device is known.
func TestCasesOfEitherDevice(t *testing.T) {
	for _, c := range []struct {
		backend sparsek.Backend
		name    string
		is      bool
	}{
		{sparsek.Auto, "dense-d64", true}, {sparsek.Auto, "window-128-gqa", true}, {sparsek.Auto, "dense-d65", false},
		{sparsek.CUDA, "dense-d64", true}, {sparsek.CUDA, "window-128-gqa", false},
		{sparsek.CPU, "dense-d64", false}, {sparsek.CPU, "window-128-gqa", true},
	} {
		o := &benchCommand{Suite: bench.AttentionSuite, Cases: []string{c.name}}
		o.Device.backend = c.backend
		if err := o.checkCases(); (err == nil) != c.is || err != nil && exitCode(err) != exitUsage {
			t.Errorf("%s on %v: %v", c.name, c.backend, err)
		}
	}
}

// All of it on the CPU, with the user's own files: tables, page and pictures.
func TestBenchFiles(t *testing.T) {
	needLibrary(t)
	folder := t.TempDir()
	square := write(t, filepath.Join(folder, "square.mtx"), "%%MatrixMarket matrix coordinate real general\n4 4 3\n1 1 1\n2 3 -2\n4 4 0.5\n")
	page, plots := filepath.Join(folder, "a.html"), filepath.Join(folder, "plots")
	var out bytes.Buffer
	args := []string{"--matrix", square, "--matrix", filepath.Join(files(t), "csr.npz"), "--block", "2", "--n", "8", "--rounds", "2", "--repeats", "2",
		"--device", "cpu", "--threads", "1", "--against", "cublas,cusparse,torch", "--json", "--html", page, "--plots", plots}
	if _, err := os.Stat(args[3]); err != nil {
		t.Fatal(err)
	}
	if err := runBench(&out, args...); err != nil {
		t.Fatal(err)
	}
	var r bench.Report
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if len(r.Cases) != 2 || r.Cases[0].Name != "square.mtx" || r.Cases[0].Matrix != square || r.Cases[0].N != 8 || r.Cases[0].Blocks != 3 ||
		r.Cases[0].FillIn != 4 || len(r.Cases[0].Timed[0].Rounds) != 2 || r.Cases[0].Timed[0].Runs != 4 || r.Cases[0].DType != "fp32" {
		t.Errorf("%+v", r.Cases)
	}
	absent := map[string]bool{}
	for _, a := range r.Absent {
		absent[a.Peer] = true
		if a.Reason == "" || a.Fix == "" {
			t.Errorf("%+v", a)
		}
	}
	if !absent["cublas"] || !absent["cusparse_bsr"] || !absent["cusparse_bell"] || !absent["cusparse_csr"] {
		t.Errorf("absent: %+v", r.Absent)
	}
	for _, path := range []string{page, filepath.Join(plots, "intensity.svg"), filepath.Join(plots, "rates.png")} {
		if at, err := os.Stat(path); err != nil || at.Size() < 1000 {
			t.Errorf("%s: %v, %v", path, at, err)
		}
	}
}

// A file that cannot be timed gives its exit code, and the others are timed all the same.
func TestBenchBadFiles(t *testing.T) {
	needLibrary(t)
	folder := t.TempDir()
	head := "%%MatrixMarket matrix coordinate real general\n"
	good := write(t, filepath.Join(folder, "good.mtx"), head+"2 2 1\n1 1 1\n")
	for text, want := range map[string]int{
		head + "2 2 1\n1 1 1e300\n": exitOverflow,
		head + "2 2 1\n1 1 inf\n":   exitBadFile,
		head + "2 2 0\n":            exitBadSizes,
		"no matrix":                 exitBadFile,
		head + "0 0 0\n":            exitBadSizes,
	} {
		bad := write(t, filepath.Join(folder, "bad.mtx"), text)
		var out bytes.Buffer
		err := runBench(&out, "--matrix", good, "--matrix", bad, "--block", "2", "--device", "cpu", "--rounds", "1", "--csv")
		if exitCode(err) != want || !strings.Contains(err.Error(), "bad.mtx") {
			t.Errorf("%q: exit code %d, want %d: %v", text, exitCode(err), want, err)
		}
		if want == exitOverflow && (!strings.Contains(out.String(), "good.mtx") || !strings.Contains(out.String(), "bad.mtx has no result")) {
			t.Errorf("%q:\n%s", text, out.String())
		}
	}
}

// fakeTimer has results ready, and is stopped at a case.
type fakeTimer struct {
	stopAt string
	stop   context.CancelFunc
	fault  error
}

func (f *fakeTimer) Measure(ctx context.Context, c bench.Case) (*bench.Result, error) {
	if c.Name == f.stopAt {
		f.stop()
		return nil, ctx.Err()
	}
	if f.fault != nil {
		return nil, f.fault
	}
	return &bench.Result{Name: c.Name, M: 8, N: 8, K: 8, BlockM: 8, BlockK: 8, Pattern: "random", Density: 0.5, EffectiveFLOP: 512, DenseFLOP: 1024, Bytes: 64,
		Timed: []bench.Timed{{Name: bench.Ours, Runs: 1, Seconds: 1e-3, Effective: 1, Rounds: [][]float64{{1e-3}}}}}, nil
}

func (f *fakeTimer) Absent() []bench.Absence { return nil }

// Ctrl-C in the middle keeps what was measured, in every format and file, says so, and ends with its own code.
func TestBenchInterrupted(t *testing.T) {
	cases := []bench.Case{{Name: "first"}, {Name: "second"}, {Name: "third"}}
	for _, format := range []string{"", "json", "csv", "markdown", "gobench"} {
		ctx, stop := context.WithCancel(context.Background())
		o := &benchCommand{}
		o.outputFlags = outputFlags{JSON: format == "json", CSV: format == "csv", Markdown: format == "markdown", GoBench: format == "gobench"}
		o.HTML = filepath.Join(t.TempDir(), "page.html")
		var out bytes.Buffer
		err := reportSuite(ctx, &environment{stdout: &out}, o, &bench.Report{Suite: "basic"}, cases, &fakeTimer{stopAt: "third", stop: stop})
		if exitCode(err) != exitInterrupted {
			t.Errorf("%s: %v", format, err)
		}
		page, readErr := os.ReadFile(o.HTML)
		if readErr != nil {
			t.Fatal(readErr)
		}
		for name, text := range map[string]string{"page": string(page), "output": out.String()} {
			marked := strings.Contains(text, "interrupted after 2 of 3 cases") || strings.Contains(text, `"interrupted": true`) && strings.Contains(text, `"planned": 3`)
			if !marked || !strings.Contains(text, "first") || !strings.Contains(text, "second") || strings.Contains(text, "third") {
				t.Errorf("%s, %s:\n%s", format, name, text)
			}
		}
	}
}

// Before the first case is done there is nothing to keep.
func TestBenchInterruptedAtOnce(t *testing.T) {
	ctx, stop := context.WithCancel(context.Background())
	o := &benchCommand{outputFlags: outputFlags{HTML: filepath.Join(t.TempDir(), "page.html")}}
	var out bytes.Buffer
	err := reportSuite(ctx, &environment{stdout: &out}, o, &bench.Report{}, []bench.Case{{Name: "first"}}, &fakeTimer{stopAt: "first", stop: stop})
	if _, at := os.Stat(o.HTML); exitCode(err) != exitInterrupted || out.Len() > 0 || !os.IsNotExist(at) {
		t.Errorf("%v, %q, %v", err, out.String(), at)
	}
}

// A fault has its own exit code; after one of the device nothing more is tried.
func TestBenchFaults(t *testing.T) {
	cases := []bench.Case{{Name: "first"}, {Name: "second"}}
	for fault, want := range map[error]struct{ code, failed int }{
		workload.ErrWrong:           {exitWrongResult, 2},
		bench.ErrOverflow:           {exitOverflow, 2},
		sparsek.ErrUnsupportedBlock: {exitUnsupported, 2},
		sparsek.ErrCUDA:             {exitCUDA, 1},
		sparsek.ErrOutOfMemory:      {exitNoMemory, 1},
	} {
		r := &bench.Report{}
		err := reportSuite(context.Background(), &environment{stdout: &bytes.Buffer{}}, &benchCommand{}, r, cases, &fakeTimer{fault: fault})
		if exitCode(err) != want.code || len(r.Failed) != want.failed || !errors.Is(err, fault) {
			t.Errorf("%v: exit code %d, %d failed: %v", fault, exitCode(err), len(r.Failed), err)
		}
	}
}

// The list has the suites with their cases, or just the one that is named.
func TestBenchList(t *testing.T) {
	var all, one bytes.Buffer
	if err := runBench(&all, "--list", "--device", "cpu"); err != nil {
		t.Fatal(err)
	}
	if err := runBench(&one, "--list", "--suite", "roofline"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"basic: a first look", "fp32-64", "roofline: ", "b512x112-random", "peers: "} {
		if !strings.Contains(all.String(), want) {
			t.Errorf("%q is missing:\n%s", want, all.String())
		}
	}
	if strings.Contains(all.String(), "fp16-64") { // it is not for the CPU
		t.Errorf("a case of a GPU is listed for the CPU:\n%s", all.String())
	}
	cases, err := bench.Cases(bench.Roofline, bench.Settings{}, nil)
	if err != nil || strings.Contains(one.String(), "basic") || strings.Count(one.String(), "\n") != 1+len(cases) {
		t.Errorf("the roofline suite:\n%s", one.String())
	}
}

// What JSON wrote is reported as it was, in every format; a file of something else is refused.
func TestBenchFrom(t *testing.T) {
	needLibrary(t)
	folder := t.TempDir()
	square := write(t, filepath.Join(folder, "square.mtx"), "%%MatrixMarket matrix coordinate real general\n4 4 3\n1 1 1\n2 3 -2\n4 4 0.5\n")
	var text, again, both bytes.Buffer
	args := []string{"--matrix", square, "--block", "2", "--n", "8", "--rounds", "1", "--device", "cpu", "--against", "none", "--sustained", "1ms"}
	if err := runBench(&text, append(args, "--json")...); err != nil {
		t.Fatal(err)
	}
	file := write(t, filepath.Join(folder, "run.json"), text.String())
	if err := runBench(&again, "--from", file, "--json"); err != nil || again.String() != text.String() {
		t.Errorf("%v:\n%s\nin place of\n%s", err, again.String(), text.String())
	}
	if err := runBench(&both, "--from", file, "--from", file, "--markdown"); err != nil || strings.Count(both.String(), "| square.mtx |") < 4 ||
		!strings.Contains(both.String(), "power and energy are not known: the CPU has no energy counter") {
		t.Errorf("%v:\n%s", err, both.String())
	}
	for content, want := range map[string]string{`{"format": 1}`: "measure again", "no JSON": "no report"} {
		bad := write(t, filepath.Join(folder, "bad.json"), content)
		if err := runBench(&again, "--from", bad); exitCode(err) != exitBadFile || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", content, err)
		}
	}
}
