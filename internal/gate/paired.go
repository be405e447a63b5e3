// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/pair"
	"github.com/sparsek/sparsek/internal/gate/profile"
)

// Paired says how the candidate's time compares with that of the blessed library, which took turns with it.
type Paired struct {
	First    pair.Interval  `json:"first"`
	Second   *pair.Interval `json:"second,omitempty"` // in a new process, with the libraries opened in the opposite order
	Seconds  [2]float64     `json:"seconds"`          // of one product by the blessed library and by the candidate
	Rounds   int            `json:"rounds"`           // of the first measurement
	SameCode bool           `json:"same_code"`        // the kernel's machine code is the blessed one
	SamePlan bool           `json:"same_plan"`
	Slower   bool           `json:"slower"` // by more than the margin in both measurements
}

const (
	// blurred is how much slower the candidate may be for all that an undecided measurement says: beyond it the
	// measurement is too noisy to pass.
	blurred = 0.03
	// pairedDrift is the share from which a difference that neither machine code nor plan explains is large.
	pairedDrift = 0.02
)

// JudgePairs compares two libraries by the times of products that took turns. second is a measurement of the cases that
// were slower in the first; nil where there is none. kernels are those of the candidate. The first measurement must have
// all cases.
func JudgePairs(s *Store, first, second *pair.Comparison, kernels *kernelreport.Report, cases []string) *Result {
	r := &Result{Verdict: Pass, Date: first.Date, GPU: first.GPU, Driver: first.Driver, Commit: first.Commit, State: &first.State, Cases: []Case{}}
	r.addFaults(s)
	b := s.reference(first.GPU)
	if b == nil || b.Library != first.Libraries[pair.Blessed].SHA256 {
		r.Block("what was measured against is not the blessed library: its hash is " + first.Libraries[pair.Blessed].SHA256)
		return r
	}
	if second != nil && (second.Libraries[0].SHA256 != first.Libraries[0].SHA256 || second.Libraries[1].SHA256 != first.Libraries[1].SHA256 ||
		second.GPU != first.GPU) {
		r.Block("the second measurement is of another library or GPU; measure both again")
		return r
	}
	r.Baseline = &Origin{Commit: b.Commit, Date: b.Date, Driver: b.Driver, Noise: b.Noise, State: b.State, Library: b.Library, Paired: true}
	if b.GPU != first.GPU {
		r.Notes = append(r.Notes, fmt.Sprintf("there is no baseline for %s; the library is compared with the one that was blessed for %s", first.GPU, b.GPU))
	}
	for _, name := range cases {
		r.add(judgePair(b, name, first.Find(name), second.Find(name), kernels))
	}
	return r
}

// judgePair judges one case; first is nil where it was not measured, second where it was not measured again.
func judgePair(b *Baseline, name string, first, second *pair.Case, kernels *kernelreport.Report) Case {
	c := Case{Name: name, Verdict: Pass, Folder: b.folder()}
	if first == nil {
		c.Verdict, c.Why = NotMeasurable, "it was not measured: measure all cases"
		return c
	}
	if first.New != "" {
		c.Verdict, c.Why = Stale, "the blessed library does not serve this product: bless anew"
		return c
	}
	was, is := first.Plans[pair.Blessed], first.Plans[pair.Candidate]
	c.Kernel = is.Kernel
	p := &Paired{First: first.Interval, Seconds: first.Seconds, Rounds: len(first.Rounds)}
	c.Paired = p
	p.SamePlan = was.Kernel == is.Kernel && was.Same(is.Plan)
	p.SameCode = c.compareKernels(b, was.Kernel, is.Kernel, kernels)
	again := pair.Interval{}
	if second != nil {
		p.Second = &second.Interval
		again = second.Interval
	}
	p.Slower = p.First.Slower(pair.Margin) && again.Slower(pair.Margin)
	switch {
	case p.Slower && p.SameCode && p.SamePlan:
		c.Cause = causeEnvironment
		if min(p.First.Low, again.Low) > 1+pairedDrift {
			c.Verdict = worse(c.Verdict, Drift)
		}
	case p.Slower:
		c.Verdict = Fail
		c.Cause = causeCode
		if p.SameCode {
			c.Cause = causePlan
		}
	case p.First.Slower(pair.Margin) && second == nil:
		c.Verdict, c.Note = worse(c.Verdict, Ambiguous), "slower, and not measured a second time"
	case p.First.Slower(pair.Margin):
		c.Note = "slower once, not the second time"
	case !p.First.Decided(pair.Margin) && p.First.High > 1+blurred:
		c.Verdict, c.Note = worse(c.Verdict, Ambiguous), fmt.Sprintf("the times vary so much that it may be %.1f %% slower: measure again", 100*(p.First.High-1))
	}
	return c
}

// compareKernels finds out whether the candidate's kernel is the blessed machine code, and else marks the case as stale.
// The functions of a kernel that the baseline has are those that its cases run.
func (c *Case) compareKernels(b *Baseline, was, is string, kernels *kernelreport.Report) bool {
	if was != is {
		c.Verdict, c.Why = Stale, fmt.Sprintf("another kernel is chosen: %s instead of %s", is, was)
		return false
	}
	var entries []*Entry
	for i := range b.Cases {
		if e := &b.Cases[i]; e.Kernel == was && (e.Name == c.Name || !slices.ContainsFunc(b.Cases, func(o Entry) bool { return o.Name == c.Name && o.Kernel == was })) {
			entries = append(entries, e)
		}
	}
	if len(entries) == 0 {
		c.Verdict, c.Why = Stale, "the baseline has no case of kernel "+was+": bless anew"
		return false
	}
	same := true
	for _, e := range entries {
		f, ok := kernels.Function(e.Kernel, e.Symbol)
		same = c.compareCode(e, f.SASS, f.Opcodes, ok) && same
	}
	return same
}

// PairSuspects names the cases that are to be measured a second time.
func (r *Result) PairSuspects() []string {
	var names []string
	for i := range r.Cases {
		if p := r.Cases[i].Paired; p != nil && p.Second == nil && p.First.Slower(pair.Margin) {
			names = append(names, r.Cases[i].Name)
		}
	}
	return names
}

// Slow names the cases that got slower, the slowest first: those of which counters may say why.
func (r *Result) Slow() []string {
	var slow []*Case
	for i := range r.Cases {
		if p := r.Cases[i].Paired; p != nil && p.Slower {
			slow = append(slow, &r.Cases[i])
		}
	}
	slices.SortStableFunc(slow, func(a, b *Case) int { return cmp.Compare(b.Paired.First.Ratio, a.Paired.First.Ratio) })
	var names []string
	for _, c := range slow {
		names = append(names, c.Name)
	}
	return names
}

// reference is the baseline of a GPU or, where it has none, the newest one: its library runs on every Hopper GPU.
func (s *Store) reference(gpu string) *Baseline {
	var newest *Baseline
	for _, b := range s.Baselines {
		if b.GPU == gpu {
			return b
		}
		if newest == nil || b.Date.After(newest.Date) {
			newest = b
		}
	}
	return newest
}

// BlessedLibrary is the library to compare with on a GPU: its hash, and the commit that it is built from.
func (s *Store) BlessedLibrary(gpu string) (sha256, commit string, ok bool) {
	b := s.reference(gpu)
	if b == nil {
		return "", "", false
	}
	return b.Library, b.Commit, true
}

// AddCounters puts the counters of a profile beside the recorded ones of the GPU, to be read: nothing is judged by them.
func (r *Result) AddCounters(s *Store, p *profile.Profile) {
	b, err := s.Baseline(p.GPU)
	if err != nil {
		r.Notes = append(r.Notes, "counters are not compared: "+err.Error())
		return
	}
	r.NCU = p.NCU
	for i := range r.Cases {
		c := &r.Cases[i]
		measured := find(p, c.Name)
		e, ok := b.Find(c.Name)
		if measured == nil || !ok {
			continue
		}
		c.FLOP = measured.FLOP
		figures := measured.Figures()
		for _, m := range ncu.Metrics() {
			d := directions[m.Name]
			if d == neither {
				d = lower
			}
			c.Metrics = append(c.Metrics, Metric{Name: m.Name, Baseline: e.Figures[m.Name], First: figures[m.Name], Worse: worsening(d, e.Figures[m.Name], figures[m.Name])})
		}
	}
}
