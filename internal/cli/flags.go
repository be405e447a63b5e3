// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// The types below are values of flags, read by UnmarshalText.

// sizeFlag is MxNxK.
type sizeFlag struct{ m, n, k int }

func (s *sizeFlag) String() string { return fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k) }

func (s *sizeFlag) UnmarshalText(text []byte) error {
	n, err := numbers(string(text))
	if err != nil || len(n) != 3 {
		return fmt.Errorf("want MxNxK, as in 4096x4096x4096, positive and at most %d", math.MaxInt32)
	}
	*s = sizeFlag{n[0], n[1], n[2]}
	return nil
}

// blockFlag is BMxBK, or one number for both.
type blockFlag struct{ m, k int }

func (b *blockFlag) String() string { return fmt.Sprintf("%dx%d", b.m, b.k) }

func (b *blockFlag) UnmarshalText(text []byte) error {
	n, err := numbers(string(text))
	if err == nil && len(n) == 1 {
		n = append(n, n[0])
	}
	if err != nil || len(n) != 2 {
		return fmt.Errorf("want BMxBK, as in 64x64, or one number for both")
	}
	*b = blockFlag{n[0], n[1]}
	return nil
}

// anyBlockFlag is a block size of a command that reads files; zero where the flag is not given.
type anyBlockFlag struct {
	blockFlag
	auto bool // by what the file holds
}

func (b *anyBlockFlag) UnmarshalText(text []byte) error {
	if string(text) == "auto" {
		*b = anyBlockFlag{auto: true}
		return nil
	}
	if err := b.blockFlag.UnmarshalText(text); err != nil {
		return fmt.Errorf("%w, or auto", err)
	}
	return nil
}

// defaultBlock is that of patterns, and of files that have no blocks of their own.
var defaultBlock = blockFlag{64, 64}

// numbers reads positive numbers with an x between them.
func numbers(text string) ([]int, error) {
	var list []int
	for word := range strings.SplitSeq(strings.ToLower(text), "x") {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a positive number", word)
		}
		list = append(list, int(n))
	}
	return list, nil
}

// count is a positive number; 0 where the flag is not given.
type count int

func (c *count) UnmarshalText(text []byte) error {
	n, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || n < 1 {
		return fmt.Errorf("%s: want a number from 1 to %d", text, math.MaxInt32)
	}
	*c = count(n)
	return nil
}

// share is a number from 0 to 1.
type share float64

func (s *share) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("%s: want a number from 0 to 1", text)
	}
	*s = share(v)
	return nil
}

// factor is a number that is finite as a float32.
type factor float64

func (f *factor) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if single := float64(float32(v)); err != nil || math.IsNaN(single) || math.IsInf(single, 0) {
		return fmt.Errorf("%s: want a number that is finite as a float32", text)
	}
	*f = factor(v)
	return nil
}

// positive is a number above 0; 0 where the flag is not given.
type positive float64

func (p *positive) UnmarshalText(text []byte) error {
	v, err := strconv.ParseFloat(string(text), 64)
	if err != nil || !(v > 0) || math.IsInf(v, 0) {
		return fmt.Errorf("%s: want a number above 0", text)
	}
	*p = positive(v)
	return nil
}

// deviceFlag is auto, cpu, gpu or gpu:N.
type deviceFlag struct {
	backend sparsek.Backend
	ordinal int
}

func (d *deviceFlag) UnmarshalText(text []byte) error {
	switch text := string(text); text {
	case "auto":
		*d = deviceFlag{sparsek.Auto, 0}
	case "cpu":
		*d = deviceFlag{sparsek.CPU, 0}
	case "gpu":
		*d = deviceFlag{sparsek.CUDA, 0}
	default:
		number, ok := strings.CutPrefix(text, "gpu:")
		n, err := strconv.ParseUint(number, 10, 16)
		if !ok || err != nil {
			return fmt.Errorf("%q: want auto, cpu, gpu or gpu:N", text)
		}
		*d = deviceFlag{sparsek.CUDA, int(n)}
	}
	return nil
}

// peersFlag is a list of peers; nil where the flag is not given.
type peersFlag struct{ names []string }

func (p *peersFlag) UnmarshalText(text []byte) (err error) {
	p.names, err = bench.ParsePeers(string(text))
	return err
}

// dtypes are the element types by name.
var dtypes = []string{"bf16", "fp16", "fp32", "fp64"}

// dtypeFlag is one of dtypes; "" where the flag is not given.
type dtypeFlag string

func (d *dtypeFlag) UnmarshalText(text []byte) error {
	if !slices.Contains(dtypes, string(text)) {
		return fmt.Errorf("%q: want one of %s", text, strings.Join(dtypes, ", "))
	}
	*d = dtypeFlag(text)
	return nil
}

// bytes are those of an element.
func (d dtypeFlag) bytes() int {
	switch d {
	case "fp64":
		return 8
	case "fp32":
		return 4
	}
	return 2
}

// headsDTypeFlag is that of Q, K and V: one of dtypes, or e4m3.
type headsDTypeFlag string

func (d *headsDTypeFlag) UnmarshalText(text []byte) error {
	all := append(slices.Clone(dtypes), workload.Float8E4M3.Name)
	if !slices.Contains(all, string(text)) {
		return fmt.Errorf("%q: want one of %s", text, strings.Join(all, ", "))
	}
	*d = headsDTypeFlag(text)
	return nil
}

// bytes are those of an element.
func (d headsDTypeFlag) bytes() int {
	if string(d) == workload.Float8E4M3.Name {
		return workload.Float8E4M3.Size
	}
	return dtypeFlag(d).bytes()
}

// biasFlag, activationFlag and computeFlag are of the library; none, or exact, where the flag is not given.
type (
	biasFlag       struct{ sparsek.Bias }
	activationFlag struct{ sparsek.Activation }
	computeFlag    struct{ sparsek.Compute }
)

func (b *biasFlag) UnmarshalText(text []byte) (err error) {
	b.Bias, err = choose(string(text), sparsek.RowBias, sparsek.ColumnBias)
	return err
}

func (a *activationFlag) UnmarshalText(text []byte) (err error) {
	a.Activation, err = choose(string(text), sparsek.ReLU, sparsek.GELU, sparsek.SiLU)
	return err
}

func (c *computeFlag) UnmarshalText(text []byte) (err error) {
	c.Compute, err = choose(string(text), sparsek.Exact, sparsek.TF32)
	return err
}

// opFlag is a product.
type opFlag struct{ sparsek.Op }

func (o *opFlag) UnmarshalText(text []byte) (err error) {
	o.Op, err = choose(string(text), sparsek.DSD, sparsek.DSDT, sparsek.DDS, sparsek.DDST, sparsek.SDD)
	return err
}

// columnsFlag are the orders of X, B and C: letters of those that are column-major.
type columnsFlag struct{ x, b, c sparsek.Order }

func (c *columnsFlag) String() string {
	return workload.Form{OrderX: c.x, OrderB: c.b, OrderC: c.c}.ColumnMajor()
}

func (c *columnsFlag) UnmarshalText(text []byte) error {
	*c = columnsFlag{}
	for _, letter := range string(text) {
		switch letter {
		case 'x':
			c.x = sparsek.ColumnMajor
		case 'b':
			c.b = sparsek.ColumnMajor
		case 'c':
			c.c = sparsek.ColumnMajor
		default:
			return fmt.Errorf("want letters of x, b and c, as in bc")
		}
	}
	return nil
}

// choose finds a value by its name.
func choose[V fmt.Stringer](name string, values ...V) (V, error) {
	var names []string
	for _, v := range values {
		if v.String() == name {
			return v, nil
		}
		names = append(names, v.String())
	}
	var none V
	return none, fmt.Errorf("%q: want one of %s", name, strings.Join(names, ", "))
}

// The types below are groups of flags that several commands have.

// densityFlags say which share of the blocks is stored.
type densityFlags struct {
	Density  *share `xor:"density" placeholder:"0..1" help:"Share of the blocks that is stored (default: ${density})."`
	Sparsity *share `xor:"density" placeholder:"0..1" help:"The same as a density of 1 minus it."`
}

// given is the flag that was given, "" where none was.
func (d *densityFlags) given() string {
	switch {
	case d.Density != nil:
		return "density"
	case d.Sparsity != nil:
		return "sparsity"
	}
	return ""
}

// value is the density; other where no flag was given.
func (d *densityFlags) value(other float64) float64 {
	switch {
	case d.Density != nil:
		return float64(*d.Density)
	case d.Sparsity != nil:
		return 1 - float64(*d.Sparsity)
	}
	return other
}

// defaultDensity is that of run, tune and verify.
const defaultDensity = 0.125

// engineFlags say where products run.
type engineFlags struct {
	Device  deviceFlag `default:"auto" placeholder:"NAME" help:"auto (a Hopper GPU if there is one, else the CPU), cpu, gpu or gpu:N."`
	Threads count      `placeholder:"N" help:"Threads of the CPU back-end (default: one for each core)."`
}

// open opens the library and the device that was asked for.
func (f *engineFlags) open(e *environment) (*sparsek.Engine, error) {
	return openEngine(e, f.Device, f.Threads)
}

// jsonFlag is the output of most commands.
type jsonFlag struct {
	JSON bool `name:"json" group:"Output" help:"Print JSON."`
}
