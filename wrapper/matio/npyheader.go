// SPDX-License-Identifier: Apache-2.0

package matio

import (
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// The .npy format: NumPy Enhancement Proposal 1, "A simple file format for NumPy arrays".

const npyMagic = "\x93NUMPY"

// longestHeader is more than any array of numbers needs; structured types are refused anyway.
const longestHeader = 1 << 16

// npyHeader is what stands before the elements.
type npyHeader struct {
	dtype   dtype
	fortran bool // the first index runs fastest
	shape   []int64
	count   int64 // elements
}

// bytes is the size of the elements.
func (h npyHeader) bytes() int64 { return h.count * int64(h.dtype.size) }

// readNpyHeader reads up to the first element. The count is checked not to overflow; whether the elements are there
// is for the caller to see.
func readNpyHeader(r io.Reader) (npyHeader, error) {
	var start [8]byte
	if _, err := io.ReadFull(r, start[:]); err != nil || string(start[:6]) != npyMagic {
		return npyHeader{}, errors.New("no NumPy array: the file does not begin as .npy files do")
	}
	var length uint64
	switch major := start[6]; major {
	case 1:
		var n [2]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return npyHeader{}, fmt.Errorf("the header is cut off: %w", err)
		}
		length = uint64(binary.LittleEndian.Uint16(n[:]))
	case 2, 3:
		var n [4]byte
		if _, err := io.ReadFull(r, n[:]); err != nil {
			return npyHeader{}, fmt.Errorf("the header is cut off: %w", err)
		}
		length = uint64(binary.LittleEndian.Uint32(n[:]))
	default:
		return npyHeader{}, fmt.Errorf("version %d of the .npy format: 1 to 3 can be read", major)
	}
	if length > longestHeader {
		return npyHeader{}, fmt.Errorf("a header of %d bytes: up to %d are read", length, longestHeader)
	}
	text := make([]byte, length)
	if _, err := io.ReadFull(r, text); err != nil {
		return npyHeader{}, fmt.Errorf("the header is cut off: %w", err)
	}
	h, err := parseNpyDict(string(text))
	if err != nil {
		return npyHeader{}, fmt.Errorf("header: %w", err)
	}
	h.count = 1
	for _, n := range h.shape {
		if n != 0 && h.count > math.MaxInt64/int64(h.dtype.size)/n {
			return npyHeader{}, fmt.Errorf("header: an array of shape %v is more than there can be", h.shape)
		}
		h.count *= n
	}
	return h, nil
}

// parseNpyDict reads the Python dictionary of a header, {'descr': '<f8', 'fortran_order': False, 'shape': (2, 3), }:
// just these keys, once each, and literals of just these kinds.
func parseNpyDict(text string) (npyHeader, error) {
	p := &literal{rest: text}
	var h npyHeader
	var seen []string
	if err := p.expect("{"); err != nil {
		return h, err
	}
	for !p.accept("}") {
		key, err := p.text()
		if err != nil {
			return h, err
		}
		for _, s := range seen {
			if s == key {
				return h, fmt.Errorf("key %q comes twice", key)
			}
		}
		seen = append(seen, key)
		if err := p.expect(":"); err != nil {
			return h, err
		}
		switch key {
		case "descr":
			if p.peek("[") {
				return h, errors.New("the elements are structures, not numbers")
			}
			var descr string
			if descr, err = p.text(); err == nil {
				h.dtype, err = parseDtype(descr)
			}
		case "fortran_order":
			h.fortran, err = p.boolean()
		case "shape":
			h.shape, err = p.tuple()
		default:
			err = fmt.Errorf("unknown key %q", clip([]byte(key)))
		}
		if err != nil {
			return h, err
		}
		if !p.accept(",") {
			if err := p.expect("}"); err != nil {
				return h, err
			}
			break
		}
	}
	if len(seen) != 3 {
		return h, fmt.Errorf("has %v, not descr, fortran_order and shape", seen)
	}
	if p.space(); p.rest != "" {
		return h, fmt.Errorf("%q after the dictionary", clip([]byte(p.rest)))
	}
	return h, nil
}

// literal reads the few Python literals that headers are made of.
type literal struct{ rest string }

func (p *literal) space() { p.rest = strings.TrimLeft(p.rest, " \t\r\n") }

func (p *literal) peek(token string) bool {
	p.space()
	return strings.HasPrefix(p.rest, token)
}

func (p *literal) accept(token string) bool {
	if !p.peek(token) {
		return false
	}
	p.rest = p.rest[len(token):]
	return true
}

func (p *literal) expect(token string) error {
	if !p.accept(token) {
		return fmt.Errorf("%q where %q is due", clip([]byte(p.rest)), token)
	}
	return nil
}

func (p *literal) text() (string, error) {
	for _, quote := range []string{"'", `"`} {
		if p.accept(quote) {
			text, rest, ended := strings.Cut(p.rest, quote)
			if !ended || strings.Contains(text, `\`) {
				return "", fmt.Errorf("%q is no plain text", clip([]byte(p.rest)))
			}
			p.rest = rest
			return text, nil
		}
	}
	return "", fmt.Errorf("%q where text in quotes is due", clip([]byte(p.rest)))
}

func (p *literal) boolean() (bool, error) {
	switch {
	case p.accept("True"):
		return true, nil
	case p.accept("False"):
		return false, nil
	}
	return false, fmt.Errorf("%q where True or False is due", clip([]byte(p.rest)))
}

// tuple reads (), (n,), (n, m) and so on, with n not negative; Python 2 may have written nL.
func (p *literal) tuple() ([]int64, error) {
	if err := p.expect("("); err != nil {
		return nil, err
	}
	list := []int64{}
	for !p.accept(")") {
		p.space()
		digits := len(p.rest) - len(strings.TrimLeft(p.rest, "0123456789"))
		n, err := strconv.ParseInt(p.rest[:digits], 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q where a length is due", clip([]byte(p.rest)))
		}
		list = append(list, n)
		p.rest = strings.TrimPrefix(p.rest[digits:], "L")
		if !p.accept(",") {
			if err := p.expect(")"); err != nil {
				return nil, err
			}
			if len(list) == 1 {
				return nil, errors.New("the shape is a number, not a tuple")
			}
			return list, nil
		}
	}
	return list, nil
}
