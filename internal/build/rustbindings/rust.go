// SPDX-License-Identifier: Apache-2.0

package rustbindings

import (
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/build/cheader"
)

// File is where the bindings are, in the checkout.
const File = "rust/sparsek-sys/src/bindings.rs"

const prologue = `// SPDX-License-Identifier: Apache-2.0
// Generated from ` + cheader.Name + `; changes here are lost.

use core::ffi::{c_char, c_void};

pub const SPARSEK_ABI_VERSION: i32 = `

// scalars are the types of C that have names of their own in Rust.
var scalars = map[string]string{
	"size_t": "usize", "int32_t": "i32", "uint32_t": "u32", "int64_t": "i64", "uint64_t": "u64", "uint8_t": "u8",
	"float": "f32", "double": "f64", "char": "c_char", "void": "c_void",
}

// keywords of Rust that a name in C might be.
var keywords = []string{"abstract", "as", "async", "await", "become", "box", "crate", "dyn", "false", "final", "fn", "gen", "impl",
	"in", "let", "loop", "macro", "match", "mod", "move", "mut", "override", "priv", "pub", "ref", "self", "super", "trait", "true",
	"try", "type", "typeof", "unsafe", "unsized", "use", "virtual", "where", "yield"}

// Write writes the bindings into the checkout at root, from its header.
func Write(root string) error {
	h, err := cheader.Read(root)
	if err == nil {
		var text []byte
		if text, err = Source(h); err == nil {
			err = renameio.WriteFile(filepath.Join(root, File), text, 0o666)
		}
	}
	if err != nil {
		return fmt.Errorf("writing the Rust bindings: %w", err)
	}
	return nil
}

// Source is the bindings of the header. Each member is on a line of its own,
// whatever its length: rustfmt is told to leave them alone.
func Source(h *cheader.Header) ([]byte, error) {
	w := &writer{names: map[string]bool{}}
	for _, name := range slices.Concat(h.Opaque, h.Pointers) {
		w.names["sparsek_"+name] = true
	}
	for _, e := range h.Enums {
		w.names["sparsek_"+e.Name] = true
	}
	for _, s := range h.Structs {
		w.names["sparsek_"+s.Name] = true
	}
	w.text.WriteString(prologue + h.ABIVersion + ";\n")
	for _, name := range h.Opaque {
		w.printf("\n#[repr(C)]\n#[derive(Debug)]\npub struct sparsek_%s {\n    _opaque: crate::Opaque,\n}\n", name)
	}
	w.printf("\n")
	for _, name := range h.Pointers {
		w.printf("pub type sparsek_%s = *mut c_void;\n", name)
	}
	for _, e := range h.Enums {
		w.printf("\npub type sparsek_%s = i32;\n", e.Name)
		for _, m := range e.Members {
			w.printf("pub const SPARSEK_%s: sparsek_%s = %s;\n", m.Name, e.Name, m.Value)
		}
	}
	for _, s := range h.Structs {
		w.structure(s)
	}
	w.table(h.Functions)
	w.layouts(h.Structs)
	if w.err != nil {
		return nil, fmt.Errorf("%s: %w", cheader.Name, w.err)
	}
	return []byte(w.text.String()), nil
}

type writer struct {
	text  strings.Builder
	names map[string]bool // of the header's types
	err   error
}

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(&w.text, format, args...) }

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

func (w *writer) structure(s cheader.Struct) {
	if len(s.Fields) == 0 || s.Fields[0].Name != "abi_size" {
		w.fail("sparsek_%s does not begin with abi_size", s.Name)
	}
	w.printf("\n#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct sparsek_%s {\n", s.Name)
	for _, f := range s.Fields {
		typ := w.typeOf(f.Type)
		switch {
		case f.Function != nil:
			typ = "Option<" + w.function(*f.Function) + ">"
		case f.Count != "":
			typ = "[" + typ + "; " + f.Count + "]"
		}
		w.printf("    pub %s: %s,\n", w.identifier(f.Name), typ)
	}
	w.printf("}\n\ncrate::versioned!(sparsek_%s);\n", s.Name)
}

func (w *writer) table(functions []cheader.Function) {
	w.printf("\n#[repr(C)]\n#[derive(Clone, Copy, Debug)]\npub struct sparsek_api {\n    pub abi_size: usize,\n    pub abi_version: i32,\n")
	for _, f := range functions {
		w.printf("    pub %s: %s,\n", w.identifier(f.Name), w.function(f))
	}
	w.printf("}\n")
}

// layouts writes what a test compares with a C compiler: expressions in C, and
// their values in Rust.
func (w *writer) layouts(structs []cheader.Struct) {
	w.printf("\n#[cfg(test)]\npub(crate) const LAYOUTS: &[(&str, usize)] = &[\n")
	for _, s := range structs {
		w.printf("    (\"sizeof(sparsek_%[1]s)\", size_of::<sparsek_%[1]s>()),\n", s.Name)
		for _, f := range s.Fields {
			w.printf("    (\"offsetof(sparsek_%[1]s, %[2]s)\", core::mem::offset_of!(sparsek_%[1]s, %[2]s)),\n", s.Name, f.Name)
		}
	}
	w.printf("    (\"sizeof(sparsek_api)\", size_of::<sparsek_api>()),\n];\n")
}

// function is the type of a function's address.
func (w *writer) function(f cheader.Function) string {
	params := make([]string, len(f.Params))
	for i, p := range f.Params {
		params[i] = w.typeOf(p.Type)
		if p.Name != "" {
			params[i] = w.identifier(p.Name) + ": " + params[i]
		}
	}
	text := `unsafe extern "C" fn(` + strings.Join(params, ", ") + ")"
	if f.Result != "void" {
		text += " -> " + w.typeOf(f.Result)
	}
	return text
}

// typeOf is a type in Rust: each star of C becomes *const where what it points
// to is const, else *mut.
func (w *writer) typeOf(t cheader.Type) string {
	parts := strings.Split(string(t), "*")
	base, constant := strings.CutPrefix(parts[0], "const ")
	rust, ok := scalars[base]
	if !ok {
		if rust = base; !w.names[base] {
			w.fail("a type %q is not known", t)
		}
	}
	if rust == "c_void" && len(parts) == 1 {
		w.fail("a type %q is not known", t)
	}
	for _, after := range parts[1:] {
		if constant {
			rust = "*const " + rust
		} else {
			rust = "*mut " + rust
		}
		constant = strings.TrimSpace(after) == "const"
	}
	return rust
}

func (w *writer) identifier(name string) string {
	if slices.Contains(keywords, name) {
		w.fail("%q is a keyword of Rust", name)
	}
	return name
}
