// SPDX-License-Identifier: Apache-2.0

package pytests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/gofrs/flock"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// MissingError says why there is no environment to run tests in.
type MissingError struct{ What string }

func (e *MissingError) Error() string { return e.What }

// environment is a folder with a Python that has packages of its own.
type environment struct {
	dir      string
	python   string // the one that it is made with: a path, or a name looked up in PATH
	packages []string
	offline  bool
}

// doneFile names what an environment was made of. It is written last.
const doneFile = "made-of.txt"

// make makes the environment unless it is there, and returns its Python.
func (e environment) make(ctx context.Context) (string, error) {
	version, err := process.Command{Args: []string{e.python, "-c", "import sys, venv, ensurepip; print(sys.executable, sys.version)"}}.Output(ctx)
	if err != nil {
		return "", e.missing(ctx, e.python+" with its modules venv and ensurepip", err)
	}
	made := version + strings.Join(e.packages, "\n") + "\n"
	if err := os.MkdirAll(filepath.Dir(e.dir), 0o777); err != nil {
		return "", fmt.Errorf("an environment for Python: %w", err)
	}
	lock := flock.New(e.dir + ".lock")
	if err := lock.Lock(); err != nil {
		return "", fmt.Errorf("an environment for Python: %w", err)
	}
	defer lock.Unlock()
	python := filepath.Join(e.dir, "bin", "python")
	if old, err := os.ReadFile(filepath.Join(e.dir, doneFile)); err == nil && string(old) == made {
		return python, nil
	}
	if e.offline {
		return "", &MissingError{"packages for it, which are not fetched offline"}
	}
	if err := os.RemoveAll(e.dir); err != nil {
		return "", fmt.Errorf("an environment for Python: %w", err)
	}
	install := append([]string{python, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--only-binary", ":all:"}, e.packages...)
	for _, args := range [][]string{{e.python, "-m", "venv", e.dir}, install} {
		if _, err := (process.Command{Args: args}).Output(ctx); err != nil {
			return "", e.missing(ctx, "an environment with "+strings.Join(e.packages, ", "), err)
		}
	}
	return python, os.WriteFile(filepath.Join(e.dir, doneFile), []byte(made), 0o666)
}

// missing is what is missing and why, unless the run was cancelled.
func (e environment) missing(ctx context.Context, what string, err error) error {
	if ctx.Err() != nil {
		return err
	}
	reason := err.Error()
	var failed *process.Error
	if errors.As(err, &failed) && failed.Stderr != "" {
		lines := bytes.Split([]byte(failed.Stderr), []byte("\n"))
		reason = string(lines[len(lines)-1])
	}
	return &MissingError{what + " (" + reason + ")"}
}
