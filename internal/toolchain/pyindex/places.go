// SPDX-License-Identifier: Apache-2.0

package pyindex

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"

	"github.com/sparsek/sparsek/internal/toolchain/fetch"
)

// maxPage bounds a page of an index; the largest known are a tenth of it.
const maxPage = 64 << 20

// readPage lists the links of the page at address.
func readPage(ctx context.Context, client *http.Client, address string) ([]Link, error) {
	from := fetch.Redact(address)
	base, err := url.Parse(address)
	if err != nil {
		return nil, fmt.Errorf("index %s: the address does not parse", from)
	}
	if base.Scheme == "file" {
		return readFolderOrPage(filepath.FromSlash(base.Path), from)
	}
	page, err := fetch.GetPage(ctx, client, address, accept, maxPage)
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", from, err)
	}
	at := page.URL
	if at.User == nil && at.Host == base.Host {
		at.User = base.User
	}
	links, err := parsePage(page.Body, page.ContentType, at)
	if err != nil {
		return nil, fmt.Errorf("index %s: %w", from, err)
	}
	return mark(links, from), nil
}

// findLinks lists the files of a package in a find-links place: a folder, a
// file of links, or the address of either. A place that is not there has none.
func findLinks(ctx context.Context, client *http.Client, at, name string) ([]Link, error) {
	var links []Link
	var err error
	if strings.Contains(at, "://") {
		links, err = readPage(ctx, client, at)
	} else {
		at, err = expand(at)
		if err == nil {
			links, err = readFolderOrPage(at, at)
		}
	}
	var own []Link
	for _, l := range links {
		if belongs(l.File, name) {
			own = append(own, l)
		}
	}
	return own, err
}

// expand makes a path of the user's absolute.
func expand(path string) (string, error) {
	if rest, ok := strings.CutPrefix(path, "~/"); ok {
		home, err := os.UserHomeDir()
		if err != nil {
			return "", fmt.Errorf("find-links %s: %w", path, err)
		}
		path = filepath.Join(home, rest)
	}
	return filepath.Abs(path)
}

// readFolderOrPage lists the files in a folder of this machine, or the links
// in a page on it.
func readFolderOrPage(path, from string) ([]Link, error) {
	info, err := os.Stat(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil // pip passes over it with a warning
	}
	if err != nil {
		return nil, fmt.Errorf("find-links: %w", err)
	}
	if info.IsDir() {
		entries, err := os.ReadDir(path)
		if err != nil {
			return nil, fmt.Errorf("find-links: %w", err)
		}
		// A simple repository in a folder has its page in index.html.
		if page := filepath.Join(path, "index.html"); exists(page) {
			return readFolderOrPage(page, from)
		}
		var links []Link
		for _, e := range entries {
			file := filepath.Join(path, e.Name())
			if target, err := os.Stat(file); err == nil && target.Mode().IsRegular() {
				links = append(links, Link{File: e.Name(), URL: fetch.FileURL(file), Size: target.Size()})
			}
		}
		return mark(links, from), nil
	}
	body, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("find-links: %w", err)
	}
	links, err := parseHTML(body, &url.URL{Scheme: "file", Path: filepath.ToSlash(path)})
	if err != nil {
		return nil, fmt.Errorf("find-links %s: %w", from, err)
	}
	return mark(links, from), nil
}

func exists(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}

func mark(links []Link, from string) []Link {
	for i := range links {
		links[i].From = from
	}
	return links
}
