// SPDX-License-Identifier: Apache-2.0

// Package pyindex finds the files of Python packages where the user's own pip
// or uv would look for them.
//
// A package is known by its coordinate (name, version, file) and by a hash
// that is pinned elsewhere. This package does not choose the index: it is the
// one in the environment (PIP_INDEX_URL, UV_DEFAULT_INDEX and so on), else in
// pip's configuration files, else the one that the installed pip comes with.
// Both forms of the simple repository API are read, HTML (PEP 503) and JSON
// (PEP 691), and so are folders and pages of links (find-links). Credentials
// in addresses are used and never shown.
package pyindex
