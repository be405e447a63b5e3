// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"math"
	"strings"
	"testing"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

func TestFlagValues(t *testing.T) {
	for _, c := range []struct {
		value      flag.Value
		text, want string // want "": refused
	}{
		{&sizeFlag{}, "1x2x3", "1x2x3"}, {&sizeFlag{}, "8192X4096X8192", "8192x4096x8192"},
		{&sizeFlag{}, "1x2", ""}, {&sizeFlag{}, "1x2x3x4", ""}, {&sizeFlag{}, "0x2x3", ""}, {&sizeFlag{}, "-1x2x3", ""},
		{&sizeFlag{}, "1x2x3000000000", ""}, {&sizeFlag{}, "", ""}, {&sizeFlag{}, "axbxc", ""},
		{&blockFlag{}, "64", "64x64"}, {&blockFlag{}, "16x32", "16x32"}, {&blockFlag{}, "1x2x3", ""}, {&blockFlag{}, "x", ""},
		{new(deviceFlag), "auto", "auto"}, {new(deviceFlag), "cpu", "cpu"}, {new(deviceFlag), "gpu", "gpu"}, {new(deviceFlag), "gpu:3", "gpu:3"},
		{new(deviceFlag), "gpu:", ""}, {new(deviceFlag), "gpu:-1", ""}, {new(deviceFlag), "3", ""}, {new(deviceFlag), "tpu", ""},
		{new(dtypeFlag), "bf16", "bf16"}, {new(dtypeFlag), "fp32", "fp32"}, {new(dtypeFlag), "fp64", ""},
		{newBiasFlag(), "row", "row"}, {newBiasFlag(), "column", "column"}, {newBiasFlag(), "none", ""}, {newBiasFlag(), "", ""},
	} {
		err := c.value.Set(c.text)
		if (err == nil) != (c.want != "") || err == nil && c.value.String() != c.want {
			t.Errorf("%T %q: %v, %v, want %q", c.value, c.text, c.value, err, c.want)
		}
	}
}

func newBiasFlag() flag.Value {
	return &newEpilogueFlags(newFlags("run")).bias
}

func TestDensityFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want float64 // NaN: refused
	}{
		{nil, 0.125}, {[]string{"--density", "0.5"}, 0.5}, {[]string{"--sparsity=0.875"}, 0.125}, {[]string{"-density=0"}, 0},
		{[]string{"--density", "1.5"}, math.NaN()}, {[]string{"--sparsity", "-0.1"}, math.NaN()}, {[]string{"--density", "NaN"}, math.NaN()},
		{[]string{"--density", "0.5", "--sparsity", "0.5"}, math.NaN()}, {[]string{"--density"}, math.NaN()},
	} {
		flags := newFlags("run")
		d := densityFlags(flags, 0.125)
		err := flags.Parse(c.args)
		if (err != nil) != math.IsNaN(c.want) || err == nil && d.value != c.want {
			t.Errorf("%v: %v, %v", c.args, d.value, err)
		}
	}
}

// invoke runs the program.
func invoke(args ...string) (code int, stdout, stderr string) {
	var out, errs bytes.Buffer
	code = Main(context.Background(), args, &out, &errs)
	return code, out.String(), errs.String()
}

func TestUsageErrors(t *testing.T) {
	for _, c := range []struct {
		args string
		want string
	}{
		{"", "no command given"},
		{"fly", `no command "fly"`},
		{"run", "either --matrix or --pattern"},
		{"run --matrix a.mtx --pattern random", "either --matrix or --pattern"},
		{"run --pattern random", "needs --size"},
		{"run --pattern spiral --size 1x1x1", "take one of random, bernoulli"},
		{"run --pattern causal --size 1x1x1 --density 0.5", "has its own density: leave out --density"},
		{"run --pattern random --size 1x1x1 --n 3", "--n is for --matrix"},
		{"run --matrix a.mtx --n 0", "--n 0"},
		{"run --matrix a.mtx --n 3 --b b.npy", "--n is for --matrix with neither"},
		{"run --matrix a.mtx --sparsity 0.5", "--sparsity is for --pattern"},
		{"run --matrix a.mtx --repeats -1", "--repeats -1"},
		{"run --matrix a.mtx --dtype fp8", "want one of bf16, fp16, fp32"},
		{"run --matrix a.mtx --out-dtype fp8", "want one of bf16, fp16, fp32"},
		{"run --matrix a.mtx --bias diagonal", "want one of row, column"},
		{"run --matrix a.mtx --activation tanh", "want one of relu, gelu, silu"},
		{"run --matrix a.mtx --bias-file b.npy", "--bias-file needs --bias"},
		{"verify --activation swish", "want one of relu, gelu, silu"},
		{"verify --bias-file b.npy", "flag provided but not defined"},
		{"run --matrix a.mtx extra", `"extra" is no flag`},
		{"run --wings", "flag provided but not defined"},
		{"run --matrix a.mtx --alpha nan", "--alpha NaN: must be finite"},
		{"run --matrix a.mtx --alpha -inf", "--alpha -Inf: must be finite"},
		{"run --matrix a.mtx --alpha 1e39", "--alpha 1e+39: must be finite"},
		{"verify --size 4096", "want MxNxK"},
		{"verify --threads -1", "--threads -1"},
		{"bench spiral", "take some of random-64"},
		{"bench --repeats -1", "--repeats -1"},
	} {
		code, stdout, stderr := invoke(strings.Fields(c.args)...)
		if code != exitUsage || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%s: code %d, %q, %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

func TestHelp(t *testing.T) {
	for _, command := range commands() {
		code, stdout, stderr := invoke(command.name, "--help")
		if code != exitOK || stderr != "" || !strings.HasPrefix(stdout, "usage: sparsek "+command.name) {
			t.Errorf("%s: %d, %q, %q", command.name, code, stdout, stderr)
		}
		_, all, _ := invoke("help")
		if !strings.Contains(all, command.name) {
			t.Errorf("%s is not in the list", command.name)
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 121 {
				t.Errorf("%s: a line of %d columns: %s", command.name, len(line), line)
			}
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0}, {flag.ErrHelp, 0},
		{failf(exitBadFile, "x"), 10},
		{fmt.Errorf("x: %w", failf(exitBadFile, "x")), 10},
		{fmt.Errorf("x: %w", &sparsek.Error{Status: sparsek.ErrColIdxRange}), 12},
		{&sparsek.Error{Status: sparsek.ErrNoDevice}, 21},
		{&sparsek.Error{Status: sparsek.ErrUnsupportedBlock}, 22},
		{&sparsek.Error{Status: sparsek.ErrOutOfMemory}, 23},
		{&sparsek.Error{Status: sparsek.ErrCUDA}, 24},
		{&sparsek.Error{Status: sparsek.ErrInternal}, 29},
		{&sparsek.Error{Status: sparsek.ErrCheckFailed}, 1},
		{errors.New("x"), 29},
		{errors.Join(context.Canceled, failf(exitBadFile, "x")), 130},
	} {
		if got := exitCode(c.err); got != c.want {
			t.Errorf("%v: %d, want %d", c.err, got, c.want)
		}
	}
}

func TestMemory(t *testing.T) {
	if err := checkMemory(100, need{"A", 60}, need{"B", 40}); err != nil {
		t.Error(err)
	}
	err := checkMemory(100, need{"A", 60}, need{"B", 41})
	if exitCode(err) != exitNoMemory || !strings.Contains(err.Error(), "60 B for A, 41 B for B") {
		t.Error(err)
	}
	if err := checkMemory(math.MaxInt64, need{"A", 1e40}); exitCode(err) != exitNoMemory {
		t.Error(err)
	}
	if availableMemory() < 1<<20 {
		t.Errorf("%d bytes available", availableMemory())
	}
}
