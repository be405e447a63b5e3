// SPDX-License-Identifier: Apache-2.0

// Package bundle writes one file with all that a build needs: the sources, the
// toolchain's packages, the Go modules, the licences and a bill of materials.
// On a machine without a network, build.sh in it builds and tests.
//
//	build.sh  README.txt  sbom.cdx.json
//	source/    the sources, with a record of their commit
//	cache/     the toolchain's packages, as package fetch caches them
//	modules/   the Go modules, as a module proxy serves them
//	licenses/  of sparsek, CUTLASS, each package and each module
//
// Nothing in it is trusted: a build checks each package against
// toolchain.lock.json and each module against go.sum, both of them among the
// sources. The sources are covered by the sha256 of the whole, which is
// written beside it. The same sources give the same bytes.
package bundle
