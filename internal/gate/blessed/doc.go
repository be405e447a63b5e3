// SPDX-License-Identifier: Apache-2.0

// Package blessed finds, keeps and rebuilds the libraries that baselines were measured with, by their hash.
package blessed
