// SPDX-License-Identifier: Apache-2.0

package pyindex

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/url"
	"path"
	"strings"

	"golang.org/x/net/html"
)

// parseHTML reads the anchors of a project page of PEP 503, or of any page of
// links.
func parseHTML(body []byte, base *url.URL) ([]Link, error) {
	var links []Link
	inScript := false
	for z := html.NewTokenizer(bytes.NewReader(body)); ; {
		kind := z.Next()
		if err := whole(z, kind); err != nil {
			// A page that was cut off must not look like one without our file.
			return nil, fmt.Errorf("the index's page is damaged: %w", err)
		}
		switch kind {
		case html.ErrorToken:
			if inScript {
				return nil, fmt.Errorf("the index's page is damaged: %w", errCut)
			}
			return links, nil
		case html.EndTagToken:
			inScript = false
		}
		if kind != html.StartTagToken && kind != html.SelfClosingTagToken {
			continue
		}
		tag, attrs := readTag(z)
		inScript = tag == "script" || tag == "style" // up to its end there are no tags
		href, linked := attrs["href"]
		if !linked || (tag != "a" && tag != "base") {
			continue
		}
		u, err := join(base, strings.TrimSpace(href))
		if err != nil {
			continue // a link that cannot be followed
		}
		if tag == "base" {
			base = u
			continue
		}
		_, yanked := attrs["data-yanked"]
		sum, ok := strings.CutPrefix(u.Fragment, "sha256=")
		if !ok {
			sum = ""
		}
		u.Fragment, u.RawFragment = "", ""
		links = append(links, Link{File: path.Base(u.Path), URL: u.String(), SHA256: strings.ToLower(sum), Yanked: yanked})
	}
}

var errCut = errors.New("it ends within a tag, a comment or a script")

// whole says whether the token ends before the page does. The tokenizer drops
// a tag that is cut off, and completes a comment or declaration.
func whole(z *html.Tokenizer, kind html.TokenType) error {
	raw := z.Raw()
	switch kind {
	case html.ErrorToken:
		if err := z.Err(); !errors.Is(err, io.EOF) {
			return err
		}
		if len(raw) > 0 {
			return errCut
		}
	case html.CommentToken, html.DoctypeToken:
		if !bytes.HasSuffix(raw, []byte(">")) {
			return errCut
		}
	}
	return nil
}

// readTag reads the name and the attributes of the tag that z is at. Of
// repeated attributes the first counts.
func readTag(z *html.Tokenizer) (name string, attrs map[string]string) {
	tag, more := z.TagName()
	name, attrs = string(tag), map[string]string{}
	for more {
		var key, value []byte
		key, value, more = z.TagAttr()
		if _, repeated := attrs[string(key)]; !repeated {
			attrs[string(key)] = string(value)
		}
	}
	return name, attrs
}
