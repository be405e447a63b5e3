// SPDX-License-Identifier: Apache-2.0

// Package unpack extracts archives that are not trusted: tar.gz and zip
// (wheels are zip files).
//
// Everything is written through an os.Root, so nothing can be written outside
// the destination, whatever the archive contains. An archive is also refused
// as a whole if a name in it is absolute, climbs with "..", is not UTF-8 or
// has control characters; if a selected entry is a link, a device or anything
// but a file or a folder; if two selected names are the same, or differ only
// in letter case; or if it unpacks to more files or bytes than Limits
// allow. Files written before the refusal stay: unpack into a folder that is
// deleted on error.
package unpack
