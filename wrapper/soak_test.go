// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"

	. "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/internal/foreign"
)

// The flags of TestSoak. With -soak.count and small -soak.terms it is short enough for compute-sanitizer.
var (
	soakTime    = flag.Duration("soak.time", 0, "how long TestSoak makes random products on each back-end; 0: 2 s, or 10 min where SPARSEK_LONG is set")
	soakCount   = flag.Int("soak.count", 0, "draws of each goroutine of TestSoak; 0: as many as fit in soak.time")
	soakEach    = flag.Int("soak.each", 1, "goroutines of each role of TestSoak")
	soakRoles   = flag.String("soak.roles", strings.Join(soakRoleNames, ","), "what the goroutines of TestSoak do")
	soakSeed    = flag.Uint64("soak.seed", 0, "seed of TestSoak; 0: another one each time")
	soakTerms   = flag.Int64("soak.terms", 0, "the most products of two elements in a draw of TestSoak; 0: 2^23 on the CPU, 2^29 on a GPU")
	soakKernels = flag.String("soak.kernels", "", "TestSoak names a kernel with this in its name for each product; empty: any kernel, or none")
	soakOps     = flag.String("soak.ops", "dsd,dsd,dsd_t,dds,dds_t,sdd,sdd", "the products of TestSoak; what is named twice is drawn twice as often")
	soakReplay  = flag.String("soak.replay", "", "role/seed of one draw, which TestSoak repeats alone until soak.time is over")
)

// What a goroutine does with each draw.
const (
	soakMultiply  = "multiply"    // the same product many times in two streams at once, by one plan
	soakGraph     = "graph"       // products are captured into two graphs, which are then replayed at once
	soakComeAndGo = "come-and-go" // matrices and plans are destroyed while their products are in progress
)

var soakRoleNames = []string{soakMultiply, soakGraph, soakComeAndGo}

// TestSoak makes random products for as long as -soak.time says, with goroutines that use one engine in different ways
// at once, and compares every element of every product with float64. It stops at the first failure, and prints how to
// repeat that draw alone.
func TestSoak(t *testing.T) {
	onEach(t, func(t *testing.T, engine *Engine) {
		s := newSoak(t, engine)
		if *soakReplay != "" {
			s.replay(*soakReplay)
			return
		}
		seed := *soakSeed
		if seed == 0 {
			seed = rand.Uint64()
		}
		t.Logf("-soak.seed=%d", seed)
		group, ctx := errgroup.WithContext(s.ctx)
		for number, role := range slices.Sorted(slices.Values(strings.Split(*soakRoles, ","))) {
			if !slices.Contains(soakRoleNames, role) {
				t.Fatalf("-soak.roles: there is no role %q, only %s", role, strings.Join(soakRoleNames, ", "))
			}
			if role == soakGraph && engine.Info().Backend == CPU {
				continue
			}
			for i := range *soakEach {
				lane := s.newLane(role)
				seeds := rand.New(rand.NewPCG(seed, uint64(1000*number+i)))
				group.Go(func() error { return s.goOn(ctx, lane, seeds.Uint64) })
			}
		}
		s.stopIfStuck()
		if err := group.Wait(); err != nil {
			t.Error(err)
		}
		t.Log(s.tally())
	})
}

// soak is one run of TestSoak on an engine.
type soak struct {
	t        *testing.T
	engine   *Engine
	ctx      context.Context // ends when no further draw begins
	kernels  []Kernel        // that draws may name
	ops      []Op
	parallel int // tiles that are computed at once: CTAs of a GPU, threads of the CPU
	terms    int64

	mu     sync.Mutex
	lanes  []*soakLane
	counts map[string]int // of draws, by what they did
}

// soakLane is what one goroutine uses for all of its draws.
type soakLane struct {
	role    string
	own     [2]*Stream
	foreign [2]*foreign.Library
	at      [2]*Stream // those of the foreign libraries
	zero    *Stream    // the default stream

	mu      sync.Mutex
	current string // the draw in progress
}

func newSoak(t *testing.T, engine *Engine) *soak {
	s := &soak{t: t, engine: engine, terms: *soakTerms, counts: map[string]int{}, parallel: engine.Info().Threads}
	ctx, end := context.WithCancel(context.Background())
	t.Cleanup(end)
	if *soakCount == 0 {
		length := *soakTime
		if length == 0 {
			length = soakTimeByDefault()
		}
		ctx, end = context.WithTimeout(ctx, length)
		t.Cleanup(end)
	}
	s.ctx = ctx
	if s.terms == 0 {
		s.terms = 1 << 23
	}
	if engine.Info().Backend == CUDA {
		s.parallel = must(engine.Library().Devices())(t)[engine.Info().Device].SMs
		if *soakTerms == 0 {
			s.terms = 1 << 29
		}
	}
	for _, name := range strings.Split(*soakOps, ",") {
		at := slices.IndexFunc(allOps, func(op Op) bool { return op.String() == name })
		if at < 0 {
			t.Fatalf("-soak.ops: there is no product %q, only %v", name, allOps)
		}
		s.ops = append(s.ops, allOps[at])
	}
	for _, kernel := range kernelsOf(t, engine) {
		if !strings.Contains(kernel.Name, *soakKernels) {
			continue
		}
		blockM, blockK := leastBlock(kernel)
		smallest := shape{rows: blockM, cols: blockK, n: 8, blockM: blockM, blockK: blockK, kernel: kernel.Name}
		if engine.Info().Backend == CUDA || serves[BFloat16, BFloat16](t, engine, smallest) { // a CPU may lack instructions
			s.kernels = append(s.kernels, kernel)
		}
	}
	if len(s.kernels) == 0 {
		t.Skipf("skipped: no kernel here has %q in its name", *soakKernels)
	}
	return s
}

func soakTimeByDefault() time.Duration {
	if os.Getenv("SPARSEK_LONG") != "" {
		return 10 * time.Minute
	}
	return 2 * time.Second
}

func (s *soak) newLane(role string) *soakLane {
	onGPU := s.engine.Info().Backend == CUDA
	lane := &soakLane{role: role, zero: must(s.engine.StreamAt(0))(s.t)}
	s.t.Cleanup(func() { lane.zero.Close() })
	for i := range lane.own {
		lane.own[i] = must(s.engine.NewStream())(s.t)
		lane.foreign[i] = must(foreign.Open(onGPU, s.engine.Info().Device))(s.t)
		lane.at[i] = must(s.engine.StreamAt(lane.foreign[i].Stream()))(s.t)
		s.t.Cleanup(func() {
			if err := errors.Join(lane.own[i].Close(), lane.at[i].Close(), lane.foreign[i].Close()); err != nil {
				s.t.Error(err)
			}
		})
	}
	s.lanes = append(s.lanes, lane)
	return lane
}

// goOn makes draws until the time is over, or until one of them, in whatever goroutine, fails.
func (s *soak) goOn(ctx context.Context, lane *soakLane, next func() uint64) error {
	for i := 0; ctx.Err() == nil && (*soakCount == 0 || i < *soakCount); i++ {
		if err := s.one(lane, next()); err != nil {
			return err
		}
	}
	return nil
}

// one makes a draw, and says how to repeat it where it fails.
func (s *soak) one(lane *soakLane, seed uint64) error {
	d := newDraw(s, rand.New(rand.NewPCG(seed, 3)))
	lane.setCurrent(fmt.Sprintf("%s/%d: %+v", lane.role, seed, d))
	defer lane.setCurrent("")
	err := attempt(s.t, func(t soakTB) { d.run(t, s, lane) })
	if err == nil {
		return nil
	}
	flags := []string{"-soak.time=10s"}
	if *soakTerms != 0 {
		flags = append(flags, "-soak.terms="+strconv.FormatInt(*soakTerms, 10))
	}
	if *soakKernels != "" {
		flags = append(flags, "-soak.kernels="+*soakKernels)
	}
	if given := flag.Lookup("soak.ops"); *soakOps != given.DefValue {
		flags = append(flags, "-soak.ops="+*soakOps)
	}
	return fmt.Errorf("%w\nalone: go test ./wrapper -run '%s$' %s -soak.replay=%s/%d\ndraw: %+v%s",
		err, s.t.Name(), strings.Join(flags, " "), lane.role, seed, d, s.others(lane))
}

func (s *soak) replay(replay string) {
	role, number, _ := strings.Cut(replay, "/")
	seed, err := strconv.ParseUint(number, 10, 64)
	if err != nil || !slices.Contains(soakRoleNames, role) {
		s.t.Fatalf("-soak.replay=%s: want a role, one of %s, a slash and a seed", replay, strings.Join(soakRoleNames, ", "))
	}
	if role == soakGraph && s.engine.Info().Backend == CPU {
		s.t.Skip("skipped: there are no graphs on the CPU")
	}
	s.stopIfStuck()
	lane := s.newLane(role)
	if err := s.goOn(s.ctx, lane, func() uint64 { return seed }); err != nil {
		s.t.Error(err)
	}
	s.t.Log(s.tally())
}

// stopIfStuck prints the draws in progress where the test is about to run out of its -test.timeout: a kernel that never
// ends leaves no other trace.
func (s *soak) stopIfStuck() {
	deadline, ok := s.t.Deadline()
	if !ok {
		return
	}
	const toPrint = 5 * time.Second
	timer := time.AfterFunc(time.Until(deadline)-toPrint, func() {
		panic("TestSoak does not end" + s.others(nil))
	})
	s.t.Cleanup(func() { timer.Stop() })
}

// others are the draws in progress in other goroutines.
func (s *soak) others(than *soakLane) string {
	var text strings.Builder
	for _, lane := range s.lanes {
		lane.mu.Lock()
		if lane != than && lane.current != "" {
			text.WriteString("\nmeanwhile: " + lane.current)
		}
		lane.mu.Unlock()
	}
	return text.String()
}

func (l *soakLane) setCurrent(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.current = text
}

// count adds a draw that did this.
func (s *soak) count(what string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.counts[what]++
}

func (s *soak) tally() string {
	var lines []string
	for _, what := range slices.Sorted(maps.Keys(s.counts)) {
		lines = append(lines, fmt.Sprintf("%6d %s", s.counts[what], what))
	}
	return "done:\n" + strings.Join(lines, "\n")
}

// soakTB ends a draw where a test would be ended, which only the test's own goroutine may do.
type soakTB struct{ *testing.T }

type soakFailure string

func (t soakTB) Fatal(args ...any)                 { panic(soakFailure(fmt.Sprint(args...))) }
func (t soakTB) Fatalf(format string, args ...any) { panic(soakFailure(fmt.Sprintf(format, args...))) }

// attempt returns what f failed with.
func attempt(t *testing.T, f func(soakTB)) (err error) {
	defer func() {
		switch failure := recover().(type) {
		case nil:
		case soakFailure:
			err = errors.New(string(failure))
		default:
			panic(failure)
		}
	}()
	f(soakTB{t})
	return nil
}
