// SPDX-License-Identifier: Apache-2.0

// Package profile measures the cases of the suite gate with Nsight Compute. What was measured lies in a folder:
// profile.json, which says of what and where, and the profiler's CSV of each case.
package profile
