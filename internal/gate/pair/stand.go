// SPDX-License-Identifier: Apache-2.0

package pair

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"

	"github.com/sparsek/sparsek/internal/bench/workload"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/matrix/rng"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// Product is one of a BSR matrix of M x K: A B with a B of K x N, or what its form says.
type Product struct {
	Name           string
	DType          sparsek.DType
	Form           workload.Form
	M, N, K        int
	BlockM, BlockK int
	Generate       func() (bsr.Pattern, error)
}

// Plan is how a library computes a product.
type Plan struct {
	Kernel string `json:"kernel"`
	profile.Plan
}

// Side is one of the two libraries.
type Side int

// The sides.
const (
	Blessed Side = iota
	Candidate
	sides = 2
)

// stand is where products of both libraries are timed: operands and libraries of two libraries.
type stand struct {
	device    *device
	gpu       bool
	libraries [sides]*library
	order     [sides]Side // in which the libraries were opened

	noise  uintptr           // random numbers, noiseLength of them
	values uintptr           // of A, all copies
	b, c   [variants]uintptr // dense operands; X is another B
}

// halfBytes is the size of the random numbers: values of bfloat16. Several one behind the other are ordinary numbers of
// the wider types, too.
const halfBytes = 2

const (
	// variants of a turn, which begin with another set of operands each. Over 12 turns in ABBA order each library has
	// each variant twice.
	variants = 3
	// noiseLength, in random numbers, is odd, so that copies of the random numbers lie differently to the rows of every operand.
	noiseLength = 1<<24 + 4099

	largestL2 = 64 << 20 // of the GPUs that there are
)

// openStand opens the libraries, in that order, and makes operands for the largest of the products.
func openStand(paths [sides]string, order [sides]Side, gpu bool, products []Product, patterns []bsr.Pattern, seed uint64) (b *stand, err error) {
	b = &stand{gpu: gpu, order: order}
	if b.device, err = openDevice(gpu); err != nil {
		return nil, err
	}
	for _, s := range order {
		if b.libraries[s], err = openLibrary(paths[s]); err != nil {
			return nil, err
		}
		if err := b.libraries[s].start(gpu, runtime.NumCPU()); err != nil {
			return nil, fmt.Errorf("%s: %w", paths[s], err)
		}
	}
	var values, dense, out int // bytes
	for i, p := range products {
		size := p.elementBytes()
		values = max(values, copiesOf(&p, patterns[i])*strideOf(&p, patterns[i]))
		sizes := p.Form.Sizes(workload.Shape{M: p.M, N: p.N, K: p.K}, valuesOf(&p, patterns[i]), p.BlockK)
		dense, out = max(dense, size*sizes.X, size*sizes.B), max(out, size*sizes.C)
	}
	return b, b.fill(values, dense, out, seed)
}

// fill makes the operands, of so many bytes: random numbers, the same ones over and over.
func (b *stand) fill(values, dense, out int, seed uint64) error {
	host := make([]uint16, min(noiseLength, max(values, dense)/halfBytes))
	rng.Fill(host, seed, func(x float32) uint16 { return uint16(math.Float32bits(x) >> 16) })
	length := halfBytes * len(host)
	noise, err := b.device.allocate(length)
	if err != nil {
		return err
	}
	b.noise = noise
	if err := b.device.write(noise, host); err != nil {
		return err
	}
	random := func(bytes int) (uintptr, error) {
		memory, err := b.device.allocate(bytes)
		for done := 0; err == nil && done < bytes; done += length {
			err = b.device.copy(memory+uintptr(done), noise, min(length, bytes-done))
		}
		return memory, err
	}
	if b.values, err = random(values); err != nil {
		return err
	}
	for i := range variants {
		if b.b[i], err = random(dense); err != nil {
			return err
		}
		if b.c[i], err = b.device.allocate(out); err != nil {
			return err
		}
	}
	return nil
}

// close gives the operands back. The libraries stay, as opened ones do.
func (b *stand) close() {
	for _, memory := range append([]uintptr{b.noise, b.values}, append(b.b[:], b.c[:]...)...) {
		if memory != 0 {
			b.device.release(memory)
		}
	}
	b.device.close()
}

func (p *Product) elementBytes() int {
	switch p.DType {
	case sparsek.FP64:
		return 8
	case sparsek.FP32:
		return 4
	}
	return 2
}

func valuesOf(p *Product, pattern bsr.Pattern) int { return pattern.Blocks() * p.BlockM * p.BlockK }

// strideOf is the distance of two A's in bytes, a multiple of what any kernel needs as alignment.
func strideOf(p *Product, pattern bsr.Pattern) int {
	const alignment = 256
	return (p.elementBytes()*valuesOf(p, pattern) + alignment - 1) / alignment * alignment
}

// copiesOf is the number of A's that take turns, so that each is cold in the caches when its turn comes.
func copiesOf(p *Product, pattern bsr.Pattern) int {
	return max(variants, workload.ColdCopies(largestL2, p.elementBytes(), valuesOf(p, pattern), p.M, p.N, p.K))
}

// ErrNew means that there is nothing to compare with: the blessed library does not serve the product, wrapped.
var ErrNew = errors.New("the blessed library does not serve this product")

// Timer times one product by two libraries.
type Timer interface {
	// Round plans the product anew for both libraries, the first of the order first, and runs the turns: that of the
	// library in sequence[i] with variant i % 3 of the operands, `products` products long. It gives the seconds of each.
	Round(ctx context.Context, order [2]Side, sequence []Side, products int) ([]float64, error)
	// Plans are those of the last round.
	Plans() ([2]Plan, error)
	// Most is how many products a turn may be long.
	Most() int
	Close()
}

// timer is the Timer of a stand.
type timer struct {
	stand   *stand
	product Product
	pattern bsr.Pattern
	copies  int
	plans   [sides][]*plan
}

func (b *stand) timer(p Product, pattern bsr.Pattern) *timer {
	return &timer{stand: b, product: p, pattern: pattern, copies: copiesOf(&p, pattern)}
}

func (t *timer) Most() int { return 64 }

// Close frees the plans.
func (t *timer) Close() { closePlans(t.plans) }

func closePlans(all [sides][]*plan) {
	for _, list := range all {
		for _, p := range list {
			p.close()
		}
	}
}

func (t *timer) Plans() (infos [2]Plan, err error) {
	for s := range infos {
		if infos[s], err = t.plans[s][0].info(); err != nil {
			return infos, err
		}
	}
	return infos, nil
}

func (t *timer) Round(ctx context.Context, order [2]Side, sequence []Side, products int) ([]float64, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	// The plans of the round before are freed when there are new ones, which so come to lie elsewhere.
	earlier := t.plans
	t.plans = [sides][]*plan{}
	defer closePlans(earlier)
	stride := uintptr(strideOf(&t.product, t.pattern))
	for i := range t.copies {
		for _, s := range order {
			p, err := t.stand.device.plan(t.stand.libraries[s], &t.product, t.pattern, t.stand.values+uintptr(i)*stride)
			if err != nil && s == Blessed && errors.Is(err, errUnknown) {
				return nil, fmt.Errorf("%w: %w", ErrNew, err)
			}
			if err != nil {
				return nil, err
			}
			t.plans[s] = append(t.plans[s], p)
		}
	}
	var turns [sides][variants]*turn
	defer func() {
		for _, list := range turns {
			for _, one := range list {
				if one != nil {
					one.close()
				}
			}
		}
	}()
	for v := range variants {
		for _, s := range order {
			var list []launch
			for i := range products {
				at := v*products + i
				one := launch{plan: t.plans[s][at%t.copies], b: t.stand.b[at%variants], c: t.stand.c[at%variants]}
				if t.product.Form.Op == sparsek.SDD {
					one.x = t.stand.b[(at+1)%variants]
				}
				list = append(list, one)
			}
			var err error
			if turns[s][v], err = t.stand.device.turn(list); err != nil {
				return nil, err
			}
		}
	}
	var list []*turn
	for i, s := range sequence {
		list = append(list, turns[s][i%variants])
	}
	return t.stand.device.run(list, leadIn)
}

// leadIn is the number of turns that run ahead of the timed ones, so that the GPU is busy while those are enqueued.
const leadIn = 2

// period is the number of turns after which each library has had each variant equally often.
const period = 4 * variants

// sequenceOf makes whole periods of turns, each in ABBA order or its opposite, so that neither library gains by its
// place.
func sequenceOf(periods int, random *rand.Rand) []Side {
	var list []Side
	for range periods {
		x := Side(random.IntN(sides))
		for range variants {
			list = append(list, x, 1-x, 1-x, x)
		}
	}
	return list
}

// estimate is the log of the ratio of the candidate's time to the blessed one's in a round, and the time of a turn of
// each. The logs of the times are averaged: of each variant those of the faster three quarters, since a turn may be held
// up, and then over the variants.
func estimate(sequence []Side, seconds []float64) (ratio float64, typical [2]float64) {
	var logs [sides][variants][]float64
	for i, s := range sequence {
		logs[s][i%variants] = append(logs[s][i%variants], math.Log(seconds[i]))
	}
	var means [sides]float64
	for s := range logs {
		for _, list := range logs[s] {
			slices.Sort(list)
			kept := list[:max(1, (3*len(list)+3)/4)]
			for _, v := range kept {
				means[s] += v / float64(len(kept)) / variants
			}
		}
		typical[s] = math.Exp(means[s])
	}
	return means[Candidate] - means[Blessed], typical
}

func median(list []float64) float64 {
	sorted := slices.Sorted(slices.Values(list))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}
