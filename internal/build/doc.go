// SPDX-License-Identifier: Apache-2.0

// Package build makes libsparsek and the program from source.
//
// The compile graph is one level deep: every .cpp file under
// cutlass_ext/src goes through g++, every .cu file there and every file
// generated from kernels.json through nvcc (the registry through g++), and
// one link makes the library of the objects. A command runs again only where
// its stamp says so (package stamp): where its arguments, the toolchain, the
// source or any header that it read differ in content.
//
// The library is linked together with its provenance (package provenance):
// the toolchain and the sources by digest, and the commands.
//
// Everything is made under temporary names in build/tmp and renamed when it
// is whole. One build runs in a checkout at a time; a second one waits.
//
// nvcc runs through a compiler cache where there is one (see launcher), which
// changes how long it takes and nothing else.
//
// The first compiler that fails stops those that run beside it: what had been
// finished is kept, and the next build goes on from there.
package build
