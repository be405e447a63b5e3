// SPDX-License-Identifier: Apache-2.0

package pyindex

import (
	"encoding/json"
	"fmt"
	"mime"
	"net/url"
	"strings"
)

// Link is a file that a page of an index lists.
type Link struct {
	File   string // file name
	URL    string // absolute; may hold credentials
	SHA256 string // lower-case hex; "" where the page has none
	Size   int64  // bytes; 0 where the page has none
	Yanked bool
	From   string // the page or folder it was found in, without credentials
}

// accept asks for JSON and takes HTML.
const accept = "application/vnd.pypi.simple.v1+json, application/vnd.pypi.simple.v1+html;q=0.2, text/html;q=0.1"

// parsePage reads the links of a page that came from base.
func parsePage(body []byte, contentType string, base *url.URL) ([]Link, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err != nil {
		kind = "text/html" // servers of plain folders leave it out
	}
	switch kind {
	case "application/vnd.pypi.simple.v1+json", "application/json":
		return parseJSON(body, base)
	case "application/vnd.pypi.simple.v1+html", "text/html", "application/xhtml+xml":
		return parseHTML(body, base)
	}
	return nil, fmt.Errorf("a page of the kind %q is no package index", kind)
}

// parseJSON reads a project page of PEP 691 (with the sizes of PEP 700).
func parseJSON(body []byte, base *url.URL) ([]Link, error) {
	var page struct {
		Files []struct {
			Filename string            `json:"filename"`
			URL      string            `json:"url"`
			Hashes   map[string]string `json:"hashes"`
			Size     int64             `json:"size"`
			Yanked   any               `json:"yanked"` // false, true or the reason
		} `json:"files"`
	}
	if err := json.Unmarshal(body, &page); err != nil {
		return nil, fmt.Errorf("the index's page is damaged: %w", err)
	}
	var links []Link
	for _, f := range page.Files {
		u, err := join(base, f.URL)
		if err != nil {
			continue // a file that cannot be fetched
		}
		_, reason := f.Yanked.(string)
		links = append(links, Link{
			File: f.Filename, URL: u.String(), SHA256: strings.ToLower(f.Hashes["sha256"]),
			Size: f.Size, Yanked: reason || f.Yanked == true,
		})
	}
	return links, nil
}

// join resolves a link against the page it stands on. The credentials of the
// page go along to links on the same host, as they do with pip.
func join(base *url.URL, ref string) (*url.URL, error) {
	u, err := base.Parse(ref)
	if err != nil {
		return nil, err
	}
	if u.User == nil && u.Scheme == base.Scheme && u.Host == base.Host {
		u.User = base.User
	}
	return u, nil
}
