// SPDX-License-Identifier: Apache-2.0

package pyindex

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sparsek/sparsek/internal/sys/testnet"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
)

const own = "https://own.example/simple"

// environment is a made-up one: variables, what "pip config list" prints (or
// no Python at all for ""), and an index that pip comes with.
func environment(vars map[string]string, pip string) Environment {
	return Environment{
		Getenv: func(name string) string { return vars[name] },
		Pip: func(_ context.Context, args ...string) (string, error) {
			switch {
			case pip == "":
				return "", errors.New("no python")
			case args[0] == "-c":
				return own + "\n", nil
			}
			return pip, nil
		},
	}
}

func TestLoad(t *testing.T) {
	const file = "global.index-url='https://file.example/simple'\nglobal.cert='/etc/ca.pem'\n"
	for name, c := range map[string]struct {
		vars map[string]string
		pip  string
		want Config
	}{
		"pip's own":   {nil, "\n", Config{Indexes: []string{own}}},
		"pip's files": {nil, file, Config{Indexes: []string{"https://file.example/simple"}, CAFiles: []string{"/etc/ca.pem"}}},
		"environment first": {map[string]string{"PIP_INDEX_URL": "https://env.example/s/"}, file,
			Config{Indexes: []string{"https://env.example/s/"}, CAFiles: []string{"/etc/ca.pem"}}},
		"no python": {map[string]string{"UV_DEFAULT_INDEX": "corp=https://uv.example/s"}, "", Config{Indexes: []string{"https://uv.example/s"}}},
		"old uv":    {map[string]string{"UV_INDEX_URL": "https://uv.example/s?a=b"}, "", Config{Indexes: []string{"https://uv.example/s?a=b"}}},
		"more of all": {
			map[string]string{"PIP_EXTRA_INDEX_URL": "https://a.example https://b.example", "UV_INDEX": "n=https://c.example",
				"UV_EXTRA_INDEX_URL": "https://d.example", "PIP_FIND_LINKS": "/w1 /w2", "UV_FIND_LINKS": "/w3,/w4"}, "\n",
			Config{Indexes: []string{own, "https://a.example", "https://b.example", "https://c.example", "https://d.example"},
				FindLinks: []string{"/w1", "/w2", "/w3", "/w4"}}},
		"sections": {nil, "install.index-url='https://install.example'\nglobal.index-url='https://global.example'\n" +
			"list.index-url='https://list.example'\nglobal.extra-index-url='\\nhttps://x.example\\nhttps://y.example'\n",
			Config{Indexes: []string{"https://install.example", "https://x.example", "https://y.example"}}},
		"no index": {map[string]string{"PIP_NO_INDEX": "1", "PIP_FIND_LINKS": "/w"}, file,
			Config{FindLinks: []string{"/w"}, CAFiles: []string{"/etc/ca.pem"}}},
	} {
		got, err := Load(context.Background(), environment(c.vars, c.pip))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		for _, s := range []*[]string{&got.FindLinks, &got.Indexes, &got.CAFiles} {
			if len(*s) == 0 {
				*s = nil
			}
		}
		if diff := cmp.Diff(&c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	if _, err := Load(context.Background(), environment(nil, "")); err == nil || !strings.Contains(err.Error(), "PIP_INDEX_URL") ||
		strings.Count(err.Error(), "no python") != 1 {
		t.Errorf("nothing known: got %v", err)
	}
	if _, err := Load(context.Background(), environment(map[string]string{"PIP_NO_INDEX": "perhaps"}, "\n")); err == nil {
		t.Error("an unclear switch was taken")
	}
}

func TestUnquote(t *testing.T) {
	for in, want := range map[string]string{
		`'a'`: "a", `"it's"`: "it's", `'a\nb'`: "a\nb", `'it\'s "so"'`: `it's "so"`, `'\\x'`: `\x`, `'\x41\u00e9'`: "Aé", `''`: "",
	} {
		if got, err := unquote(in); err != nil || got != want {
			t.Errorf("unquote(%s) = %q, %v; want %q", in, got, err, want)
		}
	}
	for _, in := range []string{``, `'`, `a`, `'a"`, `'a'b'`, `'\q'`} {
		if got, err := unquote(in); err == nil {
			t.Errorf("unquote(%s) = %q", in, got)
		}
	}
}

func FuzzUnquote(f *testing.F) {
	f.Add(`'a\'b\n'`)
	f.Fuzz(func(_ *testing.T, s string) { _, _ = unquote(s) })
}

func base(t testing.TB, s string) *url.URL {
	t.Helper()
	u, err := url.Parse(s)
	if err != nil {
		t.Fatal(err)
	}
	return u
}

func TestPages(t *testing.T) {
	b := base(t, "https://u:p@i.example/simple/pkg/")
	html := `<!DOCTYPE html><html><head><meta charset="utf-8"><base href="/root/"></head><body>
<a href="../f/a%2B1.whl#sha256=ABC">a+1.whl</a><br>
<A HREF='https://f.example/b.whl#md5=123' data-yanked="" >b.whl</A><hr>
<a href=c.whl data-yanked>c.whl</a> &nbsp; <a name="x">no link</a>
<!-- <a href="hidden.whl"> --> 1 < 2 <script>"<a href='no.whl'>"</SCRIPT><p/>
<a = href="d.whl" href="e.whl" title='<a href="f.whl">'>d</a>`
	want := []Link{
		{File: "a+1.whl", URL: "https://u:p@i.example/f/a%2B1.whl", SHA256: "abc"},
		{File: "b.whl", URL: "https://f.example/b.whl", Yanked: true},
		{File: "c.whl", URL: "https://u:p@i.example/root/c.whl", Yanked: true},
		{File: "d.whl", URL: "https://u:p@i.example/root/d.whl"},
	}
	for _, kind := range []string{"text/html; charset=utf-8", "application/vnd.pypi.simple.v1+html", ""} {
		got, err := parsePage([]byte(html), kind, b)
		if diff := cmp.Diff(want, got); err != nil || diff != "" {
			t.Errorf("%q: %v %s", kind, err, diff)
		}
	}
	js := `{"meta":{"api-version":"1.1"},"files":[
{"filename":"a.whl","url":"../../f/a.whl","hashes":{"sha256":"ABC"},"size":7,"yanked":false},
{"filename":"c.whl","url":"https://i.example/c.whl","hashes":{}},
{"filename":"b.whl","url":"https://f.example/b.whl","hashes":{},"yanked":"broken"}]}`
	want = []Link{
		{File: "a.whl", URL: "https://u:p@i.example/f/a.whl", SHA256: "abc", Size: 7},
		{File: "c.whl", URL: "https://u:p@i.example/c.whl"},
		{File: "b.whl", URL: "https://f.example/b.whl", Yanked: true},
	}
	got, err := parsePage([]byte(js), "application/vnd.pypi.simple.v1+json", b)
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("json: %v %s", err, diff)
	}
	for body, kind := range map[string]string{`{"files":[`: "application/json", "x": "image/png", `<a href="a.whl`: "text/html"} {
		if got, err := parsePage([]byte(body), kind, b); err == nil {
			t.Errorf("%s %q: got %v", kind, body, got)
		}
	}
}

// A page that was cut off is no page without our file.
func TestCutPages(t *testing.T) {
	b := base(t, "https://i.example/simple/pkg/")
	for _, part := range []string{`<a href="x.whl#sha256=12" data-yanked >`, `<!-- text -->`, `<!DOCTYPE html>`, `<script> x </script>`} {
		for n := 2; n < len(part); n++ {
			if got, err := parseHTML([]byte(`<a href="a.whl">a</a> `+part[:n]), b); err == nil {
				t.Errorf("%q: got %v", part[:n], got)
			}
		}
		if got, err := parseHTML([]byte(`<a href="a.whl">a</a> `+part), b); err != nil || len(got) == 0 {
			t.Errorf("%q: got %v, %v", part, got, err)
		}
	}
}

func FuzzPages(f *testing.F) {
	f.Add([]byte(`<a href="x.whl#sha256=12">x</a>`), true)
	f.Add([]byte(`{"files":[{"filename":"a","url":"b","yanked":true}]}`), false)
	b := base(f, "https://i.example/simple/pkg/")
	f.Fuzz(func(t *testing.T, body []byte, html bool) {
		parse := parseJSON
		if html {
			parse = parseHTML
		}
		links, err := parse(body, b)
		if err != nil && links != nil {
			t.Fatal("links beside an error")
		}
	})
}

// resolver asks the given places, with a client as in earnest.
func resolver(t *testing.T, cfg Config) *Resolver {
	t.Helper()
	client, err := fetch.NewClient()
	if err != nil {
		t.Fatal(err)
	}
	return New(&cfg, client)
}

var wheel = Coordinate{Name: "My.Pkg", Version: "1.0", File: "my_pkg-1.0-py3-none-any.whl"}

// index is a simple repository with the files of wheel's package, below a
// folder, or an index without it.
func index(t *testing.T, has bool) *httptest.Server {
	t.Helper()
	testnet.NeedLoopback(t)
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !has || r.URL.Path != "/simple/my-pkg/" {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "text/html")
		fmt.Fprintf(w, `<a href="../../f/%s#sha256=aa">x</a><a href="other-1.0.whl">y</a>`, wheel.File)
	}))
	t.Cleanup(srv.Close)
	return srv
}

func TestFindInIndexes(t *testing.T) {
	without, with := index(t, false), index(t, true)
	r := resolver(t, Config{Indexes: []string{without.URL + "/simple", strings.Replace(with.URL, "://", "://me:secret@", 1) + "/simple/"}})
	got, err := r.Find(context.Background(), wheel)
	want := []Link{{
		File: wheel.File, URL: strings.Replace(with.URL, "://", "://me:secret@", 1) + "/f/" + wheel.File,
		SHA256: "aa", From: with.URL + "/simple/my-pkg/",
	}}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Fatalf("%v %s", err, diff)
	}
	files, err := r.Files(context.Background(), "my_pkg")
	if err != nil || len(files) != 2 {
		t.Errorf("%v %v", files, err)
	}
}

func TestFindSaysWhyNot(t *testing.T) {
	without := index(t, false)
	gone := index(t, true)
	gone.Close()
	_, err := resolver(t, Config{Indexes: []string{without.URL + "/simple"}}).Find(context.Background(), wheel)
	if !errors.Is(err, ErrNotFound) || !strings.Contains(err.Error(), wheel.File) {
		t.Errorf("nowhere: got %v", err)
	}
	withSecret := strings.Replace(gone.URL, "://", "://me:secret@", 1)
	_, err = resolver(t, Config{Indexes: []string{withSecret, without.URL}}).Find(context.Background(), wheel)
	if errors.Is(err, ErrNotFound) || err == nil || strings.Contains(err.Error(), "secret") || !strings.Contains(err.Error(), gone.URL) {
		t.Errorf("unreachable: got %v", err)
	}
	_, err = resolver(t, Config{Indexes: []string{gone.URL, index(t, true).URL + "/simple"}}).Find(context.Background(), wheel)
	if err != nil {
		t.Errorf("the second index was not asked: %v", err)
	}
}

func TestFindLinks(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "wheels")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(dir, wheel.File)
	if err := os.WriteFile(file, []byte("wheel"), 0o644); err != nil {
		t.Fatal(err)
	}
	page := filepath.Join(t.TempDir(), "links.html")
	if err := os.WriteFile(page, []byte(`<a href="`+fetch.FileURL(file)+`">x</a>`), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, at := range []string{dir, fetch.FileURL(dir), page} {
		got, err := resolver(t, Config{FindLinks: []string{filepath.Join(dir, "missing"), at}}).Find(context.Background(), wheel)
		if err != nil || len(got) != 1 || got[0].URL != fetch.FileURL(file) {
			t.Errorf("%s: %v %v", at, got, err)
		}
	}
}

func TestNormalize(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		name := rapid.StringMatching(`[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?`).Draw(t, "name")
		once := Normalize(name)
		if Normalize(once) != once || strings.ContainsAny(once, "_.") || strings.Contains(once, "--") {
			t.Fatalf("Normalize(%q) = %q", name, once)
		}
		if !belongs(name+"-1.0.tar.gz", once) || belongs(name+"-x-1.0.tar.gz", once) {
			t.Fatalf("files of %q are taken wrongly", name)
		}
	})
}

func TestPythonOfThisMachine(t *testing.T) {
	if _, err := runPython(context.Background(), "-m", "pip", "--version"); err != nil {
		t.Skip("skipped: no pip here")
	}
	vars := map[string]string{}
	cfg, err := Load(context.Background(), Environment{Getenv: func(n string) string { return vars[n] }})
	if err != nil {
		t.Fatal(err)
	}
	if len(cfg.Indexes) == 0 && len(cfg.FindLinks) == 0 {
		t.Error("pip looks nowhere")
	}
	// Without pip the one that Python has for ensurepip, where it has one.
	if _, err := runPython(context.Background(), "-c", "import ensurepip"); err == nil {
		const hide = "import sys; sys.modules['pip'] = None\n" // an import then fails as if it were not installed
		out, err := runPython(context.Background(), "-c", hide+strings.Replace(askDefaultIndex, "import ensurepip", "del sys.modules['pip']; import ensurepip", 1))
		if err != nil || !strings.Contains(out, "://") {
			t.Errorf("without pip: %q, %v", out, err)
		}
	}
	_, err = runPython(context.Background(), "-c", "import sys; sys.exit('because')")
	if err == nil || !strings.Contains(err.Error(), "because") {
		t.Errorf("got %v", err)
	}
}
