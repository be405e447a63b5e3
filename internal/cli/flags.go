// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"flag"
	"fmt"
	"math"
	"strconv"
	"strings"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// sizeFlag is MxNxK.
type sizeFlag struct{ m, n, k int }

func (s *sizeFlag) String() string {
	if *s == (sizeFlag{}) {
		return ""
	}
	return fmt.Sprintf("%dx%dx%d", s.m, s.n, s.k)
}

func (s *sizeFlag) Set(text string) error {
	n, err := numbers(text)
	if err != nil || len(n) != 3 {
		return fmt.Errorf("want MxNxK, as in 4096x4096x4096, positive and at most %d", math.MaxInt32)
	}
	*s = sizeFlag{n[0], n[1], n[2]}
	return nil
}

// blockFlag is BMxBK, or one number for both.
type blockFlag struct{ m, k int }

func (b *blockFlag) String() string {
	if *b == (blockFlag{}) {
		return ""
	}
	return fmt.Sprintf("%dx%d", b.m, b.k)
}

func (b *blockFlag) Set(text string) error {
	n, err := numbers(text)
	if err == nil && len(n) == 1 {
		n = append(n, n[0])
	}
	if err != nil || len(n) != 2 {
		return fmt.Errorf("want BMxBK, as in 64x64, or one number for both")
	}
	*b = blockFlag{n[0], n[1]}
	return nil
}

// numbers reads positive numbers with an x between them.
func numbers(text string) ([]int, error) {
	var list []int
	for word := range strings.SplitSeq(strings.ToLower(text), "x") {
		n, err := strconv.ParseInt(word, 10, 32)
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is no positive number", word)
		}
		list = append(list, int(n))
	}
	return list, nil
}

// deviceFlag is auto, cpu, gpu or gpu:N.
type deviceFlag struct {
	backend sparsek.Backend
	ordinal int
}

func (d *deviceFlag) String() string {
	switch {
	case d.backend == sparsek.CPU:
		return "cpu"
	case d.backend == sparsek.CUDA && d.ordinal > 0:
		return fmt.Sprintf("gpu:%d", d.ordinal)
	case d.backend == sparsek.CUDA:
		return "gpu"
	}
	return "auto"
}

func (d *deviceFlag) Set(text string) error {
	switch text {
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
			return fmt.Errorf("want auto, cpu, gpu or gpu:N")
		}
		*d = deviceFlag{sparsek.CUDA, int(n)}
	}
	return nil
}

// densityFlag takes --density or --sparsity, not both.
type densityFlag struct {
	value float64
	from  string // the flag that set it, "" where none did
}

// densityFlags defines both flags for one value.
func densityFlags(flags *flag.FlagSet, value float64) *densityFlag {
	d := &densityFlag{value: value}
	flags.Func("density", fmt.Sprintf("share of blocks that are stored, `0..1` (default %v)", value), func(text string) error {
		return d.set("density", text)
	})
	flags.Func("sparsity", "`0..1`, the same as a density of 1 minus it", func(text string) error {
		return d.set("sparsity", text)
	})
	return d
}

func (d *densityFlag) set(name, text string) error {
	v, err := strconv.ParseFloat(text, 64)
	if err != nil || !(v >= 0 && v <= 1) {
		return fmt.Errorf("want a number from 0 to 1")
	}
	if d.from != "" && d.from != name {
		return fmt.Errorf("--density and --sparsity exclude each other")
	}
	if d.from = name; name == "sparsity" {
		v = 1 - v
	}
	d.value = v
	return nil
}

// dtypes are the element types by name.
var dtypes = []string{"bf16", "fp16", "fp32"}

// dtypeFlag is one of dtypes.
type dtypeFlag string

func (d *dtypeFlag) String() string { return string(*d) }

func (d *dtypeFlag) Set(text string) error {
	for _, name := range dtypes {
		if text == name {
			*d = dtypeFlag(text)
			return nil
		}
	}
	return fmt.Errorf("want one of %s", strings.Join(dtypes, ", "))
}
