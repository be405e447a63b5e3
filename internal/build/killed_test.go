// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/build/jobs"
	"github.com/sparsek/sparsek/internal/toolchain"
	pins "github.com/sparsek/sparsek/internal/toolchain/lock"
)

const (
	// buildVariable makes the test program one that builds, to be killed.
	buildVariable = "SPARSEK_TEST_BUILD"
	// longVariable asks for the long forms of tests.
	longVariable = "SPARSEK_LONG"
)

// TestMain lets the test program build what buildVariable says, as JSON.
func TestMain(m *testing.M) {
	text, ok := os.LookupEnv(buildVariable)
	if !ok {
		os.Exit(m.Run())
	}
	var opts Options
	err := json.Unmarshal([]byte(text), &opts)
	if err == nil {
		err = MakeLibrary(context.Background(), opts)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// startBuild starts a process that builds.
func startBuild(t *testing.T, opts Options) (*exec.Cmd, *bytes.Buffer) {
	t.Helper()
	text, err := json.Marshal(opts)
	if err != nil {
		t.Fatal(err)
	}
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var output bytes.Buffer
	cmd := exec.Command(program)
	cmd.Env = append(os.Environ(), buildVariable+"="+string(text))
	cmd.Stderr = &output
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	return cmd, &output
}

// killAt builds for a time and then kills the build, which gets no chance to
// tell its compilers. It says whether the build had finished before.
func killAt(t *testing.T, opts Options, after time.Duration) (finished bool) {
	t.Helper()
	cmd, output := startBuild(t, opts)
	timer := time.AfterFunc(after, func() { _ = cmd.Process.Kill() })
	err := cmd.Wait()
	timer.Stop()
	var exit *exec.ExitError
	if err != nil && (!errors.As(err, &exit) || exit.ExitCode() != -1) {
		t.Fatalf("a build after one that was killed: %v\n%s", err, output)
	}
	return err == nil
}

// made is what a build left that looks finished: each file below build/ and
// its content, without the stamps, whose logs contain times.
func made(t *testing.T, root string) map[string]string {
	t.Helper()
	files := map[string]string{}
	err := filepath.WalkDir(filepath.Join(root, buildDir), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() || filepath.Ext(path) == ".stamp" {
			return err
		}
		name, err := filepath.Rel(root, path)
		if err != nil || name == lockFile {
			return err
		}
		text, err := os.ReadFile(path)
		files[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// differing names what is not the same in both.
func differing(a, b map[string]string) []string {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(a)) {
		if b[name] != a[name] {
			names = append(names, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(b)) {
		if _, ok := a[name]; !ok {
			names = append(names, name)
		}
	}
	return names
}

// Builds are killed at random points and go on, the sources change now and
// then, and after each the library is a whole one or none. In the end
// everything is as if no build had been killed.
func TestKilledAtRandomPoints(t *testing.T) {
	rounds := 8
	if os.Getenv(longVariable) != "" {
		rounds = 50
	}
	tr := newTree(t)
	t.Setenv("COMPILER_DELAY", "0.02")
	texts := []string{"#include \"sparsek.h\"\n", "#include \"sparsek.h\"\nanother\n"}
	var want []map[string]string
	var takes time.Duration
	for _, text := range texts {
		tr.write(planHeader, text)
		if err := Clean(t.Context(), tr.root, nil); err != nil {
			t.Fatal(err)
		}
		began := time.Now()
		if !killAt(t, tr.opts, time.Minute) {
			t.Fatal("killed within a minute")
		}
		takes = time.Since(began)
		want = append(want, made(t, tr.root))
	}
	if differing(want[0], want[1]) == nil {
		t.Fatal("the sources make no difference: the test shows nothing")
	}
	killed := 0
	for round := 0; killed < rounds; round++ {
		now := round % 3 % 2
		tr.write(planHeader, texts[now])
		after := rand.N(takes)
		if !killAt(t, tr.opts, after) {
			killed++
		}
		if text, err := os.ReadFile(filepath.Join(tr.root, Library)); err == nil &&
			string(text) != want[0][Library] && string(text) != want[1][Library] {
			t.Fatalf("killed after %v: a library that is of no sources", after)
		}
		if round%5 == 4 {
			if !killAt(t, tr.opts, time.Minute) {
				t.Fatal("killed within a minute")
			}
			if names := differing(want[now], made(t, tr.root)); names != nil {
				t.Fatalf("after %d rounds, resumed: %s not as in a build that was not killed", round+1, strings.Join(names, ", "))
			}
			if err := Clean(t.Context(), tr.root, nil); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Logf("%d builds were killed; one takes %v", killed, takes)
}

// The same with the compilers themselves, on this checkout's sources.
func TestRealCompilersKilledAtRandomPoints(t *testing.T) {
	if os.Getenv(longVariable) == "" {
		t.Skipf("skipped: takes minutes; %s=1 runs it", longVariable)
	}
	here, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	tools, err := toolchain.Prepare(t.Context(), toolchain.Options{LockPath: filepath.Join(here, pins.FileName), Offline: true})
	if err != nil {
		t.Skipf("skipped: %v", err)
	}
	t.Setenv(LauncherVariable, "off")
	opts := Options{Toolchain: tools, Limits: jobs.Machine(os.DirFS("/"))}
	var want map[string]string
	var takes time.Duration
	// One copy for both, since the checkout may change meanwhile.
	sources := t.TempDir()
	for _, name := range []string{"cutlass_ext", "collective"} {
		if err := os.CopyFS(filepath.Join(sources, name), os.DirFS(filepath.Join(here, name))); err != nil {
			t.Fatal(err)
		}
	}
	for round := range 2 {
		root, err := filepath.EvalSymlinks(t.TempDir())
		if err != nil {
			t.Fatal(err)
		}
		if err := os.CopyFS(root, os.DirFS(sources)); err != nil {
			t.Fatal(err)
		}
		opts.Root = root
		if round == 0 {
			began := time.Now()
			if !killAt(t, opts, time.Hour) {
				t.Fatal("killed within an hour")
			}
			takes, want = time.Since(began), made(t, root)
			continue
		}
		killed := 0
		for range 4 {
			if !killAt(t, opts, rand.N(takes/2)) {
				killed++
			}
		}
		if !killAt(t, opts, time.Hour) {
			t.Fatal("killed within an hour")
		}
		t.Logf("%d builds were killed", killed)
		if names := differing(want, made(t, root)); names != nil {
			t.Errorf("resumed: %s not as in a build that was not killed", strings.Join(names, ", "))
		}
	}
}
