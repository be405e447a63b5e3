// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"errors"
	"path/filepath"
	"slices"
	"strings"
)

// ParseDepfile returns the files that a rule written by a compiler's -MD
// names as prerequisites: cleaned, sorted, each once.
//
// The format is make's: "target : file file \" with continued lines, where a
// space in a name is written "\ ", a number sign "\#" and a dollar "$$".
func ParseDepfile(text string) ([]string, error) {
	text = strings.NewReplacer("\\\r\n", " ", "\\\n", " ").Replace(text)
	var files []string
	for line := range strings.Lines(text) {
		words := splitWords(line)
		if len(words) == 0 {
			continue
		}
		end := slices.IndexFunc(words, func(w string) bool { return strings.HasSuffix(w, ":") })
		if end < 0 {
			return nil, errors.New("depfile: a line without a target")
		}
		for _, word := range words[end+1:] {
			files = append(files, filepath.Clean(word))
		}
	}
	if len(files) == 0 {
		return nil, errors.New("depfile: names no file")
	}
	slices.Sort(files)
	return slices.Compact(files), nil
}

// splitWords splits at unescaped white space and undoes the escapes.
func splitWords(line string) []string {
	var words []string
	var word strings.Builder
	flush := func() {
		if word.Len() > 0 {
			words = append(words, word.String())
			word.Reset()
		}
	}
	for i := 0; i < len(line); i++ {
		next := byte(0)
		if i+1 < len(line) {
			next = line[i+1]
		}
		switch c := line[i]; {
		case c == '\\' && (next == ' ' || next == '#' || next == '\\'), c == '$' && next == '$':
			word.WriteByte(next)
			i++
		case c == ' ' || c == '\t' || c == '\r' || c == '\n':
			flush()
		default:
			word.WriteByte(c)
		}
	}
	flush()
	return words
}
