// SPDX-License-Identifier: Apache-2.0

package rusttests

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// version is what the programs of checkout do when they are asked for theirs.
const version = "echo 'cargo 1.100.0 (a hash)' && exit"

// checkout has a program cargo, which writes how it was called into the log
// and then runs the shell commands of script.
func checkout(t *testing.T, script string) (o Options, out *bytes.Buffer, log func() string) {
	t.Helper()
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, "rust"), 0o777); err != nil {
		t.Fatal(err)
	}
	cargo, calls := filepath.Join(dir, "cargo"), filepath.Join(dir, "calls")
	text := "#!/bin/sh\ntest $1 = --version && " + version +
		"\necho \"$@\" \"$(basename \"$PWD\")\" $RUSTDOCFLAGS ${CARGO_NET_OFFLINE:+offline} >>" + calls + "\n" + script + "\n"
	if err := os.WriteFile(cargo, []byte(text), 0o777); err != nil {
		t.Fatal(err)
	}
	out = new(bytes.Buffer)
	o = Options{Root: dir, Build: filepath.Join(dir, "build"), Cargo: cargo, Out: out, Progress: term.New(out)}
	return o, out, func() string {
		text, err := os.ReadFile(calls)
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
}

// reads is how the manifests are read.
const reads = "metadata --no-deps --format-version 1 --offline rust\n"

func TestShort(t *testing.T) {
	o, _, calls := checkout(t, `test -n "$SPARSEK_LIBRARY" -a -n "$CARGO_TARGET_DIR"`)
	if err := Short(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if got, want := calls(), reads+"fetch --locked --quiet rust\ntest --quiet rust offline\n"; got != want {
		t.Errorf("ran %q, want %q", got, want)
	}
}

func TestAll(t *testing.T) {
	o, out, calls := checkout(t, "")
	o.Offline = true
	if err := All(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	got := calls()
	for _, want := range []string{reads + "fetch --locked --quiet --offline rust\nfmt --check rust offline\nclippy --workspace ",
		"\ntest --quiet --all-features rust offline\n", "\ndoc --no-deps --all-features rust --deny=warnings offline\n", "\npackage ",
		"\n+1.88 check --workspace ", "\n+nightly miri test --lib ", "\ndeny --all-features check "} {
		if !strings.Contains(got, want) {
			t.Errorf("ran %q, without %q", got, want)
		}
	}
	if strings.Contains(got, "minimal") || !strings.Contains(out.String(), "skipped: the oldest crates: this is offline") {
		t.Errorf("ran %q, and wrote %q", got, out.String())
	}
}

func TestBurn(t *testing.T) {
	o, _, calls := checkout(t, "")
	if err := os.Mkdir(filepath.Join(o.Root, "rust", "sparsek-burn"), 0o777); err != nil {
		t.Fatal(err)
	}
	if err := Burn(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := "fmt --check sparsek-burn\nclippy --all-targets --features=ndarray,safetensors -- --deny=warnings sparsek-burn\n" +
		"test --quiet --features=ndarray,safetensors sparsek-burn\n" +
		"doc --no-deps --features=ndarray,safetensors sparsek-burn --deny=warnings\n" +
		"clippy --features=cuda -- --deny=warnings sparsek-burn\n"
	if got := calls(); !strings.HasPrefix(got, want) {
		t.Errorf("ran %q, want %q first", got, want)
	}
}

func TestFailures(t *testing.T) {
	o, out, _ := checkout(t, `case "$1" in test) echo "wrong"; exit 101;; esac`)
	for what, run := range map[string]func(context.Context, Options) error{"short": Short, "all": All} {
		out.Reset()
		err := run(t.Context(), o)
		if err == nil || !strings.Contains(err.Error(), "cargo test") || !strings.Contains(out.String(), "wrong") {
			t.Errorf("%s: %v, and wrote %q", what, err, out.String())
		}
	}
}

func TestAnOldCargoIsMissing(t *testing.T) {
	for other, says := range map[string]string{
		"echo 'cargo 1.87.3' && exit":       `need cargo 1.88 or later: there is "cargo 1.87.3"`,
		"echo 'cargo 0.99.0' && exit":       `there is "cargo 0.99.0"`,
		"exit":                              `there is ""`,
		"echo no toolchain >&2 && exit 101": "no toolchain",
	} {
		o, out, _ := checkout(t, "")
		text, err := os.ReadFile(o.Cargo)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(o.Cargo, bytes.Replace(text, []byte(version), []byte(other), 1), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := Short(t.Context(), o); err != nil || !strings.Contains(out.String(), says) {
			t.Errorf("%s: short: %v, and said %q", other, err, out.String())
		}
		var missing *MissingError
		if err := All(t.Context(), o); !errors.As(err, &missing) || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: all: %v", other, err)
		}
	}
}

func TestTheOldestVersionIsTheManifests(t *testing.T) {
	text, err := os.ReadFile("../../../rust/Cargo.toml")
	if want := fmt.Sprintf("\nrust-version = \"%d.%d\"\n", oldest[0], oldest[1]); err != nil || !strings.Contains(string(text), want) {
		t.Errorf("no %q in %s, %v", want, text, err)
	}
}

func TestFaultyManifestsAreAnError(t *testing.T) {
	for what, run := range map[string]func(context.Context, Options) error{"short": Short, "all": All} {
		o, out, calls := checkout(t, "test $1 != metadata || { echo 'failed to parse manifest' >&2; exit 101; }")
		var missing *MissingError
		if err := run(t.Context(), o); err == nil || errors.As(err, &missing) || !strings.Contains(err.Error(), "failed to parse manifest") {
			t.Errorf("%s: got %v, and wrote %q", what, err, out.String())
		}
		if got := calls(); got != reads {
			t.Errorf("%s: ran %q", what, got)
		}
	}
}

// Cargo's words for a lock file that is not the manifests'.
func TestAnOldLockIsAnError(t *testing.T) {
	o, _, _ := checkout(t, "test $1 = metadata && exit; echo 'cannot update the lock file because --locked was passed to prevent this' >&2; exit 101")
	var missing *MissingError
	if err := Short(t.Context(), o); err == nil || errors.As(err, &missing) || !strings.Contains(err.Error(), "lock file") {
		t.Errorf("got %v", err)
	}
}

func TestWhatIsMissing(t *testing.T) {
	noCargo, out, _ := checkout(t, "")
	noCargo.Cargo = filepath.Join(noCargo.Root, "no-cargo")
	noCrates, outCrates, _ := checkout(t, "test $1 = metadata && exit; echo 'no such host' >&2; exit 101")
	for _, c := range []struct {
		o    Options
		out  *bytes.Buffer
		says string
	}{{noCargo, out, "need cargo"}, {noCrates, outCrates, "no such host"}} {
		if err := Short(t.Context(), c.o); err != nil || !strings.Contains(c.out.String(), "skipped: the tests of the Rust crates need") ||
			!strings.Contains(c.out.String(), c.says) {
			t.Errorf("%s: short: %v, and said %q", c.says, err, c.out.String())
		}
		var missing *MissingError
		if err := All(t.Context(), c.o); !errors.As(err, &missing) || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: all: %v", c.says, err)
		}
	}
}
