// SPDX-License-Identifier: Apache-2.0

package install

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func fakeBuild(t *testing.T) string {
	t.Helper()
	build := t.TempDir()
	for _, name := range []string{"lib/libsparsek.so", "include/sparsek.h", "bin/sparsek", "licenses/LICENSE"} {
		path := filepath.Join(build, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("text of "+name), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return build
}

func TestRun(t *testing.T) {
	dest := t.TempDir()
	o := Options{Build: fakeBuild(t), Prefix: "/opt/sparsek", DestDir: dest, Version: "1.2.3"}
	for range 2 { // over an older installation too
		if _, err := Run(o); err != nil {
			t.Fatal(err)
		}
	}
	got := map[string]string{}
	err := filepath.WalkDir(dest, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		name, err := filepath.Rel(dest, path)
		got[name] = info.Mode().String()
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"opt/sparsek/lib/libsparsek.so":              "Lrwxrwxrwx",
		"opt/sparsek/lib/libsparsek.so.1":            "-rwxr-xr-x",
		"opt/sparsek/lib/pkgconfig/sparsek.pc":       "-rw-r--r--",
		"opt/sparsek/include/sparsek.h":              "-rw-r--r--",
		"opt/sparsek/bin/sparsek":                    "-rwxr-xr-x",
		"opt/sparsek/share/licenses/sparsek/LICENSE": "-rw-r--r--",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	text, err := os.ReadFile(filepath.Join(dest, "opt/sparsek/lib/libsparsek.so"))
	if err != nil || string(text) != "text of lib/libsparsek.so" {
		t.Errorf("got %q, %v", text, err)
	}
}

func TestPkgConfigFollowsTheTree(t *testing.T) {
	if _, err := exec.LookPath("pkg-config"); err != nil {
		t.Skip("skipped: no pkg-config")
	}
	prefix := t.TempDir()
	if _, err := Run(Options{Build: fakeBuild(t), Prefix: prefix, Version: "1.2.3"}); err != nil {
		t.Fatal(err)
	}
	moved := prefix + "-moved"
	if err := os.Rename(prefix, moved); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(moved) })
	cmd := exec.Command("pkg-config", "--variable=includedir", "sparsek")
	cmd.Env = append(os.Environ(), "PKG_CONFIG_PATH="+filepath.Join(moved, "lib/pkgconfig"))
	out, err := cmd.Output()
	if err != nil {
		t.Fatal(err)
	}
	if got := filepath.Clean(strings.TrimSpace(string(out))); got != filepath.Join(moved, "include") {
		t.Errorf("headers at %q, want below %q", got, moved)
	}
}

func TestIncompleteBuildInstallsNothing(t *testing.T) {
	build, prefix := fakeBuild(t), t.TempDir()
	if err := os.Remove(filepath.Join(build, "bin/sparsek")); err != nil {
		t.Fatal(err)
	}
	_, err := Run(Options{Build: build, Prefix: prefix})
	if err == nil || !strings.Contains(err.Error(), "bin/sparsek") {
		t.Errorf("got %v, want an error that names what is missing", err)
	}
	if entries, _ := os.ReadDir(prefix); len(entries) > 0 {
		t.Errorf("installed %v", entries)
	}
	if _, err := Run(Options{Build: build, Prefix: "relative"}); err == nil {
		t.Error("a relative prefix was taken")
	}
}

// An installation of a version whose library was one file is replaced.
func TestReplacesAFileByTheLink(t *testing.T) {
	prefix := t.TempDir()
	old := filepath.Join(prefix, "lib/libsparsek.so")
	if err := os.MkdirAll(filepath.Dir(old), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(old, []byte("old"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Run(Options{Build: fakeBuild(t), Prefix: prefix, Version: "1.2.3"}); err != nil {
		t.Fatal(err)
	}
	if target, err := os.Readlink(old); err != nil || target != "libsparsek.so.1" {
		t.Errorf("it is a link to %q, %v", target, err)
	}
}
