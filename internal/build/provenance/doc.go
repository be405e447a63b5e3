// SPDX-License-Identifier: Apache-2.0

// Package provenance says what a library was made of and how: an in-toto
// Statement whose predicate is SLSA's provenance, version 1.
//
// The predicate lies in the library itself, in an ELF note that is not loaded.
// The statement adds the library's own digest, which no library can hold.
// Neither has a time or a folder of the machine in it, so that the same build
// gives the same bytes.
package provenance
