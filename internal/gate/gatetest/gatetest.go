// SPDX-License-Identifier: Apache-2.0

// Package gatetest makes profiles without a GPU, for tests.
package gatetest

import (
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/ncu/ncutest"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
)

// Commit is a clean one.
const Commit = "0123456789abcdef0123456789abcdef01234567"

// Symbol is the function that all cases run.
const Symbol = "_ZN7cutlass13device_kernelIiEEvT_"

// Figures are those of every case. Launches differ by a cycle.
func Figures() ncu.Figures {
	return ncu.Figures{"sm_active": 72.3, "tensor_core": 65.8, "dram_bw": 45.2, "cycles": 82000, "duration_ns": 45120, "registers": 168,
		"spill_loads": 0, "spill_stores": 0, "l2_bytes": 412e6, "dram_bytes": 78e6, "occupancy": 14.28}
}

// Launches is the number of launches of each case.
const Launches = 3

// Profile makes a profile of the cases and writes it to dir; change may alter it, and the figures of a case, before that.
func Profile(t testing.TB, dir string, cases []string, change func(p *profile.Profile), figures func(name string, f ncu.Figures)) *profile.Profile {
	t.Helper()
	p := &profile.Profile{
		Format: 1, Date: time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC), Commit: Commit, Library: "11", GPU: "NVIDIA H200", Driver: "580.1",
		NCU: "2025.3.1", Start: "a", Launches: Launches, State: nvsmi.State{Known: true, Seen: 1},
	}
	for _, name := range cases {
		f := Figures()
		if figures != nil {
			figures(name, f)
		}
		p.Cases = append(p.Cases, Case(t, name, f))
	}
	if change != nil {
		change(p)
	}
	if err := p.Write(dir); err != nil {
		t.Fatal(err)
	}
	read, err := profile.Read(dir)
	if err != nil {
		t.Fatal(err)
	}
	return read
}

// Case is a case with launches around the figures.
func Case(t testing.TB, name string, f ncu.Figures) profile.Case {
	t.Helper()
	var rows []ncutest.Launch
	for i := range Launches {
		one := ncu.Figures{}
		for metric, v := range f {
			one[metric] = v
		}
		one["cycles"] += float64(i - Launches/2)
		rows = append(rows, ncutest.Launch{Kernel: Symbol, Figures: one})
	}
	raw, err := ncu.ParseRaw([]byte(ncutest.Raw(rows)))
	if err != nil {
		t.Fatal(err)
	}
	text := []byte(raw.String())
	return profile.Case{
		Name: name, Kernel: "tma", Symbol: Symbol, SASS: "aa", Opcodes: map[string]int{"HGMMA": 4, "LDS": 2}, FLOP: 17e9,
		Plan: profile.Plan{Tile: [3]int{128, 256, 64}, Tiles: 512, Entries: 4096}, CSV: text, SHA256: ncu.Hash(text),
	}
}
