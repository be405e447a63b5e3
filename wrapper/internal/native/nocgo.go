// SPDX-License-Identifier: Apache-2.0

//go:build !cgo

package native

// The compiler shows the sentence, whole as long as it is shorter than 70 characters.
var _ struct{} = "sparsek needs cgo: set CGO_ENABLED=1 and install a C compiler"
