// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sync/errgroup"
)

// programs are compiled once, by the first test that needs them.
type programs struct {
	once                   sync.Once
	dir                    string
	check, choice, program string
	err                    error
}

var tuning programs

// buildID is the build ID that the linker gives check.
const buildID = "00112233445566778899"

func (p *programs) remove() {
	if p.dir != "" {
		os.RemoveAll(p.dir)
	}
}

// compile makes all programs of the same objects, in dir.
func (p *programs) compile(options ...string) error {
	sources, err := filepath.Glob("../src/tune/*.cpp")
	if err != nil {
		return err
	}
	for _, name := range []string{"error", "fork", "guard", "build_info"} {
		sources = append(sources, "../src/abi/"+name+".cpp")
	}
	options = slices.Concat([]string{"-std=c++17", "-Wall", "-Wextra", "-Werror", "-I", "../include", "-I", "../src",
		`-DSPARSEK_VERSION="1.2.3"`, `-DSPARSEK_COMMIT="c0ffee"`, `-DSPARSEK_CUTLASS_VERSION=""`, `-DSPARSEK_CUDA_VERSION=""`}, options)
	var compilers errgroup.Group
	compilers.SetLimit(2)
	objects := make([]string, len(sources))
	for i, source := range sources {
		objects[i] = filepath.Join(p.dir, strconv.Itoa(i)+".o")
		compilers.Go(func() error {
			out, err := exec.Command("g++", append(slices.Clone(options), "-c", source, "-o", objects[i])...).CombinedOutput()
			if err != nil {
				return fmt.Errorf("%s: %w\n%s", source, err, out)
			}
			return nil
		})
	}
	if err := compilers.Wait(); err != nil {
		return err
	}
	link := func(program string, sources ...string) error {
		args := slices.Concat(options, []string{"-Wl,--build-id=0x" + buildID, "-o", program}, sources, objects, []string{"-lpthread"})
		if out, err := exec.Command("g++", args...).CombinedOutput(); err != nil {
			return fmt.Errorf("%w\n%s", err, out)
		}
		return nil
	}
	p.check, p.choice, p.program = filepath.Join(p.dir, "check"), filepath.Join(p.dir, "choice"), filepath.Join(p.dir, "program")
	return errors.Join(link(p.check, "testdata/tuning_check.cpp"), link(p.choice, "testdata/choice_check.cpp"),
		link(p.program, "testdata/tuning_program.cpp", "testdata/tuning_trap.cpp"))
}

// need compiles the programs unless that is done.
func (p *programs) need(t *testing.T) *programs {
	t.Helper()
	p.once.Do(func() {
		if p.dir, p.err = os.MkdirTemp("", "sparsek-tuning-"); p.err == nil {
			p.err = p.compile("-O0")
		}
	})
	if p.err != nil {
		t.Fatal(p.err)
	}
	return p
}

// run runs the program to its end and gives the lines that it said. It may
// end in any way.
func (p *programs) run(args ...string) ([]string, error) {
	var output bytes.Buffer
	cmd := exec.Command(p.program, args...)
	cmd.Stdout, cmd.Stderr = &output, &output
	err := cmd.Run()
	if err != nil {
		err = fmt.Errorf("%q: %w: %s", args, err, output.String())
	}
	return strings.Split(strings.TrimSuffix(output.String(), "\n"), "\n"), err
}

// state is what a tuning file holds.
type state struct {
	state, fault string
	numbers      []int // of the records, the oldest first
}

func (p *programs) list(path string) (state, error) {
	lines, err := p.run("list", path)
	if err != nil {
		return state{}, err
	}
	s := state{state: lines[0], fault: lines[1]}
	for _, line := range lines[2:] {
		n, err := strconv.Atoi(line)
		if err != nil {
			return s, err
		}
		s.numbers = append(s.numbers, n)
	}
	return s, nil
}

// expect fails unless the file is whole and holds the records [0, count).
func (p *programs) expect(t *testing.T, when, path string, count int) {
	t.Helper()
	s, err := p.list(path)
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	if s.state != "whole" || !slices.Equal(s.numbers, upTo(count)) {
		t.Fatalf("%s: the file is %+v, want %d records", when, s, count)
	}
}

func upTo(count int) []int {
	var list []int
	for i := range count {
		list = append(list, i)
	}
	return list
}

// remember keeps the records [first, first+count), or fails.
func (p *programs) remember(t *testing.T, path string, first, count int) {
	t.Helper()
	lines, err := p.run("remember", path, strconv.Itoa(first), strconv.Itoa(count))
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines {
		if strings.HasPrefix(line, "warning") {
			t.Fatal(line)
		}
	}
}

// beside lists what is in the file's folder but the file itself.
func beside(t *testing.T, path string) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Dir(path))
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		if e.Name() != filepath.Base(path) {
			names = append(names, e.Name())
		}
	}
	return names
}
