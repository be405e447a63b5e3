// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// fakeCache stands in for ccache: it notes its settings and runs the rest.
const fakeCache = `#!/bin/sh
echo "$CCACHE_COMPILERCHECK" > "$CALLS.identity"
for last; do :; done
echo "cached:$last" >> "$CALLS"
exec "$@"
`

// addCache puts a stand-in called name on PATH.
func (tr *tree) addCache(name, script string) string {
	tr.t.Helper()
	dir := tr.t.TempDir()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte(script), 0o777); err != nil {
		tr.t.Fatal(err)
	}
	tr.t.Setenv("PATH", dir+string(filepath.ListSeparator)+os.Getenv("PATH"))
	return path
}

func (tr *tree) read(name string) string {
	tr.t.Helper()
	text, err := os.ReadFile(filepath.Join(tr.root, name))
	if err != nil {
		tr.t.Fatal(err)
	}
	return string(text)
}

func TestCompilerCacheRunsNVCCAlone(t *testing.T) {
	for _, name := range launchers {
		tr := newTree(t)
		t.Setenv("COMPILER_VERSION", "")
		everything := append(slices.Clone(allSources), "link")
		tr.expect("without", everything...)
		want := tr.read(Library)

		tr.addCache(name, fakeCache)
		t.Setenv(LauncherVariable, "")
		tr.expect("a cache that comes makes nothing stale")
		if err := Clean(t.Context(), tr.root, nil); err != nil {
			t.Fatal(err)
		}
		tr.expect("with", append(everything, "cached:"+instanceSource, "cached:"+validateSource)...)
		if tr.read(Library) != want {
			t.Errorf("%s: another library:\n%s", name, cmp.Diff(want, tr.read(Library)))
		}
		identity, err := os.ReadFile(tr.calls + ".identity")
		if err != nil || len(identity) < len("string:")+64 {
			t.Errorf("%s got %q, %v", name, identity, err)
		}
		t.Setenv("COMPILER_VERSION", "2.0")
		if err := MakeLibrary(t.Context(), tr.opts); err != nil {
			t.Fatal(err)
		}
		if other, _ := os.ReadFile(tr.calls + ".identity"); string(other) == string(identity) {
			t.Errorf("%s gets no new identity for another compiler", name)
		}
		tr.ran()

		t.Setenv(LauncherVariable, "off")
		if err := Clean(t.Context(), tr.root, nil); err != nil {
			t.Fatal(err)
		}
		tr.expect("off", everything...)
	}
}

func TestChoiceOfCompilerCache(t *testing.T) {
	tr := newTree(t)
	chosen := tr.addCache("mine", fakeCache)
	if l, err := findLauncher("mine"); err != nil || l.program != chosen {
		t.Errorf("got %v, %v", l, err)
	}
	if l, err := findLauncher(chosen); err != nil || l.program != chosen {
		t.Errorf("by its path: %v, %v", l, err)
	}
	sccache, ccache := tr.addCache("sccache", fakeCache), tr.addCache("ccache", fakeCache)
	if l, err := findLauncher(""); err != nil || l.program != ccache {
		t.Errorf("got %v, %v; want %s before %s", l, err, ccache, sccache)
	}
	if _, err := findLauncher("no-such-cache"); err == nil || !strings.Contains(err.Error(), "to off") {
		t.Errorf("got %v, want the fix", err)
	}
	t.Setenv("PATH", t.TempDir())
	if l, err := findLauncher(""); err != nil || l != (launcher{}) {
		t.Errorf("none installed: %v, %v", l, err)
	}
}

func TestFailingCompilerCacheIsNamed(t *testing.T) {
	tr := newTree(t)
	tr.addCache("ccache", "#!/bin/sh\necho 'ccache: error: it is confused' >&2\nexit 1\n")
	t.Setenv(LauncherVariable, "")
	err := MakeLibrary(t.Context(), tr.opts)
	if err == nil || !strings.Contains(err.Error(), LauncherVariable+"=off") {
		t.Errorf("got %v, want the fix", err)
	}
}

func TestCompilerCacheSharesAcrossFolders(t *testing.T) {
	u := unit{source: validateSource, device: true}
	one, two := toolsAt("/home/one"), toolsAt("/home/one")
	two.root = "/mnt/two"
	// What differs between two checkouts with one toolchain is left out of the key.
	keep := func(args []string) []string {
		return slices.DeleteFunc(args, func(s string) bool { return strings.HasPrefix(s, prefixMapOption) })
	}
	l := launcher{"/usr/bin/ccache"}
	a, b := keep(l.command(one.compileArgs(u, "o", "d", nil))), keep(l.command(two.compileArgs(u, "o", "d", nil)))
	if !slices.Equal(a, b) {
		t.Errorf("%q\n%q", a, b)
	}
	if env := l.environ(nil, "id"); !slices.Contains(env, "CCACHE_IGNOREOPTIONS="+prefixMapOption+"*") {
		t.Errorf("got %q", env)
	}
	if a[0] != l.program || a[1] != one.nvcc {
		t.Errorf("got %q", a)
	}
}
