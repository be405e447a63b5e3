// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

// npy makes a file of the given header and elements.
func npy(dict string, elements []byte) []byte {
	b := []byte(npyMagic + "\x01\x00")
	b = binary.LittleEndian.AppendUint16(b, uint16(len(dict)))
	return append(append(b, dict...), elements...)
}

func TestNpyHeaders(t *testing.T) {
	for _, c := range []struct{ dict, want string }{
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), }  \n", ""},
		{`{"shape":(1,2),"fortran_order":True,"descr":"|f4"}`, ""},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2L, 1L)}", ""},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2,)}", ""},
		{"{'descr': '<f4', 'fortran_order': False}", "not descr, fortran_order and shape"},
		{"{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)}", `"descr" comes twice`},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2), 'more': 1}", `unknown key "more"`},
		{"{'descr': '<f4', 'fortran_order': 0, 'shape': (1, 2)}", "where True or False is due"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (2)}", "a number, not a tuple"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (-2, -1)}", "where a length is due"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1 2)}", `where ")" is due`},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 2)} exit()", "after the dictionary"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (1, 3)}", "takes 12 bytes, but 8 follow"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (9223372036854775807, 2)}", "more than there can be"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (99999999999999999999, 2)}", "where a length is due"},
		{"{'descr': '<f4', 'fortran_order': False, 'shape': (4000000000, 0)}", "takes 0 bytes"},
		{"{'descr': '?f4', 'fortran_order': False, 'shape': (1, 2)}", "unknown byte order"},
		{"{'descr': '<f', 'fortran_order': False, 'shape': (1, 2)}", "no type of elements"},
		{"{'descr': '<f16', 'fortran_order': False, 'shape': (1, 2)}", `"<f16" is none of`},
		{"{'descr': '<V2', 'fortran_order': False, 'shape': (1, 2)}", `"<V2" is none of`},
		{"{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (1, 2)}", "no plain text"},
		{"[]", `where "{" is due`},
		{"", `where "{" is due`},
	} {
		b := npy(c.dict, make([]byte, 8))
		d, err := ReadNPY(bytes.NewReader(b), int64(len(b)), same)
		switch {
		case c.want == "" && (err != nil || len(d.Data) != 2):
			t.Errorf("%s: %v, %v", c.dict, d, err)
		case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
			t.Errorf("%s: %v, want %q", c.dict, err, c.want)
		}
	}
	for want, b := range map[string][]byte{
		"does not begin as":       []byte("PK\x03\x04...."),
		"version 9":               []byte(npyMagic + "\x09\x00...."),
		"the header is cut off":   []byte(npyMagic + "\x01\x00\xff\x00{"),
		"a header of 16777216":    []byte(npyMagic + "\x02\x00\x00\x00\x00\x01"),
		"does not begin as .npy ": {},
	} {
		if _, err := ReadNPY(bytes.NewReader(b), int64(len(b)), same); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v, want %q", b, err, want)
		}
	}
}

// A claim of size must not take memory before the bytes are seen to be there.
func TestClaimsTakeNoMemory(t *testing.T) {
	b := npy("{'descr': '<f8', 'fortran_order': False, 'shape': (2000000000, 1000)}", nil)
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	if _, err := ReadNPY(bytes.NewReader(b), int64(len(b)), same); err == nil {
		t.Error("no error")
	}
	runtime.ReadMemStats(&after)
	if took := after.TotalAlloc - before.TotalAlloc; took > 1<<20 {
		t.Errorf("%d bytes taken", took)
	}
}

var float32s = Encoding[float32]{"<f4", 4, func(dst []byte, v float32) { binary.LittleEndian.PutUint32(dst, math.Float32bits(v)) }}

func TestWriteAndReadBack(t *testing.T) {
	folder := t.TempDir()
	rapid.Check(t, func(t *rapid.T) {
		rows, cols := rapid.IntRange(0, 9).Draw(t, "rows"), rapid.IntRange(0, 9).Draw(t, "cols")
		want := Dense[float32]{rows, cols, make([]float32, rows*cols)}
		for i := range want.Data {
			want.Data[i] = rapid.Float32().Draw(t, "value")
		}
		path := filepath.Join(folder, "m.npy")
		out, err := CreateDense(path)
		if err != nil {
			t.Fatal(err)
		}
		defer out.Close()
		if err := WriteDense(out, want, float32s); err != nil {
			t.Fatal(err)
		}
		got, err := ReadDense(path, func(x float64) float32 { return float32(x) })
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatal(diff)
		}
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if (len(raw)-4*rows*cols)%64 != 0 {
			t.Fatalf("elements begin at byte %d", len(raw)-4*rows*cols)
		}
	})
}

// NumPy wrote the same array in C order: the bytes must be the same but for the header's padding.
func TestWritesAsNumPyDoes(t *testing.T) {
	folder, _ := unpack(t)
	source := filepath.Join(folder, "dense_f4_C.npy")
	d, err := ReadDense(source, func(x float64) float32 { return float32(x) })
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "again.npy")
	out, err := CreateDense(path)
	if err != nil {
		t.Fatal(err)
	}
	defer out.Close()
	if err := WriteDense(out, d, float32s); err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile(source)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("got  %q\nwant %q", got, want)
	}
}

func TestUnfinishedOutputLeavesNothing(t *testing.T) {
	folder := t.TempDir()
	path := filepath.Join(folder, "c.npy")
	if err := os.WriteFile(path, []byte("older"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := CreateDense(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := WriteDense(out, Dense[float32]{2, 2, make([]float32, 3)}, float32s); err == nil {
		t.Error("3 elements of 2 x 2 were written")
	}
	if err := out.Close(); err != nil {
		t.Fatal(err)
	}
	left, err := os.ReadDir(folder)
	if err != nil || len(left) != 1 {
		t.Errorf("%v, %v: want the older file alone", left, err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != "older" {
		t.Errorf("%q, %v", b, err)
	}
	if _, err := CreateDense(filepath.Join(folder, "no", "c.npy")); err == nil || !strings.Contains(err.Error(), "c.npy") {
		t.Errorf("a folder that is not there: %v", err)
	}
}

func TestEveryElementType(t *testing.T) {
	for descr, want := range map[string]float64{
		"|i1": -2, "<i2": -2, ">i4": -2, "<i8": -2, "|u1": 254, ">u2": 65534, "<u4": 1<<32 - 2, ">u8": 1<<64 - 2, "<f2": -2, ">f8": -2, "|b1": 1,
	} {
		d, err := parseDtype(descr)
		if err != nil {
			t.Fatal(err)
		}
		b := make([]byte, 8)
		switch {
		case d.kind == 'f' && d.size == 2:
			d.order.PutUint16(b, 0xc000)
		case d.kind == 'f':
			d.order.PutUint64(b, math.Float64bits(-2))
		case d.size == 1:
			b[0] = 0xfe
		case d.size == 2:
			d.order.PutUint16(b, 0xfffe)
		case d.size == 4:
			d.order.PutUint32(b, 0xfffffffe)
		case d.size == 8:
			d.order.PutUint64(b, 0xfffffffffffffffe)
		}
		if got := d.float64()(b); got != want {
			t.Errorf("%s: %v, want %v", descr, got, want)
		}
	}
	if _, err := parseDtype("<i3"); err == nil {
		t.Error("<i3 is accepted")
	}
}
