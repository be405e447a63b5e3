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

// runPython runs Python and returns its standard output.
func runPython(ctx context.Context, args ...string) (string, error) {
	python, err := exec.LookPath("python3")
	if err != nil {
		if python, err = exec.LookPath("python"); err != nil {
			return "", errors.New("there is no python3 on PATH")
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
		return "", fmt.Errorf("%s %s: %w%s", python, strings.Join(args, " "), err, lastLine(stderr.String()))
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

// defaultIndex is the index that the installed pip uses unless told otherwise.
func defaultIndex(ctx context.Context, env Environment) (string, error) {
	out, err := env.Pip(ctx, "-c", "from pip._internal.models.index import PyPI; print(PyPI.simple_url)")
	if err != nil {
		return "", err
	}
	if out = strings.TrimSpace(out); out == "" {
		return "", errors.New("pip names no index of its own")
	}
	return out, nil
}
