// SPDX-License-Identifier: Apache-2.0

package build

import "path/filepath"

// Paths inside a checkout, relative to its root.
const (
	sourceDir   = "cutlass_ext/src"
	includeDir  = "cutlass_ext/include"
	headerFile  = "cutlass_ext/include/sparsek.h"
	kernelsFile = "cutlass_ext/kernels.json"
	tuningDir   = "cutlass_ext/tuning"

	buildDir   = "build"
	genDir     = "build/gen"
	objectDir  = "build/obj"
	tempDir    = "build/tmp"
	testDir    = "build/test"
	licenseDir = "build/licenses"

	sanitizedObjectDir = "build/sanitize/obj"
	sandboxGenDir      = "build/sandbox/gen"
	sandboxObjectDir   = "build/sandbox/obj"

	// Library, Provenance, Header, Program and ReportFile are what a build makes.
	Library    = "build/lib/libsparsek.so"
	Provenance = "build/lib/libsparsek.so.provenance.json"
	Header     = "build/include/sparsek.h"
	Program    = "build/bin/sparsek"
	ReportFile = "build/report/kernels.json"

	// SONAME is what the loader knows the library by: its file name and the version of its ABI, SPARSEK_ABI_VERSION.
	SONAME = "libsparsek.so.1"

	// CompileCommands is what WriteCompileCommands makes.
	CompileCommands = "build/compile_commands.json"

	// SanitizedLibrary is what a build with Options.Sanitize makes.
	SanitizedLibrary = "build/sanitize/lib/libsparsek.so"
	// SandboxLibrary is what a build with Options.Sandbox makes.
	SandboxLibrary = "build/sandbox/lib/libsparsek.so"
)

// objectPath is where the object of a source file goes.
func objectPath(source string) string { return filepath.Join(objectDir, source+".o") }

// stampPath is where the stamp of an object or of a library goes.
func stampPath(output string) string {
	switch output {
	case Library:
		return filepath.Join(objectDir, filepath.Base(Library)+".stamp")
	case SanitizedLibrary:
		return filepath.Join(sanitizedObjectDir, filepath.Base(Library)+".stamp")
	case SandboxLibrary:
		return filepath.Join(sandboxObjectDir, filepath.Base(Library)+".stamp")
	}
	return output + ".stamp"
}
