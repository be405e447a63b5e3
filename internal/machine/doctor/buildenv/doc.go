// SPDX-License-Identifier: Apache-2.0

// Package buildenv checks whether a checkout can be built on this machine: Go,
// the host compiler, the toolchain in the cache, the package index where files
// are still to be fetched, and disk space.
package buildenv
