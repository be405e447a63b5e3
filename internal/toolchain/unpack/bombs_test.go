// SPDX-License-Identifier: Apache-2.0

package unpack

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"testing"
)

// Offsets in the records of a zip archive.
const (
	centralSize = 24 // unpacked size, in a record of the central directory
	centralName = 46
	endCount    = 8  // entries on this disk; those in all follow
	endSize     = 12 // bytes of the central directory; its offset follows
	endLength   = 22
)

// central splits an archive of one entry into its data, its record in the
// central directory and the end.
func central(t *testing.T, archive []byte) (data, record, end []byte) {
	t.Helper()
	end = archive[len(archive)-endLength:]
	at := binary.LittleEndian.Uint32(end[endSize+4:])
	return archive[:at], archive[at : len(archive)-endLength], end
}

// overlapping is a zip archive in which n names share the bytes of one entry.
func overlapping(t *testing.T, n int, body string) []byte {
	t.Helper()
	data, record, end := central(t, zipped(t, entry{name: "0000", body: body}))
	out, end := bytes.Clone(data), bytes.Clone(end)
	for i := range n {
		out = append(out, record...)
		copy(out[len(out)-len(record)+centralName:], fmt.Sprintf("%04d", i))
	}
	binary.LittleEndian.PutUint16(end[endCount:], uint16(n))
	binary.LittleEndian.PutUint16(end[endCount+2:], uint16(n))
	binary.LittleEndian.PutUint32(end[endSize:], uint32(n*len(record)))
	return append(out, end...)
}

func TestNamesThatShareTheirBytes(t *testing.T) {
	body := strings.Repeat("\x00", 64<<10)
	if err := runZip(t, t.TempDir(), overlapping(t, 10, body), Options{}); err != nil {
		t.Fatalf("the test's archive is not well-formed: %v", err)
	}
	if err := runZip(t, t.TempDir(), overlapping(t, 1000, body), Options{}); !errors.Is(err, ErrTooBig) {
		t.Errorf("got %v", err)
	}
}

func TestSizesThatLie(t *testing.T) {
	for _, claimed := range []uint32{0, 10, 1 << 30} {
		for _, body := range []string{strings.Repeat("\x00", 100), strings.Repeat("\x00", 8<<20)} {
			data, record, end := central(t, zipped(t, entry{name: "a", body: body}))
			binary.LittleEndian.PutUint32(record[centralSize:], claimed)
			archive := bytes.Join([][]byte{data, record, end}, nil)
			dir := t.TempDir()
			err := runZip(t, dir, archive, Options{Limits: Limits{Entries: 1, Bytes: 1 << 20, Ratio: 1 << 20}})
			if !errors.Is(err, ErrTooBig) && !errors.Is(err, ErrCorrupt) {
				t.Errorf("%d bytes that claim to be %d: got %v", len(body), claimed, err)
			}
			for name, text := range listing(t, dir) {
				if len(text) > 1<<20+100 {
					t.Errorf("%d bytes of %q were written", len(text), name)
				}
			}
		}
	}
}

func TestHeadersThatAreTheBomb(t *testing.T) {
	var buf bytes.Buffer
	zw := gzip.NewWriter(&buf)
	tw := tar.NewWriter(zw)
	records := map[string]string{"SPARSEK.x": strings.Repeat("x", 500<<10)}
	for i := range 20 {
		h := &tar.Header{Name: fmt.Sprint(i), Typeflag: tar.TypeReg, Mode: 0o644, PAXRecords: records}
		if err := tw.WriteHeader(h); err != nil {
			t.Fatal(err)
		}
	}
	if err := errors.Join(tw.Close(), zw.Close()); err != nil {
		t.Fatal(err)
	}
	limits := Options{Limits: Limits{Entries: 100, Bytes: 2 << 20, Ratio: 1 << 20}}
	if err := runTar(t, t.TempDir(), buf.Bytes(), limits); !errors.Is(err, ErrTooBig) {
		t.Errorf("got %v", err)
	}
}
