// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"archive/zip"
	"bufio"
	"fmt"
	"io"
	"net/textproto"
	"path"
	"strings"
)

// licence is the text of a licence.
type licence struct {
	name string // of its file
	text []byte
}

// maxText bounds what is read of a licence or of a package's metadata.
const maxText = 1 << 20

// licenceNames are how the files are called that state a module's licence.
var licenceNames = []string{"LICENSE", "LICENCE", "COPYING", "NOTICE", "PATENTS"}

// readLicences reads the licences at the top of an archive, below prefix.
func readLicences(archive, prefix string) ([]licence, error) {
	r, err := zip.OpenReader(archive)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var found []licence
	for _, f := range r.File {
		name, ok := strings.CutPrefix(f.Name, prefix)
		if !ok || strings.Contains(name, "/") || !isLicence(name) {
			continue
		}
		text, err := readEntry(f)
		if err != nil {
			return nil, err
		}
		found = append(found, licence{name, text})
	}
	if len(found) == 0 {
		return nil, fmt.Errorf("%s has none at its top", path.Base(archive))
	}
	return found, nil
}

func isLicence(name string) bool {
	for _, start := range licenceNames {
		if strings.HasPrefix(strings.ToUpper(name), start) {
			return true
		}
	}
	return false
}

func readEntry(f *zip.File) ([]byte, error) {
	if f.UncompressedSize64 > maxText {
		return nil, fmt.Errorf("%s is %d bytes long", f.Name, f.UncompressedSize64)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// marks are sentences, in lower case, by which a licence is known, and its
// name in SPDX's list.
var marks = []struct{ sentence, id string }{
	{"apache license version 2.0", "Apache-2.0"},
	{"mozilla public license, version 2.0", "MPL-2.0"},
	{"mozilla public license version 2.0", "MPL-2.0"},
	{"permission is hereby granted, free of charge, to any person obtaining a copy", "MIT"},
	{"redistribution and use in source and binary forms", bsd2},
	{"sil open font license, version 1.1", "OFL-1.1"},
	{"creative commons attribution 4.0 international public license", "CC-BY-4.0"},
	// Its other choice is the GPL: this is the one that is taken.
	{"choice of exactly one of the following two licenses: * the freetype license", "FTL"},
}

const (
	bsd2     = "BSD-2-Clause"
	bsd3     = "BSD-3-Clause"
	bsdThird = "to endorse or promote products" // what the second has not
)

// identify names the licences in a text: none where it knows none.
func identify(text []byte) []string {
	plain := strings.Join(strings.Fields(strings.ToLower(string(text))), " ")
	var ids []string
	for _, mark := range marks {
		if !strings.Contains(plain, mark.sentence) {
			continue
		}
		if mark.id == bsd2 && strings.Contains(plain, bsdThird) {
			mark.id = bsd3
		}
		ids = append(ids, mark.id)
	}
	return ids
}

// wheelLicence is the licence that a Python wheel states: an SPDX expression,
// or empty.
func wheelLicence(wheel string) (string, error) {
	r, err := zip.OpenReader(wheel)
	if err != nil {
		return "", err
	}
	defer r.Close()
	for _, f := range r.File {
		if dir, name := path.Split(f.Name); name != "METADATA" || !strings.HasSuffix(dir, ".dist-info/") {
			continue
		}
		text, err := readEntry(f)
		if err != nil {
			return "", err
		}
		head, err := textproto.NewReader(bufio.NewReader(strings.NewReader(string(text) + "\n\n"))).ReadMIMEHeader()
		if err != nil {
			return "", fmt.Errorf("%s of %s: %w", f.Name, path.Base(wheel), err)
		}
		if expression := head.Get("License-Expression"); expression != "" {
			return expression, nil
		}
		return head.Get("License"), nil
	}
	return "", nil
}
