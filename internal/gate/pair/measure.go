// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Options say what is compared.
type Options struct {
	Libraries      [2]string // files of the blessed library and the candidate
	CandidateFirst bool      // it is opened first, and so lies elsewhere in memory
	GPU            bool      // the first one that CUDA shows; else the CPU
	Products       []Product
	Margin         float64       // what the intervals are to lie clear of, if there is time
	Budget         time.Duration // for more rounds of products that do not
	Seed           uint64        // of operands and of the order of turns
	Progress       func()        // called once for each product
}

// Case is what was measured of one product.
type Case struct {
	Name string `json:"name"`
	New  string `json:"new,omitempty"` // why the blessed library does not serve it, and so nothing was measured
	Interval
	Rounds   []float64  `json:"rounds"`   // the log of the ratio in each
	Seconds  [2]float64 `json:"seconds"`  // of one product by the blessed library and by the candidate: medians
	Plans    [2]Plan    `json:"plans"`    // of the blessed library and of the candidate
	Products int        `json:"products"` // that follow each other in a turn
	Turns    int        `json:"turns"`    // in a round

	times [2][]float64
}

const (
	firstRounds = 8
	moreRounds  = 8
	mostRounds  = 40

	shortestTurn = 150e-6 // seconds: short products follow each other in a turn, so that its start does not count
	longestRound = 25e-3  // seconds that the turns of a round should take, unless a period takes longer
	mostPeriods  = 12
)

// Measure compares the libraries in all products: each in some rounds, and in more where the interval does not lie clear
// of the margin, while there is time.
func Measure(ctx context.Context, o Options) ([]Case, error) {
	begun := time.Now()
	var patterns []bsr.Pattern
	for _, p := range o.Products {
		pattern, err := p.Generate()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", p.Name, err)
		}
		patterns = append(patterns, pattern)
	}
	order := [2]Side{Blessed, Candidate}
	if o.CandidateFirst {
		order = [2]Side{Candidate, Blessed}
	}
	b, err := openStand(o.Libraries, order, o.GPU, o.Products, patterns, o.Seed)
	if err != nil {
		return nil, err
	}
	defer b.close()
	random := rand.New(rand.NewPCG(o.Seed, 1))
	samplers := make([]*sampler, len(o.Products))
	for i, p := range o.Products {
		samplers[i] = &sampler{timer: b.timer(p, patterns[i]), random: random, result: Case{Name: p.Name}}
		defer samplers[i].timer.Close()
	}
	return sample(ctx, samplers, o, func() bool { return time.Since(begun) >= o.Budget })
}

// sample has each sampler run its first rounds, and those that are undecided more, in turn, until the time is over.
func sample(ctx context.Context, samplers []*sampler, o Options, over func() bool) ([]Case, error) {
	for _, s := range samplers {
		err := s.begin(ctx)
		if err == nil {
			err = s.rounds(ctx, firstRounds)
		}
		if errors.Is(err, ErrNew) {
			s.result.New = err.Error()
		} else if err != nil {
			return nil, fmt.Errorf("%s: %w", s.result.Name, err)
		}
		if o.Progress != nil {
			o.Progress()
		}
	}
	for again := true; again; {
		again = false
		for _, s := range samplers {
			if s.result.New != "" || s.result.Decided(o.Margin) || len(s.result.Rounds) >= mostRounds || over() {
				continue
			}
			again = true
			if err := s.rounds(ctx, moreRounds); err != nil {
				return nil, fmt.Errorf("%s: %w", s.result.Name, err)
			}
		}
	}
	var cases []Case
	for _, s := range samplers {
		if s.result.New != "" {
			cases = append(cases, s.result)
			continue
		}
		plans, err := s.timer.Plans()
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.result.Name, err)
		}
		s.result.Plans = plans
		cases = append(cases, s.result)
	}
	return cases, nil
}

// sampler gathers the rounds of one product.
type sampler struct {
	timer  Timer
	random *rand.Rand
	// of turns in a round
	periods int
	result  Case
}

// begin finds out how long the product takes, and with that how long turns and rounds are to be.
func (s *sampler) begin(ctx context.Context) error {
	seconds, err := s.timer.Round(ctx, s.order(), sequenceOf(1, s.random), 1)
	if err != nil {
		return err
	}
	one := max(median(seconds), 1e-9)
	s.result.Products = max(1, min(s.timer.Most(), int(shortestTurn/one+0.999)))
	s.periods = max(1, min(mostPeriods, int(longestRound/(period*one*float64(s.result.Products)))))
	s.result.Turns = period * s.periods
	return nil
}

// order is that in which the libraries plan, which decides where plans lie.
func (s *sampler) order() [2]Side {
	first := Side(s.random.IntN(sides))
	return [2]Side{first, 1 - first}
}

func (s *sampler) rounds(ctx context.Context, count int) error {
	r := &s.result
	for range count {
		sequence := sequenceOf(s.periods, s.random)
		seconds, err := s.timer.Round(ctx, s.order(), sequence, r.Products)
		if err != nil {
			return err
		}
		ratio, typical := estimate(sequence, seconds)
		r.Rounds = append(r.Rounds, ratio)
		for side := range typical {
			r.times[side] = append(r.times[side], typical[side]/float64(r.Products))
			r.Seconds[side] = median(r.times[side])
		}
	}
	r.Interval = intervalOf(r.Rounds)
	return nil
}
