// SPDX-License-Identifier: Apache-2.0

package wheel

import (
	"bytes"
	"debug/elf"
	"errors"
	"fmt"
	"slices"
)

// oldest is the libc that every manylinux of this kind has: 2.17.
var oldest = [2]int{2, 17}

// allowed are the libraries that programs may need: glibc's, which are the
// same on every machine.
var allowed = []string{"libc.so.6", "libm.so.6", "libdl.so.2", "librt.so.1", "libpthread.so.0", "libresolv.so.2", "ld-linux-x86-64.so.2"}

// platformTag is the tag of a wheel with these programs and libraries: any
// Python 3 on Linux with the libc that the newest symbol needs.
func platformTag(binaries [][]byte) (string, error) {
	newest := oldest
	for _, text := range binaries {
		file, err := elf.NewFile(bytes.NewReader(text))
		if err != nil {
			return "", err
		}
		if file.Machine != elf.EM_X86_64 {
			return "", fmt.Errorf("a program for %v: wheels are for x86-64", file.Machine)
		}
		libraries, err := file.ImportedLibraries()
		if err != nil {
			return "", err
		}
		for _, name := range libraries {
			if !slices.Contains(allowed, name) {
				return "", fmt.Errorf("it needs %s, which not every machine has", name)
			}
		}
		symbols, err := file.ImportedSymbols()
		if err != nil && !errors.Is(err, elf.ErrNoSymbols) {
			return "", err
		}
		for _, symbol := range symbols {
			var needed [2]int
			if n, _ := fmt.Sscanf(symbol.Version, "GLIBC_%d.%d", &needed[0], &needed[1]); n == 2 && slices.Compare(needed[:], newest[:]) > 0 {
				newest = needed
			}
		}
	}
	return fmt.Sprintf("py3-none-manylinux_%d_%d_x86_64", newest[0], newest[1]), nil
}
