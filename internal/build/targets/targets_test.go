// SPDX-License-Identifier: Apache-2.0

package targets

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/sparsek/sparsek/internal/cli/exitcode"
	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

func TestEnd(t *testing.T) {
	for _, c := range []struct {
		err  error
		code int
		says string
	}{
		{nil, 0, ""},
		{errors.New("x is missing"), 1, "Error: x is missing\n"},
		{fmt.Errorf("nvcc: %w", context.Canceled), exitcode.Interrupted, "interrupted\n"},
		{fmt.Errorf("doctor: %w", coder{errors.New("no GPU jobs"), noGPUJob}), noGPUJob, "doctor: no GPU jobs\n"},
		{&process.Error{Program: programName, Code: 21, Err: errors.New("exit status 21")}, 21, "Error: sparsek: exit status 21\n"},
		{&process.Error{Program: "go", Code: 2, Err: errors.New("exit status 2")}, 1, "Error: go: exit status 2\n"},
	} {
		var said bytes.Buffer
		if code := End(c.err, &said); code != c.code || said.String() != c.says {
			t.Errorf("%v: code %d and %q, want %d and %q", c.err, code, said.String(), c.code, c.says)
		}
	}
}

func TestParseWants(t *testing.T) {
	got, err := parseWants("nvidia-nvvm=13.0.88,cutlass=" + strings.Repeat("a", 40))
	want := lock.Wants{"nvidia-nvvm": "13.0.88", "cutlass": strings.Repeat("a", 40)}
	if diff := cmp.Diff(want, got); err != nil || diff != "" {
		t.Errorf("%v %s", err, diff)
	}
	if got, err := parseWants(""); err != nil || len(got) > 0 {
		t.Errorf("got %v, %v", got, err)
	}
	for _, bad := range []string{"nvidia-nvvm", "=1", "a=", "a=1,"} {
		if _, err := parseWants(bad); err == nil || !strings.Contains(err.Error(), "NAME=VERSION") {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func TestReplaceLock(t *testing.T) {
	from, err := lock.Load(filepath.Join("../../..", lock.FileName))
	if err != nil {
		t.Fatal(err)
	}
	to := *from
	to.CUTLASS.Commit = strings.Repeat("a", 40)
	path := filepath.Join(t.TempDir(), lock.FileName)
	for _, c := range []struct {
		to      *lock.Lock
		dryRun  bool
		written bool
		says    string
	}{
		{from, false, false, "up to date"},
		{&to, true, false, "without -dryrun"},
		{&to, false, true, "next: go tool mage verify"},
	} {
		var out bytes.Buffer
		if err := (Checkout{Out: &out}).replaceLock(path, from, c.to, c.dryRun); err != nil {
			t.Fatal(err)
		}
		_, err := os.Stat(path)
		if written := err == nil; written != c.written || !strings.Contains(out.String(), c.says) {
			t.Errorf("written: %t, want %t; said %q, want %q", written, c.written, out.String(), c.says)
		}
	}
}
