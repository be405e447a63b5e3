// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

func read(t *testing.T, path ...string) string {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(path...))
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// prepare makes a toolchain of what lies in an unpacked bundle.
func prepare(t *testing.T, dir string) error {
	_, err := toolchain.Prepare(t.Context(), toolchain.Options{LockPath: filepath.Join(dir, "source", lock.FileName),
		CacheDir: filepath.Join(dir, "cache"), Offline: true})
	return err
}

func TestABundleBuilds(t *testing.T) {
	w := newWorld(t)
	archive, result := w.bundle()
	if sum, err := fileSum(archive); err != nil || sum != result.SHA256 {
		t.Errorf("sha256 is %s in the result, and %s of the file: %v", result.SHA256, sum, err)
	}
	if got, want := read(t, archive+".sha256"), result.SHA256+"  sparsek.tar\n"; got != want {
		t.Errorf("beside it: %q, want %q", got, want)
	}
	dir := w.unpack(archive)
	if err := prepare(t, dir); err != nil {
		t.Errorf("the toolchain: %v", err)
	}
	cache := filepath.Join(dir, "cache")
	want := "mage " + cache + " 3 verify -offline\nmage " + cache + " 3 test -offline\n"
	if got, err := w.run(dir); err != nil || !strings.HasSuffix(got, want) {
		t.Errorf("%v: %q", err, got)
	}
	if got, err := w.run(dir, "bench", "-x", "-offline"); err != nil || got != "mage "+cache+" 4 bench -offline\n" {
		t.Errorf("%v: %q", err, got)
	}
	for name, want := range map[string]string{
		"licenses/LICENSE": "licence\n", "licenses/packages/nvidia-cuda-nvcc/License.txt": "terms",
		"licenses/modules/example.org/dep@v1.2.0/LICENSE": mitText, "source/cmd/main/main.go": read(t, w.root, "cmd/main/main.go"),
	} {
		if got := read(t, dir, name); got != want {
			t.Errorf("%s: %q", name, got)
		}
	}
	if got := read(t, dir, "README.txt"); !strings.HasPrefix(got, "sparsek 1.2.3, commit unknown: ") {
		t.Errorf("README.txt: %q", got)
	}
}

func TestTheSameSourcesGiveTheSameBundle(t *testing.T) {
	w := newWorld(t)
	_, first := w.bundle()
	if err := os.Chmod(filepath.Join(w.root, "LICENSE"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, second := w.bundle(); second != first {
		t.Errorf("%+v and then %+v", first, second)
	}
	w.write(w.root, "LICENSE", "another\n")
	if _, third := w.bundle(); third.SHA256 == first.SHA256 {
		t.Error("other sources, the same bundle")
	}
}

// tamper changes one byte in the middle of a file.
func tamper(t *testing.T, path string) {
	t.Helper()
	data := []byte(read(t, path))
	data[len(data)/2] ^= 1
	if err := os.WriteFile(path, data, 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestATamperedBundleIsRefused(t *testing.T) {
	w := newWorld(t)
	archive, _ := w.bundle()
	for _, p := range w.lock.Packages() {
		dir := w.unpack(archive)
		tamper(t, filepath.Join(dir, "cache", "sha256", p.SHA256))
		var refused *fetch.OfflineError
		if err := prepare(t, dir); !errors.As(err, &refused) || !refused.Bad || refused.SHA256 != p.SHA256 {
			t.Errorf("%s: %v", p.Name, err)
		}
	}
	for _, ending := range []string{".zip", ".mod"} {
		dir := w.unpack(archive)
		tamper(t, filepath.Join(dir, "modules", depPath, "@v", depVersion+ending))
		if got, err := w.run(dir); err == nil || strings.Contains(got, "mage ") {
			t.Errorf("%s: %v: %s", ending, err, got)
		}
	}
	// A module that is whole in itself but another one than go.sum says.
	dir := w.unpack(archive)
	sums := filepath.Join(dir, "source", "go.sum")
	tamper(t, sums)
	if got, err := w.run(dir); err == nil || strings.Contains(got, "mage ") {
		t.Errorf("go.sum: %v: %s", err, got)
	}
}

func TestAnIncompleteBundleIsNotWritten(t *testing.T) {
	w := newWorld(t)
	w.write(w.root, "internal/x/x.go", "package x\n\nimport _ \"example.org/missing\"\n")
	out := filepath.Join(t.TempDir(), "x.tar")
	_, err := Write(t.Context(), Options{Root: w.root, Version: "1", Toolchain: &toolchain.Toolchain{Lock: &w.lock}, Program: "./cmd/main", Out: out})
	if err == nil || !strings.Contains(err.Error(), "example.org/missing") {
		t.Errorf("got %v", err)
	}
	if left, err := os.ReadDir(filepath.Dir(out)); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}

func TestBillOfMaterials(t *testing.T) {
	w := newWorld(t)
	archive, _ := w.bundle()
	var bill bom
	if err := json.Unmarshal([]byte(read(t, w.unpack(archive), "sbom.cdx.json")), &bill); err != nil {
		t.Fatal(err)
	}
	if bill.Format != "CycloneDX" || bill.SpecVersion != "1.6" || bill.Metadata.Component.Version != "1.2.3" {
		t.Errorf("%+v", bill)
	}
	type line struct{ purl, scope, licence string }
	var got []line
	var refs []string
	for _, c := range bill.Components {
		l := line{c.PURL, c.Scope, ""}
		for _, choice := range c.Licences {
			l.licence += choice.Expression
			if choice.Licence != nil {
				l.licence += choice.Licence.ID
			}
		}
		got, refs = append(got, l), append(refs, c.Ref)
	}
	want := []line{
		{"pkg:github/nvidia/cutlass@" + w.lock.CUTLASS.Commit, "required", "BSD-3-Clause"},
		{"pkg:pypi/nvidia-cuda-nvcc@1.0", "excluded", "LicenseRef-X"},
		{"pkg:golang/example.org/dep@v1.2.0", "required", "MIT"},
	}
	if diff := cmp.Diff(want, got, cmp.AllowUnexported(line{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if diff := cmp.Diff(refs, bill.Dependencies[0].DependsOn); diff != "" || bill.Dependencies[0].Ref != bill.Metadata.Component.Ref {
		t.Errorf("dependencies:\n%s", diff)
	}
	if sum := bill.Components[1].Hashes[0].Content; sum != w.lock.CUDA.Wheels[0].SHA256 {
		t.Errorf("the package's hash is %s", sum)
	}
}

func TestIdentify(t *testing.T) {
	for text, want := range map[string][]string{
		mitText: {"MIT"},
		"Apache License\n   Version 2.0, January 2004":                                                              {"Apache-2.0"},
		"Mozilla Public License, version 2.0":                                                                       {"MPL-2.0"},
		"Mozilla Public License Version 2.0":                                                                        {"MPL-2.0"},
		"Redistribution and use in source and binary forms":                                                         {"BSD-2-Clause"},
		"redistribution and use in source and binary forms to endorse\nor promote products":                         {"BSD-3-Clause"},
		"under the SIL Open Font License,\nVersion 1.1.":                                                            {"OFL-1.1"},
		"Creative Commons Attribution 4.0 International Public License":                                             {"CC-BY-4.0"},
		"subject to your choice of exactly one of\nthe following two licenses:\n  * The FreeType License, which is": {"FTL"},
		"all rights reserved": nil,
	} {
		if got := identify([]byte(text)); !slices.Equal(got, want) {
			t.Errorf("%q: got %q, want %q", text, got, want)
		}
	}
}

func TestDecodeModules(t *testing.T) {
	got, err := decodeModules(`{"Path": "example.org/Z", "Version": "v1.0.0"} {"Path": "example.org/a", "Version": "v1.0.0"}`)
	if err != nil || len(got) != 2 || got[0].escaped != "example.org/!z/@v/v1.0.0" || got[1].Path != "example.org/a" {
		t.Errorf("%+v, %v", got, err)
	}
	for _, list := range []string{"{", `{"Path": "x", "Error": "not found"}`, `{"Path": "../x", "Version": "v1.0.0"}`} {
		if got, err := decodeModules(list); err == nil {
			t.Errorf("%s gives %+v", list, got)
		}
	}
}
