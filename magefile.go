// SPDX-License-Identifier: Apache-2.0

//go:build mage

// Targets of `go tool mage`. Each one calls a package in internal/.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/magefile/mage/mg"

	"github.com/sparsek/sparsek/internal/build"
	"github.com/sparsek/sparsek/internal/build/bundle"
	"github.com/sparsek/sparsek/internal/build/check"
	"github.com/sparsek/sparsek/internal/build/install"
	"github.com/sparsek/sparsek/internal/build/repro"
	"github.com/sparsek/sparsek/internal/machine/doctor"
	"github.com/sparsek/sparsek/internal/machine/doctor/buildenv"
	"github.com/sparsek/sparsek/internal/sys/process"
	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/toolchain"
	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
	"github.com/sparsek/sparsek/internal/toolchain/pyindex"
)

var progress = term.New(os.Stderr)

// Fetch fetches and checks the toolchain that toolchain.lock.json pins. -offline takes it from the cache alone.
func Fetch(ctx context.Context, offline *bool) error {
	_, err := prepare(ctx, offline)
	return err
}

// Kernel builds libsparsek with its CUDA kernels. -tma builds one with the hand-written TMA kernel alone, and verifies it.
func Kernel(ctx context.Context, offline, tma *bool) error {
	if tma != nil && *tma {
		return sandbox(ctx, offline)
	}
	return library(ctx, offline)
}

// Build builds libsparsek and the program.
func Build(ctx context.Context, offline *bool) error {
	if err := library(ctx, offline); err != nil {
		return err
	}
	return build.MakeProgram(ctx, ".", progress)
}

// Verify builds, then multiplies and checks every element, on a Hopper GPU if there is one.
func Verify(ctx context.Context, offline *bool) error { return program(ctx, offline, "verify") }

// Bench builds and measures.
func Bench(ctx context.Context, offline *bool) error { return program(ctx, offline, "bench") }

// Profile builds and measures the roofline suite with Nsight Compute, on a GPU, into build/profile.
func Profile(ctx context.Context, offline *bool) error { return program(ctx, offline, "profile") }

// ProfileNoise measures the same five times over into build/noise, for the noise floors of a baseline. They want runs
// over two starts of the machine at least: each start adds its own.
func ProfileNoise(ctx context.Context, offline *bool) error {
	return program(ctx, offline, "profile", "--runs", "5", "--out", filepath.Join("build/noise", time.Now().UTC().Format("20060102-150405")))
}

// Gate builds, measures and compares with ci/baseline. -check measures nothing, for machines without a GPU.
func Gate(ctx context.Context, check *bool, offline *bool) error {
	if check != nil && *check {
		return program(ctx, offline, "gate", "--check")
	}
	return program(ctx, offline, "gate")
}

// Bless makes what is in build/profile the baseline and adds -reason=TEXT to the log.
func Bless(ctx context.Context, reason *string, offline *bool) error {
	if reason == nil {
		return program(ctx, offline, "bless") // which says what is missing
	}
	return program(ctx, offline, "bless", "--reason", *reason)
}

// Test builds, checks the Go sources and the baseline, and runs all tests; build/test gets them as programs.
func Test(ctx context.Context, offline *bool) error {
	if err := Build(ctx, offline); err != nil {
		return err
	}
	if err := check.Format("."); err != nil {
		return err
	}
	if err := check.Vet(ctx, ".", os.Stderr, progress); err != nil {
		return err
	}
	if err := build.MakeTestPrograms(ctx, ".", progress); err != nil {
		return err
	}
	if err := run(ctx, "gate", "--check"); err != nil {
		return err
	}
	made, err := filepath.Abs(build.Library)
	if err != nil {
		return err
	}
	return check.Test(ctx, ".", made, os.Stdout)
}

// TestLong runs what takes hours: long forms of the tests, races, sanitizers, and each fuzz target for -fuzztime (10m).
func TestLong(ctx context.Context, fuzztime *time.Duration, offline *bool) error {
	if err := Build(ctx, offline); err != nil {
		return err
	}
	tools, err := prepare(ctx, offline)
	if err != nil {
		return err
	}
	err = build.MakeLibrary(ctx, build.Options{Root: ".", Toolchain: tools, CXX: os.Getenv("CXX"), Sanitize: true,
		Progress: progress})
	if err != nil {
		return err
	}
	root, err := filepath.Abs(".")
	if err != nil {
		return err
	}
	o := check.LongOptions{Root: root, Library: filepath.Join(root, build.Library),
		Sanitized: filepath.Join(root, build.SanitizedLibrary), FuzzTime: 10 * time.Minute, Out: os.Stdout}
	if fuzztime != nil {
		o.FuzzTime = *fuzztime
	}
	return check.Long(ctx, o)
}

// Install builds and installs library, header, pkg-config file and program under -prefix=DIR (/usr/local).
// DESTDIR is put before it.
func Install(ctx context.Context, prefix *string, offline *bool) error {
	if err := Build(ctx, offline); err != nil {
		return err
	}
	o := install.Options{Build: "build", Prefix: "/usr/local", DestDir: os.Getenv("DESTDIR"), Version: build.Version}
	if prefix != nil {
		o.Prefix = *prefix
	}
	files, err := install.Run(o)
	for _, file := range files {
		fmt.Println(file)
	}
	return err
}

// Bundle writes build/sparsek-VERSION-bundle.tar: all that a build without a network needs, and its SBOM.
func Bundle(ctx context.Context, offline *bool) error {
	tools, err := prepare(ctx, offline)
	if err != nil {
		return err
	}
	files, err := toolchain.Files(ctx, toolchainOptions(offline))
	if err != nil {
		return err
	}
	o := bundle.Options{Root: ".", Version: build.Version, Toolchain: tools, Files: files, Offline: offline != nil && *offline,
		Program: "./cmd/sparsek", Out: "build/sparsek-" + build.Version + "-bundle.tar", Progress: progress}
	made, err := bundle.Write(ctx, o)
	if err == nil {
		fmt.Printf("%s: %s, commit %s\nsha256 %s\n", o.Out, term.FormatBytes(made.Bytes), made.Commit, made.SHA256)
	}
	return err
}

// Repro builds libsparsek twice, in folders and at times that differ, and compares the two byte for byte.
func Repro(ctx context.Context, offline *bool) error {
	tools, err := prepare(ctx, offline)
	if err != nil {
		return err
	}
	sum, err := repro.Run(ctx, repro.Options{Root: ".", Toolchain: tools, CXX: os.Getenv("CXX"), Progress: progress})
	if err == nil {
		fmt.Printf("identical: both builds have sha256 %s\n", sum)
	}
	return err
}

// Clean removes build/. What was fetched stays in the cache.
func Clean(ctx context.Context) error { return build.Clean(ctx, ".", progress) }

// Doctor shows what building and running need and how to fix what is missing. Exit code 1: no build works here;
// 3: no GPU job does. -json prints JSON, -offline asks no package index.
func Doctor(ctx context.Context, json, offline *bool) error {
	facts, err := buildenv.Look(ctx, ".", os.Getenv("CXX"), offline != nil && *offline)
	if err != nil {
		return err
	}
	report := append(facts.Judge(), doctor.Look(ctx, os.DirFS("/")).Judge(facts.Lock.CUDA.Version)...)
	show := report.Print
	if json != nil && *json {
		show = report.PrintJSON
	}
	if err := show(os.Stdout); err != nil {
		return err
	}
	switch {
	case !report.Works(doctor.Build):
		return errors.New("a build cannot work here")
	case !report.Works(doctor.GPU):
		return mg.Fatal(3, "a build can work here, a GPU job cannot")
	}
	return nil
}

// Cache has the targets that look after the folder of what was fetched.
type Cache mg.Namespace

// Prune removes from the cache what the lock has no use for. -dryrun only shows it.
func (Cache) Prune(ctx context.Context, dryrun *bool) error {
	found, err := toolchain.FindUnused(ctx, toolchain.Options{LockPath: lock.FileName})
	if err != nil {
		return err
	}
	found.Print(os.Stdout)
	if dryrun != nil && *dryrun {
		return nil
	}
	freed, err := found.Remove(ctx)
	fmt.Printf("freed %s\n", term.FormatBytes(freed))
	return err
}

// Lock has the targets that look after toolchain.lock.json.
type Lock mg.Namespace

// Verify asks whether every pinned file is still to be had as it was pinned. Nothing is downloaded.
func (Lock) Verify(ctx context.Context) error {
	pins, index, cache, err := openLock()
	if err != nil {
		return err
	}
	checks, err := lock.Verify(ctx, pins, index, cache)
	for _, c := range checks {
		fmt.Printf("%-12s %s  %s  %s\n", c.State, c.Name, c.Detail, c.Cached)
	}
	return err
}

// Update moves the pins to newer releases, shows each change and writes the lock. -wants=NAME=VERSION,... chooses;
// without it each package moves to the newest release with the same first two numbers.
func (Lock) Update(ctx context.Context, wants *string) error {
	pins, index, cache, err := openLock()
	if err != nil {
		return err
	}
	chosen := lock.Wants{}
	if wants != nil {
		for pair := range strings.SplitSeq(*wants, ",") {
			name, version, ok := strings.Cut(pair, "=")
			if !ok {
				return fmt.Errorf("-wants: %q is not NAME=VERSION", pair)
			}
			chosen[name] = version
		}
	}
	next, err := lock.Update(ctx, pins, chosen, index, cache)
	if err != nil {
		return err
	}
	return lock.Replace(lock.FileName, pins, next, os.Stdout)
}

func openLock() (*lock.Lock, *pyindex.Resolver, *fetch.Cache, error) {
	pins, err := lock.Load(lock.FileName)
	if err != nil {
		return nil, nil, nil, err
	}
	index := pyindex.Open(pyindex.Environment{})
	cache, err := fetch.Open(fetch.Options{Progress: progress, Client: index.Client})
	return pins, index, cache, err
}

func prepare(ctx context.Context, offline *bool) (*toolchain.Toolchain, error) {
	return toolchain.Prepare(ctx, toolchainOptions(offline))
}

func toolchainOptions(offline *bool) toolchain.Options {
	return toolchain.Options{LockPath: lock.FileName, Offline: offline != nil && *offline, Progress: progress}
}

// library builds libsparsek.
func library(ctx context.Context, offline *bool) error {
	tools, err := prepare(ctx, offline)
	if err != nil {
		return err
	}
	return build.MakeLibrary(ctx, build.Options{Root: ".", Toolchain: tools, CXX: os.Getenv("CXX"), Progress: progress})
}

// sandbox builds the library with the hand-written TMA kernel alone and verifies that, where there is a GPU.
func sandbox(ctx context.Context, offline *bool) error {
	tools, err := prepare(ctx, offline)
	if err != nil {
		return err
	}
	err = build.MakeLibrary(ctx, build.Options{Root: ".", Toolchain: tools, CXX: os.Getenv("CXX"), Sandbox: true, Progress: progress})
	if err != nil {
		return err
	}
	if err := build.MakeProgram(ctx, ".", progress); err != nil {
		return err
	}
	made, err := filepath.Abs(build.SandboxLibrary)
	if err != nil {
		return err
	}
	return check.Sandbox(ctx, build.Program, made, os.Stdout)
}

// program builds and runs build/bin/sparsek.
func program(ctx context.Context, offline *bool, args ...string) error {
	if err := Build(ctx, offline); err != nil {
		return err
	}
	return run(ctx, args...)
}

// run runs build/bin/sparsek; its exit code becomes mage's.
func run(ctx context.Context, args ...string) error {
	err := process.Command{Args: append([]string{build.Program}, args...), Stdout: os.Stdout, Stderr: os.Stderr}.Run(ctx)
	var failed *process.Error
	if errors.As(err, &failed) && failed.Code > 0 {
		return mg.Fatal(failed.Code, err)
	}
	return err
}
