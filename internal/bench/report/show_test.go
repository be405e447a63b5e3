// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"embed"
	"encoding/csv"
	"encoding/json"
	"encoding/xml"
	"flag"
	"image/png"
	"io"
	"math"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"gonum.org/v1/plot/vg"
	"pgregory.net/rapid"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/roofline"
	"github.com/sparsek/sparsek/internal/machine/nvsmi"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

//go:embed testdata
var testdata embed.FS

var update = flag.Bool("update", false, "write the golden files anew")

// timed makes one with three rounds around a median.
func timed(name, kernel string, dense bool, seconds, effectiveFLOP, denseFLOP float64) bench.Timed {
	return bench.Timed{
		Name: name, Kernel: kernel, Dense: dense, Runs: 6, Seconds: seconds, Quartiles: [2]float64{seconds * 0.99, seconds * 1.02}, Spread: 0.03,
		Effective: effectiveFLOP / seconds / 1e12, DenseEquivalent: denseFLOP / seconds / 1e12,
		Rounds: [][]float64{{seconds, seconds * 1.04}, {seconds * 0.98, seconds}, {seconds, seconds}},
	}
}

// sample is a sweep of two block sizes on a GPU that stopped before its last case, with all that a report can contain.
func sample() *bench.Report {
	r := &bench.Report{
		Format: bench.ReportFormat, Command: "sparsek bench --suite sweep --against cublas,torch", Version: "1.2.3",
		Commit: "0123456789abcdef0123456789abcdef01234567", Suite: bench.Sweep, Backend: "GPU", Device: "NVIDIA H200", Driver: "580.65.06 (CUDA 13.0)",
		Date: "2026-11-21", Rounds: 3, Method: bench.Method(sparsek.CUDA, 3, 2*time.Second), Sustained: 2, Planned: 5, Interrupted: true, Chip: &roofline.Ceilings{Tensor: 1e15, L2: 1e13, DRAM: 4e12},
		Failed: []bench.Fault{{Name: "b64-d100", Error: "no kernel | for <this>\nand that"}},
		Absent: []bench.Absence{
			{Peer: bench.Torch, Reason: "torch is not installed", Fix: "install it", Cases: []string{"b32-d10", "b32-d50", "b64-d10", "b64-d50", "b64-d100"}},
			{Peer: "cusparse_bell", Reason: "too many blocks", Fix: "take fewer", Cases: []string{"b64-d50"}},
		},
	}
	const denseFLOP = 2.0 * 4096 * 4096 * 4096
	for _, c := range []struct {
		name           string
		block          int
		density        float64
		seconds, ratio float64
	}{{"b32-d10", 32, 0.1, 100e-6, 1.8}, {"b32-d50", 32, 0.5, 300e-6, 0.6}, {"b64-d10", 64, 0.1, 50e-6, 3.6}, {"b64-d50", 64, 0.5, 178e-6, 1.0112}} {
		flop := denseFLOP * c.density
		one := &bench.Result{
			Name: c.name, M: 4096, N: 4096, K: 4096, BlockM: c.block, BlockK: c.block, DType: "bf16", Pattern: "random", Seed: 7, Blocks: 1234,
			Density: c.density, Kernel: "gather_bf16_128_256", KernelReason: "the first that fits", PlanSeconds: 1e-4, EffectiveFLOP: flop, DenseFLOP: denseFLOP,
			Bytes: 7e7, Bounds: []roofline.Bound{{Name: "L2", Seconds: 4e-5}},
			Timed: []bench.Timed{timed(bench.Ours, "gather_bf16_128_256", false, c.seconds, flop, denseFLOP),
				timed(bench.CUBLAS, "cuBLAS GEMM", true, 180e-6, flop, denseFLOP)},
			Before: nvsmi.State{Known: true, SMClock: 1980, Seen: 1}, After: nvsmi.State{Known: true, SMClock: 1755, Reasons: 4, Seen: 1},
		}
		one.Timed[0].OfBound = 4e-5 / c.seconds
		one.Timed[0].Goal = &bench.Goal{Text: "400 TFLOP/s", TFLOPs: 400, Reached: one.Timed[0].Effective / 400}
		for i := range one.Timed {
			t := &one.Timed[i]
			t.Sustained = &bench.Sustained{Products: 9, Took: 9 * 1.25 * t.Seconds, Seconds: 1.25 * t.Seconds, Effective: t.Effective / 1.25,
				DenseEquivalent: t.DenseEquivalent / 1.25, Watts: 650, Joules: 650 * 1.25 * t.Seconds, EffectivePerWatt: t.Effective / 1.25 / 650,
				State: nvsmi.State{Known: true, SMClock: 1410, Reasons: 4, Seen: 1}}
		}
		one.Timed[1].Sustained.SpeedUp = 1.25 * 180e-6 / c.seconds
		one.Timed[1].SpeedUp = &bench.SpeedUp{Ratio: c.ratio, Tie: c.name == "b64-d50"}
		r.Cases = append(r.Cases, one)
	}
	r.BreakEven = bench.BreakEvens(r.Cases)
	return r
}

// tall and markdown are the formats for people with all that they can say.
func tall(w io.Writer, r *bench.Report) error     { return Text(w, r, 0, true) }
func markdown(w io.Writer, r *bench.Report) error { return Markdown(w, []*bench.Report{r}, true) }

// The formats are what they were; -update writes them anew.
func TestGolden(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *bench.Report) error{
		"sweep.txt": tall, "sweep.md": markdown, "sweep.csv": CSV, "sweep.json": JSON, "sweep.gobench": GoBench,
	} {
		var got bytes.Buffer
		if err := write(&got, sample()); err != nil {
			t.Fatal(err)
		}
		if *update {
			if err := os.WriteFile(filepath.Join("testdata", name), got.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			continue
		}
		want, err := testdata.ReadFile("testdata/" + name)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(string(want), got.String()); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// elements are the elements of SVG, whose coordinates may be any number; text between them is not.
var elements = regexp.MustCompile(`<(svg|g|path|text)\b[^>]*>`)

// Every format for people has the ties, what is missing, the method, and that the suite stopped.
func TestTells(t *testing.T) {
	for name, write := range map[string]func(io.Writer, *bench.Report) error{"text": tall, "Markdown": markdown, "CSV": CSV, "GoBench": GoBench, "HTML": HTML} {
		var out bytes.Buffer
		r := sample()
		if err := write(&out, r); err != nil {
			t.Fatal(err)
		}
		text := strings.Join(strings.Fields(strings.NewReplacer("&#39;", "'", "&#43;", "+", "&lt;", "<", "&gt;", ">").Replace(out.String())), " ")
		wanted := []string{"interrupted after 4 of 5 cases", "torch is not there: torch is not installed; to fix it: install it",
			"cusparse_bell is not there in b64-d50", "b64-d100 has no result", "SM clocks under load: 1755 to 1755 MHz; slowed down by: power cap"}
		for _, want := range append(wanted, r.Method...) {
			if !strings.Contains(text, want) {
				t.Errorf("%s does not contain %q", name, want)
			}
		}
		if !strings.Contains(text, "tie") {
			t.Errorf("%s does not mention the tie", name)
		}
		if name != "CSV" && strings.Contains(elements.ReplaceAllString(text, ""), "1.01") {
			t.Errorf("%s prints a ratio where there is a tie", name)
		}
	}
}

// Where there is a tie, neither is called faster or slower.
func TestBreakEvenInWords(t *testing.T) {
	for want, b := range map[string]bench.BreakEven{
		"30.0 % (a tie from 25.0 % to 35.0 %)":                  {Where: bench.Found, Density: 0.3, Faster: 0.2, Slower: 0.4, TieFrom: 0.25, TieTo: 0.35},
		"30.0 % (a tie at 25.0 %)":                              {Where: bench.Found, Density: 0.3, Faster: 0.2, Slower: 0.4, TieFrom: 0.25, TieTo: 0.25},
		"30.0 % (faster at 20.0 %, slower at 40.0 %)":           {Where: bench.Found, Density: 0.3, Faster: 0.2, Slower: 0.4},
		"not reached: faster up to 50.0 %":                      {Where: bench.NotReached, Faster: 0.5},
		"not reached: faster up to 40.0 %, a tie at 50.0 %":     {Where: bench.NotReached, Faster: 0.4, TieFrom: 0.5, TieTo: 0.5},
		"not reached: faster up to 50.0 %; tie at 1.0 %, 5.0 %": {Where: bench.NotReached, Faster: 0.5, OddTies: []float64{0.01, 0.05}},
		"not reached: faster up to 50.0 %; slower at 1.0 %":     {Where: bench.NotReached, Faster: 0.5, OddSlower: []float64{0.01}},
		"slower at every density from 1.0 % on":                 {Where: bench.Below, Lowest: 0.01, Slower: 0.01},
		"a tie from 1.0 % to 2.0 %, slower from 5.0 % on":       {Where: bench.Below, TieFrom: 0.01, TieTo: 0.02, Lowest: 0.01, Slower: 0.05},
		"a tie at every density from 1.0 % to 50.0 %":           {Where: bench.AllTies, TieFrom: 0.01, TieTo: 0.5, Lowest: 0.01, Highest: 0.5},
	} {
		if got := breakEven(b); got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

func TestCSVParsesBack(t *testing.T) {
	var out bytes.Buffer
	r := sample()
	r.Cases[0].Timed[0].Kernel = "a \"kernel\", with\na comma"
	if err := CSV(&out, r); err != nil {
		t.Fatal(err)
	}
	reader := csv.NewReader(&out)
	reader.Comment = '#'
	rows, err := reader.ReadAll()
	if err != nil || len(rows) != 1+8 {
		t.Fatalf("%d rows, %v", len(rows), err)
	}
	at := func(row int, column string) string { return rows[row][slices.Index(rows[0], column)] }
	if at(1, "kernel") != r.Cases[0].Timed[0].Kernel || at(2, "tie") != "false" || at(8, "tie") != "true" || at(1, "speed_up") != "" || at(2, "dense") != "true" {
		t.Errorf("%q", rows)
	}
	for i, c := range r.Cases {
		for j, one := range c.Timed {
			for column, want := range map[string]float64{"seconds": one.Seconds, "effective_tflops": one.Effective, "density": c.Density, "sm_mhz_after": 1755} {
				if got, err := strconv.ParseFloat(at(1+2*i+j, column), 64); err != nil || got != want {
					t.Errorf("%s of %s, %s: %v, want %v, %v", column, c.Name, one.Name, got, want, err)
				}
			}
		}
	}
}

func TestJSONParsesBack(t *testing.T) {
	var out bytes.Buffer
	r := sample()
	if err := JSON(&out, r); err != nil {
		t.Fatal(err)
	}
	var back bench.Report
	if err := json.Unmarshal(out.Bytes(), &back); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(r, &back); diff != "" {
		t.Error(diff)
	}
}

// A line is as the format of Go benchmarks has it; all else is a key, a unit or a remark, and keys are the same in runs
// of different commits.
func TestGoBenchParsesBack(t *testing.T) {
	line := regexp.MustCompile(`^Benchmark[A-Z]\S*/case=([^\s/]+)/impl=([^\s/]+) (\d+) ([\d.]+) ns/op ([\d.e+-]+) effective-TFLOP/s ([\d.e+-]+) dense-equivalent-TFLOP/s$`)
	key := regexp.MustCompile(`^[a-z][^A-Z\s]*: .+$`)
	parse := func(r *bench.Report) (keys []string, count int) {
		var out bytes.Buffer
		if err := GoBench(&out, r); err != nil {
			t.Fatal(err)
		}
		for text := range strings.Lines(out.String()) {
			text = strings.TrimSuffix(text, "\n")
			switch found := line.FindStringSubmatch(text); {
			case strings.HasPrefix(text, "# "), strings.HasPrefix(text, "Unit "):
			case key.MatchString(text):
				keys = append(keys, text)
			case found == nil:
				t.Errorf("%q is of no kind", text)
			default:
				count++
				ns, _ := strconv.ParseFloat(found[4], 64)
				rate, _ := strconv.ParseFloat(found[6], 64)
				if product := rate * ns * 1e3; product < 2*4096*4096*4096*0.999 || product > 2*4096*4096*4096*1.001 {
					t.Errorf("%s: time and rate do not fit: %v operations", text, product)
				}
			}
		}
		return keys, count
	}
	r := sample()
	keys, count := parse(r)
	if count != 4*2*3 {
		t.Errorf("%d lines", count)
	}
	r.Commit, r.Date, r.Command = "another", "2027-01-01", "sparsek bench --suite sweep"
	if other, _ := parse(r); !slices.Equal(keys, other) {
		t.Errorf("keys %q and %q: benchstat would not compare them", keys, other)
	}
	r.Cases[0].Name, r.Cases[0].Matrix = "a folder/of mine.mtx", "a folder/of mine.mtx"
	if _, count := parse(r); count != 4*2*3 {
		t.Errorf("%d lines of a file with blanks in its name", count)
	}
}

// The page opens without a network: nothing in it refers to anything elsewhere, and what others wrote is escaped.
func TestHTMLNeedsNothing(t *testing.T) {
	r := sample()
	r.Command = "sparsek bench --html '<script>alert(1)</script>'"
	r.Cases[0].Name = "<script>alert(2)</script>"
	var out bytes.Buffer
	if err := HTML(&out, r); err != nil {
		t.Fatal(err)
	}
	page := out.String()
	for _, never := range []string{"http:", "https:", "src=", "href=", "url(", "@import", "<script", "<link"} {
		if strings.Contains(page, never) {
			t.Errorf("the page has %q", never)
		}
	}
	for _, want := range []string{`id="roofline"`, `id="time"`, `id="break-even"`, "a tie at", "0123456789abcdef0123456789abcdef01234567", "NVIDIA H200", "580.65.06"} {
		if !strings.Contains(page, want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if n := strings.Count(page, "<svg"); n != 3 || strings.Count(page, "</svg>") != n {
		t.Errorf("%d pictures", n)
	}
}

// Each picture is there as SVG and PNG, whole and of some size; which there are depends on the suite.
func TestPlots(t *testing.T) {
	single := sample()
	single.Suite, single.Cases, single.BreakEven = bench.Patterns, single.Cases[:1], nil
	onCPU := sample()
	onCPU.Chip = nil
	for _, c := range []struct {
		r    *bench.Report
		want []string
	}{
		{sample(), []string{"roofline", "time", "break-even"}},
		{onCPU, []string{"intensity", "time", "break-even"}},
		{single, []string{"roofline", "rates"}},
		{&bench.Report{Suite: bench.Sweep}, nil},
	} {
		folder := filepath.Join(t.TempDir(), "new")
		names, err := Plots(folder, c.r)
		if err != nil {
			t.Fatal(err)
		}
		var want []string
		for _, name := range c.want {
			want = append(want, filepath.Join(folder, name+".svg"), filepath.Join(folder, name+".png"))
		}
		if !slices.Equal(names, want) {
			t.Errorf("%q, want %q", names, want)
		}
		for _, name := range names {
			data, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if strings.HasSuffix(name, ".png") {
				if picture, err := png.Decode(bytes.NewReader(data)); err != nil || picture.Bounds().Dx() < 1000 {
					t.Errorf("%s: %v", name, err)
				}
				continue
			}
			decoder := xml.NewDecoder(bytes.NewReader(data))
			for err == nil {
				_, err = decoder.Token()
			}
			if err != io.EOF {
				t.Errorf("%s: %v", name, err)
			}
			if !strings.Contains(string(data), c.r.Device) {
				t.Errorf("%s does not say of which device it is", name)
			}
		}
	}
}

// On a narrow terminal every line fits; what is left out for that is named, and never the time or the case.
func TestTextFits(t *testing.T) {
	r := sample()
	for i := range r.Cases {
		r.Cases[i].Pattern, r.Cases[i].K = []string{"random", "window"}[i%2], 4096+i
		r.Cases[i].Kernel += strings.Repeat("x", i)
	}
	for _, width := range []int{80, 100, 400} {
		var out bytes.Buffer
		if err := Text(&out, r, width, true); err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(out.String()) {
			if n := utf8.RuneCountInString(strings.TrimSuffix(line, "\n")); n > width {
				t.Errorf("%d columns of %d: %s", n, width, line)
			}
		}
		for _, want := range []string{"b64-d10", "time", "sparsek", "speed-up", "sustained"} {
			if !strings.Contains(out.String(), want) {
				t.Errorf("at %d columns %q is missing:\n%s", width, want, out.String())
			}
		}
		if left := strings.Contains(out.String(), "left out, as the terminal is narrow: "); left != (width < 400) {
			t.Errorf("at %d columns:\n%s", width, out.String())
		}
	}
}

// Whatever the range, an axis bears at least three labels.
func TestTicks(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		low := math.Pow(10, rapid.Float64Range(-6, 6).Draw(t, "low"))
		high := low * (1.0001 + rapid.Float64Range(0, 1e4).Draw(t, "range"))
		list := logTicks(low, high)
		labels := map[string]bool{}
		for _, tick := range list {
			if tick.Value < low*0.99 || tick.Value > high*1.01 || tick.Label == "" {
				t.Fatalf("%v from %v to %v", tick, low, high)
			}
			labels[tick.Label] = true
		}
		if len(list) < 3 || high > 1.1*low && len(labels) < 3 {
			t.Fatalf("%v from %v to %v", list, low, high)
		}
	})
}

// Names of points near each other lie on no other name.
func TestPlace(t *testing.T) {
	within := vg.Rectangle{Max: vg.Point{X: 400, Y: 300}}
	var taken []vg.Rectangle
	for i := range 8 {
		box := place(vg.Point{X: 200 + vg.Length(i), Y: 150 - vg.Length(i)}, 40, 7, within, taken)
		if overlaps(box, taken) || !inside(box, within) {
			t.Errorf("name %d at %v lies on another of %v", i, box, taken)
		}
		taken = append(taken, box)
	}
}
