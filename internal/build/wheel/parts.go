// SPDX-License-Identifier: Apache-2.0

package wheel

import (
	"archive/zip"
	"bytes"
	"fmt"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// Part is a file of the wheel, or all those that are not from the build.
type Part struct {
	Name  string
	Bytes int64 // that it takes in the wheel, where it is compressed
}

// String names the part and its size.
func (p Part) String() string { return p.Name + " " + term.FormatBytes(p.Bytes) }

// weigh gives the parts of a wheel: the files of the build, and the rest.
func weigh(wheel []byte) ([]Part, error) {
	files, err := zip.NewReader(bytes.NewReader(wheel), int64(len(wheel)))
	if err != nil {
		return nil, err
	}
	var parts []Part
	rest := int64(len(wheel))
	for _, b := range built {
		at := slices.IndexFunc(files.File, func(f *zip.File) bool { return f.Name == b.to })
		size := int64(files.File[at].CompressedSize64)
		parts, rest = append(parts, Part{b.to, size}), rest-size
	}
	return append(parts, Part{"all else", rest}), nil
}

// tooLarge says by how much a wheel is too large, and what makes it so.
func tooLarge(size int64, parts []Part) error {
	var list []string
	for _, p := range parts {
		list = append(list, fmt.Sprintf("%s %d", p.Name, p.Bytes))
	}
	return fmt.Errorf("it would have %d bytes, %d more than the %d that it may have; compressed, its parts have: %s; make one of them smaller",
		size, size-MaxBytes, MaxBytes, strings.Join(list, ", "))
}
