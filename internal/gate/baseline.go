// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"encoding/json"
	"fmt"
	"path"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
)

// Dir is where baselines lie in a checkout. Names of files in hashes and in the log begin with it.
const Dir = "ci/baseline"

// LogFile is the log of blessings, relative to the checkout.
const LogFile = Dir + "/log.jsonl"

// The other files, relative to the checkout.
const (
	legendFile   = Dir + "/metrics.txt"
	headlineFile = Dir + "/nsight_baseline.norm.txt"

	hashSuffix = ".sha256"
)

// The headline is this case on this GPU: 4096^3 in bfloat16, blocks of 64, 87.5 % of them left out.
const (
	headlineCase   = "b64-random-4096"
	headlineFolder = "nvidia-h200"
)

// Baseline is what was blessed for one GPU. The figures are in files of their own beside its record.
type Baseline struct {
	Format   int         `json:"format"`
	Date     time.Time   `json:"date"`
	GPU      string      `json:"gpu"`
	Driver   string      `json:"driver"`
	NCU      string      `json:"ncu"`
	Commit   string      `json:"commit"`         // of the library that was measured
	Library  string      `json:"library_sha256"` // that library
	Runs     int         `json:"runs"`           // over which the figures are medians
	Launches int         `json:"launches"`       // of each case in a run
	Noise    Noise       `json:"noise"`
	State    nvsmi.State `json:"state"` // of the GPU over all runs, without its serial number
	Cases    []Entry     `json:"cases"`
}

// Noise says what the noise floors of the cases were measured over. Without runs there are no floors.
type Noise struct {
	Runs   int `json:"runs"`
	Starts int `json:"machine_starts"`
}

// Entry is one case of a baseline.
type Entry struct {
	Name    string             `json:"name"`
	Kernel  string             `json:"kernel"`
	Symbol  string             `json:"symbol"`
	SASS    string             `json:"sass_sha256"`
	Opcodes map[string]int     `json:"opcodes"`
	Plan    profile.Plan       `json:"plan"`
	FLOP    float64            `json:"flop"`
	Noise   map[string]float64 `json:"noise,omitempty"` // floor of each metric, as a share of its value

	Figures ncu.Figures `json:"-"` // from the normal form
}

const baselineFormat = 1

// Find gives the entry of a case.
func (b *Baseline) Find(name string) (*Entry, bool) {
	for i := range b.Cases {
		if b.Cases[i].Name == name {
			return &b.Cases[i], true
		}
	}
	return nil, false
}

// folderOf is the folder of a GPU: its name in small letters, with dashes.
func folderOf(gpu string) string {
	dashed := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		}
		return '-'
	}, strings.ToLower(gpu))
	return strings.Trim(dashed, "-")
}

func recordFile(folder string) string     { return path.Join(Dir, folder, "baseline.json") }
func csvFile(folder, name string) string  { return path.Join(Dir, folder, name+".csv") }
func normFile(folder, name string) string { return path.Join(Dir, folder, name+".norm.txt") }
func (b *Baseline) folder() string        { return folderOf(b.GPU) }

// headlineOf takes the headline's metrics out of all.
func headlineOf(f ncu.Figures) ncu.Figures {
	h := ncu.Figures{}
	for _, name := range ncu.Headline() {
		h[name] = f[name]
	}
	return h
}

func encode(v any) ([]byte, error) {
	text, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("baseline: %w", err)
	}
	return append(text, '\n'), nil
}
