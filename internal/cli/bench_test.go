// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/blas"
	"github.com/sparsek/sparsek/internal/pattern"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

func TestBenchCases(t *testing.T) {
	names := map[string]bool{}
	for _, b := range benchCases {
		if names[b.name] {
			t.Errorf("%s comes twice", b.name)
		}
		names[b.name] = true
		if uses, err := pattern.UsesDensity(b.pattern); err != nil || uses != (b.density > 0) {
			t.Errorf("%s: pattern %s with density %v, %v", b.name, b.pattern, b.density, err)
		}
		var d dtypeFlag
		if err := d.Set(string(b.dtype)); err != nil {
			t.Errorf("%s: %v", b.name, err)
		}
	}
	for _, backend := range []sparsek.Backend{sparsek.CPU, sparsek.CUDA} {
		if len(selectCases(nil, backend)) == 0 {
			t.Errorf("no cases for %v", backend)
		}
	}
	if got := selectCases(benchCases[:1], sparsek.CPU); len(got) != 1 {
		t.Errorf("%d cases where one is named", len(got))
	}
}

func TestBenchOne(t *testing.T) {
	c, err := needLibrary(t).NewContext(sparsek.Options{Backend: sparsek.CPU, Threads: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var result benchResult
	for _, dtype := range dtypes {
		r, note, err := benchOne(context.Background(), c, benchFlags{repeats: 3}, benchCase{
			name: "small-" + dtype, size: cube(128), block: 32, pattern: "random", density: 0.5, dtype: dtypeFlag(dtype),
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.DType != dtype || r.Runs != 3 || r.Effective <= 0 || r.DenseEquivalent != 2*r.Effective {
			t.Errorf("%+v", r.report)
		}
		_, err = blas.Open(2)
		installed := err == nil
		if !installed && !errors.Is(err, blas.ErrNotInstalled) {
			t.Fatal(err)
		}
		compares := dtype == "fp32" && installed
		if (r.OpenBLAS != nil) != compares || (note != "") != (dtype == "fp32" && !installed) {
			t.Errorf("%s: OpenBLAS installed %v, compared %v, note %q", dtype, installed, r.OpenBLAS, note)
		}
		result.Cases = append(result.Cases, r)
	}
	var out bytes.Buffer
	if err := printBench(&environment{stdout: &out}, c.Info(), result, []string{"a note"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"effective", "dense-equivalent", "small-bf16", "random 50.0 %", "a note"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing:\n%s", want, out.String())
		}
	}
}
