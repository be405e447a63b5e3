// SPDX-License-Identifier: Apache-2.0

package repro

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// compiler stands in for g++ and nvcc. What it writes depends on what $LEAK
// names.
const compiler = `#!/bin/sh
case " $* " in *" --version "*|*" -Wl,--version "*) echo compiler 1.0; exit 0;; esac
out= dep= source= objects= shared=
while [ $# -gt 0 ]; do
  case $1 in
    -o) out=$2; shift;;
    -MF) dep=$2; shift;;
    -ccbin|-Xcompiler|-Xcudafe|-Xptxas|-isystem) shift;;
    -shared) shared=yes;;
    -*) ;;
    *.o) objects="$objects $1";;
    *) source=$1;;
  esac
  shift
done
if [ -n "$shared" ]; then cat $objects > "$out"; exit; fi
cat "$source" > "$out"
case $LEAK in
  folder) pwd;;
  temporary) echo "$TMPDIR";;
  toolchain) echo "$0";;
  time) stat -c %Y "$source";;
  moment) date +%N;;
esac >> "$out"
echo "$out: $source" > "$dep"
`

// options are those of a checkout of two files, and a kernel.
func options(t *testing.T) Options {
	t.Helper()
	if _, err := exec.LookPath("sh"); err != nil {
		t.Skip("skipped: no shell for the stand-in compiler")
	}
	root, tree := t.TempDir(), t.TempDir()
	write := func(path, text string, mode os.FileMode) {
		t.Helper()
		if err := errors.Join(os.MkdirAll(filepath.Dir(path), 0o777), os.WriteFile(path, []byte(text), mode)); err != nil {
			t.Fatal(err)
		}
	}
	write(filepath.Join(root, "cutlass_ext/include/sparsek.h"), "header\n", 0o666)
	write(filepath.Join(root, "cutlass_ext/src/x.cpp"), "x\n", 0o666)
	write(filepath.Join(root, "cutlass_ext/src/y.cu"), "y\n", 0o666)
	write(filepath.Join(root, "cutlass_ext/kernels.json"), `{"comment": "", "kernels": [{"name": "simt_bf16", "family": "simt",
		"dtype": "bf16", "tile": [0, 64, 1], "stages": 1, "block_m": 1, "block_m_multiple": true, "block_k_multiple": 1,
		"why": "always"}]}`, 0o666)
	cxx := filepath.Join(t.TempDir(), "g++")
	write(cxx, compiler, 0o777)
	write(filepath.Join(tree, "cuda/bin/nvcc"), compiler, 0o777)
	for _, name := range []string{"cuobjdump", "nvdisasm"} {
		write(filepath.Join(tree, "cuda/bin", name), "#!/bin/sh\n", 0o777)
	}
	empty := "h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU="
	there := &toolchain.Toolchain{Digest: "d", Lock: &lock.Lock{CUTLASS: lock.CUTLASS{Include: empty, Tools: empty}}}
	return Options{Root: root, Toolchain: there.Moved(tree), CXX: cxx}
}

func TestRun(t *testing.T) {
	sum, err := Run(t.Context(), options(t))
	if err != nil || len(sum) != 64 {
		t.Errorf("%q, %v", sum, err)
	}
}

// Each thing in which the two builds are made to differ is noticed.
func TestLeaksAreFound(t *testing.T) {
	for leak, objects := range map[string][]string{
		"folder": {"x.cpp.o", "y.cu.o"}, "temporary": {"x.cpp.o"}, "toolchain": {"y.cu.o"}, "time": {"x.cpp.o"}, "moment": {"x.cpp.o"},
	} {
		t.Setenv("LEAK", leak)
		_, err := Run(t.Context(), options(t))
		var different *DifferentError
		if !errors.As(err, &different) {
			t.Errorf("%s: %v", leak, err)
			continue
		}
		for _, object := range objects {
			if !strings.Contains(err.Error(), "build/obj/cutlass_ext/src/"+object) {
				t.Errorf("%s: %s is not named:\n%v", leak, object, err)
			}
		}
	}
}

func TestABuildThatFails(t *testing.T) {
	o := options(t)
	o.CXX = "no-such-compiler"
	if _, err := Run(t.Context(), o); err == nil || !strings.Contains(err.Error(), "build 1 of 2: no host compiler") {
		t.Errorf("got %v", err)
	}
}
