// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/profile"
)

const folder = "nvidia-h200"

func (w *world) read(name string) string {
	w.t.Helper()
	text, err := os.ReadFile(filepath.Join(w.root, name))
	if err != nil {
		w.t.Fatal(err)
	}
	return string(text)
}

func (w *world) write(name, text string) {
	w.t.Helper()
	if err := os.WriteFile(filepath.Join(w.root, name), []byte(text), 0o666); err != nil {
		w.t.Fatal(err)
	}
}

// edit replaces the first `from` in a file, which must be there.
func (w *world) edit(name, from, to string) {
	w.t.Helper()
	text := w.read(name)
	if !strings.Contains(text, from) {
		w.t.Fatalf("%s has no %q", name, from)
	}
	w.write(name, strings.Replace(text, from, to, 1))
}

// rehash makes the hash beside a file that of its content.
func (w *world) rehash(name string) {
	w.write(name+hashSuffix, ncu.HashLine(ncu.Hash([]byte(w.read(name))), name))
}

// What anybody may do to the files by hand is found, also where the hash beside a file is made to fit.
func TestFaultsInTheStore(t *testing.T) {
	norm, csv := normFile(folder, headlineCase), csvFile(folder, headlineCase)
	for what, c := range map[string]struct {
		do       func(w *world)
		speaksOf string
	}{
		"norm edited":     {func(w *world) { w.edit(norm, "cycles: 82000", "cycles: 99000") }, norm},
		"headline edited": {func(w *world) { w.edit(headlineFile, "72.30", "52.30") }, headlineFile},
		"norm and its hash edited": {func(w *world) {
			w.edit(norm, "cycles: 82000", "cycles: 99000")
			w.rehash(norm)
		}, norm + " is not what its CSV gives"},
		"hash edited":      {func(w *world) { w.edit(norm+hashSuffix, "  ci", "0  ci") }, norm + hashSuffix + " does not hold"},
		"hash of the head": {func(w *world) { w.write(headlineFile+hashSuffix, "") }, headlineFile + hashSuffix + " does not hold"},
		"CSV swapped":      {func(w *world) { w.write(csv, strings.ReplaceAll(w.read(csv), "82,00", "92,00")) }, csv},
		"CSV, norm and hash edited": {func(w *world) {
			w.write(csv, strings.ReplaceAll(w.read(csv), "82,00", "92,00"))
			w.write(norm, strings.Replace(w.read(norm), "82000", "92000", 1))
			w.rehash(norm)
		}, csv + " is not as it was blessed"},
		"CSV empty":          {func(w *world) { w.write(csv, "") }, csv + ": ncu CSV: no kernel was measured"},
		"CSV truncated":      {func(w *world) { w.write(csv, w.read(csv)[:len(w.read(csv))-20]) }, csv + ": ncu CSV: the CSV is cut off"},
		"CSV of other ncu":   {func(w *world) { w.edit(csv, "dram__throughput.avg", "dram__throughput.sum") }, "dram__throughput.avg"},
		"CSV of a kernel":    {func(w *world) { w.write(csv, strings.ReplaceAll(w.read(csv), "device", "devise")) }, "devise"},
		"CSV missing":        {func(w *world) { w.remove(csv) }, csv + " was blessed and is missing"},
		"a file more":        {func(w *world) { w.write(Dir+"/"+folder+"/x.norm.txt", "x") }, "x.norm.txt was never blessed"},
		"record edited":      {func(w *world) { w.edit(recordFile(folder), `"aa"`, `"bb"`) }, recordFile(folder)},
		"noise edited":       {func(w *world) { w.edit(recordFile(folder), `"runs": 4`, `"runs": 9`) }, recordFile(folder)},
		"record missing":     {func(w *world) { w.remove(recordFile(folder)) }, recordFile(folder)},
		"legend edited":      {func(w *world) { w.edit(legendFile, "dram__throughput", "dram__bytes") }, legendFile},
		"log missing":        {func(w *world) { w.remove(LogFile) }, LogFile},
		"log emptied":        {func(w *world) { w.write(LogFile, ""); w.rehash(LogFile) }, LogFile},
		"first line gone":    {func(w *world) { w.cutLog(0); w.rehash(LogFile) }, "line 1 has number 2"},
		"last line gone":     {func(w *world) { w.cutLog(1) }, LogFile + hashSuffix},
		"last one, rehashed": {func(w *world) { w.cutLog(1); w.rehash(LogFile) }, "is not as it was blessed"},
		"reason edited":      {func(w *world) { w.edit(LogFile, "the first", "the other"); w.rehash(LogFile) }, "does not follow"},
		"last line edited":   {func(w *world) { w.edit(LogFile, "the second", "another") }, LogFile + hashSuffix},
		"log cut off":        {func(w *world) { w.write(LogFile, w.read(LogFile)[:900]); w.rehash(LogFile) }, LogFile},
		"log reformatted":    {func(w *world) { w.edit(LogFile, `{"number":2`, `{"number": 2`); w.rehash(LogFile) }, "not as bless wrote it"},
		"no reason":          {func(w *world) { w.edit(LogFile, "the first", " "); w.rehash(LogFile) }, "gives no reason"},
		"dirty commit":       {func(w *world) { w.edit(LogFile, `4567","gpu"`, `4567-dirty","gpu"`); w.rehash(LogFile) }, "clean commit"},
	} {
		t.Run(what, func(t *testing.T) {
			w := newWorld(t)
			c.do(w)
			s := w.open()
			if text := strings.Join(s.Faults, "\n"); !strings.Contains(text, c.speaksOf) {
				t.Errorf("faults %q, want one that speaks of %q", s.Faults, c.speaksOf)
			}
			if r := Inspect(s, nil, time.Now()); r.Verdict != Fail {
				t.Errorf("verdict %s", r.Verdict)
			}
			if len(s.Baselines) > 0 {
				if r := Judge(s, w.profile(nil, nil), nil, names); r.Verdict != Fail {
					t.Errorf("verdict of a good measurement: %s", r.Verdict)
				}
			}
		})
	}
}

func (w *world) remove(name string) {
	w.t.Helper()
	if err := os.Remove(filepath.Join(w.root, name)); err != nil {
		w.t.Fatal(err)
	}
}

// cutLog takes a line out of the log.
func (w *world) cutLog(line int) {
	lines := strings.SplitAfter(w.read(LogFile), "\n")
	w.write(LogFile, strings.Join(append(lines[:line:line], lines[line+1:]...), ""))
}

// A baseline whose names mean something else than in this program is no baseline for it, though all its hashes fit.
func TestOtherLegend(t *testing.T) {
	w := newWorld(t)
	w.edit(legendFile, "dram__throughput", "dram__bytes")
	lines := strings.SplitAfter(w.read(LogFile), "\n")
	var last Blessing
	if err := json.Unmarshal([]byte(lines[1]), &last); err != nil {
		t.Fatal(err)
	}
	last.Files[legendFile] = ncu.Hash([]byte(w.read(legendFile)))
	line, err := last.line()
	if err != nil {
		t.Fatal(err)
	}
	w.write(LogFile, lines[0]+string(line))
	w.rehash(LogFile)
	if faults := w.open().Faults; len(faults) != 1 || !strings.Contains(faults[0], "is not what this program means") {
		t.Errorf("faults %q", faults)
	}
}

// A log that was made anew as a whole is distinguished from one that was appended to.
func TestFollows(t *testing.T) {
	w := newWorld(t)
	before := []byte(w.read(LogFile))
	w.bless("the third", w.one("cycles", 1.01))
	s := w.open()
	if s.CheckFollows(before); len(s.Faults) > 0 {
		t.Errorf("after a blessing: %q", s.Faults)
	}
	anew := newWorld(t)
	anew.bless("another third", anew.profile(nil, nil))
	s = anew.open()
	other := &world{t, t.TempDir()}
	other.bless("another first", other.profile(nil, nil))
	if s.CheckFollows([]byte(other.read(LogFile))); len(s.Faults) == 0 {
		t.Error("a log that was made anew passes")
	}
}

// Any byte of any file that is changed is found.
func TestAnyChangedByteIsFound(t *testing.T) {
	w := newWorld(t)
	files, err := readTree(w.root)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for name := range files {
		all = append(all, name)
	}
	rapid.Check(t, func(t *rapid.T) {
		changed := map[string][]byte{}
		for name, text := range files {
			changed[name] = text
		}
		name := rapid.SampledFrom(all).Draw(t, "name")
		text := bytes.Clone(files[name])
		at := rapid.IntRange(0, len(text)-1).Draw(t, "at")
		text[at] ^= byte(rapid.IntRange(1, 255).Draw(t, "by"))
		changed[name] = text
		s := &Store{}
		if s.check(changed); len(s.Faults) == 0 {
			t.Fatalf("%s changed at %d passes", name, at)
		}
	})
}

// sha256sum itself is content, from the root of the checkout.
func TestSHA256SumAgrees(t *testing.T) {
	program, err := exec.LookPath("sha256sum")
	if err != nil {
		t.Skip("skipped: no sha256sum")
	}
	w := newWorld(t)
	for _, name := range []string{headlineFile, normFile(folder, "decode-16"), LogFile} {
		c := exec.Command(program, "-c", name+hashSuffix)
		c.Dir = w.root
		if out, err := c.CombinedOutput(); err != nil {
			t.Errorf("%s: %s", err, out)
		}
	}
	if text := w.read(headlineFile); text != "dram_bw: 45.20\nsm_active: 72.30\ntensor_core: 65.80\n\n" {
		t.Errorf("headline %q", text)
	}
}

func TestNotBlessed(t *testing.T) {
	w := newWorld(t)
	before := w.read(LogFile)
	good, otherFunction := w.profile(nil, nil), w.profile(nil, nil)
	otherFunction.Cases[0].Symbol = "other"
	for what, c := range map[string]struct {
		reason   string
		runs     []*profile.Profile
		speaksOf string
	}{
		"no reason":      {" ", []*profile.Profile{good}, "reason"},
		"no run":         {"r", nil, "no profile"},
		"changed commit": {"r", []*profile.Profile{w.profile(func(p *profile.Profile) { p.Commit += "-dirty" }, nil)}, "commit everything"},
		"no commit":      {"r", []*profile.Profile{w.profile(func(p *profile.Profile) { p.Commit = "" }, nil)}, "commit everything"},
		"two libraries":  {"r", []*profile.Profile{good, w.profile(func(p *profile.Profile) { p.Library = "22" }, nil)}, "library"},
		"two GPUs":       {"r", []*profile.Profile{good, w.profile(func(p *profile.Profile) { p.GPU = "NVIDIA H100" }, nil)}, "GPU"},
		"two drivers":    {"r", []*profile.Profile{good, w.profile(func(p *profile.Profile) { p.Driver = "590" }, nil)}, "driver"},
		"throttled":      {"r", []*profile.Profile{w.profile(func(p *profile.Profile) { p.State.Reasons = 8 }, nil)}, "slowed down"},
		"two ncus":       {"r", []*profile.Profile{good, w.profile(func(p *profile.Profile) { p.NCU = "2024.1.0" }, nil)}, "version of ncu"},
		"two functions":  {"r", []*profile.Profile{good, otherFunction}, "other kernels"},
		"a case less":    {"r", []*profile.Profile{w.profile(func(p *profile.Profile) { p.Cases = p.Cases[1:] }, nil)}, "measure all"},
		"other kernels":  {"r", []*profile.Profile{good, w.profile(func(p *profile.Profile) { p.Cases[0].SASS = "bb" }, nil)}, "other kernels"},
	} {
		_, err := Bless(BlessOptions{Root: w.root, Reason: c.reason, Cases: names, Runs: c.runs, Date: time.Now()})
		if !errors.Is(err, ErrNotBlessed) || !strings.Contains(err.Error(), c.speaksOf) {
			t.Errorf("%s: %v, want %q", what, err, c.speaksOf)
		}
	}
	w.edit(LogFile, "the first", "the other")
	if _, err := Bless(BlessOptions{Root: w.root, Reason: "r", Cases: names, Runs: []*profile.Profile{good}}); !errors.Is(err, ErrNotBlessed) {
		t.Errorf("on a log that is broken: %v", err)
	}
	w.write(LogFile, before)
	if s := w.open(); len(s.Faults) > 0 {
		t.Errorf("what was refused left traces: %q", s.Faults)
	}
}

// A case that is blessed no more leaves no files, and another GPU's baseline stays.
func TestBlessReplaces(t *testing.T) {
	w := newWorld(t)
	h100 := w.profile(func(p *profile.Profile) { p.GPU = "NVIDIA H100 80GB HBM3" }, func(_ string, f ncu.Figures) { f["sm_active"] = 1 })
	w.bless("another GPU", h100)
	if text := w.read(headlineFile); !strings.Contains(text, "72.30") || len(w.open().Faults) > 0 {
		t.Errorf("another GPU became the headline: %q", text)
	}
	only := w.profile(func(p *profile.Profile) { p.Cases = p.Cases[:1] }, nil)
	_, err := Bless(BlessOptions{Root: w.root, Reason: "fewer", Cases: names[:1], Runs: []*profile.Profile{only}, Date: time.Now().UTC().Truncate(time.Second)})
	if err != nil {
		t.Fatal(err)
	}
	s := w.open()
	if len(s.Faults) > 0 || len(s.Baselines) != 2 || len(s.Baselines[0].Cases)+len(s.Baselines[1].Cases) != 3 {
		t.Errorf("%q, %d baselines", s.Faults, len(s.Baselines))
	}
	if _, err := os.Stat(filepath.Join(w.root, csvFile(folder, "decode-16"))); err == nil {
		t.Error("a CSV of a case that is gone is still there")
	}
	var line Blessing
	lines := strings.Split(strings.TrimSpace(w.read(LogFile)), "\n")
	if err := json.Unmarshal([]byte(lines[2]), &line); err != nil || line.GPU != h100.GPU || line.SASS["decode-16"] != "aa" || line.Reason != "another GPU" {
		t.Errorf("%+v, %v", line, err)
	}
}

func TestNothingBlessed(t *testing.T) {
	if _, err := Open(t.TempDir()); !errors.Is(err, ErrNoBaseline) {
		t.Errorf("got %v", err)
	}
}
