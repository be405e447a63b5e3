// SPDX-License-Identifier: Apache-2.0

package native

import (
	"bytes"
	_ "embed"
	"errors"
	"os"
	"testing"
)

//go:embed sparsek.h
var headerCopy []byte

func TestHeaderIsTheLibrarys(t *testing.T) {
	original, err := os.ReadFile("../../../cutlass_ext/include/sparsek.h")
	if errors.Is(err, os.ErrNotExist) {
		t.Skip("skipped: not run in the source tree")
	}
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(original, headerCopy) {
		t.Error("wrapper/internal/native/sparsek.h is not cutlass_ext/include/sparsek.h: copy it")
	}
}
