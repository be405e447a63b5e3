// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"encoding"
	"errors"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

func TestFlagValues(t *testing.T) {
	for _, c := range []struct {
		value encoding.TextUnmarshaler
		text  string
		want  any // nil: refused
	}{
		{&sizeFlag{}, "1x2x3", sizeFlag{1, 2, 3}}, {&sizeFlag{}, "8192X4096X8192", sizeFlag{8192, 4096, 8192}},
		{&sizeFlag{}, "1x2", nil}, {&sizeFlag{}, "1x2x3x4", nil}, {&sizeFlag{}, "0x2x3", nil}, {&sizeFlag{}, "-1x2x3", nil},
		{&sizeFlag{}, "1x2x3000000000", nil}, {&sizeFlag{}, "", nil}, {&sizeFlag{}, "axbxc", nil},
		{&blockFlag{}, "64", blockFlag{64, 64}}, {&blockFlag{}, "16x32", blockFlag{16, 32}}, {&blockFlag{}, "1x2x3", nil}, {&blockFlag{}, "x", nil},
		{new(deviceFlag), "auto", deviceFlag{sparsek.Auto, 0}}, {new(deviceFlag), "cpu", deviceFlag{sparsek.CPU, 0}},
		{new(deviceFlag), "gpu", deviceFlag{sparsek.CUDA, 0}}, {new(deviceFlag), "gpu:3", deviceFlag{sparsek.CUDA, 3}},
		{new(deviceFlag), "gpu:", nil}, {new(deviceFlag), "gpu:-1", nil}, {new(deviceFlag), "3", nil}, {new(deviceFlag), "tpu", nil},
		{new(dtypeFlag), "bf16", dtypeFlag("bf16")}, {new(dtypeFlag), "fp32", dtypeFlag("fp32")}, {new(dtypeFlag), "fp64", dtypeFlag("fp64")}, {new(dtypeFlag), "fp8", nil},
		{new(dtypeFlag), "e4m3", nil}, {new(headsDTypeFlag), "e4m3", headsDTypeFlag("e4m3")}, {new(headsDTypeFlag), "bf16", headsDTypeFlag("bf16")},
		{new(headsDTypeFlag), "fp8", nil},
		{new(biasFlag), "row", biasFlag{sparsek.RowBias}}, {new(biasFlag), "column", biasFlag{sparsek.ColumnBias}},
		{new(biasFlag), "none", nil}, {new(biasFlag), "", nil},
		{new(activationFlag), "gelu", activationFlag{sparsek.GELU}}, {new(activationFlag), "tanh", nil},
		{new(count), "1", count(1)}, {new(count), "0", nil}, {new(count), "-1", nil}, {new(count), "1.5", nil}, {new(count), "3000000000", nil},
		{new(share), "0", share(0)}, {new(share), "1", share(1)}, {new(share), "1.5", nil}, {new(share), "-0.1", nil}, {new(share), "NaN", nil},
		{new(factor), "-2", factor(-2)}, {new(factor), "nan", nil}, {new(factor), "-inf", nil}, {new(factor), "1e39", nil},
	} {
		err := c.value.UnmarshalText([]byte(c.text))
		got := reflect.ValueOf(c.value).Elem().Interface()
		if (err == nil) != (c.want != nil) || err == nil && got != c.want {
			t.Errorf("%T %q: %v, %v, want %v", c.value, c.text, got, err, c.want)
		}
	}
}

// command parses arguments and returns what the parser made of them.
func command(t *testing.T, args ...string) (*program, *environment, error) {
	t.Helper()
	e := &environment{stdout: io.Discard, stderr: io.Discard, args: args}
	parser, err := newParser(e)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := parser.Parse(inOrder(parser.Model.Node, args))
	if err == nil {
		e.given = givenFlags(parsed)
	}
	return parser.Model.Target.Addr().Interface().(*program), e, err
}

func TestDensityFlags(t *testing.T) {
	for _, c := range []struct {
		args []string
		want float64 // NaN: refused
	}{
		{nil, 0.125}, {[]string{"--density", "0.5"}, 0.5}, {[]string{"--sparsity=0.875"}, 0.125}, {[]string{"--density=0"}, 0},
		{[]string{"--density", "1.5"}, math.NaN()}, {[]string{"--sparsity", "-0.1"}, math.NaN()}, {[]string{"--density", "NaN"}, math.NaN()},
		{[]string{"--density", "0.5", "--sparsity", "0.5"}, math.NaN()}, {[]string{"--density"}, math.NaN()},
	} {
		p, _, err := command(t, append([]string{"run"}, c.args...)...)
		if (err != nil) != math.IsNaN(c.want) || err == nil && p.Run.value(defaultDensity) != c.want {
			t.Errorf("%v: %v, %v", c.args, p.Run.value(defaultDensity), err)
		}
	}
}

// Flags and other arguments may be mixed; a value may begin with a hyphen, but not with two.
func TestOrderOfArguments(t *testing.T) {
	p, e, err := command(t, "bench", "a", "--rounds", "3", "b", "--json", "c", "--", "-d")
	if err != nil || !slices.Equal(p.Bench.Cases, []string{"a", "b", "c", "-d"}) || p.Bench.Rounds != 3 || !p.Bench.JSON ||
		!maps.Equal(e.given, map[string]bool{"rounds": true, "json": true}) {
		t.Errorf("%+v, %v, %v", p.Bench, e.given, err)
	}
	if p, _, err := command(t, "run", "--alpha", "-2", "--out", "-"); err != nil || p.Run.Alpha != -2 || p.Run.Out != "-" {
		t.Errorf("%+v, %v", p.Run, err)
	}
	if p, _, err := command(t, "cache", "merge", "a", "--out", "c", "b"); err != nil || p.Cache.Merge.Out != "c" || len(p.Cache.Merge.Files) != 2 {
		t.Errorf("%+v, %v", p.Cache.Merge, err)
	}
	if _, _, err := command(t, "run", "--matrix", "--check"); err == nil {
		t.Error("a flag was taken for a file")
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
		{"", "give a command"},
		{"fly", `unexpected argument fly`},
		{"run", "either --matrix or --pattern"},
		{"run --matrix a.mtx --pattern random", "either --matrix or --pattern"},
		{"run --pattern random", "needs --size"},
		{"run --pattern spiral --size 1x1x1", "take one of random, bernoulli"},
		{"run --pattern causal --size 1x1x1 --density 0.5", "has its own density: leave out --density"},
		{"run --pattern random --size 1x1x1 --n 3", "--n is for --matrix"},
		{"run --matrix a.mtx --n 0", "--n: 0: want a number from 1"},
		{"run --matrix a.mtx --n 3 --b b.npy", "--n is for --matrix with neither"},
		{"run --matrix a.mtx --sparsity 0.5", "--sparsity is for --pattern"},
		{"run --matrix a.mtx --repeats -1", "--repeats: -1: want a number from 1"},
		{"run --matrix a.mtx --dtype fp8", "want one of bf16, fp16, fp32"},
		{"run --matrix a.mtx --out-dtype fp8", "want one of bf16, fp16, fp32"},
		{"run --matrix a.mtx --bias diagonal", "want one of row, column"},
		{"run --matrix a.mtx --activation tanh", "want one of relu, gelu, silu"},
		{"verify --activation swish", "want one of relu, gelu, silu"},
		{"verify --bias-file b.npy", "unknown flag"},
		{"run --matrix a.mtx extra", "unexpected argument extra"},
		{"run --wings", "unknown flag"},
		{"run --matrix a.mtx --alpha nan", "--alpha: nan: want a number"},
		{"run --matrix a.mtx --alpha -inf", "--alpha: -inf: want a number that is finite"},
		{"run --matrix a.mtx --alpha 1e39", "--alpha: 1e39: want a number that is finite"},
		{"verify --size 4096", "want MxNxK"},
		{"verify --threads -1", "--threads: -1: want a number from 1"},
		{"verify --threads 0", "--threads: 0: want a number from 1"},
		{"bench spiral", "take some of random-64"},
		{"bench --repeats -1", "--repeats: -1: want a number from 1"},
	} {
		code, stdout, stderr := invoke(strings.Fields(c.args)...)
		if code != exitUsage || !strings.Contains(stderr, c.want) || stdout != "" {
			t.Errorf("%s: code %d, %q, %q, want %q", c.args, code, stdout, stderr, c.want)
		}
	}
}

// Each command has help of lines that fit, and each that does work of its own has two examples that can be parsed.
func TestHelp(t *testing.T) {
	parser, err := newParser(&environment{stdout: io.Discard, stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	_, all, _ := invoke("--help")
	for _, node := range allCommands(parser.Model.Node) {
		words := strings.Fields(node.FullPath())
		name := strings.Join(words[1:], " ")
		code, stdout, stderr := invoke(append(slices.Clone(words[1:]), "--help")...)
		if code != exitOK || stderr != "" || !strings.HasPrefix(stdout, "Usage: sparsek "+name) {
			t.Errorf("%s: %d, %q, %q", name, code, stdout, stderr)
		}
		if _, same, _ := invoke(append([]string{"help"}, words[1:]...)...); same != stdout {
			t.Errorf("help %s is not %s --help", name, name)
		}
		if len(words) == 2 && !strings.Contains(all, "\n  "+name+" ") {
			t.Errorf("%s is not in the list", name)
		}
		for line := range strings.Lines(stdout) {
			if len(line) > 101 {
				t.Errorf("%s: a line of %d columns: %s", name, len(line), line)
			}
		}
		_, examples, _ := strings.Cut(stdout, "Examples:\n")
		lines := strings.Split(strings.TrimSpace(examples), "\n")
		if len(words) == 2 && name != "version" && len(lines) != 2 {
			t.Errorf("%s has %d examples, not 2", name, len(lines))
		}
		for _, line := range lines {
			if words := strings.Fields(regexp.MustCompile(`"[^"]*"`).ReplaceAllString(line, "text")); examples != "" {
				if _, _, err := command(t, words[1:]...); err != nil || words[0] != "sparsek" || words[1] != strings.Fields(name)[0] {
					t.Errorf("%s: %v", line, err)
				}
			}
		}
	}
}

// allCommands are those below a node.
func allCommands(node *kong.Node) (list []*kong.Node) {
	for _, child := range node.Children {
		list = append(append(list, child), allCommands(child)...)
	}
	return list
}

// docs/cli.md has every flag and every command of the program, and no others.
func TestDocumentedFlags(t *testing.T) {
	text, err := os.ReadFile("../../docs/cli.md")
	if err != nil {
		t.Fatal(err)
	}
	parser, err := newParser(&environment{stdout: io.Discard, stderr: io.Discard})
	if err != nil {
		t.Fatal(err)
	}
	documented, known := map[string]bool{}, map[string]bool{}
	for _, flag := range regexp.MustCompile("--[a-z][a-z-]*").FindAllString(string(text), -1) {
		documented[flag] = true
	}
	for _, f := range parser.Model.Flags {
		known["--"+f.Name] = true
	}
	for _, node := range allCommands(parser.Model.Node) {
		if name := strings.TrimPrefix(node.FullPath(), "sparsek "); !strings.Contains(string(text), name) {
			t.Errorf("docs/cli.md lacks the command %s", name)
		}
		for _, f := range node.Flags {
			known["--"+f.Name] = true
		}
	}
	for flag := range known {
		if !documented[flag] {
			t.Errorf("docs/cli.md lacks %s", flag)
		}
	}
	for flag := range documented {
		if !known[flag] {
			t.Errorf("docs/cli.md has %s, which the program lacks", flag)
		}
	}
}

func TestExitCodes(t *testing.T) {
	for _, c := range []struct {
		err  error
		want int
	}{
		{nil, 0},
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
