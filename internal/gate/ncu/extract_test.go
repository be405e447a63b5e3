// SPDX-License-Identifier: Apache-2.0

package ncu_test

import (
	_ "embed"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/ncu/ncutest"
)

func headline(t *testing.T) []ncu.Metric {
	t.Helper()
	list, err := ncu.FindMetrics(ncu.Headline())
	if err != nil {
		t.Fatal(err)
	}
	return list
}

func put(t *testing.T, file, text string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
	return file
}

const knownHash = "6423f90297d27b7988e78f6bb4d49e67518e7480cae5896dc86b8c418e9f5cb4"

func TestExtract(t *testing.T) {
	launches := append(launchesOf("_Z1kv", 3), ncutest.Launch{Kernel: "_Z1jv", Figures: figures()})
	t.Chdir(t.TempDir()) // the name in the hash file is the one that was asked for
	for name, text := range map[string]string{"raw.csv": ncutest.Raw(launches), "long.csv": ncutest.Long(launches)} {
		put(t, name, text)
		hash, err := ncu.Extract(t.Context(), ncu.ExtractOptions{In: name, Out: "ci/baseline", Kernel: "k", Metrics: headline(t)})
		if err != nil || hash != knownHash {
			t.Fatalf("%s: %s, %v", name, hash, err)
		}
		file := filepath.Join("ci/baseline", ncu.NormalFile)
		norm, err := os.ReadFile(file)
		if err != nil || string(norm) != "dram_bw: 45.20\nsm_active: 72.30\ntensor_core: 65.80\n\n" {
			t.Errorf("%s: %q, %v", name, norm, err)
		}
		sum, err := os.ReadFile(file + ".sha256")
		if err != nil || string(sum) != knownHash+"  ci/baseline/nsight_baseline.norm.txt\n" {
			t.Errorf("%s: %q, %v", name, sum, err)
		}
		// What is wrong leaves what was there.
		for what, o := range map[string]ncu.ExtractOptions{
			"several kernels": {In: name}, "no such kernel": {In: name, Kernel: "x$"}, "no expression": {In: name, Kernel: "("},
			"no file": {In: "nowhere.csv"}, "empty": {In: put(t, "empty.csv", "")},
		} {
			o.Out, o.Metrics = "ci/baseline", headline(t)
			if _, err := ncu.Extract(t.Context(), o); err == nil {
				t.Errorf("%s: no error", what)
			}
		}
		if again, err := os.ReadFile(file); err != nil || string(again) != string(norm) {
			t.Errorf("a failure changed the file: %q, %v", again, err)
		}
	}
}

//go:embed testdata/ncu_report.py
var fakeModule string

// A stand-in for ncu's Python module, beside a stand-in for ncu, as they are installed.
func TestExtractReport(t *testing.T) {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip("skipped: no python3")
	}
	dir := t.TempDir()
	profiler := put(t, filepath.Join(dir, "bin", "ncu"), "")
	in := put(t, filepath.Join(dir, "one"+ncu.ReportSuffix), "")
	o := ncu.ExtractOptions{In: in, Out: filepath.Join(dir, "out"), Metrics: headline(t), Profiler: profiler}
	if _, err := ncu.Extract(t.Context(), o); err == nil || !strings.Contains(err.Error(), "ncu --import") {
		t.Errorf("without the module: %v", err)
	}
	for _, folder := range []string{"bin", "nsight-compute-2025.3.1"} { // of an installation of its own, of a CUDA toolkit
		module := put(t, filepath.Join(dir, folder, "extras", "python", "ncu_report.py"), fakeModule)
		if hash, err := ncu.Extract(t.Context(), o); err != nil || hash != knownHash {
			t.Errorf("%s: %s, %v", folder, hash, err)
		}
		if err := os.Remove(module); err != nil {
			t.Fatal(err)
		}
	}
}
