// SPDX-License-Identifier: Apache-2.0

// Package doctor checks whether a machine has what sparsek needs, and says how
// to fix what is missing. Gathering facts and judging them are separate steps.
// This package checks what products on a GPU need; package buildenv inside it
// what a build needs.
package doctor

import (
	"encoding/json"
	"io"

	"github.com/sparsek/sparsek/internal/sys/humanize"
)

// State is the state of one thing that is checked.
type State string

// The values of State. Unknown: it could not be determined.
const (
	OK        State = "ok"
	Missing   State = "missing"
	Damaged   State = "damaged"
	TooOld    State = "too old"
	TooNew    State = "too new"
	TooLittle State = "too little"
	Off       State = "off"
	Unknown   State = "unknown"
)

// Need names what does not work without a thing.
type Need string

// The values of Need. Nothing depends on an optional thing.
const (
	Optional Need = ""
	Build    Need = "build"
	GPU      Need = "gpu"
)

// Finding is the result of one check.
type Finding struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	Fix    string `json:"fix,omitempty"`    // what to do; empty where nothing needs to be done
	Needed Need   `json:"needed,omitempty"` // what does not work unless it is ok
}

// Report is the result of all checks.
type Report []Finding

// Works reports whether every thing that need depends on is OK or Unknown.
func (r Report) Works(need Need) bool {
	for _, f := range r {
		if f.Needed == need && f.State != OK && f.State != Unknown {
			return false
		}
	}
	return true
}

// about reports whether the report has a thing that need depends on.
func (r Report) about(need Need) bool {
	for _, f := range r {
		if f.Needed == need {
			return true
		}
	}
	return false
}

// Print writes the report as a table, with what to do below each line, and the
// verdicts at the end.
func (r Report) Print(w io.Writer) error {
	t := humanize.Table{Left: 3}
	for _, f := range r {
		t.Add(f.Name, string(f.State), humanize.OneLine(f.Detail))
		if f.Fix != "" {
			t.Add("", "", "-> "+f.Fix)
		}
	}
	t.Add()
	for _, v := range []struct {
		need Need
		name string
	}{{Build, "build"}, {GPU, "GPU job"}} {
		switch {
		case !r.about(v.need):
		case r.Works(v.need):
			t.Add(v.name, "can work")
		default:
			t.Add(v.name, "cannot work")
		}
	}
	return t.Print(w)
}

// PrintJSON writes the report as a JSON document. A verdict on which the report
// has no finding is null.
func (r Report) PrintJSON(w io.Writer) error {
	verdict := func(need Need) *bool {
		if !r.about(need) {
			return nil
		}
		works := r.Works(need)
		return &works
	}
	out := struct {
		Build    *bool  `json:"build"`
		GPU      *bool  `json:"gpu_job"`
		Findings Report `json:"findings"`
	}{verdict(Build), verdict(GPU), r}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(out)
}
