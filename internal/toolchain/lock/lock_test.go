// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const (
	sumA  = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
	treeA = "h1:hxaGFRoe9PzrqEXce0yYRtcWQo99CN2oI4uQvGEkRy0="
	treeB = "h1:oApR1kg5EHPwnblqlVIcM1Q5w3N8eR0xoU+8Vcz+Zb0="
)

// sample is a lock without fault.
func sample() *Lock {
	return &Lock{
		CUTLASS: CUTLASS{
			Version: "4.3.0", Constraint: "~4.3", Commit: strings.Repeat("c", 40), Include: treeA, Tools: treeB,
			Carriers: []Carrier{
				{URL: "https://git.example/cutlass/{commit}.tar.gz", MaxBytes: 1 << 20, Prefix: "cutlass-{commit}/"},
				{Package: &Package{"carrier", "1.0", "carrier-1.0.tar.gz", 10, sumA}, Prefix: "carrier-1.0/cutlass/"},
			},
		},
		CUDA: CUDA{Version: "13.0.88", Wheels: []Package{
			{compiler, "13.0.88", "nvidia_cuda_nvcc-13.0.88-py3-none-manylinux_x86_64.whl", 20, sumA},
			{"nvidia-nvvm", "13.0.88", "nvidia_nvvm-13.0.88-py3-none-manylinux_x86_64.whl", 30, sumA},
		}},
		Tools: []Package{{ClangFormat, "19.1.7", "clang_format-19.1.7-py2.py3-none-manylinux_x86_64.whl", 40, sumA}},
	}
}

func TestSaveAndLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	want := sample()
	if err := want.Save(path); err != nil {
		t.Fatal(err)
	}
	got, err := Load(path)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	bad := sample()
	bad.CUDA.Version = ""
	if err := bad.Save(path); err == nil {
		t.Error("a lock with a fault was written")
	}
	if again, err := Load(path); err != nil || !cmp.Equal(want, again) {
		t.Errorf("the good lock is gone: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(filepath.Dir(path), "*")); len(left) != 1 {
		t.Errorf("left behind: %q", left)
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), FileName)
	if _, err := Load(path); !errors.Is(err, fs.ErrNotExist) || !strings.Contains(err.Error(), path) {
		t.Errorf("missing: got %v", err)
	}
	if err := os.WriteFile(path, []byte("{"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("broken: got %v", err)
	}
}

func TestFaultsAreNamed(t *testing.T) {
	for want, spoil := range map[string]func(l *Lock){
		"cutlass.version: 4.4.0 does not satisfy":     func(l *Lock) { l.CUTLASS.Version = "4.4.0" },
		"cutlass.version: 4.3.0-dev does not satisfy": func(l *Lock) { l.CUTLASS.Version = "4.3.0-dev" },
		"cutlass.version: \"4.3\"":                    func(l *Lock) { l.CUTLASS.Version = "4.3" },
		"constraint \"~~4\"":                          func(l *Lock) { l.CUTLASS.Constraint = "~~4" },
		"cutlass.commit":                              func(l *Lock) { l.CUTLASS.Commit = strings.Repeat("C", 40) },
		"cutlass.include":                             func(l *Lock) { l.CUTLASS.Include = "h1:" },
		"cutlass.tools":                               func(l *Lock) { l.CUTLASS.Tools = strings.TrimPrefix(treeB, "h1:") },
		"cutlass.carriers: none":                      func(l *Lock) { l.CUTLASS.Carriers = nil },
		"carriers[0]: prefix \"x\"":                   func(l *Lock) { l.CUTLASS.Carriers[0].Prefix = "x" },
		"carriers[0]: prefix \"../\"":                 func(l *Lock) { l.CUTLASS.Carriers[0].Prefix = "../" },
		"carriers[0]: either a url or a package":      func(l *Lock) { l.CUTLASS.Carriers[0].URL = "" },
		"carriers[0]: the url is not of":              func(l *Lock) { l.CUTLASS.Carriers[0].URL = "http://h/x.zip" },
		"carriers[0]: the url ends":                   func(l *Lock) { l.CUTLASS.Carriers[0].URL = "https://h/x.rar" },
		"carriers[0]: max_bytes":                      func(l *Lock) { l.CUTLASS.Carriers[0].MaxBytes = 0 },
		"carriers[1]: max_bytes":                      func(l *Lock) { l.CUTLASS.Carriers[1].MaxBytes = 1 },
		"carriers[1]: carrier: sha256":                func(l *Lock) { l.CUTLASS.Carriers[1].Package.SHA256 = "" },
		"cuda.version":                                func(l *Lock) { l.CUDA.Version = "13" },
		"cuda.wheels: none":                           func(l *Lock) { l.CUDA.Wheels = nil },
		"wheels[0]: nvidia-cuda-nvcc: sha256":         func(l *Lock) { l.CUDA.Wheels[0].SHA256 = strings.ToUpper(sumA) },
		"wheels[0]: nvidia-cuda-nvcc: a size of 0":    func(l *Lock) { l.CUDA.Wheels[0].Bytes = 0 },
		"wheels[0]: nvidia-cuda-nvcc: file \"../x":    func(l *Lock) { l.CUDA.Wheels[0].File = "../x.whl" },
		"wheels[0]: nvidia-cuda-nvcc: version":        func(l *Lock) { l.CUDA.Wheels[0].Version = "" },
		"wheels[0]: name \"a/b\"":                     func(l *Lock) { l.CUDA.Wheels[0].Name = "a/b" },
		"tools[0]: clang-format: sha256":              func(l *Lock) { l.Tools[0].SHA256 = "" },
		"tools[0]: \"nvidia-cuda-nvcc\" comes twice":  func(l *Lock) { l.Tools[0].Name = compiler },
		"wheels[1]: \"nvidia-cuda-nvcc\" comes twice": func(l *Lock) { l.CUDA.Wheels[1].Name = compiler },
	} {
		l := sample()
		spoil(l)
		if err := l.Validate(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("want %q, got %v", want, err)
		}
	}
	two := sample()
	two.CUTLASS.Commit, two.CUDA.Version = "", ""
	if err := two.Validate(); err == nil || !strings.Contains(err.Error(), "commit") || !strings.Contains(err.Error(), "cuda.version") {
		t.Errorf("only one of two faults is named: %v", err)
	}
}

func TestParseIsStrict(t *testing.T) {
	good, err := sample().Format()
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"unknown field": strings.Replace(string(good), `"commit"`, `"comment": "x", "commit"`, 1),
		"more after":    string(good) + "{}",
		"empty":         "",
		"an array":      "[]",
	} {
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: taken", name)
		}
	}
	if _, err := Parse(good); err != nil {
		t.Error(err)
	}
}

func FuzzParse(f *testing.F) {
	good, err := sample().Format()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add([]byte(`{"cutlass":{"carriers":[{"package":null}]},"cuda":{"wheels":[{}]}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		l, err := Parse(data)
		if err != nil {
			return
		}
		text, err := l.Format()
		if err != nil {
			t.Fatal(err)
		}
		again, err := Parse(text)
		if err != nil || !cmp.Equal(l, again) {
			t.Fatalf("a lock does not survive being written: %v", err)
		}
	})
}

func TestDiff(t *testing.T) {
	a, b := sample(), sample().clone()
	if d := Diff(a, b); len(d) != 0 {
		t.Errorf("of a copy: %v", d)
	}
	b.CUDA.Wheels[1].Version, b.CUDA.Wheels[1].Bytes = "13.0.99", 31
	b.CUDA.Wheels = append(b.CUDA.Wheels[1:], Package{Name: "new", Version: "1"})
	b.CUTLASS.Carriers = b.CUTLASS.Carriers[:1]
	var got []string
	for _, c := range Diff(a, b) {
		got = append(got, c.String())
	}
	want := []string{
		"cutlass carrier 2: carrier 1.0 (carrier-1.0.tar.gz, 10 bytes, sha256 " + sumA + ") at carrier-1.0/cutlass/ -> (none)",
		"nvidia-nvvm version: 13.0.88 -> 13.0.99",
		"nvidia-nvvm bytes: 30 -> 31",
		"new version: (none) -> 1",
		"nvidia-cuda-nvcc version: 13.0.88 -> (none)",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	if raw, _ := json.Marshal(a); !strings.Contains(string(raw), `"13.0.88"`) || a.CUDA.Wheels[1].Version != "13.0.88" {
		t.Error("a copy shares its wheels with the original")
	}
}
