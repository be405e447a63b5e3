// SPDX-License-Identifier: Apache-2.0

// Package lock reads, checks and renews toolchain.lock.json: the pins of all
// that a build fetches.
//
// CUTLASS is pinned by the digest of its trees, so that it does not matter
// who carries it; the packages of the CUDA compiler are pinned by the size and
// sha256 of their files.
package lock
