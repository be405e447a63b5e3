// SPDX-License-Identifier: Apache-2.0

package pyindex

import (
	"errors"
	"fmt"
	"html"
	"net/url"
	"path"
	"strings"
)

// parseHTML reads the anchors of a project page of PEP 503, or of any page of
// links.
func parseHTML(body []byte, base *url.URL) ([]Link, error) {
	var links []Link
	s := &tagScanner{rest: string(body)}
	for {
		t, ok, err := s.next()
		if err != nil {
			// A page that was cut off must not look like one without our file.
			return nil, fmt.Errorf("the index's page is damaged: %w", err)
		}
		if !ok {
			return links, nil
		}
		href, linked := t.attrs["href"]
		if !linked || (t.name != "a" && t.name != "base") {
			continue
		}
		u, err := join(base, strings.TrimSpace(href))
		if err != nil {
			continue // a link that cannot be followed
		}
		if t.name == "base" {
			base = u
			continue
		}
		_, yanked := t.attrs["data-yanked"]
		sum, ok := strings.CutPrefix(u.Fragment, "sha256=")
		if !ok {
			sum = ""
		}
		u.Fragment, u.RawFragment = "", ""
		links = append(links, Link{File: path.Base(u.Path), URL: u.String(), SHA256: strings.ToLower(sum), Yanked: yanked})
	}
}

// tag is an opening tag: its name and attributes in lower case, the values
// with their entities resolved.
type tag struct {
	name  string
	attrs map[string]string
}

// tagScanner finds the opening tags of HTML as people and servers write it. It
// knows enough of the language for pages of links: comments, scripts, and
// values with either quote or none.
type tagScanner struct{ rest string }

const space = " \t\r\n\f"

var errCut = errors.New("it ends within a tag")

// next returns the next opening tag; ok is false at the end.
func (s *tagScanner) next() (t tag, ok bool, err error) {
	for {
		_, after, found := strings.Cut(s.rest, "<")
		if !found {
			return tag{}, false, nil
		}
		s.rest = after
		switch {
		case strings.HasPrefix(after, "!--"):
			err = s.skipPast("-->")
		case strings.HasPrefix(after, "!"), strings.HasPrefix(after, "?"), strings.HasPrefix(after, "/"):
			err = s.skipPast(">")
		case after == "" || !isLetter(after[0]):
			continue // a stray "<" is text
		default:
			if t, err = s.tag(); err == nil && (t.name == "script" || t.name == "style") {
				err = s.skipPast("</" + t.name)
				break
			}
			return t, err == nil, err
		}
		if err != nil {
			return tag{}, false, err
		}
	}
}

// tag reads a tag whose "<" was read.
func (s *tagScanner) tag() (tag, error) {
	t := tag{name: s.word(space + "/>"), attrs: map[string]string{}}
	for {
		s.rest = strings.TrimLeft(s.rest, space+"/")
		if s.rest == "" {
			return tag{}, errCut
		}
		if s.rest[0] == '>' {
			s.rest = s.rest[1:]
			return t, nil
		}
		// An attribute's name may begin with "=" only by mistake; the mistake
		// is taken as part of it, so that each turn moves on.
		name := s.rest[:1] + s.after(1).word(space+"/>=")
		value := ""
		s.rest = strings.TrimLeft(s.rest, space)
		if strings.HasPrefix(s.rest, "=") {
			s.rest = strings.TrimLeft(s.rest[1:], space)
			var err error
			if value, err = s.value(); err != nil {
				return tag{}, err
			}
		}
		name = strings.ToLower(name)
		if _, repeated := t.attrs[name]; !repeated {
			t.attrs[name] = html.UnescapeString(value)
		}
	}
}

func (s *tagScanner) after(n int) *tagScanner {
	s.rest = s.rest[n:]
	return s
}

// word takes what comes before the first of the characters in end.
func (s *tagScanner) word(end string) string {
	i := strings.IndexAny(s.rest, end)
	if i < 0 {
		i = len(s.rest)
	}
	w := s.rest[:i]
	s.rest = s.rest[i:]
	return strings.ToLower(w)
}

// value takes the value of an attribute.
func (s *tagScanner) value() (string, error) {
	if s.rest == "" {
		return "", errCut
	}
	end, quoted := space+">", s.rest[0] == '"' || s.rest[0] == '\''
	if quoted {
		end, s.rest = s.rest[:1], s.rest[1:]
	}
	i := strings.IndexAny(s.rest, end)
	if i < 0 {
		return "", errCut
	}
	v := s.rest[:i]
	if quoted {
		i++
	}
	s.rest = s.rest[i:]
	return v, nil
}

// skipPast drops everything up to and with end, in any letter case.
func (s *tagScanner) skipPast(end string) error {
	for i := 0; i+len(end) <= len(s.rest); i++ {
		if strings.EqualFold(s.rest[i:i+len(end)], end) {
			s.rest = s.rest[i+len(end):]
			return nil
		}
	}
	return errCut
}

func isLetter(c byte) bool { return c|0x20 >= 'a' && c|0x20 <= 'z' }
