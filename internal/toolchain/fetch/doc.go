// SPDX-License-Identifier: Apache-2.0

// Package fetch brings pinned files from the network, or a folder, into a
// cache that is addressed by content.
//
// go-getter transports and checks the bytes. Around it this package has what
// a build tool needs and a transport has not: ordered carriers with a quick
// fall-back, retries with back-off, caps on size and on slowness, progress, a
// cache that many processes and checkouts share, and an offline mode.
//
// # The cache
//
//	sha256/<hex>   the files, named by the sha256 of their bytes; read-only
//	tmp/           downloads under way; never read by anyone but their maker
//	lock/          lock files, held while their holder lives and not longer
//	tree/          folders that other packages make with Lock
//
// A file comes to its name under sha256 by a rename, after its bytes were
// checked and flushed: a process killed at any moment leaves nothing there
// that looks finished. Each use hashes the file again; one that was damaged
// since is fetched anew.
package fetch
