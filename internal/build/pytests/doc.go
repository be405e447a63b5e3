// SPDX-License-Identifier: Apache-2.0

// Package pytests runs the tests of the Python package, in an environment of
// Python that it makes below build/.
package pytests
