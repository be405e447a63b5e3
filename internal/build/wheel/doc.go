// SPDX-License-Identifier: Apache-2.0

// Package wheel writes the Python package as a wheel, with the library and the
// program in it. The same files give the same bytes.
package wheel
