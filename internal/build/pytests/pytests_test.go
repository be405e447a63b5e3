// SPDX-License-Identifier: Apache-2.0

package pytests

import (
	"bytes"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// python3 is one that can make environments.
func python3(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("python3")
	if err == nil {
		err = exec.Command(path, "-c", "import venv, ensurepip").Run()
	}
	if err != nil {
		t.Skip("skipped: there is no python3 with venv and ensurepip")
	}
	return path
}

func TestEnvironmentIsMadeOnce(t *testing.T) {
	e := environment{dir: filepath.Join(t.TempDir(), "env"), python: python3(t)}
	// Without packages, pip would refuse: it only says which there are.
	e.packages = []string{"--dry-run", "pip"}
	python, err := e.make(t.Context())
	if err != nil {
		var missing *MissingError
		if errors.As(err, &missing) {
			t.Skipf("skipped: no package index: %v", err)
		}
		t.Fatal(err)
	}
	mark := filepath.Join(e.dir, "mark")
	if err := os.WriteFile(mark, nil, 0o666); err != nil {
		t.Fatal(err)
	}
	e.offline = true
	if again, err := e.make(t.Context()); err != nil || again != python {
		t.Errorf("the second time: %q, %v", again, err)
	}
	if _, err := os.Stat(mark); err != nil {
		t.Errorf("it was made anew: %v", err)
	}
	e.packages = append(e.packages, "wheel")
	var missing *MissingError
	if _, err := e.make(t.Context()); !errors.As(err, &missing) || !strings.Contains(err.Error(), "offline") {
		t.Errorf("other packages, offline: %v", err)
	}
}

func TestWhatIsMissing(t *testing.T) {
	dir := t.TempDir()
	var out bytes.Buffer
	o := Options{Root: dir, Build: filepath.Join(dir, "build"), Python: filepath.Join(dir, "no-python"), Out: &out, Progress: term.New(&out)}
	if err := Short(t.Context(), o); err != nil || !strings.Contains(out.String(), "skipped: the tests of the Python package, which need "+o.Python) {
		t.Errorf("without Python: %v, and said %q", err, out.String())
	}
	var missing *MissingError
	if err := All(t.Context(), o); !errors.As(err, &missing) {
		t.Errorf("all without Python: %v", err)
	}
	o.Python, o.Offline = python3(t), true
	out.Reset()
	if err := Short(t.Context(), o); err != nil || !strings.Contains(out.String(), "offline") {
		t.Errorf("offline: %v, and said %q", err, out.String())
	}
}
