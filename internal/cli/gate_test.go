// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/bench"
	buildreport "github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate"
	"github.com/sparsek/sparsek/internal/gate/blessed"
	"github.com/sparsek/sparsek/internal/gate/gatetest"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// suite names the cases of the suite gate.
func suite() []string { return bench.GateNames() }

// scaled makes a profile whose every case has a metric changed by a factor, in the folder dir.
func scaled(t *testing.T, dir, metric string, factor float64) *profile.Profile {
	t.Helper()
	return gatetest.Profile(t, dir, suite(), nil, func(_ string, f ncu.Figures) { f[metric] *= factor })
}

// blessOne makes a folder the current one, and a baseline in it.
func blessOne(t *testing.T) {
	t.Helper()
	t.Chdir(t.TempDir())
	scaled(t, profileDir, "cycles", 1)
	for i, start := range []string{"b", "c", "d"} {
		gatetest.Profile(t, filepath.Join(noiseDir, start), suite(), func(p *profile.Profile) {
			p.Start, p.Date = start, p.Date.Add(time.Duration(i+1)*time.Hour)
		}, nil)
	}
	code, out, failed := invoke("bless", "--reason", "the first")
	if code != exitOK || !strings.Contains(out, fmt.Sprintf("NVIDIA H200: %d cases of commit %s", len(suite()), gatetest.Commit)) {
		t.Fatalf("%d, %s, %s", code, out, failed)
	}
}

// From profile folders to exit codes and reports.
func TestGateOfFolders(t *testing.T) {
	blessOne(t)
	scaled(t, "good", "cycles", 1.04)
	scaled(t, "slow", "cycles", 1.06)
	scaled(t, "less-dram", "dram_bw", 0.92)
	gatetest.Profile(t, "faster", suite(), nil, func(_ string, f ncu.Figures) { f["cycles"], f["dram_bw"] = 0.8*f["cycles"], 0.8*f["dram_bw"] })
	drifted := func(p *profile.Profile) {
		for i := range p.Cases {
			p.Cases[i].SASS = "bb"
		}
	}
	gatetest.Profile(t, "slow-code", suite(), drifted, func(_ string, f ncu.Figures) { f["cycles"] *= 1.06 })
	gatetest.Profile(t, "less-dram-code", suite(), drifted, func(_ string, f ncu.Figures) { f["dram_bw"] *= 0.92 })
	scaled(t, "far", "cycles", 1.12)
	gatetest.Profile(t, "recompiled", suite(), func(p *profile.Profile) { p.Cases[3].SASS = "bb" }, nil)
	gatetest.Profile(t, "h100", suite(), func(p *profile.Profile) { p.GPU = "NVIDIA H100" }, nil)
	for _, c := range []struct {
		first, again string
		code         int
		speaksOf     string
	}{
		{"good", "", exitOK, "\nPASS: "},
		{"faster", "", exitOK, "the kernel is faster"},
		{"slow-code", "slow-code", exitGateFail, "cause: the machine code"},
		{"less-dram-code", "less-dram-code", exitGateFail, "dram_bw 45.20 -> 41.58"},
		{"slow", "slow", exitOK, "neither machine code nor plan changed"},
		{"less-dram", "less-dram", exitOK, "neither machine code nor plan changed"},
		{"far", "far", exitDrift, "cause: the environment"},
		{"far", "good", exitOK, "worse once"},
		{"far", "", exitAmbiguous, "not measured a second time"},
		{"slow-code", "good", exitStale, "worse once"},
		{"slow-code", "", exitAmbiguous, "not measured a second time"},
		{"recompiled", "", exitStale, "b64-random-50: the baseline is of other machine code"},
		{"h100", "", exitNotMeasurable, "no baseline for NVIDIA H100"},
	} {
		args := []string{"gate", "--profile", c.first}
		if c.again != "" {
			args = append(args, "--again", c.again)
		}
		code, out, failed := invoke(args...)
		if code != c.code || !strings.Contains(out, c.speaksOf) || (code == exitOK) != (failed == "") {
			t.Errorf("%s, %s: exit code %d, want %d, with %q in\n%s%s", c.first, c.again, code, c.code, c.speaksOf, out, failed)
		}
	}
	code, out, _ := invoke("gate", "--profile", "slow-code", "--again", "slow-code", "--json")
	var r gate.Result
	if err := json.Unmarshal([]byte(out), &r); err != nil || code != exitGateFail || r.Verdict != gate.Fail || len(r.Cases) != len(suite()) {
		t.Errorf("%d, %v, %+v", code, err, r)
	}
	history, err := gate.ReadHistory(historyFile)
	if err != nil || len(history) != 14 || history[2].Verdict != gate.Fail {
		t.Errorf("%+v, %v", history, err)
	}
	for _, name := range []string{"gate.json", "gate.md", "junit.xml", "gate.sarif", "gate.html"} {
		if text, err := os.ReadFile(filepath.Join(reportDir, name)); err != nil || !bytes.Contains(text, []byte("b64-random-50")) {
			t.Errorf("%s: %v", name, err)
		}
	}
	// The trend is of this GPU alone.
	other := &gate.Result{GPU: "NVIDIA H100", Verdict: gate.Pass, Cases: []gate.Case{{Name: suite()[0], Metrics: []gate.Metric{{Name: "cycles", First: 77}}}}}
	if _, err := gate.AddToHistory(historyFile, other); err != nil {
		t.Fatal(err)
	}
	invoke("gate", "--profile", "good")
	if page, err := os.ReadFile(filepath.Join(reportDir, "gate.html")); err != nil || bytes.Contains(page, []byte(" 77 cycles")) || !bytes.Contains(page, []byte(" 86920 cycles")) {
		t.Errorf("the trend: %v", err)
	}
}

// Without a GPU: whole, changed by hand, with a log that was cut, and none.
func TestGateCheck(t *testing.T) {
	blessOne(t)
	if code, out, failed := invoke("gate", "--check"); code != exitOK || !strings.Contains(out, ": the baseline") {
		t.Errorf("%d, %s, %s", code, out, failed)
	}
	log, err := os.ReadFile("ci/baseline/log.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	write(t, "before", "another line\n"+string(log))
	if code, out, _ := invoke("gate", "--check", "--log-before", "before"); code != exitGateFail || !strings.Contains(out, "as it was before") {
		t.Errorf("a log that was made anew: %d, %s", code, out)
	}
	write(t, "before", "")
	if code, out, _ := invoke("gate", "--check", "--log-before", "before"); code != exitOK {
		t.Errorf("the first line of a log: %d, %s", code, out)
	}
	write(t, "ci/baseline/nsight_baseline.norm.txt", "dram_bw: 45.20\nsm_active: 52.30\ntensor_core: 65.80\n\n")
	if code, out, _ := invoke("gate", "--check"); code != exitGateFail || !strings.Contains(out, "nsight_baseline.norm.txt is not as it was blessed") {
		t.Errorf("edited: %d, %s", code, out)
	}
	for _, name := range []string{historyFile, filepath.Join(reportDir, "gate.json")} {
		if _, err := os.Stat(name); err == nil {
			t.Errorf("a check that measures nothing wrote %s", name)
		}
	}
	t.Chdir(t.TempDir())
	if code, out, failed := invoke("gate", "--check"); code != exitNotMeasurable || !strings.Contains(out, "bless makes one") {
		t.Errorf("no baseline: %d, %s, %s", code, out, failed)
	}
	if left, err := os.ReadDir("."); err != nil || len(left) > 0 {
		t.Errorf("a check wrote %v, %v", left, err)
	}
	if invoke("gate", "--check", "--reports", "r"); true {
		if text, err := os.ReadFile("r/junit.xml"); err != nil || !bytes.Contains(text, []byte("bless makes one")) {
			t.Errorf("reports that were asked for: %s, %v", text, err)
		}
	}
	if code, out, _ := invoke("gate"); code != exitNotMeasurable || !strings.Contains(out, "bless makes one") {
		t.Errorf("no baseline: %d, %s", code, out)
	}
	if history, err := gate.ReadHistory(historyFile); err != nil || len(history) != 1 || history[0].Verdict != gate.NotMeasurable {
		t.Errorf("%+v, %v", history, err)
	}
}

func TestGateExitCodes(t *testing.T) {
	for v, want := range map[gate.Verdict][2]int{ // with a GPU, and of --check
		gate.Pass: {exitOK, exitOK}, gate.Intact: {exitOK, exitOK}, gate.Stale: {42, exitOK}, gate.Ambiguous: {41, 41},
		gate.NotMeasurable: {43, 43}, gate.Fail: {40, 40}, gate.Drift: {44, 44},
	} {
		for i, check := range []bool{false, true} {
			o := gateCommand{Check: check}
			if got := exitCode(o.exit(v)); got != want[i] {
				t.Errorf("%s, check %v: exit code %d, want %d", v, check, got, want[i])
			}
		}
	}
}

func TestGateUsage(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, args := range [][]string{
		{"gate", "--check", "--profile", "x"}, {"gate", "--check", "b64-random"}, {"gate", "--check", "--recorded"}, {"gate", "--again", "x"}, {"gate", "--launches", "0"},
		{"gate", "no such case"}, {"bless"}, {"bless", "--reason", "r", "x"}, {"profile", "--runs", "0"}, {"profile", "no such case"},
		{"bench", "--launches", "1"}, {"bench", "--suite", "roofline", "--launches", "1"}, {"bench", "--suite", "roofline", "--launches", "-1"},
	} {
		if code, _, failed := invoke(args...); code != exitUsage {
			t.Errorf("%q: %d, %s", args, code, failed)
		}
	}
	if code, _, failed := invoke("bless", "--reason", "r"); code != exitBadFile || !strings.Contains(failed, "sparsek profile makes one") {
		t.Errorf("nothing to bless: %d, %s", code, failed)
	}
}

func TestNotBlessed(t *testing.T) {
	blessOne(t)
	gatetest.Profile(t, profileDir, suite(), func(p *profile.Profile) { p.Commit += "-dirty" }, nil)
	if code, _, failed := invoke("bless", "--reason", "r"); code != exitBadFile || !strings.Contains(failed, "commit everything") {
		t.Errorf("changed sources: %d, %s", code, failed)
	}
	scaled(t, profileDir, "cycles", 1)
	gatetest.Profile(t, noiseDir+"/old", suite(), func(p *profile.Profile) { p.Library = "22" }, nil)
	if code, _, failed := invoke("bless", "--reason", "r"); code != exitBadFile || !strings.Contains(failed, "library") {
		t.Errorf("noise of another library: %d, %s", code, failed)
	}
}

// fakeTaker gives one profile after the other, or an error.
type fakeTaker struct {
	t     *testing.T
	takes []func(dir string) (*profile.Profile, error)
	dirs  []string
	cases [][]string
}

func (f *fakeTaker) measure(_ context.Context, dir string, cases []string) (*profile.Profile, error) {
	if len(f.takes) == 0 {
		f.t.Fatal("one measurement more than was expected")
	}
	take := f.takes[0]
	f.takes, f.dirs, f.cases = f.takes[1:], append(f.dirs, dir), append(f.cases, cases)
	return take(dir)
}

// fakeMachine has no blessed library, unless it has a comparer, or fails with err.
type fakeMachine struct {
	taker    taker
	comparer comparer
	report   *buildreport.Report
	err      error
}

func (f fakeMachine) profiler(context.Context) (taker, error) { return f.taker, f.err }
func (f fakeMachine) kernels() (*buildreport.Report, error)   { return f.report, f.err }
func (f fakeMachine) pairs(context.Context, *gate.Store) (comparer, error) {
	if f.comparer == nil && f.err == nil {
		return nil, fmt.Errorf("%w: a test", blessed.ErrMissing)
	}
	return f.comparer, f.err
}

// What is measured, how often, and what comes of obstacles.
func TestGateMeasures(t *testing.T) {
	recompiled := func(p *profile.Profile) {
		for i := range p.Cases {
			p.Cases[i].SASS = "bb"
		}
	}
	times := func(factor float64) func(string) (*profile.Profile, error) {
		return func(dir string) (*profile.Profile, error) {
			if factor == 1 {
				return scaled(t, dir, "cycles", 1), nil
			}
			return gatetest.Profile(t, dir, suite(), recompiled, func(_ string, f ncu.Figures) { f["cycles"] *= factor }), nil
		}
	}
	oneSlow := func(dir string) (*profile.Profile, error) {
		return gatetest.Profile(t, dir, suite(), recompiled, func(name string, f ncu.Figures) {
			if name == "b64-random-50" {
				f["cycles"] *= 1.1
			}
		}), nil
	}
	fails := func(err error) func(string) (*profile.Profile, error) {
		return func(string) (*profile.Profile, error) { return nil, profile.Explain(err) }
	}
	for what, c := range map[string]struct {
		takes    []func(string) (*profile.Profile, error)
		want     gate.Verdict
		again    []string // cases that are measured a second time
		speaksOf string
	}{
		"good":               {[]func(string) (*profile.Profile, error){times(1)}, gate.Pass, nil, ""},
		"slow twice":         {[]func(string) (*profile.Profile, error){times(1.1), times(1.1)}, gate.Fail, suite(), ""},
		"one slow twice":     {[]func(string) (*profile.Profile, error){oneSlow, oneSlow}, gate.Fail, []string{"b64-random-50"}, ""},
		"slow once":          {[]func(string) (*profile.Profile, error){times(1.1), times(1)}, gate.Stale, suite(), ""},
		"second fails":       {[]func(string) (*profile.Profile, error){times(1.1), fails(profile.ErrThrottled)}, gate.Ambiguous, suite(), "second measurement failed"},
		"counters forbidden": {[]func(string) (*profile.Profile, error){fails(ncu.ErrPermission)}, gate.NotMeasurable, nil, "NVreg_RestrictProfilingToAdminUsers=0"},
		"ncu absent":         {[]func(string) (*profile.Profile, error){fails(ncu.ErrNoProfiler)}, gate.NotMeasurable, nil, "install Nsight Compute"},
		"throttled":          {[]func(string) (*profile.Profile, error){fails(profile.ErrThrottled)}, gate.NotMeasurable, nil, "cool down"},
	} {
		t.Run(what, func(t *testing.T) {
			blessOne(t)
			store, err := gate.Open(".")
			if err != nil {
				t.Fatal(err)
			}
			f := &fakeTaker{t: t, takes: c.takes}
			o := &gateCommand{Root: ".", Reports: reportDir, History: historyFile, Launches: 5}
			e := &environment{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, progress: term.New(&bytes.Buffer{})}
			r, err := o.judge(t.Context(), e, store, fakeMachine{taker: f})
			if err != nil || r.Verdict != c.want || len(f.takes) > 0 {
				t.Fatalf("%+v, %v, %d measurements left", r, err, len(f.takes))
			}
			if text := strings.Join(append(r.Reasons, r.Notes...), "\n"); !strings.Contains(text, c.speaksOf) {
				t.Errorf("%q, want a word of %q", text, c.speaksOf)
			}
			if len(f.dirs) == 2 && f.dirs[0] == f.dirs[1] {
				t.Error("the second measurement took the place of the first")
			}
			if len(f.cases) == 2 && (f.cases[0] != nil || !slices.Equal(f.cases[1], c.again)) {
				t.Errorf("measured %q, want all and then %q", f.cases, c.again)
			}
			if code := exitCode(o.finish(e, r, store)); (code == exitOK) != (c.want == gate.Pass) {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

//go:embed testdata/ncu.sh
var fakeNCU []byte

// The cases that are asked for are those that the profiler runs, and a profile that was there is gone when it fails.
func TestMeasure(t *testing.T) {
	dir := t.TempDir()
	t.Chdir(dir)
	scaled(t, profileDir, "cycles", 1)
	if err := os.WriteFile("ncu", fakeNCU, 0o777); err != nil {
		t.Fatal(err)
	}
	m := measurer{profile.Options{Program: "sparsek", Launches: 2, Kernels: &buildreport.Report{}, Profiler: filepath.Join(dir, "ncu"), SMI: "/nowhere"}}
	_, err := m.measure(t.Context(), profileDir, []string{"b16-random", "decode-16"})
	var not *profile.NotMeasurable
	if !errors.As(err, &not) || !errors.Is(err, ncu.ErrPermission) || exitCode(err) != exitNotMeasurable {
		t.Errorf("got %v", err)
	}
	args, err := os.ReadFile("args")
	if err != nil || !strings.HasSuffix(string(args), " --launches 2 b16-random decode-16\n") {
		t.Errorf("%s, %v", args, err)
	}
	if _, err := profile.Read(profileDir); !errors.Is(err, profile.ErrNoProfile) {
		t.Errorf("the old profile: %v", err)
	}
}

// An error that is no obstacle is returned unchanged.
func TestGateBreaks(t *testing.T) {
	blessOne(t)
	store, err := gate.Open(".")
	if err != nil {
		t.Fatal(err)
	}
	broken := errors.New("broken")
	o := &gateCommand{Root: "."}
	e := &environment{stdout: &bytes.Buffer{}, stderr: &bytes.Buffer{}, progress: term.New(&bytes.Buffer{})}
	_, err = o.judge(t.Context(), e, store, fakeMachine{err: broken})
	if !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// Whatever machine this is, profile measures on it or says why it cannot, with the fix.
func TestProfileWithoutAGPU(t *testing.T) {
	lib := needLibrary(t)
	if devices, err := lib.Devices(); err != nil || len(devices) > 0 {
		t.Skip("skipped: there is a GPU")
	}
	t.Chdir(t.TempDir())
	scaled(t, profileDir, "cycles", 1)
	code, out, failed := invoke("profile")
	if code != exitNotMeasurable && code != exitBadFile || out != "" || failed == "" {
		t.Errorf("%d, %s, %s", code, out, failed)
	}
}
