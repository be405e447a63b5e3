// SPDX-License-Identifier: Apache-2.0

package sparsek_test

import (
	"math"

	"pgregory.net/rapid"

	. "github.com/sparsek/sparsek/wrapper"
)

// length is that of a sequence.
func length(lengths []int32, b, seq int) int {
	if lengths == nil {
		return seq
	}
	return min(max(int(lengths[b]), 0), seq)
}

// sees returns whether a query sees a key.
func (c *attentionCase[T, S]) sees(b, head, i, j int) bool {
	o := c.opts
	n, m := length(c.lengthsQ, b, o.SeqQ), length(c.lengthsK, b, o.SeqK)
	if i >= n || j >= m || c.hidden != nil && c.hidden[b][j] {
		return false
	}
	p := i
	if o.AlignEnds {
		p += m - n
	}
	if o.Causal && j > p || o.WindowRight != nil && j > p+*o.WindowRight || o.WindowLeft != nil && j < p-*o.WindowLeft {
		return false
	}
	block, _ := c.block()
	return c.hasBlock(b, head, i/block[0], j/block[1]) && !c.isMasked(b, head, i, j)
}

// pair is what a query and a key have between them: its score, and the derivative of that by <q, k>.
func (c *attentionCase[T, S]) pair(b, head, i, j int) (score, slope float64) {
	o := c.opts
	q, k := c.o.Q.(Heads[float64]), c.o.K.(Heads[float64])
	x, y := placeOf(q, b, head, i), placeOf(k, b, head/(o.HeadsQ/o.HeadsK), j)
	sum := 0.0
	for d := range o.HeadSize {
		sum += q.Data[x+d] * k.Data[y+d]
	}
	scale := o.Scale
	if scale == 0 {
		scale = 1 / math.Sqrt(float64(o.HeadSize))
	}
	bias := c.bias(b, head, i, j)
	if o.SoftCap == 0 {
		return sum*scale + bias, scale
	}
	tanh := math.Tanh(sum * scale / o.SoftCap)
	return o.SoftCap*tanh + bias, scale * (1 - tanh*tanh)
}

// weights are the probabilities of a query's keys, and its LSE.
func (c *attentionCase[T, S]) weights(b, head, i int) (p []float64, lse float64) {
	p = make([]float64, c.opts.SeqK)
	most := math.Inf(-1)
	for j := range p {
		p[j] = math.Inf(-1)
		if c.sees(b, head, i, j) {
			p[j], _ = c.pair(b, head, i, j)
		}
		most = max(most, p[j])
	}
	if math.IsInf(most, -1) {
		return make([]float64, len(p)), most
	}
	sum := 0.0
	for j := range p {
		p[j] = math.Exp(p[j] - most)
		sum += p[j]
	}
	for j := range p {
		p[j] /= sum
	}
	return p, most + math.Log(sum)
}

func same(t rapid.TB, what string, got, want float64) {
	t.Helper()
	if got != want && !(math.Abs(got-want) <= 1e-11*(1+math.Abs(want))) {
		t.Fatalf("%s is %g and should be %g", what, got, want)
	}
}

func (c *attentionCase[T, S]) compareForward(t rapid.TB, b, head int) {
	v, o, lse := c.o.V.(Heads[float64]), c.o.O.(Heads[float64]), c.o.LSE.(Heads[float64])
	for i := range c.opts.SeqQ {
		p, want := c.weights(b, head, i)
		same(t, "LSE", lse.Data[placeOf(lse, b, head, i)], want)
		for d := range v.Size {
			sum := 0.0
			for j := range p {
				if p[j] != 0 {
					sum += p[j] * v.Data[placeOf(v, b, head/(c.opts.HeadsQ/c.opts.HeadsK), j)+d]
				}
			}
			same(t, "O", o.Data[placeOf(o, b, head, i)+d], sum)
		}
	}
}

// compareBackward differentiates O = P V by hand: dV = P^T dO, dS = P (dP - sum P dP), dQ = dS K, dK = dS^T Q.
func (c *attentionCase[T, S]) compareBackward(t rapid.TB) {
	q, k, v, grad := c.o.Q.(Heads[float64]), c.o.K.(Heads[float64]), c.o.V.(Heads[float64]), c.o.GradO.(Heads[float64])
	gradQ, gradK, gradV := zeros(q), zeros(k), zeros(v)
	var gradBias Heads[float64]
	if c.o.GradBias != nil {
		gradBias = zeros(c.o.GradBias.(Heads[float64]))
	}
	for b := range c.opts.Batch {
		for head := range c.opts.HeadsQ {
			headK := head / (c.opts.HeadsQ / c.opts.HeadsK)
			for i := range c.opts.SeqQ {
				p, _ := c.weights(b, head, i)
				gradP, mean := make([]float64, len(p)), 0.0
				for j := range p {
					if p[j] == 0 {
						continue
					}
					for d := range v.Size {
						g := grad.Data[placeOf(grad, b, head, i)+d]
						gradP[j] += g * v.Data[placeOf(v, b, headK, j)+d]
						gradV.Data[placeOf(v, b, headK, j)+d] += p[j] * g
					}
					mean += p[j] * gradP[j]
				}
				for j := range p {
					if p[j] == 0 {
						continue
					}
					_, slope := c.pair(b, head, i, j)
					s := p[j] * (gradP[j] - mean)
					if c.o.GradBias != nil {
						gradBias.Data[placeOf(gradBias, b, head, i)+j] = s
					}
					s *= slope
					for d := range q.Size {
						gradQ.Data[placeOf(q, b, head, i)+d] += s * k.Data[placeOf(k, b, headK, j)+d]
						gradK.Data[placeOf(k, b, headK, j)+d] += s * q.Data[placeOf(q, b, head, i)+d]
					}
				}
			}
		}
	}
	compareHeads(t, "GradQ", c.o.GradQ.(Heads[float64]), gradQ)
	compareHeads(t, "GradK", c.o.GradK.(Heads[float64]), gradK)
	compareHeads(t, "GradV", c.o.GradV.(Heads[float64]), gradV)
	if c.o.GradBias != nil {
		compareHeads(t, "GradBias", c.o.GradBias.(Heads[float64]), gradBias)
	}
}

func zeros(h Heads[float64]) Heads[float64] {
	h.Data = make([]float64, len(h.Data))
	return h
}

func compareHeads(t rapid.TB, what string, got, want Heads[float64]) {
	t.Helper()
	for b := range got.Batch {
		for head := range got.Heads {
			for i := range got.Rows {
				for d := range got.Size {
					same(t, what, got.Data[placeOf(got, b, head, i)+d], want.Data[placeOf(want, b, head, i)+d])
				}
			}
		}
	}
}
