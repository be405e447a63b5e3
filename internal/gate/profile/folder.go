// SPDX-License-Identifier: Apache-2.0

package profile

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
)

// recordName is the file of a folder that is written last: without it there is no profile.
const recordName = "profile.json"

// format is the number of this form of the record.
const format = 1

// ErrNoProfile means that a folder holds none, wrapped.
var ErrNoProfile = errors.New("there is no profile")

// Profile is one run over some cases.
type Profile struct {
	Format   int         `json:"format"`
	Date     time.Time   `json:"date"`
	Commit   string      `json:"commit"`         // of the library's sources
	Library  string      `json:"library_sha256"` // of the library that ran
	GPU      string      `json:"gpu"`
	Driver   string      `json:"driver"`
	NCU      string      `json:"ncu"`           // version of Nsight Compute
	Start    string      `json:"machine_start"` // the same for runs between which the machine was not started anew
	Launches int         `json:"launches"`      // of each case
	State    nvsmi.State `json:"state"`
	Cases    []Case      `json:"cases"`
}

// Case is one case as it was measured.
type Case struct {
	Name    string         `json:"name"`
	Kernel  string         `json:"kernel"` // by its name in the list of kernels
	Symbol  string         `json:"symbol"` // of the function that ran, mangled
	SASS    string         `json:"sass_sha256"`
	Opcodes map[string]int `json:"opcodes"`
	Plan    Plan           `json:"plan"`
	FLOP    float64        `json:"flop"`
	SHA256  string         `json:"csv_sha256"`

	CSV     []byte      `json:"-"` // raw page, its launches alone
	Samples ncu.Samples `json:"-"` // of all metrics
}

// Figures are the medians over the launches.
func (c *Case) Figures() ncu.Figures { return c.Samples.Medians() }

// read fills in what the CSV says.
func (c *Case) read(launches int) error {
	list, err := ncu.Parse(bytes.NewReader(c.CSV))
	if err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	if len(list) != launches {
		return fmt.Errorf("%s: %w: %d launches instead of %d", c.Name, ncu.ErrTruncated, len(list), launches)
	}
	if list[0].Kernel != c.Symbol {
		return fmt.Errorf("%s: the CSV is of another kernel, %s instead of %s", c.Name, list[0].Kernel, c.Symbol)
	}
	if c.Samples, err = ncu.Sample(list, ncu.Metrics()); err != nil {
		return fmt.Errorf("%s: %w", c.Name, err)
	}
	return nil
}

// Write writes the profile into dir, in place of one that is there.
func (p *Profile) Write(dir string) error {
	if err := os.MkdirAll(dir, 0o777); err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	if err := Remove(dir); err != nil {
		return err
	}
	for i := range p.Cases {
		if err := renameio.WriteFile(filepath.Join(dir, p.Cases[i].Name+".csv"), p.Cases[i].CSV, 0o666); err != nil {
			return fmt.Errorf("writing a profile: %w", err)
		}
	}
	text, err := json.MarshalIndent(p, "", "  ")
	if err == nil {
		err = renameio.WriteFile(filepath.Join(dir, recordName), append(text, '\n'), 0o666)
	}
	if err != nil {
		return fmt.Errorf("writing a profile: %w", err)
	}
	return nil
}

// Remove takes away a profile that is in dir, if there is one.
func Remove(dir string) error {
	if err := os.Remove(filepath.Join(dir, recordName)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("removing an old profile: %w", err)
	}
	return nil
}

// Read reads the profile in dir. Every CSV must be the one that was measured.
func Read(dir string) (*Profile, error) {
	text, err := os.ReadFile(filepath.Join(dir, recordName))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("%w in %s: sparsek profile makes one", ErrNoProfile, dir)
	}
	if err != nil {
		return nil, fmt.Errorf("reading a profile: %w", err)
	}
	var p Profile
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, fmt.Errorf("%s: %w", filepath.Join(dir, recordName), err)
	}
	if p.Format != format {
		return nil, fmt.Errorf("%s is of form %d, want %d: measure again", filepath.Join(dir, recordName), p.Format, format)
	}
	for i := range p.Cases {
		c := &p.Cases[i]
		if c.CSV, err = os.ReadFile(filepath.Join(dir, filepath.Base(c.Name)+".csv")); err != nil {
			return nil, fmt.Errorf("reading a profile: %w", err)
		}
		if ncu.Hash(c.CSV) != c.SHA256 {
			return nil, fmt.Errorf("%s is not the CSV that was measured: its hash is another", filepath.Join(dir, c.Name+".csv"))
		}
		if err := c.read(p.Launches); err != nil {
			return nil, fmt.Errorf("%s: %w", dir, err)
		}
	}
	return &p, nil
}

// ReadAll reads the profiles in dir and in the folders below it, in the order of their paths.
func ReadAll(dir string) ([]*Profile, error) {
	var list []*Profile
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() || entry.Name() != recordName {
			return err
		}
		p, err := Read(filepath.Dir(path))
		list = append(list, p)
		return err
	})
	if errors.Is(err, fs.ErrNotExist) || err == nil && len(list) == 0 {
		return nil, fmt.Errorf("%w in %s: sparsek profile makes one", ErrNoProfile, dir)
	}
	return list, err
}
