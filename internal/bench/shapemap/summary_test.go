// SPDX-License-Identifier: Apache-2.0

package shapemap

import "testing"

// Two cells: in one the choice and a rival are twice as fast as the other kernel, in the other a rival is the fastest.
func sample() *Map {
	return &Map{Cells: []Cell{
		{Key: Key{"bf16", "window", 16, 8}, Kernel: "a", Seconds: 2e-6, Bound: 1e-6, Timed: []Timed{{Name: "a", Seconds: 2e-6}, {Name: "b", Seconds: 4e-6}, {Name: "lib", Rival: true, Seconds: 2e-6}}},
		{Key: Key{"bf16", "window", 16, 64}, Kernel: "b", Seconds: 6e-6, Bound: 1.5e-6, Timed: []Timed{{Name: "a", Seconds: 4e-6}, {Name: "b", Seconds: 6e-6}, {Name: "lib", Rival: true, Seconds: 3e-6}}},
		{Key: Key{"fp32", "window", 16, 64}, Kernel: "b", Seconds: 6e-6, Timed: []Timed{{Name: "b", Seconds: 6e-6}}},
		{Key: Key{"fp32", "window", 16, 1}, Failed: "no memory"},
	}}
}

func TestSummaries(t *testing.T) {
	want := []Summary{
		{"bf16", Figures[0].Title, 2, 0.25, 0.375, 0.35, 1},
		{"bf16", Figures[1].Title, 2, 0.5, 0.75, 0.95, 1},
		{"bf16", Figures[2].Title, 2, 1.5, 1.25, 1.3, 1},
		{"fp32", Figures[2].Title, 1, 1, 1, 1.3, 0},
	}
	got := sample().Summaries()
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestWorstCells(t *testing.T) {
	m := sample()
	for _, f := range Figures {
		list := m.WorstCells(f, 9)
		if len(list) != 1 || list[0] != &m.Cells[1] {
			t.Errorf("%s: %+v", f.Title, list)
		}
		f.Fair = map[bool]float64{true: 0.9, false: 100}[f.Name == "choice"]
		if list := m.WorstCells(f, 9); len(list) < 2 || list[0] != &m.Cells[1] || len(m.WorstCells(f, 1)) != 1 {
			t.Errorf("%s, in order: %+v", f.Title, list)
		}
	}
	if len(m.Failures()) != 1 || len(m.DTypes()) != 2 {
		t.Errorf("%+v", m.Failures())
	}
}

// A time beside peers is no part of the choice, whose kernels were timed in another way.
func TestTimeBesidePeers(t *testing.T) {
	c := Cell{Kernel: "a", Seconds: 1e-6, Timed: []Timed{{Name: "a", Seconds: 6e-6}, {Name: "b", Seconds: 3e-6}, {Name: "lib", Rival: true, Seconds: 2e-6}}}
	if of, _ := c.OfChoice(); of != 2 {
		t.Errorf("the choice: %g", of)
	}
	if of, _ := c.OfRival(); of != 2 {
		t.Errorf("the best rival: %g", of)
	}
}
