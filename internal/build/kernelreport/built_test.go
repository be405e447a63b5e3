// SPDX-License-Identifier: Apache-2.0

package kernelreport

import (
	"debug/elf"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
	"github.com/sparsek/sparsek/internal/build/sass"
)

const libraryName = "libsparsek.so"

// builtLibrary is the library under test, or a reason to skip.
func builtLibrary(t *testing.T) string {
	t.Helper()
	if path := os.Getenv("SPARSEK_LIBRARY"); path != "" {
		return path
	}
	// A compiled test program lies in build/test, beside build/lib.
	if self, err := os.Executable(); err == nil {
		path := filepath.Join(filepath.Dir(self), "..", "lib", libraryName)
		if _, err := os.Stat(path); err == nil {
			return path
		}
	}
	t.Skip("skipped: no library built (go tool mage build) and SPARSEK_LIBRARY not set")
	return ""
}

func builtReport(t *testing.T) *Report {
	t.Helper()
	library := builtLibrary(t)
	r, err := Read(filepath.Join(filepath.Dir(library), "..", "report", "kernels.json"), library)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// What a kernel of a family, or of a family and a type, cannot do without.
var opcodesOf = map[string][]string{
	kernels.Collective:       {"HGMMA", "UTMALDG"},
	kernels.WgmmaBlocks:      {"HGMMA", "STSM", "UTMALDG", "UTMASTG"},
	kernels.WgmmaGather:      {"HGMMA", "LDGSTS", "UTMALDG"},
	kernels.Skinny:           {"HMMA", "LDSM", "UTMALDG"},
	kernels.WgmmaPacked:      {"HGMMA", "UTMALDG", "UBLKCP", "USETMAXREG"},
	kernels.WgmmaScatter:     {"HGMMA", "UTMALDG"},
	kernels.WgmmaPlanes:      {"HGMMA", "UBLKCP", "USETMAXREG"},
	kernels.PlanesPacked:     {"HGMMA", "UBLKCP", "USETMAXREG"},
	kernels.DMMAPacked:       {"DMMA", "UTMALDG", "UBLKCP"},
	kernels.RowMMA + " bf16": {"HMMA"},
	kernels.RowMMA + " fp16": {"HMMA"},
	kernels.RowMMA + " fp32": {"DMMA"},
	kernels.RowMMA + " fp64": {"DMMA"},
	kernels.SIMT:             {"FFMA"},
	kernels.WMMA:             {"HMMA", "LDGSTS"},
	kernels.TMASandbox:       {"HGMMA", "UTMALDG", "USETMAXREG"},
}

// No kernel spills or uses local memory, and each one's machine code is what
// its family claims.
func TestKernelsAreWhatTheyClaim(t *testing.T) {
	families := make(map[string]int)
	for _, k := range builtReport(t).Kernels {
		families[k.Family]++
		families[k.Family+" "+k.DType]++
		if len(k.Functions) == 0 {
			t.Errorf("%s: no machine code", k.Name)
		}
		if len(k.Notes) > 0 {
			t.Errorf("%s: the compiler warns: %q", k.Name, k.Notes)
		}
		for _, f := range k.Functions {
			for _, opcode := range slices.Concat(opcodesOf[k.Family], opcodesOf[k.Family+" "+k.DType]) {
				if f.Opcodes[opcode] == 0 {
					t.Errorf("%s: no %s in %s", k.Name, opcode, f.Symbol)
				}
			}
			for _, opcode := range []string{"LDL", "STL"} {
				if n := f.Opcodes[opcode]; n > 0 {
					t.Errorf("%s: %d %s (local memory) in %s", k.Name, n, opcode, f.Symbol)
				}
			}
			if f.SpillLoads+f.SpillStores+f.Stack > 0 {
				t.Errorf("%s: spills or a stack: %+v", k.Name, f)
			}
			if sass.BaseName(f.Symbol) == "" { // by which a profiler selects the kernel
				t.Errorf("%s: no base name in %s", k.Name, f.Symbol)
			}
			if f.Registers == 0 {
				t.Errorf("%s: no registers reported for %s", k.Name, f.Symbol)
			}
		}
	}
	for family := range opcodesOf {
		if families[family] == 0 {
			t.Errorf("no kernel of family %s in the report", family)
		}
	}
}

// stackOf are parts of the names of kernels that have more local memory than a few words, and how much, in bytes. They
// should have none: the lists of tiles and the scan of rows are made once for a pattern, and sums of columns and the
// choice of blocks have not been measured without. StepKind 4 are attention's kernels with terms and steps of pieces
// (cuda/attention.h): values that stay the same in a tile are stored once and read in each step. StepKind 6 are those with
// keys in pages and steps of pieces, of which each lane of the loading warp has its own.
var stackOf = map[string]int{
	"sampled_listing": 336, "pattern_scan": 280, "pattern_select": 40, "block_sums": 72, "8StepKindE4": 72, "8StepKindE6": 32,
}

// Nor do kernels that are in no list; those that plan may have a few words.
func TestOtherKernelsUseLittleLocalMemory(t *testing.T) {
	const fewWords = 16 // bytes
	others := builtReport(t).Others
	if len(others) == 0 {
		t.Error("no other kernels in the report")
	}
	for _, source := range others {
		for _, f := range source.Functions {
			most := fewWords
			for name, bytes := range stackOf {
				if strings.Contains(f.Symbol, name) {
					most = bytes
				}
			}
			if f.Stack > most {
				t.Errorf("%s: a stack of more than %d bytes: %+v", source.File, most, f)
			}
		}
	}
}

func TestLibraryShowsOneSymbolAndNeedsLittle(t *testing.T) {
	f, err := elf.Open(builtLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	symbols, err := f.DynamicSymbols()
	if err != nil {
		t.Fatal(err)
	}
	var shown []string
	for _, s := range symbols {
		if s.Section != elf.SHN_UNDEF && elf.ST_BIND(s.Info) != elf.STB_LOCAL {
			shown = append(shown, s.Name)
		}
	}
	if !slices.Equal(shown, []string{"sparsek_get_api"}) {
		t.Errorf("the library shows %q", shown)
	}
	needed, err := f.ImportedLibraries()
	if err != nil {
		t.Fatal(err)
	}
	libc := []string{"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "ld-linux-x86-64.so.2"}
	for _, name := range needed {
		if !slices.Contains(libc, name) {
			t.Errorf("the library needs %s", name)
		}
	}
	if name, err := f.DynString(elf.DT_SONAME); err != nil || !slices.Equal(name, []string{libraryName + ".1"}) {
		t.Errorf("its name is %q, %v", name, err)
	}
	if f.Section(".note.gnu.build-id") == nil {
		t.Error("no build id")
	}
	for _, section := range f.Sections {
		if section.Name == ".debug_info" {
			t.Error("debug information is left in")
		}
	}
}

func TestReportOfAnotherLibraryIsRefused(t *testing.T) {
	dir := t.TempDir()
	report, library := filepath.Join(dir, "r.json"), filepath.Join(dir, "lib")
	for path, text := range map[string]string{report: `{"library_sha256": "00"}`, library: "library"} {
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Read(report, library); err == nil {
		t.Error("no error")
	}
}

// A kernel that is in the list has its own functions alone, and one that is in none any of the other sources.
func TestFunctionsOfAReport(t *testing.T) {
	source := func(symbols ...string) (s Source) {
		for _, symbol := range symbols {
			s.Functions = append(s.Functions, Function{Symbol: symbol, SASS: "of " + symbol})
		}
		return s
	}
	r := &Report{Kernels: []Kernel{{Name: "tma", Source: source("a")}, {Name: "gather", Source: source("b", "c")}}, Others: []Source{source("d"), source("e")}}
	for _, c := range []struct {
		kernel, symbol string
		found          bool
	}{{"gather", "c", true}, {"gather", "a", false}, {"gather", "e", false}, {"sampled", "e", true}, {"sampled", "a", false}} {
		if f, ok := r.Function(c.kernel, c.symbol); ok != c.found || ok && f.SASS != "of "+c.symbol {
			t.Errorf("%+v: %+v, %v", c, f, ok)
		}
	}
}

func TestJoinReport(t *testing.T) {
	usage := []sass.Usage{{Symbol: "kernel", Registers: 9, SpillLoads: 4}}
	code := []sass.Function{{Symbol: "called", Opcodes: map[string]int{"LDL": 2}},
		{Symbol: "kernel", Opcodes: map[string]int{"HGMMA": 3, "EXIT": 1}}}
	got, err := Join("k.cu", usage, []string{"note"}, code)
	if err != nil {
		t.Fatal(err)
	}
	if len(got.Functions) != 2 || got.Functions[0].Opcodes["LDL"] != 2 || got.Functions[1].Registers != 9 ||
		got.Functions[1].SpillLoads != 4 || got.Functions[1].Instructions != 4 {
		t.Errorf("got %+v", got)
	}
	if _, err := Join("k.cu", usage, nil, code[:1]); err == nil {
		t.Error("a kernel without machine code: no error")
	}
}
