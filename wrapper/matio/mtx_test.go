// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"bytes"
	"compress/gzip"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

func TestMatrixMarketByHand(t *testing.T) {
	const text = "%%matrixmarket MATRIX Coordinate double symmetric\r\n% made by hand\n\n  3 3\t3 \n%\n1 1 1.5D+01\n\n3 1 -.5e0\n2 3 inf\n\n% the end\n"
	got, err := ReadMatrixMarket(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	want := &bsr.Entries{Rows: 3, Cols: 3}
	want.Add(0, 0, 15)
	want.Add(2, 0, -0.5)
	want.Add(0, 2, -0.5)
	inf := func() float64 { x := 0.0; return 1 / x }()
	want.Add(1, 2, inf)
	want.Add(2, 1, inf)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
}

func TestMatrixMarketFaults(t *testing.T) {
	const general = "%%MatrixMarket matrix coordinate real general\n"
	for _, c := range []struct{ text, want string }{
		{"", "line 1: the file is empty"},
		{"1 1 1\n", "line 1: \"1 1 1\" is not of the form"},
		{"%%MatrixMarket vector coordinate real general\n", "line 1: the object is \"vector\""},
		{"%%MatrixMarket matrix list real general\n", "the format is \"list\""},
		{"%%MatrixMarket matrix coordinate quaternion general\n", "the field is \"quaternion\""},
		{"%%MatrixMarket matrix coordinate complex general\n", "the field is complex"},
		{"%%MatrixMarket matrix coordinate real hermitian\n", "the symmetry is hermitian"},
		{"%%MatrixMarket matrix coordinate real odd\n", "the symmetry is \"odd\""},
		{"%%MatrixMarket matrix array pattern general\n", "an array of pattern"},
		{"%%MatrixMarket matrix coordinate pattern skew-symmetric\n", "cannot be skew-symmetric"},
		{general, "line 2: the size line is missing"},
		{general + "% c\n2 2\n", "line 3: size line \"2 2\": want rows, columns and entries"},
		{general + "2 -2 1\n", "\"-2\" is no size"},
		{general + "3000000000 2 1\n", "rows and columns go up to"},
		{general + "9223372036854775808 2 1\n", "is no size"},
		{general + "2 2 2\n1 1 1\n", "line 4: the file ends after 1 of 2 entries"},
		{general + "2 2 9000000000000000000\n1 1 1\n", "line 4: the file ends after 1 of 9000000000000000000"},
		{general + "2 2 1\n1 1 1\n\n2 2 2\n", "line 5: \"2 2 2\" is behind the last entry"},
		{general + "2 2 1\n0 1 1\n", "line 3: row 0 is not within 1 and 2"},
		{general + "2 2 1\n1 3 1\n", "line 3: column 3 is not within 1 and 2"},
		{general + "2 2 1\n1 x 1\n", "line 3: column \"x\" is no integer"},
		{general + "2 2 1\n1 1\n", "line 3: \"1 1\" has 2 numbers, not 3"},
		{general + "2 2 1\n1 1 one\n", "line 3: \"one\" is no number"},
		{general + "2 2 1\n" + strings.Repeat("1", longestLine+1), "line 3: the line is longer"},
		{"%%MatrixMarket matrix coordinate integer general\n1 1 1\n1 1 1.5\n", "\"1.5\" is no 64-bit integer"},
		{"%%MatrixMarket matrix coordinate real symmetric\n2 3 1\n", "symmetric matrix of 2 x 3"},
		{"%%MatrixMarket matrix coordinate real skew-symmetric\n2 2 1\n2 2 1\n", "on the diagonal, at row 2"},
		{"%%MatrixMarket matrix array real general\n2 1\n1\n", "line 4: the file ends before the value of row 2, column 1"},
		{"%%MatrixMarket matrix array real general\n2147483647 2147483647\n1\n", "row 2, column 1"},
	} {
		if _, err := ReadMatrixMarket(strings.NewReader(c.text)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.80q: %v, want %q", c.text, err, c.want)
		}
	}
}

func TestGzipFaults(t *testing.T) {
	var packed bytes.Buffer
	w := gzip.NewWriter(&packed)
	if _, err := w.Write([]byte("%%MatrixMarket matrix coordinate real general\n1 1 1\n1 1 2\n")); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	whole := packed.Bytes()
	if e, err := readGzip(bytes.NewReader(whole)); err != nil || e.Value[0] != 2 {
		t.Fatalf("%v, %v", e, err)
	}
	damaged := bytes.Clone(whole)
	damaged[len(damaged)-6] ^= 1 // the checksum
	for name, b := range map[string][]byte{"cut": whole[:len(whole)-4], "checksum": damaged, "plain": []byte("%%MatrixMarket")} {
		if _, err := readGzip(bytes.NewReader(b)); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}
