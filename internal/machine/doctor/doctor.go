// SPDX-License-Identifier: Apache-2.0

// Package doctor finds out what a machine has of what sparsek needs, and says
// how to mend what it lacks. Facts are gathered first and judged apart from
// that. This package looks at what products on a GPU need; package checkout
// inside it at what a build needs.
package doctor

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
)

// State is how a thing stands.
type State string

// What a State can be. Unknown is what could not be found out.
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

// Need says what cannot work without a thing.
type Need string

// What can be needed for. Optional things are needed for nothing by themselves.
const (
	Optional Need = ""
	Build    Need = "build"
	GPU      Need = "gpu"
)

// Finding is what was found out about one thing.
type Finding struct {
	Name   string `json:"name"`
	State  State  `json:"state"`
	Detail string `json:"detail"`
	Mend   string `json:"mend,omitempty"`   // what to do; empty where nothing needs to be done
	Needed Need   `json:"needed,omitempty"` // what does not work unless it is ok
}

// Report is what a doctor says.
type Report []Finding

// Works says whether nothing stands in the way of what is asked. What is not
// known does not.
func (r Report) Works(need Need) bool {
	for _, f := range r {
		if f.Needed == need && f.State != OK && f.State != Unknown {
			return false
		}
	}
	return true
}

// about says whether anything in the report is needed for it.
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
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, f := range r {
		fmt.Fprintf(t, "%s\t%s\t%s\n", f.Name, f.State, oneLine(f.Detail))
		if f.Mend != "" {
			fmt.Fprintf(t, "\t\t-> %s\n", f.Mend)
		}
	}
	fmt.Fprintln(t)
	for _, v := range []struct {
		need Need
		name string
	}{{Build, "build"}, {GPU, "GPU job"}} {
		switch {
		case !r.about(v.need):
		case r.Works(v.need):
			fmt.Fprintf(t, "%s\tcan work\n", v.name)
		default:
			fmt.Fprintf(t, "%s\tcannot work\n", v.name)
		}
	}
	return t.Flush()
}

// PrintJSON writes the report as a JSON document. A verdict that the report
// says nothing of is null.
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

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }
