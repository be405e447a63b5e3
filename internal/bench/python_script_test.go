// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// The script says in its own form why there is no torch, or that the device cannot be used.
func TestTorchMissing(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped: python3 not found")
	}
	for torch, want := range map[string]string{
		"raise ImportError('none here')": "torch is not installed",
		"__version__ = '2.11'\ndef device(name): raise RuntimeError('no such device\\nand more')": "torch 2.11 cannot use cuda:7: RuntimeError: no such device",
	} {
		folder := t.TempDir()
		for name, text := range map[string]string{"torch.py": torch, "torch_bsr.py": torchScript} {
			if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		out, err := process.Command{Args: []string{python, filepath.Join(folder, "torch_bsr.py"), "cuda:7"}}.Output(context.Background())
		var answer struct{ Error string }
		if err != nil || json.Unmarshal([]byte(out), &answer) != nil || !strings.HasPrefix(answer.Error, want) {
			t.Errorf("%q, %v: want %q", out, err, want)
		}
	}
}

// So does SciPy's, whose file must not have the name of a package.
func TestSciPyMissing(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("skipped: python3 not found")
	}
	folder := t.TempDir()
	for name, text := range map[string]string{"numpy.py": "raise ImportError('none here')", "time_scipy.py": scipyScript} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	out, err := process.Command{Args: []string{python, filepath.Join(folder, "time_scipy.py"), "cpu"}}.Output(context.Background())
	var answer struct{ Error string }
	if err != nil || json.Unmarshal([]byte(out), &answer) != nil || !strings.HasPrefix(answer.Error, "scipy is not installed") {
		t.Errorf("%q, %v", out, err)
	}
}
