// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"github.com/google/renameio/v2"
)

// Stamp is the record of a command that finished well.
type Stamp struct {
	// Key identifies the command: its arguments and the programs it runs.
	Key     string `json:"key"`
	Inputs  []File `json:"inputs"`
	Outputs []File `json:"outputs"`
	// Log is the command's output.
	Log string `json:"log,omitempty"`
	// Milliseconds is how long the command took, 0 where that is not known. It
	// serves the next run's estimates and has no say in Fresh.
	Milliseconds int64 `json:"milliseconds,omitempty"`
}

// File is a file and its content.
type File struct {
	Path   string `json:"path"` // relative to the root given, or absolute
	SHA256 string `json:"sha256"`
}

// Load reads a stamp. One that is missing or damaged is no stamp: false.
func Load(path string) (Stamp, bool) {
	text, err := os.ReadFile(path)
	if err != nil {
		return Stamp{}, false
	}
	var s Stamp
	if err := json.Unmarshal(text, &s); err != nil {
		return Stamp{}, false
	}
	return s, true
}

// Fresh reports whether the command with this key would read and write what
// it did before. Paths are relative to root.
func (s Stamp) Fresh(h *Hasher, root, key string) bool {
	if s.Key != key || len(s.Outputs) == 0 {
		return false
	}
	for _, file := range slices.Concat(s.Inputs, s.Outputs) {
		sum, err := h.File(resolve(root, file.Path))
		if err != nil || sum != file.SHA256 {
			return false
		}
	}
	return true
}

// ErrChanged says that an input was written while the command ran, so that
// it is not known which content it read.
var ErrChanged = errors.New("changed while it was in use")

// Record completes the stamp of a command that has just finished with what it
// read and wrote. began is what Now returned before it started. It fails with
// ErrChanged where an input was written since.
func (s Stamp) Record(h *Hasher, root string, began time.Time, inputs, outputs []string) (Stamp, error) {
	for _, path := range inputs {
		info, err := os.Stat(resolve(root, path))
		if err != nil {
			return Stamp{}, err
		}
		if !changeTime(info).Before(began) {
			return Stamp{}, fmt.Errorf("%s %w", path, ErrChanged)
		}
	}
	for _, list := range []struct {
		paths []string
		files *[]File
	}{{inputs, &s.Inputs}, {outputs, &s.Outputs}} {
		for _, path := range list.paths {
			sum, err := h.File(resolve(root, path))
			if err != nil {
				return Stamp{}, err
			}
			*list.files = append(*list.files, File{path, sum})
		}
	}
	return s, nil
}

// Write writes the stamp, whole or not at all.
func (s Stamp) Write(path string) error {
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return renameio.WriteFile(path, append(text, '\n'), 0o666)
}

// Remove takes the stamp at path away before its outputs are made anew.
func Remove(path string) error {
	if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// Now returns a moment by the clock of the file system that dir is on: later
// than every change made before the call, not later than any made after it.
func Now(dir string) (time.Time, error) {
	var first time.Time
	for {
		f, err := os.CreateTemp(dir, "clock")
		if err != nil {
			return time.Time{}, err
		}
		info, err := f.Stat()
		if err := errors.Join(err, f.Close(), os.Remove(f.Name())); err != nil {
			return time.Time{}, err
		}
		switch now := changeTime(info); {
		case first.IsZero():
			first = now
		case now.After(first):
			return now, nil
		}
		time.Sleep(time.Millisecond) // such clocks tick every few
	}
}

// changeTime is when a file was last written, renamed or otherwise changed.
// Unlike its modification time, it cannot be set.
func changeTime(info fs.FileInfo) time.Time {
	stat := info.Sys().(*syscall.Stat_t)
	return time.Unix(stat.Ctim.Sec, stat.Ctim.Nsec)
}

func resolve(root, path string) string {
	if filepath.IsAbs(path) {
		return path
	}
	return filepath.Join(root, path)
}
