// SPDX-License-Identifier: Apache-2.0

package pattern

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"math"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

func generate(t testing.TB, spec Spec) bsr.Pattern {
	t.Helper()
	p, err := Generate(spec)
	if err != nil {
		t.Fatal(err)
	}
	if err := p.Validate(); err != nil {
		t.Fatalf("%+v: %v", spec, err)
	}
	return p
}

// Patterns of a seed never change: measurements that others wrote down depend on them.
func TestGolden(t *testing.T) {
	want := map[string]string{
		"random":    "685b4155a7972ed0",
		"bernoulli": "db57bc879ef6ed09",
		"zipf":      "fed9270f2d0dc95b",
		"window":    "09c5cd1204b33139",
		"causal":    "046ede68e0c32a0e",
		"bigbird":   "bb45c0bc66702ecc",
		"blockdiag": "80f61d2035dabb11",
		"stencil":   "dc75c04cf1c4f23a",
		"stencil27": "ff3d142c363a9e48",
	}
	for _, name := range Names() {
		hash := sha256.New()
		for _, shape := range [][2]int{{64, 64}, {17, 40}, {40, 17}, {1, 1}} {
			p := generate(t, Spec{name, shape[0], shape[1], 0.125, 7})
			for _, part := range [][]int32{p.RowPtr, p.ColIdx} {
				if err := binary.Write(hash, binary.LittleEndian, part); err != nil {
					t.Fatal(err)
				}
			}
		}
		if got := hex.EncodeToString(hash.Sum(nil)[:8]); got != want[name] {
			t.Errorf("%s has hash %s, want %s", name, got, want[name])
		}
	}
}

func TestEveryPatternIsValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		spec := Spec{
			Name:      rapid.SampledFrom(Names()).Draw(t, "name"),
			BlockRows: rapid.IntRange(0, 60).Draw(t, "rows"),
			BlockCols: rapid.IntRange(0, 60).Draw(t, "cols"),
			Density:   rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.125, 1})).Draw(t, "density"),
			Seed:      rapid.Uint64().Draw(t, "seed"),
		}
		p, err := Generate(spec)
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Validate(); err != nil {
			t.Fatal(err)
		}
		again, err := Generate(spec)
		if err != nil || !reflect.DeepEqual(p, again) {
			t.Fatal("the same spec gives another pattern")
		}
		uses, err := UsesDensity(spec.Name)
		if err != nil {
			t.Fatal(err)
		}
		if uses && spec.Density == 0 && p.Blocks() != 0 {
			t.Fatalf("%d blocks at density 0", p.Blocks())
		}
		full := spec.Name != "window" && spec.Name != "zipf" // these run over the matrix's border
		if uses && full && spec.Density == 1 && p.Blocks() != spec.BlockRows*spec.BlockCols {
			t.Fatalf("%d blocks of %d x %d at density 1", p.Blocks(), spec.BlockRows, spec.BlockCols)
		}
	})
}

func TestRandomRows(t *testing.T) {
	for _, c := range []struct {
		cols    int
		density float64
		want    int
	}{{64, 0.125, 8}, {10, 0.25, 2}, {10, 0.35, 4}, {100, 0.001, 1}, {7, 1, 7}} {
		p := generate(t, Spec{"random", 50, c.cols, c.density, 1})
		for r := range p.BlockRows {
			if got := len(p.Row(r)); got != c.want {
				t.Fatalf("row %d of %d columns at %v has %d blocks, want %d", r, c.cols, c.density, got, c.want)
			}
		}
	}
}

// Every column must come up equally often, over rows and over seeds.
func TestRandomColumnsAreUniform(t *testing.T) {
	const rows, cols = 4000, 20
	p := generate(t, Spec{"random", rows, cols, 0.25, 3})
	counts := make([]float64, cols)
	for _, c := range p.ColIdx {
		counts[c]++
	}
	for c, n := range counts {
		if math.Abs(n-rows*0.25) > 5*math.Sqrt(rows*0.25*0.75) {
			t.Errorf("column %d has %v blocks of about %v", c, n, rows*0.25)
		}
	}
}

func TestSeedsDiffer(t *testing.T) {
	for _, name := range []string{"random", "bernoulli", "zipf", "bigbird"} {
		a, b := generate(t, Spec{name, 64, 64, 0.25, 1}), generate(t, Spec{name, 64, 64, 0.25, 2})
		if reflect.DeepEqual(a.ColIdx, b.ColIdx) {
			t.Errorf("%s: seeds 1 and 2 give the same blocks", name)
		}
	}
}

func TestMeanDensity(t *testing.T) {
	for _, c := range []struct {
		name      string
		density   float64
		low, high float64
	}{
		{"random", 0.125, 0.125, 0.125}, {"bernoulli", 0.1, 0.09, 0.11}, {"zipf", 0.05, 0.045, 0.055},
		{"window", 0.125, 0.11, 0.135}, {"bigbird", 0.125, 0.1, 0.125}, {"blockdiag", 0.125, 0.125, 0.125},
		{"causal", 0, 0.5, 0.51}, {"stencil", 0, 0.02, 7.0 / 256}, {"stencil27", 0, 0.06, 27.0 / 256},
	} {
		if got := func() float64 { p := generate(t, Spec{c.name, 256, 256, c.density, 1}); return p.Density() }(); got < c.low || got > c.high {
			t.Errorf("%s: density %v is not within %v and %v", c.name, got, c.low, c.high)
		}
	}
}

func TestZipfLengths(t *testing.T) {
	p := generate(t, Spec{"zipf", 100, 1000, 0.05, 1})
	longest, sum := 0, 0.0
	for rank := 1; rank <= 100; rank++ {
		sum += 1 / float64(rank)
	}
	lengths := map[int]int{}
	for r := range p.BlockRows {
		lengths[len(p.Row(r))]++
		longest = max(longest, len(p.Row(r)))
	}
	for rank := 1; rank <= 100; rank++ {
		lengths[int(math.RoundToEven(0.05*100*1000/sum/float64(rank)))]--
	}
	for length, left := range lengths {
		if left != 0 {
			t.Errorf("%d rows too many of length %d", left, length)
		}
	}
	if longest != 964 || len(p.Row(0)) == longest {
		t.Errorf("longest row %d, first row %d: want 964, shuffled", longest, len(p.Row(0)))
	}
}

// The definitions written as plain masks.
func TestMasks(t *testing.T) {
	abs := func(x int) int { return max(x, -x) }
	masks := map[string]func(i, j, nr, nc int) bool{
		"window": func(i, j, nr, nc int) bool {
			return float64(abs(j*nr-i*nc)) <= float64(max(nr, nc)*min(nr, nc))*0.2/2
		},
		"causal": func(i, j, nr, nc int) bool { return j*nr <= i*nc },
		"blockdiag": func(i, j, nr, nc int) bool {
			for s := range min(5, nr, nc) {
				n := min(5, nr, nc)
				if i >= s*nr/n && i < (s+1)*nr/n && j >= s*nc/n && j < (s+1)*nc/n {
					return true
				}
			}
			return false
		},
		"stencil": func(i, j, nr, nc int) bool {
			side := int(math.Ceil(math.Cbrt(float64(nc)) - 1e-9))
			c := i * nc / nr
			point := func(n int) [3]int { return [3]int{n % side, n / side % side, n / side / side} }
			a, b := point(c), point(j)
			return abs(a[0]-b[0])+abs(a[1]-b[1])+abs(a[2]-b[2]) <= 1
		},
		"stencil27": func(i, j, nr, nc int) bool {
			side := int(math.Ceil(math.Cbrt(float64(nc)) - 1e-9))
			c := i * nc / nr
			point := func(n int) [3]int { return [3]int{n % side, n / side % side, n / side / side} }
			a, b := point(c), point(j)
			return max(abs(a[0]-b[0]), abs(a[1]-b[1]), abs(a[2]-b[2])) <= 1
		},
	}
	for name, mask := range masks {
		for _, shape := range [][2]int{{64, 64}, {27, 27}, {30, 12}, {12, 30}, {1, 9}, {9, 1}, {2, 2}, {64, 65}} {
			nr, nc := shape[0], shape[1]
			p := generate(t, Spec{name, nr, nc, 0.2, 1})
			have := map[[2]int]bool{}
			for i := range nr {
				for _, j := range p.Row(i) {
					have[[2]int{i, int(j)}] = true
				}
			}
			for i := range nr {
				for j := range nc {
					if got, want := have[[2]int{i, j}], mask(i, j, nr, nc); got != want {
						t.Fatalf("%s %dx%d: block (%d, %d) is %v, want %v", name, nr, nc, i, j, got, want)
					}
				}
			}
		}
	}
}

func TestBigBirdHasItsParts(t *testing.T) {
	p := generate(t, Spec{"bigbird", 64, 64, 0.25, 1})
	k := len(p.Row(63))
	global := 0
	for len(p.Row(global)) == 64 {
		global++
	}
	if global != k/4 || global == 0 {
		t.Fatalf("%d full rows where others have %d blocks", global, k)
	}
	for r := global; r < 64; r++ {
		row := p.Row(r)
		if len(row) != k {
			t.Fatalf("row %d has %d blocks, others %d", r, len(row), k)
		}
		in := map[int32]bool{}
		for _, c := range row {
			in[c] = true
		}
		for c := range int32(global) {
			if !in[c] {
				t.Fatalf("row %d lacks global column %d", r, c)
			}
		}
		if !in[int32(r)] {
			t.Fatalf("row %d lacks its diagonal block", r)
		}
	}
}

// The prediction is near what is made. It is there to refuse what would not fit into memory, so in patterns of a few rows it
// may be off by a few rows of at most 80 blocks.
func TestBlocksArePredicted(t *testing.T) {
	near := func(t rapid.TB, spec Spec) {
		p, err := Generate(spec)
		if err != nil {
			t.Fatal(err)
		}
		got, err := spec.Blocks()
		if err != nil {
			t.Fatal(err)
		}
		want := float64(p.Blocks())
		if slack := 2*float64(spec.BlockRows) + 6*math.Sqrt(want+1) + 0.01*want + 80; math.Abs(got-want) > slack {
			t.Errorf("%+v: %v blocks are predicted, %v are made", spec, got, want)
		}
	}
	rapid.Check(t, func(t *rapid.T) {
		near(t, Spec{
			Name:      rapid.SampledFrom(Names()).Draw(t, "name"),
			BlockRows: rapid.IntRange(0, 80).Draw(t, "rows"),
			BlockCols: rapid.IntRange(0, 80).Draw(t, "cols"),
			Density:   rapid.OneOf(rapid.Float64Range(0, 1), rapid.SampledFrom([]float64{0, 0.125, 1})).Draw(t, "density"),
		})
	})
	for _, name := range Names() {
		for _, density := range []float64{0.001, 0.05, 0.5, 1} {
			near(t, Spec{name, 1500, 1000, density, 1})
			near(t, Spec{name, 700, 2100, density, 1})
		}
	}
}

// A pattern that is too large is refused before any of it is made: at once, and without memory for it.
func TestTooLargePatterns(t *testing.T) {
	for _, spec := range []Spec{
		{"random", 1 << 20, 1 << 20, 0.125, 0}, {"bernoulli", 1 << 30, 1 << 30, 1, 0}, {"zipf", 1 << 24, 1 << 24, 0.1, 0},
		{"window", 1 << 20, 1 << 20, 0.1, 0}, {"causal", 100000, 100000, 0, 0}, {"bigbird", 1 << 20, 1 << 20, 0.01, 0},
		{"blockdiag", 1 << 20, 1 << 20, 0.01, 0}, {"stencil", 1 << 30, 1 << 30, 0, 0}, {"stencil27", 1 << 28, 1 << 28, 0, 0},
	} {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		_, err := Generate(spec)
		runtime.ReadMemStats(&after)
		if taken := after.TotalAlloc - before.TotalAlloc; err == nil || !strings.Contains(err.Error(), "at most 2147483647 are possible") || taken > 1<<20 {
			t.Errorf("%s: %v, after %d bytes", spec.Name, err, taken)
		}
	}
}

func TestBadSpecs(t *testing.T) {
	for want, spec := range map[string]Spec{
		`no pattern "spiral": take one of random, bernoulli`: {"spiral", 1, 1, 0.5, 0},
		"density of -0.1": {"random", 1, 1, -0.1, 0},
		"density of 1.5":  {"random", 1, 1, 1.5, 0},
		"density of NaN":  {"random", 1, 1, math.NaN(), 0},
		"-1 x 1":          {"random", -1, 1, 0.5, 0},
	} {
		if _, err := Generate(spec); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", spec, err, want)
		}
	}
}
