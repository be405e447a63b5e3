// SPDX-License-Identifier: Apache-2.0

package build

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

func TestSanitizedArgs(t *testing.T) {
	tools := toolsAt("/x")
	host, device := unit{source: planSource}, unit{source: validateSource, device: true}
	for _, u := range sanitize([]unit{host, device}) {
		args := tools.compileArgs(u, "o", "d", nil)
		if got := slices.Contains(args, sanitizers); got == u.device {
			t.Errorf("%s: sanitizers are %t in %q", u.source, got, args)
		}
		// The last one counts.
		if !u.device && slices.Index(args, "-UNDEBUG") < slices.Index(args, "-DNDEBUG") {
			t.Errorf("asserts are off in %q", args)
		}
		if (u.object() == objectPath(u.source)) != u.device {
			t.Errorf("the object of %s goes to %s", u.source, u.object())
		}
	}
	if host.sanitized || slices.Contains(tools.compileArgs(host, "o", "d", nil), sanitizers) {
		t.Error("the units that were given are sanitized too")
	}
	for _, sanitized := range []bool{false, true} {
		args := tools.linkArgs([]string{"a.o"}, "out.so", "map", sanitized)
		if slices.Contains(args, sanitizers) != sanitized || slices.Contains(args, "-Wl,--strip-debug") == sanitized {
			t.Errorf("sanitized %t: %q", sanitized, args)
		}
	}
}

func TestSanitizedLibraryLiesBesideTheOther(t *testing.T) {
	tr := newTree(t)
	tr.expect("plain", append(slices.Clone(allSources), "link")...)
	read := func(name string) string {
		text, err := os.ReadFile(filepath.Join(tr.root, name))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	plain := read(Library)

	tr.opts.Sanitize = true
	var host []string
	for _, source := range allSources {
		if !strings.HasSuffix(source, ".cu") {
			host = append(host, source)
		}
	}
	tr.expect("sanitized", append(host, "link")...)
	tr.expect("sanitized again")
	if read(SanitizedLibrary) == "" || read(Library) != plain {
		t.Error("the plain library was changed, or no other was made")
	}
	tr.opts.Sanitize = false
	tr.expect("plain again")
	if !tr.exists(SanitizedLibrary) {
		t.Error("a plain build removes the sanitized library")
	}

	tr.write("cutlass_ext/src/plan/gone.cpp", "")
	tr.opts.Sanitize = true
	tr.expect("one more", "cutlass_ext/src/plan/gone.cpp", "link")
	if err := os.Remove(filepath.Join(tr.root, "cutlass_ext/src/plan/gone.cpp")); err != nil {
		t.Fatal(err)
	}
	tr.expect("one less", "link")
	if tr.exists(unit{source: "cutlass_ext/src/plan/gone.cpp", sanitized: true}.object()) {
		t.Error("its object is still there")
	}
}
