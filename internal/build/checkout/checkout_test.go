// SPDX-License-Identifier: Apache-2.0

package checkout

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const planSource = "cutlass_ext/src/plan/plan.cpp"

func write(t *testing.T, root, name, text string) {
	t.Helper()
	path := filepath.Join(root, name)
	if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), 0o666)); err != nil {
		t.Fatal(err)
	}
}

// checkout is a repository with one commit.
func checkout(t *testing.T) string {
	t.Helper()
	if _, err := exec.LookPath("git"); err != nil {
		t.Skip("skipped: no git")
	}
	root := t.TempDir()
	write(t, root, ".gitignore", "/build/\n*.tmp\n")
	write(t, root, planSource, "plan\n")
	write(t, root, "scripts/run", "#!/bin/sh\n")
	if err := os.Chmod(filepath.Join(root, "scripts/run"), 0o775); err != nil {
		t.Fatal(err)
	}
	write(t, root, "build/lib/x", "built")
	runGit(t, root, "init", "-q")
	runGit(t, root, "add", ".")
	runGit(t, root, "commit", "-q", "-m", "first")
	return root
}

func runGit(t *testing.T, root string, args ...string) {
	t.Helper()
	args = append([]string{"-C", root, "-c", "user.name=a", "-c", "user.email=a@example.org"}, args...)
	if out, err := exec.Command("git", args...).CombinedOutput(); err != nil {
		t.Fatalf("git: %v\n%s", err, out)
	}
}

func commit(t *testing.T, root string) string {
	t.Helper()
	c, err := Commit(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func TestCommit(t *testing.T) {
	root := checkout(t)
	clean := commit(t, root)
	if len(clean) != 40 {
		t.Errorf("clean: %q", clean)
	}
	write(t, root, "notes.txt", "not built from")
	if got := commit(t, root); got != clean {
		t.Errorf("with notes: %q", got)
	}
	write(t, root, planSource, "changed")
	if got := commit(t, root); got != clean+"-dirty" {
		t.Errorf("changed: %q", got)
	}
	// A tree unpacked inside another project's repository has no commit.
	if got := commit(t, filepath.Join(root, "cutlass_ext")); got != "" {
		t.Errorf("inside another repository: %q", got)
	}
	empty := t.TempDir()
	runGit(t, empty, "init", "-q")
	if got := commit(t, empty); got != "" {
		t.Errorf("no commit yet: %q", got)
	}
}

func files(t *testing.T, root string) []string {
	t.Helper()
	names, err := Files(t.Context(), root)
	if err != nil {
		t.Fatal(err)
	}
	return names
}

func TestFiles(t *testing.T) {
	root := checkout(t)
	write(t, root, "notes.txt", "private")
	write(t, root, "internal/new.go", "new")
	write(t, root, "internal/new.tmp", "ignored")
	if err := os.Remove(filepath.Join(root, "scripts/run")); err != nil {
		t.Fatal(err)
	}
	want := []string{".gitignore", planSource, "internal/new.go"}
	if diff := cmp.Diff(want, files(t, root)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestExport(t *testing.T) {
	root := checkout(t)
	clean := commit(t, root)
	dst := filepath.Join(t.TempDir(), "copy")
	if got, err := Export(t.Context(), root, dst); err != nil || got != clean {
		t.Fatalf("%q, %v", got, err)
	}
	if got := commit(t, dst); got != clean {
		t.Errorf("the copy says %q", got)
	}
	if diff := cmp.Diff(files(t, root), files(t, dst)); diff != "" {
		t.Errorf("the copy's files (-want +got):\n%s", diff)
	}
	for name, want := range map[string]os.FileMode{planSource: 0o644, "scripts/run": 0o755} {
		if info, err := os.Stat(filepath.Join(dst, name)); err != nil || info.Mode() != want {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}

	again := filepath.Join(t.TempDir(), "copy of the copy")
	if got, err := Export(t.Context(), dst, again); err != nil || got != clean {
		t.Errorf("a copy of the copy: %q, %v", got, err)
	}
	write(t, dst, "build/lib/x", "built")
	write(t, dst, "notes.txt", "not built from")
	if got := commit(t, dst); got != clean {
		t.Errorf("built: %q", got)
	}
	write(t, dst, "wrapper/new.go", "new")
	if got := commit(t, dst); got != clean+"-dirty" {
		t.Errorf("a changed copy says %q", got)
	}
	runGit(t, again, "init", "-q")
	if got := commit(t, again); got != "" {
		t.Errorf("a copy that is a repository of its own says %q", got)
	}
	write(t, dst, recordFile, "{")
	if _, err := Commit(t.Context(), dst); err == nil {
		t.Error("a damaged record passes")
	}
}

func TestACopyOfChangedSourcesSaysSo(t *testing.T) {
	root := checkout(t)
	clean := commit(t, root)
	write(t, root, planSource, "changed")
	dst := t.TempDir()
	if _, err := Export(t.Context(), root, dst); err != nil {
		t.Fatal(err)
	}
	if got := commit(t, dst); got != clean+"-dirty" {
		t.Errorf("the copy says %q", got)
	}
	write(t, dst, planSource, "changed again")
	if got := commit(t, dst); got != clean+"-dirty" {
		t.Errorf("changed again: %q", got)
	}
}

func TestLinksAreRefused(t *testing.T) {
	root := checkout(t)
	if err := os.Symlink("/etc/passwd", filepath.Join(root, "cutlass_ext/link")); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(files(t, root), "cutlass_ext/link") {
		t.Fatal("the link is not listed")
	}
	if _, err := Export(t.Context(), root, t.TempDir()); err == nil {
		t.Error("a link was copied")
	}
}

// Each Go package of this module that the program is made of, and each file
// embedded in one, counts as what it is built from.
func TestBuiltFromCoversTheProgram(t *testing.T) {
	root, err := filepath.Abs("../../..")
	if err != nil {
		t.Fatal(err)
	}
	list := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f",
		`{{if not .Standard}}{{with .Module}}{{if .Main}}{{$.Dir}}{{range $.EmbedFiles}}{{"\n"}}{{$.Dir}}/{{.}}{{end}}{{end}}{{end}}{{end}}`,
		"./cmd/sparsek")
	list.Dir = root
	out, err := list.CombinedOutput()
	if err != nil {
		t.Fatalf("go list: %v\n%s", err, out)
	}
	paths := strings.Fields(string(out))
	if len(paths) < 10 {
		t.Fatalf("go list names only %d packages: %q", len(paths), paths)
	}
	for _, path := range paths {
		name, err := filepath.Rel(root, path)
		if err != nil {
			t.Fatal(err)
		}
		if top, _, _ := strings.Cut(filepath.ToSlash(name), "/"); !slices.Contains(builtFrom, top) {
			t.Errorf("%s is part of the program, and %q is not in builtFrom", name, top)
		}
	}
}
