// SPDX-License-Identifier: Apache-2.0

package gate

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
)

// Record is one run of the gate in the history, whatever its verdict was.
type Record struct {
	Date    time.Time          `json:"date"`
	Commit  string             `json:"commit"`
	GPU     string             `json:"gpu"`
	Driver  string             `json:"driver"`
	Verdict Verdict            `json:"verdict"`
	Cycles  map[string]float64 `json:"cycles"` // of each case, as first measured
}

// ReadHistory reads a history, a line for each run. One that is not there is empty.
func ReadHistory(file string) ([]Record, error) {
	text, err := os.ReadFile(file)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, fmt.Errorf("reading the history of the gate: %w", err)
	}
	var list []Record
	for line := range bytes.Lines(text) {
		var r Record
		if err := json.Unmarshal(line, &r); err != nil {
			return nil, fmt.Errorf("%s, line %d: %w; move the file away to begin anew", file, len(list)+1, err)
		}
		list = append(list, r)
	}
	return list, nil
}

// AddToHistory adds a run and gives all that are in the file now.
func AddToHistory(file string, r *Result) ([]Record, error) {
	list, err := ReadHistory(file)
	if err != nil {
		return nil, err
	}
	record := Record{r.Date, r.Commit, r.GPU, r.Driver, r.Verdict, map[string]float64{}}
	for i := range r.Cases {
		for _, m := range r.Cases[i].Metrics {
			if m.Name == "cycles" {
				record.Cycles[r.Cases[i].Name] = m.First
			}
		}
	}
	list = append(list, record)
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	for _, one := range list {
		if err := encoder.Encode(one); err != nil {
			return nil, fmt.Errorf("history of the gate: %w", err)
		}
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return nil, fmt.Errorf("writing the history of the gate: %w", err)
	}
	if err := renameio.WriteFile(file, text.Bytes(), 0o644); err != nil {
		return nil, fmt.Errorf("writing the history of the gate: %w", err)
	}
	return list, nil
}

// Records are the blessings of a GPU as runs of a history: what its trend begins with.
func (l Log) Records(gpu string) []Record {
	var list []Record
	for _, b := range l {
		if b.GPU == gpu {
			list = append(list, Record{b.Date, b.Commit, b.GPU, b.Driver, Blessed, b.Cycles})
		}
	}
	return list
}

// Blessed stands in a trend for a verdict where a profile became the baseline.
const Blessed Verdict = "BLESSED"
