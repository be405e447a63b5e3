// SPDX-License-Identifier: Apache-2.0

package build

import "path/filepath"

// Paths inside a checkout, relative to its root.
const (
	sourceDir   = "cutlass_ext/src"
	includeDir  = "cutlass_ext/include"
	headerFile  = "cutlass_ext/include/sparsek.h"
	kernelsFile = "cutlass_ext/kernels.json"

	buildDir   = "build"
	genDir     = "build/gen"
	objectDir  = "build/obj"
	tempDir    = "build/tmp"
	testDir    = "build/test"
	licenseDir = "build/licenses"

	// Library, Header, Program and ReportFile are what a build makes.
	Library    = "build/lib/libsparsek.so"
	Header     = "build/include/sparsek.h"
	Program    = "build/bin/sparsek"
	ReportFile = "build/report/kernels.json"
)

// objectPath is where the object of a source file goes.
func objectPath(source string) string { return filepath.Join(objectDir, source+".o") }

// stampPath is where the stamp of an object or of the library goes.
func stampPath(output string) string {
	if output == Library {
		return filepath.Join(objectDir, filepath.Base(Library)+".stamp")
	}
	return output + ".stamp"
}
