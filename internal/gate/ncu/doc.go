// SPDX-License-Identifier: Apache-2.0

// Package ncu runs Nsight Compute and reads what it writes: CSV of the raw page (one row a kernel launch, under a row
// of names and one of units), CSV in long form (one row a metric) and, with ncu's own Python module, .ncu-rep files.
// From them it makes the normal form of a measurement: sorted lines "key: %.2f".
package ncu
