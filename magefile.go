// SPDX-License-Identifier: Apache-2.0

//go:build mage

// Targets of `go tool mage`. What they do is in internal/build/targets.
package main

import (
	"context"
	"os"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/build/targets"
)

// in is the checkout that targets work in. mage knows a flag by a pointer,
// which is nil where it is not given.
func in(offline *bool) targets.Checkout { return targets.Here(or(offline, false)) }

// or is the value of a flag, or otherwise.
func or[T any](flag *T, otherwise T) T {
	if flag == nil {
		return otherwise
	}
	return *flag
}

// end ends mage where a target failed, with the target's exit code.
func end(err error) {
	if code := targets.End(err, os.Stderr); code != 0 {
		os.Exit(code)
	}
}

// Fetch fetches and checks the toolchain that toolchain.lock.json pins. -offline takes it from the cache alone.
func Fetch(ctx context.Context, offline *bool) { end(in(offline).Fetch(ctx)) }

// Kernel builds libsparsek with its CUDA kernels. -tma builds one with the hand-written TMA kernel alone, and verifies it.
func Kernel(ctx context.Context, offline, tma *bool) {
	if or(tma, false) {
		end(in(offline).Sandbox(ctx))
		return
	}
	end(in(offline).Library(ctx))
}

// Build builds libsparsek and the program.
func Build(ctx context.Context, offline *bool) { end(in(offline).Build(ctx)) }

// Compdb writes build/compile_commands.json, for clangd and other programs that read C++ and CUDA.
func Compdb(ctx context.Context, offline *bool) { end(in(offline).CompileCommands(ctx)) }

// Verify builds, then multiplies and checks every element, on a Hopper GPU if there is one.
func Verify(ctx context.Context, offline *bool) { end(in(offline).Run(ctx, "verify")) }

// Bench builds and measures. -args="--suite roofline" passes flags on: see build/bin/sparsek help bench.
func Bench(ctx context.Context, args *string, offline *bool) {
	end(in(offline).Run(ctx, append([]string{"bench"}, strings.Fields(or(args, ""))...)...))
}

// Profile builds and measures the cases of the gate with Nsight Compute, on a GPU, into build/profile.
func Profile(ctx context.Context, offline *bool) { end(in(offline).Run(ctx, "profile")) }

// ProfileNoise profiles five times over into build/noise, for the noise floors of a baseline. Those need runs over at
// least four starts of the machine: each start adds its own.
func ProfileNoise(ctx context.Context, offline *bool) { end(in(offline).ProfileNoise(ctx)) }

// Gate builds, and compares products with those of the blessed library. -check measures nothing, for machines without a
// GPU.
func Gate(ctx context.Context, check *bool, offline *bool) {
	if or(check, false) {
		end(in(offline).Run(ctx, "gate", "--check"))
		return
	}
	end(in(offline).Gate(ctx))
}

// Blessed makes build/blessed, the libraries that the gate compares with: from the cache, or by building the commits that
// were blessed.
func Blessed(ctx context.Context, offline *bool) { end(in(offline).Blessed(ctx)) }

// Bless makes what is in build/profile the baseline and adds -reason=TEXT to the log.
func Bless(ctx context.Context, reason *string, offline *bool) {
	if reason == nil {
		end(in(offline).Run(ctx, "bless")) // which says what is missing
		return
	}
	end(in(offline).Run(ctx, "bless", "--reason", *reason))
}

// Test builds, checks the sources and the baseline, and runs all tests; build/test gets them as programs.
func Test(ctx context.Context, offline *bool) { end(in(offline).Test(ctx)) }

// Wheel builds, and writes the Python package with library and program as a wheel into build/wheel.
func Wheel(ctx context.Context, offline *bool) { end(in(offline).Wheel(ctx)) }

// TestPython builds, and runs the tests of the Python package, with type checker and linter, and its wheel, in environments
// that it makes in build/python. It fetches packages; with -offline it takes those that are there.
func TestPython(ctx context.Context, offline *bool) { end(in(offline).TestPython(ctx)) }

// Rust builds, and runs the tests of the Rust crates, with formatter, linter, documentation, a trial of the packages, and
// where they are installed the oldest Rust and crates, Miri and cargo deny. -burn also tests the crate for Burn, which takes
// many minutes to compile. -programs writes the tests into build/rust-test instead, for a machine without cargo.
func Rust(ctx context.Context, burn, programs, offline *bool) {
	end(in(offline).Rust(ctx, or(burn, false), or(programs, false)))
}

// TestLong runs what takes hours: long forms of the tests, races, sanitizers, and each fuzz target for -fuzztime (10m).
func TestLong(ctx context.Context, fuzztime *time.Duration, offline *bool) {
	end(in(offline).TestLong(ctx, or(fuzztime, 10*time.Minute)))
}

// Format formats the Go, C++ and CUDA sources as test requires them, and writes the Python and Rust bindings of sparsek.h.
func Format(ctx context.Context, offline *bool) { end(in(offline).Format(ctx)) }

// Install builds and installs library, header, pkg-config file and program under -prefix=DIR (/usr/local).
// DESTDIR is put before it.
func Install(ctx context.Context, prefix *string, offline *bool) {
	end(in(offline).Install(ctx, or(prefix, "/usr/local")))
}

// Bundle writes build/sparsek-VERSION-bundle.tar: all that a build without a network needs, and its SBOM.
func Bundle(ctx context.Context, offline *bool) { end(in(offline).Bundle(ctx)) }

// Repro builds libsparsek twice, in folders and at times that differ, and compares the two byte for byte.
func Repro(ctx context.Context, offline *bool) { end(in(offline).Repro(ctx)) }

// Clean removes build/. What was fetched stays in the cache.
func Clean(ctx context.Context) { end(in(nil).Clean(ctx)) }

// Doctor shows what building and running need and how to fix what is missing. Exit code 1: builds do not work here;
// 3: only GPU jobs do not. -json prints JSON, -offline asks no package index.
func Doctor(ctx context.Context, json, offline *bool) { end(in(offline).Doctor(ctx, or(json, false))) }

// CachePrune removes from the cache what the lock has no use for. -dryrun only shows it.
func CachePrune(ctx context.Context, dryrun *bool) { end(in(nil).PruneCache(ctx, or(dryrun, false))) }

// LockVerify asks whether every pinned file is still available as it was pinned. Nothing is downloaded.
func LockVerify(ctx context.Context) { end(in(nil).VerifyLock(ctx)) }

// LockUpdate moves the pins to newer releases, shows each change and writes the lock; -dryrun does not write it.
// -wants=NAME=VERSION,... chooses; without it each package moves to the newest release with the same first two numbers.
func LockUpdate(ctx context.Context, wants *string, dryrun *bool) {
	end(in(nil).UpdateLock(ctx, or(wants, ""), or(dryrun, false)))
}
