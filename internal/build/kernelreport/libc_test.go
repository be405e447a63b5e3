// SPDX-License-Identifier: Apache-2.0

package kernelreport

import (
	"debug/elf"
	"fmt"
	"testing"
)

// newestLibc is the version of glibc that is enough: 2.34.
var newestLibc = [2]int{2, 34}

// The library loads where glibc is of that version.
func TestAnOldLibcIsEnough(t *testing.T) {
	file, err := elf.Open(builtLibrary(t))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	symbols, err := file.ImportedSymbols()
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	for _, symbol := range symbols {
		var needed [2]int
		if n, _ := fmt.Sscanf(symbol.Version, "GLIBC_%d.%d", &needed[0], &needed[1]); n < 2 {
			continue
		}
		seen++
		if needed[0] > newestLibc[0] || needed[0] == newestLibc[0] && needed[1] > newestLibc[1] {
			t.Errorf("it needs %s of %s, above %d.%d", symbol.Name, symbol.Version, newestLibc[0], newestLibc[1])
		}
	}
	if seen == 0 {
		t.Error("it needs nothing of glibc")
	}
}
