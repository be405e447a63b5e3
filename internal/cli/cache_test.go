// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/sparsek/sparsek/wrapper/tuning"
)

const tuningHeader = "sparsek tuning cache, version 1\n"

// tuningLine is a line of a tuning cache: of a product of M = m, measured at a second of 2026.
func tuningLine(build string, m, second int) string {
	return fmt.Sprintf("device=NVIDIA%%20H200 sm_count=132 build=%s op=dsd m=%d n=8192 k=8192 bm=64 bk=64 dtype=bf16 dtype_c=fp32"+
		" bias=column activation=silu density_class=-9 spread_class=1 union_class=2 date=2026-01-01T00:00:%02dZ"+
		" | fastest_kernel_64 1e-05 0.25 0.001 | second 2e-05 0 0.5\n", build, m, second)
}

// useCache makes path the user's tuning cache.
func useCache(t *testing.T, path, text string) string {
	t.Helper()
	t.Setenv("SPARSEK_TUNING_CACHE", path)
	if text == "" {
		return path
	}
	return write(t, path, text)
}

func wantRun(t *testing.T, args string, wantCode int, wants ...string) string {
	t.Helper()
	code, stdout, stderr := invoke(strings.Fields(args)...)
	missing := false
	for _, want := range wants {
		if !strings.Contains(stdout+stderr, want) {
			missing = true
			t.Errorf("%s: %q is missing", args, want)
		}
	}
	if code != wantCode || missing {
		t.Errorf("%s: code %d, want %d: %s%s", args, code, wantCode, stdout, stderr)
	}
	return stdout
}

func TestCacheListAndShow(t *testing.T) {
	lib := needLibrary(t)
	c, err := tuning.Open(lib, "")
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path := useCache(t, filepath.Join(t.TempDir(), "tuning.txt"),
		tuningHeader+tuningLine("other", 64, 1)+tuningLine(c.Build, 8192, 2)+tuningLine(tuning.ShippedBuild, 4096, 3))
	out := wantRun(t, "cache list", exitOK, "H200", "4096x8192x8192", "64x64", "21 %", "bf16-fp32", "10.0 us", "fastest_kernel_64", "of another build of the library", "1 of 3")
	lines := strings.Split(out, "\n")
	for i, want := range []string{"key", "1 ", "2 ", "3*", "* of"} {
		if !strings.HasPrefix(strings.TrimLeft(lines[i], " "), want) || utf8.RuneCountInString(lines[i]) > 88 {
			t.Errorf("line %d is %q, want %q and 88 columns at most", i, lines[i], want)
		}
	}
	var r cacheResult
	if err := json.Unmarshal([]byte(wantRun(t, "cache list --json", exitOK)), &r); err != nil {
		t.Fatal(err)
	}
	if r.Path != path || r.State != "whole" || len(r.Entries) != 3 || r.Entries[0].M != 4096 || !r.Entries[0].Used || !r.Entries[1].Used ||
		r.Entries[2].Used || r.Entries[2].Candidates[1] != (cacheCandidate{"second", 2e-05, 0, 0.5}) {
		t.Errorf("%+v", r)
	}

	for _, which := range []string{"2", r.Entries[1].Key, r.Entries[1].Key[:6]} {
		wantRun(t, "cache show "+which, exitOK, "8192x8192x8192 (MxNxK) in blocks of 64x64", "132 SMs", "2026-01-01 00:00:02 UTC", "C in fp32", "bias column, activation silu",
			"about 21 % of the blocks stored; block rows of different lengths; of neighbouring block rows, 25 % use", "second", "2.00", "25.0 %", "1.00 ms", r.Entries[1].Key)
	}
	wantRun(t, "cache show 3", exitOK, "the entry is not used")
	var entry cacheEntry
	if err := json.Unmarshal([]byte(wantRun(t, "cache show --json 1", exitOK)), &entry); err != nil || entry.M != 4096 || len(entry.Candidates) != 2 {
		t.Errorf("%v, %+v", err, entry)
	}
	wantRun(t, "cache show 4", exitUsage, "no entry 4", "shows 3")
	wantRun(t, "cache show 0", exitUsage, "no entry 0")
	wantRun(t, "cache show abc", exitUsage, `no key begins with "abc"`)
	wantRun(t, "cache show", exitUsage, `expected "<NUMBER|KEY>"`)
	if _, err := findEntry([]cacheEntry{{Key: "kkl"}, {Key: "kkm"}}, "kk"); err == nil || !strings.Contains(err.Error(), "2 entries") {
		t.Error(err)
	}
}

func TestCacheMergeExportImportClear(t *testing.T) {
	needLibrary(t)
	dir := t.TempDir()
	own := useCache(t, filepath.Join(dir, "own", "tuning.txt"), "")
	a := write(t, filepath.Join(dir, "a"), tuningHeader+tuningLine("x", 1, 1)+tuningLine("x", 2, 9))
	b := write(t, filepath.Join(dir, "b"), tuningHeader+tuningLine("x", 2, 5)+tuningLine("x", 3, 5))
	wantRun(t, "cache list", exitOK, "nothing was measured yet")
	wantRun(t, "cache path", exitOK, own+"\n")
	wantRun(t, "cache merge "+a+" --out "+filepath.Join(dir, "c")+" "+b, exitOK, a+": 2 entries are new or newer, of 2", b+": 1 entry")
	wantRun(t, "cache import "+filepath.Join(dir, "c"), exitOK, "3 entries")
	wantRun(t, "cache export "+filepath.Join(dir, "d"), exitOK, "3 entries")
	c, err1 := os.ReadFile(filepath.Join(dir, "c"))
	d, err2 := os.ReadFile(filepath.Join(dir, "d"))
	if want := tuningHeader + tuningLine("x", 1, 1) + tuningLine("x", 3, 5) + tuningLine("x", 2, 9); errors.Join(err1, err2) != nil || string(c) != want || string(d) != want {
		t.Errorf("%v, %v\n%s\n%s", err1, err2, c, d)
	}
	wantRun(t, "cache export --shipped "+filepath.Join(dir, "e"), exitOK, "are new or newer")
	if text, err := os.ReadFile(filepath.Join(dir, "e")); err != nil || !strings.HasPrefix(string(text), tuningHeader) {
		t.Errorf("%s, %v", text, err)
	}
	wantRun(t, "cache clear", exitOK, "removed 3 entries")
	wantRun(t, "cache clear", exitOK, "removed 0 entries")
	if _, err := os.Stat(own); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

func TestCacheFaults(t *testing.T) {
	needLibrary(t)
	dir := t.TempDir()
	good := write(t, filepath.Join(dir, "good"), tuningHeader+tuningLine("x", 1, 1))
	letter := write(t, filepath.Join(dir, "letter"), "a letter\n")
	newer := write(t, filepath.Join(dir, "newer"), "sparsek tuning cache, version 2\n")
	damaged := write(t, filepath.Join(dir, "damaged"), tuningHeader+tuningLine("x", 1, 1)+"?\n")
	useCache(t, filepath.Join(dir, "own"), "")
	for _, c := range []struct {
		args string
		code int
		want string
	}{
		{"cache", exitUsage, `expected one of "list"`},
		{"cache fly", exitUsage, "unexpected argument fly"},
		{"cache list more", exitUsage, "unexpected argument more"},
		{"cache list --long", exitUsage, "cache list --help"},
		{"cache merge --out x", exitUsage, `expected "<FILE> ..."`},
		{"cache merge " + good, exitUsage, "missing flags: --out=FILE"},
		{"cache import " + good + " " + good, exitUsage, "unexpected argument"},
		{"cache import " + filepath.Join(dir, "none"), exitBadFile, "none: there is no such file"},
		{"cache import " + letter, exitBadFile, letter + ": its first line is not"},
		{"cache import " + newer, exitBadFile, "a newer sparsek"},
		{"cache import " + dir, exitBadFile, "it is a folder"},
		{"cache import " + damaged, exitOK, "warning: " + damaged + ": 1 line is no record, line 3"},
		{"cache merge " + good + " " + letter + " --out " + filepath.Join(dir, "out"), exitBadFile, "first line"},
		{"cache merge " + good + " --out " + letter, exitBadOutput, "it is left as it is"},
		{"cache export " + filepath.Join(dir, "no", "file"), exitBadOutput, "make its folder first"},
		{"cache help", exitOK, "cache export"},
		{"cache merge --help", exitOK, "Usage: sparsek cache merge --out=FILE <FILE> ..."},
	} {
		wantRun(t, c.args, c.code, c.want)
	}
	if _, err := os.Stat(filepath.Join(dir, "out")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a merge that failed left something: %v", err)
	}

	own := useCache(t, filepath.Join(dir, "faulty"), "a letter\n")
	wantRun(t, "cache list", exitBadFile, "first line")
	wantRun(t, "cache import "+good, exitOK, "1 entry", "warning: "+own, "it is now "+own+".set-aside-")
	wantRun(t, "cache list", exitOK, "1x8192x8192")
	t.Setenv("SPARSEK_TUNING_CACHE", "off")
	for _, action := range []string{"path", "clear", "import " + good} {
		code := map[string]int{"path": exitBadFile}[action]
		if code == 0 {
			code = exitBadOutput
		}
		wantRun(t, "cache "+action, code, "SPARSEK_TUNING_CACHE is off")
	}
}
