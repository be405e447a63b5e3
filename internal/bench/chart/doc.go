// SPDX-License-Identifier: Apache-2.0

// Package chart draws charts: points, lines, bars and areas over two axes, with
// a legend beside them. It is built on gonum/plot's canvases and has one font
// in it. The package gonum/plot itself links twelve, which are a sixth of a
// wheel.
package chart
