// SPDX-License-Identifier: Apache-2.0

// Package rng makes pseudo-random numbers that are the same for a seed on every machine and in every version.
//
// The generator is SplitMix64 (Steele, Lea and Flood, "Fast splittable pseudorandom number generators", OOPSLA 2014):
// the n-th number is a mix of seed + (n+1) * 0x9e3779b97f4a7c15, so that any part of a sequence can be computed by
// itself. Only integer arithmetic and exact conversions are used.
package rng

import (
	"math/bits"
	"runtime"
	"sync"
)

const gamma = 0x9e3779b97f4a7c15

func mix(z uint64) uint64 {
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

// Source is a sequence of pseudo-random numbers. Not for use by several goroutines at once.
type Source struct{ state uint64 }

// New starts the sequence of a seed.
func New(seed uint64) *Source { return &Source{seed} }

// Uint64 returns the next 64 bits.
func (s *Source) Uint64() uint64 {
	s.state += gamma
	return mix(s.state)
}

// Below returns a uniformly distributed number from 0 to n-1; n must be positive.
func (s *Source) Below(n int) int {
	limit := uint64(n)
	high, low := bits.Mul64(s.Uint64(), limit)
	if low < limit {
		// Draws below 2^64 mod n would make some results more likely (Lemire, "Fast random integer generation in
		// an interval", 2019).
		for reject := -limit % limit; low < reject; {
			high, low = bits.Mul64(s.Uint64(), limit)
		}
	}
	return int(high)
}

// Shuffle puts the elements in a random order (Fisher and Yates).
func Shuffle[T any](s *Source, list []T) {
	for i := len(list) - 1; i > 0; i-- {
		j := s.Below(i + 1)
		list[i], list[j] = list[j], list[i]
	}
}

// Split returns a seed for the purpose numbered `stream`, independent of those of other purposes.
func Split(seed, stream uint64) uint64 { return mix(mix(seed+gamma) + (stream+1)*gamma) }

// Fill sets dst[i] to convert(u), where u is the i-th of the seed's numbers, uniform over the multiples of 2^-23 in
// [-1, 1): exact in float32, so that convert makes the only rounding. It uses all processors.
func Fill[T any](dst []T, seed uint64, convert func(float32) T) {
	const chunk = 1 << 16
	chunks := (len(dst) + chunk - 1) / chunk
	workers := min(runtime.GOMAXPROCS(0), chunks)
	var group sync.WaitGroup
	for w := range workers {
		group.Go(func() {
			for c := w; c < chunks; c += workers {
				first := c * chunk
				part := dst[first:min(first+chunk, len(dst))]
				state := seed + uint64(first)*gamma
				for i := range part {
					state += gamma
					part[i] = convert(float32(int32(mix(state)>>40)-1<<23) * (1.0 / (1 << 23)))
				}
			}
		})
	}
	group.Wait()
}
