// SPDX-License-Identifier: Apache-2.0

package check

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestFuzzTargets(t *testing.T) {
	const list = "FuzzA\nFuzzB\nok  \tm/one\t0.01s\n?   \tm/none\t[no test files]\nok  \tm/two\t0.01s\nFuzzC\nok  \tm/three\t(cached)\n"
	want := []fuzzTarget{{"m/one", "FuzzA"}, {"m/one", "FuzzB"}, {"m/three", "FuzzC"}}
	if diff := cmp.Diff(want, fuzzTargets(list), cmp.AllowUnexported(fuzzTarget{})); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestLibraryUsers(t *testing.T) {
	const deps = "m/lib fmt\nm/cli fmt " + wrapper + "\nm/lib.test fmt testing\nm/cli.test fmt " + wrapper + " [m/cli.test]\n" +
		wrapper + ".test fmt " + wrapper + " [" + wrapper + ".test]\n"
	if got := libraryUsers(deps); !slices.Equal(got, []string{"m/cli", wrapper}) {
		t.Errorf("got %q", got)
	}
}

func TestLongSteps(t *testing.T) {
	o := LongOptions{Library: "/lib", Sanitized: "/watched", FuzzTime: time.Minute}
	steps := longSteps(o, []string{"m/cli"}, []fuzzTarget{{"m/cli", "FuzzC"}, {"m/lock", "FuzzL"}})
	has := func(s step, env string) bool { return slices.Contains(s.env, env) }
	for i, want := range []struct {
		args string // what the command ends in
		env  string
	}{
		{"-race ./...", LongVariable + "=1"},
		{" m/cli", "GOEXPERIMENT=cgocheck2"},
		{"-asan m/cli", "SPARSEK_LIBRARY=/watched"},
		{"-fuzz=^FuzzC$ -fuzztime=1m0s -asan m/cli", "SPARSEK_LIBRARY=/watched"},
		{"-fuzz=^FuzzL$ -fuzztime=1m0s m/lock", "SPARSEK_LIBRARY=/lib"},
	} {
		if i >= len(steps) {
			t.Fatalf("only %d steps", len(steps))
		}
		args := strings.Join(steps[i].args, " ")
		if !strings.HasPrefix(args, "go test ") || !strings.HasSuffix(args, want.args) || !has(steps[i], want.env) {
			t.Errorf("%s: %s with %q", steps[i].what, args, steps[i].env)
		}
		// What the sanitizers watch is loaded by a program that has them, and by no other.
		if strings.Contains(args, "-asan") != has(steps[i], "SPARSEK_LIBRARY=/watched") {
			t.Errorf("%s: %s with %q", steps[i].what, args, steps[i].env)
		}
	}
	if len(steps) != 5 {
		t.Errorf("%d steps", len(steps))
	}
}
