// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"bytes"
	"crypto/sha256"
	"debug/elf"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

const (
	// section is the note's. Linkers that throw away what is not referred to
	// keep notes.
	section = ".note.sparsek.provenance"
	owner   = "sparsek"
	// noteType numbers the format: one predicate, JSON.
	noteType = 1
)

// Assembly is the assembler source of an object whose note holds the file
// payload, named as the assembler will find it. Without the flag "a" the
// section takes no memory where the library is loaded.
func Assembly(payload string) []byte {
	return fmt.Appendf(nil, `	.section %s,"",@note
	.balign 4
	.long 2f-1f, 4f-3f, %d
1:	.asciz "%s"
2:	.balign 4
3:	.incbin %q
4:	.balign 4
	.section .note.GNU-stack,"",@progbits
`, section, noteType, owner, payload)
}

// ErrNone means that a library has no provenance in it.
var ErrNone = errors.New("has no provenance in it; was it built by other means, or stripped?")

// Read makes the statement about a library from the note in it and the digest
// of its current bytes.
func Read(library string) (Statement, error) {
	f, err := os.Open(library)
	if err != nil {
		return Statement{}, fmt.Errorf("reading provenance: %w", err)
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return Statement{}, fmt.Errorf("reading provenance: %w", err)
	}
	p, err := readNote(f)
	if err != nil {
		return Statement{}, fmt.Errorf("reading provenance: %s: %w", library, err)
	}
	return p.About(filepath.Base(library), hex.EncodeToString(sum.Sum(nil))), nil
}

func readNote(r io.ReaderAt) (p Predicate, err error) {
	file, err := elf.NewFile(r)
	if err != nil {
		return p, err
	}
	s := file.Section(section)
	if s == nil {
		return p, ErrNone
	}
	data, err := s.Data()
	if err != nil {
		return p, err
	}
	payload, err := parseNote(data, file.ByteOrder)
	if err != nil {
		return p, fmt.Errorf("its section %s: %w", section, err)
	}
	if err := json.Unmarshal(payload, &p); err != nil {
		return p, fmt.Errorf("its section %s: %w", section, err)
	}
	return p, nil
}

// parseNote takes the payload out of a note: the sizes of owner and payload,
// the type, the owner and the payload, each padded to four bytes.
func parseNote(data []byte, order binary.ByteOrder) ([]byte, error) {
	const head = 12
	if len(data) < head {
		return nil, io.ErrUnexpectedEOF
	}
	nameSize, size, kind := order.Uint32(data), order.Uint32(data[4:]), order.Uint32(data[8:])
	name := []byte(owner + "\x00")
	if int64(nameSize) != int64(len(name)) || kind != noteType || !bytes.HasPrefix(data[head:], name) {
		return nil, errors.New("is another kind of note")
	}
	data = data[min(len(data), head+(len(name)+3)&^3):]
	if int64(size) > int64(len(data)) {
		return nil, io.ErrUnexpectedEOF
	}
	return data[:size], nil
}
