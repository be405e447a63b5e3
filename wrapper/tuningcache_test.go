// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

const tuningHeader = "sparsek tuning cache, version 1\n"

// tuningLine is an entry of M = m, measured at a second of 2026.
func tuningLine(m, second string) string {
	return "device=NVIDIA%20H200 sm_count=132 build=0123456789abcdef op=dsd m=" + m + " n=256 k=512 bm=64 bk=32 dtype=bf16 dtype_c=fp32" +
		" bias=column activation=silu density_class=3 spread_class=-1 union_class=2 date=2026-01-01T00:00:" + second +
		"Z | fast 1.5e-05 0.25 0.001 | slow 2e-05 0 0.5\n"
}

func writeText(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func openTuning(t testing.TB, lib *Library, path string) *tuning.Cache {
	t.Helper()
	c, err := tuning.Open(lib, path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c
}

func TestTuningCacheIsRead(t *testing.T) {
	lib := library(t)
	path := filepath.Join(t.TempDir(), "tuning.txt")
	writeText(t, path, tuningHeader+tuningLine("64", "01")+tuningLine("128", "02"))
	c := openTuning(t, lib, path)
	if c.State != tuning.Whole || c.Fault != "" || c.Path != path || len(c.Build) != 16 || len(c.Entries) != 2 {
		t.Fatalf("%+v", c)
	}
	want := tuning.Entry{
		Device: "NVIDIA H200", SMs: 132, Build: "0123456789abcdef", Op: "dsd", M: 128, N: 256, K: 512, BlockM: 64, BlockK: 32,
		DType: BF16, DTypeB: BF16, Output: FP32, Bias: ColumnBias, Activation: SiLU, DensityClass: 3, SpreadClass: -1, UnionClass: 2,
		Measured:   time.Date(2026, 1, 1, 0, 0, 2, 0, time.UTC),
		Candidates: []tuning.Result{{Kernel: "fast", Median: 15 * time.Microsecond, Spread: 0.25, Setup: time.Millisecond}, {Kernel: "slow", Median: 20 * time.Microsecond, Setup: 500 * time.Millisecond}},
	}
	if diff := cmp.Diff(want, c.Entries[0], cmpopts.IgnoreFields(tuning.Entry{}, "ID")); diff != "" {
		t.Errorf("the newest entry (-want +got):\n%s", diff)
	}
	if c.Entries[1].M != 64 || c.Entries[0].ID == c.Entries[1].ID || len(c.Entries[0].ID) != 16 {
		t.Errorf("%+v", c.Entries)
	}
}

func TestTuningCacheFaults(t *testing.T) {
	lib := library(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "tuning.txt")
	expect := func(text string, state tuning.State, entries int, fault string) {
		t.Helper()
		if text != "" {
			writeText(t, path, text)
		}
		c := openTuning(t, lib, path)
		if c.State != state || len(c.Entries) != entries || !strings.Contains(c.Fault, fault) || (fault == "") != (c.Fault == "") {
			t.Errorf("%q: %v with %d entries, %q", text, c.State, len(c.Entries), c.Fault)
		}
	}
	expect("", tuning.Absent, 0, "")
	expect(tuningHeader+tuningLine("1", "01")+"no entry\n", tuning.Damaged, 1, "line 3")
	expect(tuningHeader+tuningLine("1", "01")+tuningLine("2", "01")[:200], tuning.Damaged, 1, "ends in the middle")
	expect("sparsek tuning cache, version 2\n", tuning.Foreign, 0, "a newer sparsek")
	expect("something\n", tuning.Foreign, 0, "first line")
	path = dir
	expect("", tuning.Unreadable, 0, "it is a folder")
	_, err := tuning.Open(lib, "a\x00b")
	wantFault(t, err, ErrBadArgument, "zero byte")
}

func TestTuningCacheMergeAndClear(t *testing.T) {
	lib := library(t)
	dir := t.TempDir()
	a, b := filepath.Join(dir, "a.txt"), filepath.Join(dir, "b.txt")
	writeText(t, a, tuningHeader+tuningLine("1", "01")+tuningLine("2", "09"))
	writeText(t, b, tuningHeader+tuningLine("1", "05")+tuningLine("2", "05")+tuningLine("3", "05"))
	merge := func(from, into string, want int) {
		t.Helper()
		change, err := openTuning(t, lib, from).MergeInto(into)
		if err != nil || change != (tuning.Change{Entries: want}) {
			t.Errorf("%+v, %v, want %d entries", change, err, want)
		}
	}
	merge(b, a, 2)
	merge(b, a, 0)
	var got []string
	for _, e := range openTuning(t, lib, a).Entries {
		got = append(got, e.Measured.Format("5")+":"+string(rune('0'+e.M)))
	}
	slices.Sort(got)
	if !slices.Equal(got, []string{"5:1", "5:3", "9:2"}) {
		t.Errorf("merged: %q", got)
	}
	// The same text, whichever way the entries came together.
	c := filepath.Join(dir, "c.txt")
	merge(b, c, 3)
	merge(a, c, 1)
	first, err1 := os.ReadFile(a)
	second, err2 := os.ReadFile(c)
	if err := errors.Join(err1, err2); err != nil || string(first) != string(second) {
		t.Errorf("%v\n%s\n%s", err, first, second)
	}

	change, err := tuning.Clear(lib, c)
	if err != nil || change.Entries != 3 || openTuning(t, lib, c).State != tuning.Absent {
		t.Errorf("%+v, %v", change, err)
	}
	// A file that is none is not touched.
	writeText(t, c, "a letter\n")
	_, err = openTuning(t, lib, a).MergeInto(c)
	wantFault(t, err, ErrIO, "first line")
	_, err = tuning.Clear(lib, c)
	wantFault(t, err, ErrIO, "first line")
	if text, err := os.ReadFile(c); err != nil || string(text) != "a letter\n" {
		t.Errorf("%q, %v", text, err)
	}
	_, err = openTuning(t, lib, a).MergeInto(filepath.Join(dir, "no", "file"))
	wantFault(t, err, ErrIO, "make its folder first")
	closed := openTuning(t, lib, a)
	if err := errors.Join(closed.Close(), closed.Close()); err != nil {
		t.Error(err)
	}
	if _, err := closed.MergeInto(c); !errors.Is(err, ErrClosed) {
		t.Error(err)
	}
}

// The user's own cache: where it is, and what becomes of one with a fault.
func TestUsersTuningCache(t *testing.T) {
	lib := library(t)
	dir := t.TempDir()
	at := func(variable, value, want string) {
		t.Helper()
		t.Setenv("SPARSEK_TUNING_CACHE", "")
		t.Setenv("XDG_CACHE_HOME", "")
		t.Setenv("HOME", "")
		t.Setenv(variable, value)
		if c := openTuning(t, lib, ""); c.Path != want || (want == "") != strings.Contains(c.Fault, "SPARSEK_TUNING_CACHE") {
			t.Errorf("%s=%s: %q, %q, want %q", variable, value, c.Path, c.Fault, want)
		}
	}
	at("HOME", dir, filepath.Join(dir, ".cache/sparsek/tuning.txt"))
	at("XDG_CACHE_HOME", dir, filepath.Join(dir, "sparsek/tuning.txt"))
	at("XDG_CACHE_HOME", "relative", "")
	at("HOME", "", "")
	at("SPARSEK_TUNING_CACHE", "off", "")
	_, err := tuning.Clear(lib, "")
	wantFault(t, err, ErrIO, "SPARSEK_TUNING_CACHE is off")
	path := filepath.Join(dir, "new", "cache.txt")
	at("SPARSEK_TUNING_CACHE", path, path)

	from := filepath.Join(dir, "from.txt")
	writeText(t, from, tuningHeader+tuningLine("1", "01"))
	change, err := openTuning(t, lib, from).MergeInto("")
	if err != nil || change != (tuning.Change{Entries: 1}) {
		t.Fatalf("%+v, %v", change, err)
	}
	writeText(t, path, tuningHeader+tuningLine("2", "02")+"no entry\n")
	change, err = openTuning(t, lib, from).MergeInto("")
	if err != nil || change.Entries != 1 || !strings.Contains(change.Warning, "line 3: it is now "+path+".set-aside-") {
		t.Errorf("%+v, %v", change, err)
	}
	if c := openTuning(t, lib, ""); c.State != tuning.Whole || len(c.Entries) != 2 {
		t.Errorf("%+v", c)
	}
}

func TestShippedTuning(t *testing.T) {
	c, err := tuning.Shipped(library(t))
	if err != nil || c.State != tuning.Whole || c.Fault != "" || c.Path != "" {
		t.Fatalf("%+v, %v", c, err)
	}
	defer c.Close()
	for _, e := range c.Entries {
		if e.Build != tuning.ShippedBuild {
			t.Errorf("%+v serves one build alone", e)
		}
	}
}

// FuzzTuningCache gives the library whatever file: what it takes for entries is still there after they were written.
func FuzzTuningCache(f *testing.F) {
	whole := tuningHeader + tuningLine("1", "01") + tuningLine("2", "02")
	for _, text := range []string{whole, whole[:len(whole)-1], whole + "# note\nmore\n", "sparsek tuning cache, version 9\n", "", "\n",
		tuningHeader + strings.Replace(tuningLine("1", "01"), "H200", "%00%ff", 1)} {
		f.Add([]byte(text))
	}
	lib := library(f)
	dir := f.TempDir()
	f.Fuzz(func(t *testing.T, text []byte) {
		from, into := filepath.Join(dir, "from.txt"), filepath.Join(dir, "into.txt")
		writeText(t, from, string(text))
		read, err := tuning.Open(lib, from)
		if err != nil {
			t.Fatal(err)
		}
		defer read.Close()
		bad := read.State == tuning.Damaged || read.State == tuning.Foreign
		if bad == (read.Fault == "") || !bad && read.State != tuning.Whole || read.State == tuning.Foreign && len(read.Entries) > 0 {
			t.Fatalf("%v, %q, %d entries", read.State, read.Fault, len(read.Entries))
		}
		if _, err := tuning.Clear(lib, into); err != nil {
			t.Fatal(err)
		}
		if change, err := read.MergeInto(into); err != nil || change.Entries != len(read.Entries) {
			t.Fatalf("%+v, %v", change, err)
		}
		again, err := tuning.Open(lib, into)
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if diff := cmp.Diff(read.Entries, again.Entries, cmpopts.EquateEmpty()); again.State != tuning.Whole || diff != "" {
			t.Fatalf("%v, %q, (-read +written):\n%s", again.State, again.Fault, diff)
		}
	})
}
