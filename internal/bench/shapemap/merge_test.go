// SPDX-License-Identifier: Apache-2.0

package shapemap

import (
	"strings"
	"testing"
)

// Maps of two builds stand on one: each point once, that of the later one where both have it.
func TestMerge(t *testing.T) {
	first := &Map{Header: header, Cells: []Cell{point(16, 1), point(16, 8), point(16, 64)}}
	second := &Map{Header: header, Cells: []Cell{point(32, 1), point(16, 8)}}
	second.Build, second.Commit = "b2", "d"
	second.Cells[1].Seconds = 5
	all, err := Merge([]*Map{first, second})
	if err != nil {
		t.Fatal(err)
	}
	if len(all.Cells) != 4 || all.Find(Key{"bf16", "stencil", 16, 8}).Seconds != 5 || all.Commit != "c" {
		t.Errorf("%+v", all)
	}
	if s := all.Sources(); len(s) != 2 || s[0].Count != 2 || s[1].Count != 2 || s[0].Commit != "c" || s[1].Commit != "d" {
		t.Errorf("%+v", all.Sources())
	}
	if first.Cells[1].Seconds == 5 {
		t.Error("the first map has changed")
	}
	alone, err := Merge([]*Map{first})
	if err != nil || alone != first || len(alone.Sources()) != 1 || alone.Sources()[0].Count != 3 {
		t.Errorf("%+v, %v", alone, err)
	}
}

// Maps of other devices, seeds, rivals or back-ends do not.
func TestMergeRefuses(t *testing.T) {
	for speak, change := range map[string]func(*Header){
		"another device": func(h *Header) { h.Device = "another GPU" },
		"another seed":   func(h *Header) { h.Seed = 9 },
		"other rivals":   func(h *Header) { h.Rivals = nil },
		"of a CPU":       func(h *Header) { h.Backend = "CPU" },
	} {
		other := &Map{Header: header}
		change(&other.Header)
		if _, err := Merge([]*Map{{Header: header}, other}); err == nil || !strings.Contains(err.Error(), "map 2 of 2") || !strings.Contains(err.Error(), speak) {
			t.Errorf("%s: %v", speak, err)
		}
	}
}
