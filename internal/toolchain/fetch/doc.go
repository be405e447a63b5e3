// SPDX-License-Identifier: Apache-2.0

// Package fetch copies pinned files from the network, or a folder, into a
// content-addressed cache.
//
// go-getter transports and checks the bytes. This package adds what a build
// tool needs beyond that: ordered carriers with a quick
// fall-back, retries with back-off, caps on size and on slowness, progress, a
// cache that many processes and checkouts share, and an offline mode.
//
// # The cache
//
//	sha256/<hex>   the files, named by the sha256 of their bytes; read-only
//	tmp/           downloads in progress; read only by the process that made them
//	lock/          lock files, held at most for the life of their holder
//	tree/          folders that other packages make with Lock
//
// A file gets its name under sha256 by a rename, after its bytes were checked
// and flushed: a process killed at any moment leaves nothing that looks
// finished. Each use hashes the file again; a damaged one is fetched again.
package fetch
