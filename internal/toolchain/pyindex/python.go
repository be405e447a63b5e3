// SPDX-License-Identifier: Apache-2.0

package pyindex

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"time"
)

// pythonTimeout bounds one question to Python.
const pythonTimeout = 30 * time.Second

var errNoPython = errors.New("there is no python3 on PATH")

// runPython runs Python and returns its standard output.
func runPython(ctx context.Context, args ...string) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if python, err = exec.LookPath("python"); err != nil {
			return "", errNoPython
		}
	}
	ctx, cancel := context.WithTimeoutCause(ctx, pythonTimeout, fmt.Errorf("no answer within %s", pythonTimeout))
	defer cancel()
	cmd := exec.CommandContext(ctx, python, args...)
	cmd.WaitDelay = time.Second
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return "", fmt.Errorf("%s: %w%s", python, err, lastLine(stderr.String()))
	}
	return stdout.String(), nil
}

// lastLine is where Python says what is wrong.
func lastLine(s string) string {
	s = strings.TrimSpace(s)
	if s = s[strings.LastIndexByte(s, '\n')+1:]; s != "" {
		return ": " + s
	}
	return ""
}

// askDefaultIndex has Python print the index that pip uses unless configured
// otherwise. Where pip is not installed, the one that Python brings for
// ensurepip knows it too.
const askDefaultIndex = `
try:
    import pip
except ImportError:
    import ensurepip, pathlib, sys
    bundled = pathlib.Path(ensurepip.__file__).parent / "_bundled"
    sys.path[:0] = [str(wheel) for wheel in bundled.glob("pip-*.whl")]
from pip._internal.models.index import PyPI
print(PyPI.simple_url)
`

// defaultIndex is the index that pip uses unless configured otherwise.
func defaultIndex(ctx context.Context, env Environment) (string, error) {
	out, err := env.Pip(ctx, "-c", askDefaultIndex)
	if err != nil {
		return "", err
	}
	if out = strings.TrimSpace(out); out == "" {
		return "", errors.New("pip names no index of its own")
	}
	return out, nil
}
