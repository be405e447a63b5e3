// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/bench/interleave"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/bsr"
)

// The peers by name.
const (
	CUBLAS     = "cublas"      // the same matrix with its zeros
	CUBLASFull = "cublas_full" // a matrix without zeros: comes with CUBLAS
	CUSPARSE   = "cusparse"
	OpenBLAS   = "openblas"
	OneMKL     = "onemkl"
	SciPy      = "scipy"
	Torch      = "torch"
	NonFinite  = "nonfinite" // ours with Inf or NaN in B
	Dynamic    = "dynamic"   // ours with a new pattern each time
	SDPA       = "sdpa"      // torch's dense attention
	Flex       = "flex"      // torch's FlexAttention
	FA3        = "fa3"       // FlashAttention-3
)

// attentionPeers are those of attention, the others those of products.
var attentionPeers = []string{SDPA, Flex, FA3}

// Peers lists the names of those that can be timed beside ours.
func Peers() []string {
	return append([]string{CUBLAS, CUSPARSE, OpenBLAS, OneMKL, SciPy, Torch, NonFinite, Dynamic}, attentionPeers...)
}

// DefaultPeers are those that a suite is compared with by default: the dense product.
func DefaultPeers(backend sparsek.Backend) []string {
	if backend == sparsek.CUDA {
		return []string{CUBLAS}
	}
	return []string{OpenBLAS}
}

// ParsePeers reads names with commas between them; "none" stands for none.
func ParsePeers(text string) ([]string, error) {
	if text == "none" {
		return []string{}, nil
	}
	var list []string
	for name := range strings.SplitSeq(text, ",") {
		if !slices.Contains(Peers(), name) {
			return nil, fmt.Errorf("want none or some of %s, with commas between them: there is no %q", strings.Join(Peers(), ", "), name)
		}
		if !slices.Contains(list, name) {
			list = append(list, name)
		}
	}
	return list, nil
}

// AnyDense reports whether one of the peers multiplies dense matrices.
func AnyDense(peers []string) bool {
	return slices.Contains(peers, CUBLAS) || slices.Contains(peers, OpenBLAS)
}

// subject is a product that peers get ready to compute.
type subject[T sparsek.Element] struct {
	engine      *sparsek.Engine
	element     workload.Element[T]
	shape       workload.Shape
	form        workload.Form
	a           bsr.Matrix[T]
	sets        *workload.Sets[T]
	copies      int  // of A that ours rotates
	denseCopies int  // of a dense A
	dense       bool // A may be made dense
}

// operands are those of its products, in sets that are taken in turn.
func (s *subject[T]) operands() []sparsek.Operands { return s.sets.Sparse(s.shape, s.form, s.a) }

// entrant takes turns with ours.
type entrant struct {
	name, kernel string
	dense        bool   // it multiplies absent blocks as zeros
	full         bool   // it multiplies a matrix without zeros in place of A
	products     int    // in a graph, where there is one
	host         bool   // its time is that of the host's calls alone
	held         int    // SMs that are held meanwhile
	of           string // the name of the same with no SM held; "" for that itself
	repeats      int    // in a round; 0: by the time of the first product
	time         interleave.Timer
	// run runs at least so many products without a pause, and gives how many it ran; nil: it is not measured under load.
	run   func(ctx context.Context, count int) (int, error)
	close func() error // nil: nothing to free
}

// peer brings entrants for a product: several where a library has several ways.
type peer[T sparsek.Element] interface {
	// enter gets ready. Where it is not available it returns a missing error, and the others are timed all the same.
	enter(ctx context.Context, s *subject[T]) ([]entrant, error)
}

// newPeer is the list of peers: to add a library, add it here and to Peers.
func newPeer[T sparsek.Element](name string, r *Runner) peer[T] {
	switch name {
	case CUBLAS:
		return cublas[T]{}
	case CUSPARSE:
		return byKernel[T]{library: "cuSPARSE", kernels: []string{"cusparse_bsr", "cusparse_bell", "cusparse_csr", "cusparse_csr_vector"}}
	case OpenBLAS:
		return openBLAS[T]{}
	case OneMKL:
		return oneMKL[T]{}
	case SciPy:
		return inPython[T]{&r.scipy}
	case NonFinite:
		return nonFinite[T]{}
	case Dynamic:
		return dynamic[T]{}
	default:
		return inPython[T]{&r.torch}
	}
}

// onHost is an entrant whose products have ended when multiply returns.
func onHost(multiply func(context.Context) error) entrant {
	return entrant{
		time: func(ctx context.Context, repeats int) (times []time.Duration, err error) {
			for range repeats {
				start := time.Now()
				if err := multiply(ctx); err != nil {
					return nil, err
				}
				times = append(times, time.Since(start))
			}
			return times, nil
		},
		run: func(ctx context.Context, count int) (int, error) {
			for range count {
				if err := multiply(ctx); err != nil {
					return 0, err
				}
			}
			return count, nil
		}}
}

// missing is an entrant that is not available, or several where errors are joined.
type missing struct{ peer, reason, fix string }

func (m *missing) Error() string { return m.peer + " is not there: " + m.reason }

// missingIn lists what is missing according to an error, and gives what is left of it.
func missingIn(err error) (list []*missing, rest error) {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		for _, one := range joined.Unwrap() {
			more, left := missingIn(one)
			list, rest = append(list, more...), errors.Join(rest, left)
		}
		return list, rest
	}
	var m *missing
	if errors.As(err, &m) {
		return []*missing{m}, nil
	}
	return nil, err
}

// fatal reports whether nothing can be timed after an error.
func fatal(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, sparsek.ErrCUDA)
}

// tryOnce runs a product of an entrant, which says how many go into a round. One that fails is missing.
func tryOnce(ctx context.Context, e *entrant, fix string) error {
	times, err := e.time(ctx, 1)
	if err == nil {
		if e.repeats == 0 {
			e.repeats = interleave.Repeats(times[0])
		}
		return nil
	}
	if e.close != nil {
		err = errors.Join(err, e.close())
	}
	if fatal(ctx, err) {
		return err
	}
	return &missing{e.name, err.Error(), fix}
}
