// SPDX-License-Identifier: Apache-2.0

// Package unpack extracts archives that are not trusted: tar.gz and zip
// (wheels are zip files).
//
// Everything is written through an os.Root, so nothing can land outside the
// destination whatever the archive says. On top of that an archive is refused
// as a whole if a name in it is absolute, climbs with "..", is not UTF-8 or
// has control characters; if an entry that is wanted is a link, a device or
// anything but a file or a folder; if two wanted names are the same, or differ
// in letter case alone; or if it unpacks to more files or bytes than Limits
// allow. What was written before the refusal stays: unpack into a folder that
// is thrown away on error.
package unpack
