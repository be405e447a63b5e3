// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
)

// The place of the interval's ends: with 8 values the outermost, since P(all on one side) = 2^-7 < 1 %.
func TestOutermost(t *testing.T) {
	for n, want := range map[int]int{5: 0, 8: 0, 10: 0, 11: 0, 12: 1, 16: 2, 24: 5, 32: 8, 40: 11} {
		if got := outermost(n); got != want {
			t.Errorf("%d values: %d, want %d", n, got, want)
		}
	}
	if i := intervalOf([]float64{0.03, 0.01, 0.02, 0, 0.04, 0.05, 0.06, 0.07}); math.Abs(i.Ratio-math.Exp(0.035)) > 1e-12 || i.Low != 1 || i.High != math.Exp(0.07) {
		t.Errorf("%+v", i)
	}
	for _, c := range []struct {
		i               Interval
		slower, decided bool
	}{
		{Interval{1, 0.999, 1.001}, false, true}, {Interval{1.01, 1.009, 1.011}, true, true}, {Interval{1.005, 1.003, 1.007}, false, false},
		{Interval{1.005, 1.005, 1.005}, false, true},
	} {
		if c.i.Slower(0.005) != c.slower || c.i.Decided(0.005) != c.decided {
			t.Errorf("%+v: %v, %v", c.i, c.i.Slower(0.005), c.i.Decided(0.005))
		}
	}
}

// The interval holds the median with its confidence, whatever the distribution: here one with heavy tails, and one that
// leans to one side.
func TestCoverage(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	for what, draw := range map[string]func() float64{
		"Cauchy":      func() float64 { return 0.01 * math.Tan(math.Pi*(random.Float64()-0.5)) },
		"exponential": func() float64 { return 0.01 * (random.ExpFloat64() - math.Ln2) },
	} {
		for _, n := range []int{8, 16, 40} {
			const trials = 20000
			missed := 0
			for range trials {
				logs := make([]float64, n)
				for i := range logs {
					logs[i] = draw()
				}
				if i := intervalOf(logs); i.Low > 1 || i.High < 1 {
					missed++
				}
			}
			if share := float64(missed) / trials; share > 1-confidence+0.002 {
				t.Errorf("%s, %d values: misses %.2f %%", what, n, 100*share)
			}
		}
	}
}

// fakeTimer is a GPU whose clock wanders, whose launches vary, and on which a placement shifts a library's times.
type fakeTimer struct {
	random    *rand.Rand
	slower    float64 // the candidate's time is so many times that of the blessed library
	launches  float64 // standard deviation of the log of a turn's time
	placement float64 // and of what each round adds to a library's
	clock     float64
	outliers  bool
	plans     [2]Plan
	err       error
	lengths   []int // of the sequences
}

func (f *fakeTimer) Most() int               { return 64 }
func (f *fakeTimer) Close()                  {}
func (f *fakeTimer) Plans() ([2]Plan, error) { return f.plans, f.err }

func (f *fakeTimer) Round(_ context.Context, _ [2]Side, sequence []Side, products int) ([]float64, error) {
	f.lengths = append(f.lengths, len(sequence))
	var shift [2]float64
	for s := range shift {
		shift[s] = f.placement * f.random.NormFloat64()
	}
	var seconds []float64
	for i, s := range sequence {
		f.clock += 0.002 * f.random.NormFloat64()
		log := shift[s] + f.clock + f.launches*f.random.NormFloat64() + 0.01*float64(i%variants) // variants differ
		if f.outliers && f.random.IntN(20) == 0 {
			log += f.random.ExpFloat64()
		}
		one := 200e-6 * float64(products) * math.Exp(log)
		if s == Candidate {
			one *= f.slower
		}
		seconds = append(seconds, one)
	}
	return seconds, f.err
}

// runFake measures one product by a fake GPU.
func runFake(t *testing.T, f *fakeTimer) Case {
	t.Helper()
	s := &sampler{timer: f, random: f.random, result: Case{Name: "x"}}
	cases, err := sample(t.Context(), []*sampler{s}, Options{Margin: Margin}, func() bool { return false })
	if err != nil {
		t.Fatal(err)
	}
	return cases[0]
}

// Of the noise that a GPU shows, no two measurements of equal libraries find one slower, and two of a library that is
// slower by 1 or 3 % nearly always do.
func TestPower(t *testing.T) {
	for _, noise := range []struct {
		launches, placement float64
		outliers            bool
	}{{0.002, 0.0005, false}, {0.005, 0.001, false}, {0.01, 0.002, true}} {
		for _, c := range []struct {
			slower      float64
			fewest, all int // that are found, of all
		}{{1, 0, 400}, {0.98, 0, 100}, {1.01, 90, 100}, {1.03, 100, 100}} {
			found := 0
			for trial := range c.all {
				make := func(n uint64) *fakeTimer {
					return &fakeTimer{random: rand.New(rand.NewPCG(uint64(trial), n)), slower: c.slower, launches: noise.launches,
						placement: noise.placement, outliers: noise.outliers}
				}
				first, second := runFake(t, make(1)), runFake(t, make(2))
				if first.Slower(Margin) && second.Slower(Margin) {
					found++
				}
			}
			if found < c.fewest || c.slower <= 1 && found > 0 {
				t.Errorf("noise %+v: %g times slower was found in %d of %d", noise, c.slower, found, c.all)
			}
		}
	}
}

// More rounds go to what is close to the margin, until it is decided or the time is over.
func TestMoreRounds(t *testing.T) {
	fake := func(slower float64) *sampler {
		f := &fakeTimer{random: rand.New(rand.NewPCG(3, 4)), slower: slower, launches: 0.002, placement: 0.001}
		return &sampler{timer: f, random: f.random, result: Case{Name: "x"}}
	}
	for _, c := range []struct {
		slower float64
		over   bool
		fewest int
		most   int
	}{{1, false, firstRounds, firstRounds}, {1.03, false, firstRounds, firstRounds}, {1.005, false, firstRounds + moreRounds, mostRounds}, {1.005, true, firstRounds, firstRounds}} {
		s := fake(c.slower)
		cases, err := sample(t.Context(), []*sampler{s}, Options{Margin: Margin}, func() bool { return c.over })
		if lengths := s.timer.(*fakeTimer).lengths; len(lengths) != len(cases[0].Rounds)+1 || lengths[0] != period ||
			lengths[1] != cases[0].Turns || cases[0].Turns != 120 {
			t.Errorf("%+v: turns of the rounds %v, said to be %d", c, lengths, cases[0].Turns)
		}
		if err != nil || len(cases[0].Rounds) < c.fewest || len(cases[0].Rounds) > c.most {
			t.Errorf("%+v: %d rounds, %v", c, len(cases[0].Rounds), err)
		}
	}
	s := fake(1)
	s.timer.(*fakeTimer).err = errors.New("lost")
	if _, err := sample(t.Context(), []*sampler{s}, Options{}, func() bool { return false }); err == nil || err.Error() != "x: lost" {
		t.Errorf("got %v", err)
	}
}

// A product that the blessed library does not serve is said to be new, and the others are measured.
func TestNewProduct(t *testing.T) {
	known := &fakeTimer{random: rand.New(rand.NewPCG(3, 4)), slower: 1}
	unknown := &fakeTimer{random: known.random, slower: 1, err: fmt.Errorf("%w: bad argument", ErrNew)}
	cases, err := sample(t.Context(), []*sampler{{timer: unknown, random: known.random, result: Case{Name: "new"}},
		{timer: known, random: known.random, result: Case{Name: "old"}}}, Options{Margin: Margin}, func() bool { return false })
	if err != nil || len(cases) != 2 || cases[0].New == "" || len(cases[0].Rounds) > 0 || cases[1].New != "" || len(cases[1].Rounds) < firstRounds {
		t.Errorf("%+v, %v", cases, err)
	}
}
