// SPDX-License-Identifier: Apache-2.0

package main

import (
	"math"
	"math/rand/v2"

	"github.com/sparsek/sparsek/wrapper/bsr"
)

const (
	classes       = 7
	wordsPerClass = 32
	words         = classes * wordsPerClass
	wordsPerNode  = 12
	hidden        = 16
)

// library is a made-up library of papers: nodes of a graph in which each new paper cites earlier ones, those the more that
// are cited often already (a power law), and mostly those of its own subject. A paper has a few words, some of them of its
// subject.
type library struct {
	class     []int       // of each node
	adjacency bsr.Entries // D^-1/2 (A + 1) D^-1/2, A symmetric
	features  bsr.Entries // (nodes, words), each row sums to 1
	degree    []int       // of each node
	network   network     // which tells the subject by the words of a paper and of those near it
}

// network are the weights of two layers, row-major.
type network struct {
	first  []float64 // (words, hidden)
	bias0  []float64 // (hidden)
	second []float64 // (hidden, classes)
	bias1  []float64 // (classes)
}

func newLibrary(nodes, cites int, seed uint64) *library {
	random := rand.New(rand.NewPCG(seed, 0))
	l := &library{class: make([]int, nodes), degree: make([]int, nodes)}
	for node := range nodes {
		l.class[node] = random.IntN(classes)
	}
	l.cite(random, cites)
	l.write(random)
	l.weigh(random)
	return l
}

// cite makes the graph (Barabási and Albert 1999; by class, Karimi et al. 2018).
func (l *library) cite(random *rand.Rand, cites int) {
	nodes := len(l.class)
	type edge struct{ from, to int }
	known := map[edge]bool{}
	var edges []edge
	ends := []int{0} // each node once for itself and once for each of its edges
	for node := 1; node < nodes; node++ {
		for try, made := 0, 0; made < min(cites, node) && try < 20*cites; try++ {
			to := ends[random.IntN(len(ends))]
			if e := (edge{node, to}); to != node && !known[e] && (l.class[to] == l.class[node] || random.Float64() < 0.04) {
				known[e] = true
				edges = append(edges, e)
				made++
			}
		}
		for i := len(edges) - 1; i >= 0 && edges[i].from == node; i-- {
			ends = append(ends, edges[i].to, node)
		}
		ends = append(ends, node)
	}
	for node := range nodes {
		l.degree[node] = 1 // the loop that each has
	}
	for _, e := range edges {
		l.degree[e.from]++
		l.degree[e.to]++
	}
	l.adjacency = bsr.Entries{Rows: nodes, Cols: nodes}
	add := func(i, j int) {
		l.adjacency.Add(int32(i), int32(j), 1/math.Sqrt(float64(l.degree[i])*float64(l.degree[j])))
	}
	for node := range nodes {
		add(node, node)
	}
	for _, e := range edges {
		add(e.from, e.to)
		add(e.to, e.from)
	}
}

// write gives each paper its words: a fifth are of its subject, the rest any.
func (l *library) write(random *rand.Rand) {
	l.features = bsr.Entries{Rows: len(l.class), Cols: words}
	for node, class := range l.class {
		for range wordsPerNode {
			word := random.IntN(words)
			if random.Float64() < 0.2 {
				word = class*wordsPerClass + random.IntN(wordsPerClass)
			}
			l.features.Add(int32(node), int32(word), 1.0/wordsPerNode)
		}
	}
}

// weigh makes the weights that training would find, roughly: a hidden unit for the words of each class and some noise.
func (l *library) weigh(random *rand.Rand) {
	noise := func(count int, scale float64) []float64 {
		list := make([]float64, count)
		for i := range list {
			list[i] = scale * random.NormFloat64()
		}
		return list
	}
	l.network = network{noise(words*hidden, 0.1), noise(hidden, 0.01), noise(hidden*classes, 0.05), noise(classes, 0.01)}
	for word := range words {
		l.network.first[word*hidden+word/wordsPerClass]++
	}
	for class := range classes {
		l.network.second[class*classes+class]++
	}
}

// byWords is the share of papers whose subject is the one that most of their words are of.
func (l *library) byWords() float64 {
	votes := make([]float64, len(l.class)*classes)
	for i, node := range l.features.Row {
		votes[int(node)*classes+int(l.features.Col[i])/wordsPerClass] += l.features.Value[i]
	}
	return l.accuracy(func(i int) float64 { return votes[i] })
}

// accuracy is the share of nodes whose class has the largest score; score gives element i of (nodes, classes).
func (l *library) accuracy(score func(i int) float64) float64 {
	right := 0
	for node, class := range l.class {
		best := 0
		for c := range classes {
			if score(node*classes+c) > score(node*classes+best) {
				best = c
			}
		}
		if best == class {
			right++
		}
	}
	return float64(right) / float64(len(l.class))
}
