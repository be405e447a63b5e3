// SPDX-License-Identifier: Apache-2.0

package build

import (
	"fmt"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// LauncherVariable names the environment variable that chooses the compiler
// cache: a program, "off", or, where it is empty, the first of launchers that
// is installed.
const LauncherVariable = "SPARSEK_COMPILER_CACHE"

// launchers are the compiler caches that are used where they are found.
var launchers = []string{"ccache", "sccache"}

// launcher is a compiler cache: a program that runs nvcc, or brings back what
// nvcc made of the same input before. The zero value runs nvcc itself. It is
// around nvcc alone: around the g++ inside, whose intermediate files are never
// the same, it would find nothing.
//
// What it brings back are the bytes that nvcc would make, since nvcc's output
// depends on its input alone. So no stamp speaks of it, and files are not
// compiled again where it comes or goes.
type launcher struct {
	program string // path
}

// findLauncher returns the compiler cache that setting, a value of
// LauncherVariable, asks for.
func findLauncher(setting string) (launcher, error) {
	switch setting {
	case "off":
		return launcher{}, nil
	case "":
		for _, name := range launchers {
			if path, err := exec.LookPath(name); err == nil {
				return launcher{path}, nil
			}
		}
		return launcher{}, nil
	}
	path, err := exec.LookPath(setting)
	if err != nil {
		return launcher{}, fmt.Errorf("%s: no compiler cache: %w; install it, or set %s to off", LauncherVariable, err, LauncherVariable)
	}
	return launcher{path}, nil
}

func (l launcher) name() string { return filepath.Base(l.program) }

// command is the command of nvcc that goes through the cache. The host compiler
// is given by its path: sccache looks for it to identify it.
func (l launcher) command(args []string) []string {
	if l.program == "" {
		return args
	}
	args = slices.Clone(args)
	if i := slices.Index(args, "-ccbin"); i >= 0 && i+1 < len(args) {
		if path, err := exec.LookPath(args[i+1]); err == nil {
			args[i+1] = path
		}
	}
	return append([]string{l.program}, args...)
}

// environ is env with the cache's settings. identity stands for all programs
// that compile, of which caches would look at the driver alone. Settings of the
// user's that trade certainty for hits do not hold.
func (l launcher) environ(env []string, identity string) []string {
	if l.program == "" {
		return env
	}
	return append(slices.Clone(env),
		"CCACHE_COMPILERCHECK=string:"+identity, "SCCACHE_C_CUSTOM_CACHE_BUSTER="+identity,
		// Compile the source itself, not its preprocessed text.
		"CCACHE_CPP2=1", "CCACHE_SLOPPINESS=",
		// Where the checkout lies is not in the object: others' are good here.
		"CCACHE_NOHASHDIR=1", "CCACHE_IGNOREOPTIONS="+prefixMapOption+"*",
	)
}

// blames says whether the cache itself complains in what was said while u was
// compiled.
func (l launcher) blames(u unit, log string) bool {
	if !u.device || l.program == "" {
		return false
	}
	for line := range strings.Lines(log) {
		if strings.HasPrefix(line, l.name()+": ") {
			return true
		}
	}
	return false
}
