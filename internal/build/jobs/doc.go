// SPDX-License-Identifier: Apache-2.0

// Package jobs runs independent pieces of work side by side, as many as the
// machine's cores and memory carry.
package jobs
