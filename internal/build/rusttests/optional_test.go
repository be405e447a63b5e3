// SPDX-License-Identifier: Apache-2.0

package rusttests

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// workspace adds what is copied for the oldest crates.
func workspace(t *testing.T, o Options) {
	t.Helper()
	for file, text := range map[string]string{"Cargo.toml": "[workspace]", "Cargo.lock": "lock", "sparsek/src/lib.rs": "",
		"sparsek-sys/src/lib.rs": "", "examples/cudarc/Cargo.toml": ""} {
		path := filepath.Join(o.Root, "rust", file)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
}

func TestTheOldestCratesAreThoseOfACopy(t *testing.T) {
	o, _, calls := checkout(t, `test "$2" != update || echo changed >Cargo.lock`)
	workspace(t, o)
	if err := All(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	want := "\n+nightly update -Z direct-minimal-versions rust-copy\ncheck --workspace --all-targets --all-features rust-copy\n"
	if got := calls(); !strings.Contains(got, want) {
		t.Errorf("ran %q, without %q", got, want)
	}
	for file, want := range map[string]string{"rust/Cargo.lock": "lock", "build/rust-copy/Cargo.lock": "changed\n"} {
		if text, err := os.ReadFile(filepath.Join(o.Root, file)); err != nil || string(text) != want {
			t.Errorf("%s has %q, want %q: %v", file, text, want, err)
		}
	}
}

func TestChecksThatTheMachineCannotMakeAreSaid(t *testing.T) {
	o, out, calls := checkout(t, `case "$1" in +*|deny) exit 1;; esac`)
	if err := All(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"skipped: the oldest Rust: `rustup toolchain install 1.88`", "skipped: the oldest crates: ", "skipped: Miri: ",
		"skipped: licences and sources of crates: `cargo install cargo-deny --locked`"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("wrote %q, without %q", out.String(), want)
		}
	}
	if got := calls(); strings.Contains(got, " check ") || strings.Contains(got, " test ") {
		t.Errorf("ran %q", got)
	}
}

func TestAFailureOfSuchACheckIsAnError(t *testing.T) {
	for fails, says := range map[string]string{
		`test "$1" = +1.88 && test "$2" = check && exit 1; true`: "the oldest Rust: cargo +1.88 check",
		`test "$3" = test && exit 1; true`:                       "Miri: cargo +nightly miri test",
		`test "$3" = check && exit 1; true`:                      "licences and sources of crates: cargo deny",
	} {
		o, _, _ := checkout(t, fails)
		workspace(t, o)
		if err := All(t.Context(), o); err == nil || !strings.HasPrefix(err.Error(), says) {
			t.Errorf("%s: %v, want %s", fails, err, says)
		}
	}
}
