// SPDX-License-Identifier: Apache-2.0

package kernelreport

import (
	"os"
	"testing"

	"github.com/sparsek/sparsek/internal/build/provenance"
)

// The library says of itself what the file beside it says of it.
func TestProvenanceIsInTheLibrary(t *testing.T) {
	library := builtLibrary(t)
	statement, err := provenance.Read(library)
	if err != nil {
		t.Fatal(err)
	}
	got, err := statement.Encode()
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(library + ".provenance.json")
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != string(want) {
		t.Errorf("the library says\n%s\nand the file beside it\n%s", got, want)
	}
}
