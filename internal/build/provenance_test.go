// SPDX-License-Identifier: Apache-2.0

package build

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/build/provenance"
)

func (tr *tree) statement() (s provenance.Statement, text string) {
	tr.t.Helper()
	data, err := os.ReadFile(filepath.Join(tr.root, Provenance))
	if err != nil {
		tr.t.Fatal(err)
	}
	if err := json.Unmarshal(data, &s); err != nil {
		tr.t.Fatal(err)
	}
	return s, string(data)
}

func sum(data []byte) string {
	s := sha256.Sum256(data)
	return hex.EncodeToString(s[:])
}

func TestProvenance(t *testing.T) {
	tr := newTree(t)
	tr.expect("first", append(slices.Clone(allSources), "link")...)
	s, text := tr.statement()
	library, err := os.ReadFile(filepath.Join(tr.root, Library))
	if err != nil {
		t.Fatal(err)
	}
	if got := s.Subject[0].Digest["sha256"]; s.Subject[0].Name != "libsparsek.so" || got != sum(library) {
		t.Errorf("the subject is %v, the library's sha256 %s", s.Subject, sum(library))
	}
	note, err := s.Predicate.Encode()
	if err != nil || !strings.Contains(string(library), string(note)) {
		t.Errorf("the note was not linked: %v", err)
	}

	materials := map[string]map[string]string{}
	for _, m := range s.Predicate.BuildDefinition.ResolvedDependencies {
		materials[m.Name] = m.Digest
	}
	empty := map[string]string{"dirHash": sum(nil)}
	want := map[string]map[string]string{
		"CUTLASS 4 include": empty, "CUTLASS 4 tools/util/include": empty, "nvcc-13.whl": {"sha256": "abc"},
		exportsFile: {"sha256": sum(exports)},
	}
	for _, name := range []string{instanceSource, registrySource, tuningSource, buildInfoSource, validateSource, planSource, planHeader, tableHeader,
		headerFile, "cutlass_ext/src/cuda/simt.cuh", "cutlass_ext/src/cuda/kernel.h", "collective/policy.hpp"} {
		data, err := os.ReadFile(filepath.Join(tr.root, name))
		if err != nil {
			t.Fatal(err)
		}
		want[name] = map[string]string{"sha256": sum(data)}
	}
	if diff := cmp.Diff(want, materials); diff != "" {
		t.Errorf("materials (-want +got):\n%s", diff)
	}

	var makes []string
	for _, c := range s.Predicate.BuildDefinition.InternalParameters.Commands {
		makes = append(makes, c.Makes)
	}
	if len(makes) != len(allSources)+1 || makes[len(makes)-1] != Library {
		t.Errorf("commands make %q", makes)
	}
	compilers := map[string]string{"host": "compiler 1.0", "linker": "linker 1.0", "nvcc": "13"}
	if diff := cmp.Diff(compilers, s.Predicate.BuildDefinition.InternalParameters.Compilers); diff != "" {
		t.Errorf("compilers (-want +got):\n%s", diff)
	}
	for _, dir := range []string{tr.root, filepath.Dir(tr.calls), os.TempDir()} {
		if strings.Contains(text, dir) {
			t.Errorf("a folder of this machine, %s, in the provenance", dir)
		}
	}
}

// Provenance changes with what it describes, and with nothing else.
func TestProvenanceFollowsTheSources(t *testing.T) {
	tr := newTree(t)
	tr.expect("first", append(slices.Clone(allSources), "link")...)
	_, first := tr.statement()
	if err := os.Remove(filepath.Join(tr.root, Provenance)); err != nil {
		t.Fatal(err)
	}
	tr.expect("removed")
	if _, again := tr.statement(); again != first {
		t.Error("the same build has another provenance")
	}
	tr.write(planHeader, "#include \"sparsek.h\"\nchanged\n")
	tr.expect("changed", planSource, registrySource, validateSource, instanceSource, "link")
	if _, changed := tr.statement(); changed == first {
		t.Error("a source changed and the provenance did not")
	}
}
