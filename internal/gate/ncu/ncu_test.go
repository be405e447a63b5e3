// SPDX-License-Identifier: Apache-2.0

package ncu_test

import (
	"encoding/csv"
	"errors"
	"math"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/ncu/ncutest"
)

func figures() ncu.Figures {
	return ncu.Figures{"sm_active": 72.3, "tensor_core": 65.8, "dram_bw": 45.2, "cycles": 82011, "duration_ns": 45120, "registers": 168,
		"spill_loads": 0, "spill_stores": 0, "l2_bytes": 412000000, "dram_bytes": 78123520, "occupancy": 14.28}
}

func launchesOf(kernel string, n int) (list []ncutest.Launch) {
	for range n {
		list = append(list, ncutest.Launch{Kernel: kernel, Figures: figures()})
	}
	return list
}

func extract(t *testing.T, text string) ncu.Figures {
	t.Helper()
	launches, err := ncu.Parse(strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	s, err := ncu.Sample(launches, ncu.Metrics())
	if err != nil {
		t.Fatal(err)
	}
	return s.Medians()
}

// The known answer. The hash was worked out apart from this program, with sha256sum; the empty line is part of it.
func TestKnownAnswer(t *testing.T) {
	text := ncu.Figures{"tensor_core": 65.8, "sm_active": 72.3, "dram_bw": 45.2}.Normal()
	if want := "dram_bw: 45.20\nsm_active: 72.30\ntensor_core: 65.80\n\n"; text != want {
		t.Errorf("normal form %q, want %q", text, want)
	}
	if got := ncu.Hash([]byte(text)); got != knownHash {
		t.Errorf("it has hash %s, want %s", got, knownHash)
	}
}

func TestBothForms(t *testing.T) {
	launches := launchesOf("_Z1kv", 3)
	launches[0].Figures["cycles"], launches[2].Figures["cycles"] = 82000, 91234.5
	if diff := cmp.Diff(figures(), extract(t, ncutest.Raw(launches))); diff != "" {
		t.Errorf("raw page (-want +got):\n%s", diff)
	}
	near := cmp.Comparer(func(a, b float64) bool { return math.Abs(a-b) <= 1e-3*math.Abs(a) }) // "us" and "Mbyte" have few digits
	if diff := cmp.Diff(figures(), extract(t, ncutest.Long(launches)), near); diff != "" {
		t.Errorf("long form (-want +got):\n%s", diff)
	}
}

// A table that a spreadsheet has been at: no quotes but where they are needed, other line ends, a byte order mark.
func TestRewrittenTable(t *testing.T) {
	for name, text := range map[string]string{"raw": ncutest.Raw(launchesOf("_Z1kv", 3)), "long": ncutest.Long(launchesOf("_Z1kv", 3))} {
		text = text[strings.Index(text, `"ID"`):]
		rows, err := csv.NewReader(strings.NewReader(text)).ReadAll()
		if err != nil {
			t.Fatal(err)
		}
		var plain strings.Builder
		w := csv.NewWriter(&plain)
		w.UseCRLF = true
		if err := w.WriteAll(rows); err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(extract(t, text), extract(t, "\ufeff"+plain.String())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// As some versions print it: a row of units and no column of them, other columns, numbers without quotes.
func TestLongFormOfOtherVersions(t *testing.T) {
	launches, err := ncu.Parse(strings.NewReader(`==PROF== Profiling "k"
"ID","Kernel Name","Metric Name","Metric Value"
"","","",""
"0","k(int, float)","gpu__time_duration.sum","1,234"
"0","k(int, float)","sm__cycles_elapsed.max",5678
"1","k(int, float)","gpu__time_duration.sum","1,236"
==PROF== Disconnected
"1","k(int, float)","sm__cycles_elapsed.max",5680
`))
	if err != nil || len(launches) != 2 || launches[1].ID != "1" || launches[0].Kernel != "k(int, float)" {
		t.Fatalf("%+v, %v", launches, err)
	}
	if v, err := launches[1].Value(ncu.Metric{Counter: "sm__cycles_elapsed.max"}); v != 5680 || err != nil {
		t.Errorf("%v, %v", v, err)
	}
	one := ncutest.Long(launchesOf("k", 1))
	two, err := ncu.Parse(strings.NewReader(one + one[strings.Index(one, "\n")+1:])) // two runs, each of which begins at 0
	if err != nil || len(two) != 2 {
		t.Errorf("%d launches of two runs, %v", len(two), err)
	}
	if _, err := launches[1].Value(ncu.Metric{Counter: "gpu__time_duration.sum", Unit: ncu.Nanoseconds}); err == nil {
		t.Error("a time without a unit was taken for nanoseconds")
	}
}

func TestFaults(t *testing.T) {
	good := ncutest.Raw(launchesOf("_Z1kv", 2))
	header := good[:strings.Index(good, `"0",`)]
	for name, c := range map[string]struct {
		text string
		want error
	}{
		"empty":                   {"", ncu.ErrEmpty},
		"the profiler's own line": {"==PROF== Connected\n==WARNING== No kernels were profiled.\n", ncu.ErrEmpty},
		"header":                  {strings.Join(strings.SplitAfter(good, "\n")[:2], ""), ncu.ErrEmpty},
		"header and units":        {header, ncu.ErrEmpty},
		"cut in a row":            {good[:len(good)-40], ncu.ErrTruncated},
		"cut in a number":         {good[:len(good)-3], ncu.ErrTruncated},
		"a column less":           {good + `"9","41"` + "\n", ncu.ErrTruncated},
	} {
		if _, err := ncu.Parse(strings.NewReader(c.text)); !errors.Is(err, c.want) {
			t.Errorf("%s: %v, want %v", name, err, c.want)
		}
	}
	lines := strings.SplitAfter(good, "\n")
	for name, text := range map[string]string{
		"no units":    lines[1] + lines[3],
		"no kernel":   header + strings.Replace(lines[3], "_Z1kv", "", 1),
		"two columns": strings.Replace(good, "lts__t_bytes.sum", "dram__bytes.sum", 1),
		"no values":   `"ID","Kernel Name","Metric Name"` + "\n" + `"0","k","a__b"` + "\n",
		"two kernels": strings.Replace(ncutest.Long(launchesOf("k", 1)), `"k"`, `"j"`, 1),
	} {
		if l, err := ncu.Parse(strings.NewReader(text)); err == nil {
			t.Errorf("%s: %d launches and no error", name, len(l))
		}
	}
}

func TestSampleFaults(t *testing.T) {
	sample := func(text string) error {
		launches, err := ncu.Parse(strings.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		_, err = ncu.Sample(launches, ncu.Metrics())
		return err
	}
	good := ncutest.Raw(launchesOf("_Z1kv", 2))
	for name, c := range map[string]struct{ text, speaksOf string }{
		"another version's counter": {strings.Replace(good, "dram__throughput.avg", "dram__throughput.max", 1), "dram__throughput.avg"},
		"two kernels":               {ncutest.Raw(append(launchesOf("_Z1kv", 1), launchesOf("_Z1jv", 1)...)), "several kernels"},
		"not measured":              {strings.Replace(good, `"72.30"`, `"n/a"`, 1), "no value"},
		"not a number":              {strings.Replace(good, `"72.30"`, `"(nan)"`, 1), "no value"},
		"decimal comma":             {strings.Replace(good, `"72.30"`, `"72,30"`, 1), "72,30"},
		"unknown unit":              {strings.Replace(good, `"ns"`, `"fortnight"`, 1), "fortnight"},
	} {
		if err := sample(c.text); err == nil || !strings.Contains(err.Error(), c.speaksOf) {
			t.Errorf("%s: %v, want one that speaks of %s", name, err, c.speaksOf)
		}
	}
}

func TestParseNormal(t *testing.T) {
	for _, text := range []string{"", "\n", "\n\n", "a: 1.00", "a: 1.00\n", "a: 1.0\n\n", "b: 1.00\na: 1.00\n\n", "a: 1.00\na: 1.00\n\n", "a 1.00\n\n",
		"a: x\n\n", "a: 1.00\n\n\n", "\na: 1.00\n\n", "a: 1.00\n\nb: 1.00\n\n", "a:  1.00\n\n", "a: +1.00\n\n"} {
		if f, err := ncu.ParseNormal(text); err == nil {
			t.Errorf("%q: %v and no error", text, f)
		}
	}
}

// What is written is read back, and nothing else is.
func TestNormalFormRoundTrip(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := ncu.Figures{}
		for name, v := range rapid.MapOfN(rapid.StringMatching(`[a-z][a-z_0-9]{0,9}`), rapid.IntRange(-1e9, 1e9), 1, 9).Draw(t, "f") {
			f[name] = float64(v) / 100
		}
		got, err := ncu.ParseNormal(f.Normal())
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(f, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	})
}

// A number is read back however the profiler separates it.
func TestNumbers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		want := float64(rapid.Int64Range(0, 1e14).Draw(t, "n")) / 100
		launches := launchesOf("_Z1kv", 1)
		launches[0].Figures["cycles"] = want
		list, err := ncu.Parse(strings.NewReader(ncutest.Raw(launches)))
		if err != nil {
			t.Fatal(err)
		}
		s, err := ncu.Sample(list, ncu.Metrics())
		if err != nil || math.Abs(s["cycles"][0]-want) > 0.006 {
			t.Errorf("%v, %v, want %v", s["cycles"], err, want)
		}
	})
}

func TestMedianAndSpread(t *testing.T) {
	s := ncu.Samples{"odd": {3, 1, 2}, "even": {4, 1, 2, 3}, "none": nil}
	m := s.Medians()
	if m["odd"] != 2 || m["even"] != 2.5 || !math.IsNaN(m["none"]) || s.Spread("odd") != 1 || s.Spread("even") != 1.5 {
		t.Errorf("%v, %v, %v", m, s.Spread("odd"), s.Spread("even"))
	}
}

// Taking launches apart and putting them together changes no digit.
func TestRaw(t *testing.T) {
	text := ncutest.Raw(launchesOf("_Z1kv", 4))
	raw, err := ncu.ParseRaw([]byte(text))
	if err != nil || len(raw.Rows) != 4 {
		t.Fatalf("%+v, %v", raw, err)
	}
	all, err := ncu.Join([]ncu.Raw{raw.Slice(0, 1), raw.Slice(1, 4)})
	if err != nil || all.String() != text[strings.Index(text, `"ID"`):] {
		t.Errorf("%s, %v", all, err)
	}
	other := raw
	other.Units = strings.Replace(raw.Units, "ns", "us", 1)
	if _, err := ncu.Join([]ncu.Raw{raw, other}); err == nil {
		t.Error("runs in other units were put together")
	}
	if _, err := ncu.ParseRaw([]byte(ncutest.Long(launchesOf("k", 1)))); err == nil {
		t.Error("the long form passed for the raw page")
	}
}

func TestMetrics(t *testing.T) {
	list, err := ncu.FindMetrics(ncu.Headline())
	if err != nil || len(list) != 3 || list[0].Counter != "sm__cycles_active.avg.pct_of_peak_sustained_elapsed" {
		t.Errorf("%v, %v", list, err)
	}
	if _, err := ncu.FindMetrics([]string{"no such"}); err == nil {
		t.Error("a metric that does not exist was found")
	}
	if legend := ncu.Legend(); strings.Count(legend, "\n") != len(ncu.Metrics()) || !strings.Contains(legend, "dram_bw: dram__throughput.avg") {
		t.Error(legend)
	}
}

func FuzzParse(f *testing.F) {
	f.Add(ncutest.Raw(launchesOf("_Z1kv", 2)))
	f.Add(ncutest.Long(launchesOf("_Z1kv", 2)))
	f.Fuzz(func(t *testing.T, text string) {
		launches, err := ncu.Parse(strings.NewReader(text))
		if err == nil && len(launches) == 0 {
			t.Error("no launches and no error")
		}
		for _, l := range launches {
			if l.ID == "" {
				t.Errorf("a launch without ID: %+v", l)
			}
		}
	})
}
