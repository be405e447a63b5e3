// SPDX-License-Identifier: Apache-2.0

package build

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/build/jobs"
	"github.com/sparsek/sparsek/internal/build/sass"
	"github.com/sparsek/sparsek/internal/build/stamp"
	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// maxRounds is how often sources may change under a build before it gives up.
const maxRounds = 3

// compileAll compiles the units that are not up to date. Those whose sources
// changed meanwhile are compiled again.
func (b *builder) compileAll(ctx context.Context, units []unit) error {
	for range maxRounds {
		stale := b.stale(units)
		if len(stale) == 0 {
			return nil
		}
		if err := b.compileRound(ctx, stale); err != nil {
			return err
		}
	}
	if stale := b.stale(units); len(stale) > 0 {
		return fmt.Errorf("%s: its sources changed each time while it was compiled: build again when they rest",
			stale[0].source)
	}
	return nil
}

// stale returns the units that are not up to date.
func (b *builder) stale(units []unit) []unit {
	return slices.DeleteFunc(slices.Clone(units), func(u unit) bool {
		s, ok := stamp.Load(b.path(stampPath(u.object())))
		return ok && s.Fresh(b.hasher, b.root, b.unitKey(u))
	})
}

// compileRound compiles units side by side. Its progress goes by how long each
// took when it was last compiled.
func (b *builder) compileRound(ctx context.Context, units []unit) error {
	bar := b.progress.Bar("compile", int64(len(units)), term.Count)
	var work []jobs.Job
	var total int64
	for _, u := range units {
		before, _ := stamp.Load(b.path(stampPath(u.object())))
		weight := u.weight(before.Milliseconds)
		total += weight
		work = append(work, jobs.Job{Memory: u.memory(), Run: func(ctx context.Context) error {
			cached, err := b.compile(ctx, u, weight)
			switch {
			case err != nil:
			case cached:
				bar.AddFree(weight)
			default:
				bar.AddWeighed(weight)
			}
			return err
		}})
	}
	bar.Weigh(total)
	err := jobs.Run(ctx, b.limits, work)
	bar.End(err)
	return err
}

// unitKey identifies the command that compiles u.
func (b *builder) unitKey(u unit) string {
	args := b.compileArgs(u, "{object}", "{depfile}", b.info.defines(u.source))
	return stamp.Key(append(b.logical(args), b.identity)...)
}

// compile makes the object of u and then its stamp. expected is how many
// milliseconds it is expected to take; cached says that a compiler cache brought
// the object.
func (b *builder) compile(ctx context.Context, u unit, expected int64) (cached bool, err error) {
	object := u.object()
	if err := stamp.Remove(b.path(stampPath(object))); err != nil {
		return false, fmt.Errorf("compiling %s: %w", u.source, err)
	}
	temp := filepath.Join(b.temp, u.source)
	if err := os.MkdirAll(b.path(temp), 0o777); err != nil {
		return false, fmt.Errorf("compiling %s: %w", u.source, err)
	}
	began, err := stamp.Now(b.path(temp))
	if err != nil {
		return false, fmt.Errorf("compiling %s: %w", u.source, err)
	}
	// nvcc names its intermediate files after the source in the object's
	// folder, so each unit has one.
	made, depfile := filepath.Join(temp, path.Base(object)), filepath.Join(temp, "depfile")
	args, env := b.compileArgs(u, made, depfile, b.info.defines(u.source)), b.env
	if u.device {
		args, env = b.launcher.command(args), b.launcher.environ(b.env, b.identity)
	}
	var output bytes.Buffer
	started := time.Now()
	err = process.Command{
		Args: args, Dir: b.root, Env: env, Stdout: &output, Stderr: &output,
	}.Run(ctx)
	log, took := output.String(), time.Since(started).Milliseconds()
	if err != nil {
		return false, b.compileError(u, err, log)
	}
	if u.device {
		_, notes, err := sass.ParseUsage(log)
		if err != nil {
			return false, fmt.Errorf("compiling %s: %w", u.source, err)
		}
		if len(notes) > 0 {
			b.progress.Printf("%s:\n%s", u.source, strings.Join(notes, "\n"))
		}
	} else if log != "" {
		b.progress.Printf("%s:\n%s", u.source, log)
	}
	inputs, err := b.readDepfile(depfile)
	if err != nil {
		return false, fmt.Errorf("compiling %s: %w", u.source, err)
	}
	if err := b.publish(made, object); err != nil {
		return false, fmt.Errorf("compiling %s: %w", u.source, err)
	}
	if cached = u.device && b.launcher.program != "" && took < compilerCacheAnswers; cached {
		took = expected
	}
	return cached, b.finish(stamp.Stamp{Key: b.unitKey(u), Log: log, Milliseconds: took}, object, began, inputs)
}

// compilerCacheAnswers is within how many milliseconds a compiler cache brings
// an object back; nvcc takes longer.
const compilerCacheAnswers = 1500

// readDepfile returns what a compiler read, relative to the root where it
// lies inside. The toolchain's own files are left out: its digest stands for
// them.
func (b *builder) readDepfile(name string) ([]string, error) {
	text, err := os.ReadFile(b.path(name))
	if err != nil {
		return nil, err
	}
	files, err := stamp.ParseDepfile(string(text))
	if err != nil {
		return nil, err
	}
	var inputs []string
	for _, file := range files {
		if inside(file, b.cuda) || inside(file, b.cutlass) {
			continue
		}
		if inside(file, b.root) {
			file = strings.TrimPrefix(file, b.root+"/")
		}
		inputs = append(inputs, file)
	}
	return inputs, nil
}

func inside(file, dir string) bool { return strings.HasPrefix(file, filepath.Clean(dir)+"/") }

// finish completes s, the stamp of an output, and writes it, last of all. An
// output whose inputs changed meanwhile gets none and so is made again.
func (b *builder) finish(s stamp.Stamp, output string, began time.Time, inputs []string) error {
	record, err := s.Record(b.hasher, b.root, began, inputs, []string{output})
	if errors.Is(err, stamp.ErrChanged) {
		b.progress.Printf("%s is made again: %v", output, err)
		return nil
	}
	if err == nil {
		err = record.Write(b.path(stampPath(output)))
	}
	if err != nil {
		return fmt.Errorf("recording %s: %w", output, err)
	}
	return nil
}

// publish gives a finished file its final name.
func (b *builder) publish(made, final string) error {
	if err := os.MkdirAll(b.path(filepath.Dir(final)), 0o777); err != nil {
		return err
	}
	return os.Rename(b.path(made), b.path(final))
}
