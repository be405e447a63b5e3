// SPDX-License-Identifier: Apache-2.0

package pybindings

import (
	"fmt"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/build/cheader"
)

// File is where the bindings are, in the checkout.
const File = "python/src/sparsek/_abi.py"

const prologue = `# SPDX-License-Identifier: Apache-2.0
# Generated from ` + cheader.Name + `; changes here are lost.
"""The C interface of libsparsek: what each name means is in sparsek.h."""

from __future__ import annotations

import ctypes
import enum
from typing import Any

ABI_VERSION = `

const structBase = `

_INTEGERS: dict[Any, tuple[int, int]] = {
    ctypes.c_uint8: (0, 2**8 - 1),
    ctypes.c_int32: (-(2**31), 2**31 - 1),
    ctypes.c_int64: (-(2**63), 2**63 - 1),
    ctypes.c_uint64: (0, 2**64 - 1),
    ctypes.c_size_t: (0, 2**64 - 1),
    ctypes.c_void_p: (0, 2**64 - 1),
}


class Versioned(ctypes.Structure):
    """A struct whose first member is its own size."""

    _ranges: dict[str, tuple[int, int]]

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        cls._ranges = {name: _INTEGERS[kind] for name, kind in cls.__dict__["_fields_"] if kind in _INTEGERS}

    def __init__(self, **members: Any) -> None:
        super().__init__(abi_size=ctypes.sizeof(self), **members)
        ranges = self._ranges
        for name, given in members.items():
            if given and name in ranges:  # ctypes takes the low bits of what is too large
                low, high = ranges[name]
                if not low <= given <= high:
                    from .errors import ArgumentError

                    raise ArgumentError(f"{name}={given} is not between {low} and {high}")
`

// scalars are the types of C that stand for themselves.
var scalars = map[string]string{
	"size_t": "c_size_t", "int32_t": "c_int32", "uint32_t": "c_uint32", "int64_t": "c_int64", "uint64_t": "c_uint64", "uint8_t": "c_uint8",
	"float": "c_float", "double": "c_double", "char": "c_char", "char*": "c_char_p", "sparsek_stream": "c_void_p",
}

// keywords of Python that a member might have as its name.
var keywords = []string{"from", "in", "is", "lambda", "pass", "None", "class", "global", "with", "as", "def", "del", "import", "not", "or", "and"}

// Source is the bindings of the header.
func Source(text []byte) ([]byte, error) {
	h, err := cheader.Parse(text)
	if err != nil {
		return nil, err
	}
	w := &writer{structs: map[string]bool{}, enums: map[string]bool{}}
	w.text.WriteString(prologue + h.ABIVersion + "\n")
	for _, e := range h.Enums {
		w.enum(e)
	}
	w.text.WriteString(structBase)
	for _, s := range h.Structs {
		w.structure(s)
	}
	w.table(h.Functions)
	if w.err != nil {
		return nil, fmt.Errorf("%s: %w", cheader.Name, w.err)
	}
	return []byte(w.text.String()), nil
}

type writer struct {
	text           strings.Builder
	structs, enums map[string]bool
	err            error
}

func (w *writer) printf(format string, args ...any) { fmt.Fprintf(&w.text, format, args...) }

func (w *writer) fail(format string, args ...any) {
	if w.err == nil {
		w.err = fmt.Errorf(format, args...)
	}
}

// className is sparsek_plan_info's: PlanInfo.
func className(name string) string {
	var b strings.Builder
	for word := range strings.SplitSeq(name, "_") {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}

func (w *writer) enum(e cheader.Enum) {
	w.enums["sparsek_"+e.Name] = true
	prefix := sharedPrefix(e)
	w.printf("\n\nclass %s(enum.IntEnum):\n", className(e.Name))
	for _, m := range e.Members {
		w.printf("    %s = %s\n", w.identifier(strings.TrimPrefix(m.Name, prefix)), m.Value)
	}
}

// sharedPrefix is what the members' names repeat of the enumeration's.
func sharedPrefix(e cheader.Enum) string {
	words := strings.SplitAfter(strings.ToUpper(e.Name)+"_", "_")
	prefix := ""
	for _, word := range words {
		longer := prefix + word
		if word == "" || slices.ContainsFunc(e.Members, func(m cheader.Member) bool { return !strings.HasPrefix(m.Name, longer) }) {
			break
		}
		prefix = longer
	}
	return prefix
}

func (w *writer) structure(s cheader.Struct) {
	w.structs["sparsek_"+s.Name] = true
	if len(s.Fields) == 0 || s.Fields[0].Name != "abi_size" {
		w.fail("sparsek_%s does not begin with abi_size", s.Name)
	}
	w.printf("\n\nclass %s(Versioned):\n    _fields_ = (\n", className(s.Name))
	for _, f := range s.Fields {
		typ := w.fieldType(f.Type.Bare())
		if f.Count != "" {
			typ += " * " + f.Count
		}
		w.printf("        (\"%s\", %s),\n", w.identifier(f.Name), typ)
	}
	w.printf("    )\n")
}

func (w *writer) table(functions []cheader.Function) {
	w.printf("\n\nclass Api(ctypes.Structure):\n    \"\"\"The table of functions.\"\"\"\n\n    _fields_ = (\n")
	w.printf("        (\"abi_size\", ctypes.c_size_t),\n        (\"abi_version\", ctypes.c_int32),\n")
	for _, f := range functions {
		types := []string{"None"}
		if f.Result != "void" {
			types[0] = w.paramType(f.Result.Bare())
		}
		for _, p := range f.Params {
			types = append(types, w.paramType(p.Type.Bare()))
		}
		line := fmt.Sprintf("        (\"%s\", ctypes.CFUNCTYPE(%s)),\n", w.identifier(f.Name), strings.Join(types, ", "))
		if len(line) > 121 {
			line = fmt.Sprintf("        (\n            \"%s\",\n            ctypes.CFUNCTYPE(\n                %s,\n            ),\n        ),\n",
				f.Name, strings.Join(types, ",\n                "))
		}
		w.text.WriteString(line)
	}
	w.printf("    )\n")
}

// fieldType is the type of a struct's member. All addresses but those of text
// are numbers.
func (w *writer) fieldType(typ string) string {
	if name, ok := scalars[typ]; ok {
		return "ctypes." + name
	}
	if strings.HasSuffix(typ, "*") {
		return "ctypes.c_void_p"
	}
	w.fail("a member's type %q is not known", typ)
	return ""
}

// paramType is the type of a parameter or a result. Addresses of the structs
// above are checked by ctypes.
func (w *writer) paramType(typ string) string {
	if name, ok := scalars[typ]; ok {
		return "ctypes." + name
	}
	if w.enums[typ] {
		return "ctypes.c_int32"
	}
	target, ok := strings.CutSuffix(typ, "*")
	switch {
	case !ok:
		w.fail("a parameter's type %q is not known", typ)
	case w.structs[target]:
		return "ctypes.POINTER(" + className(strings.TrimPrefix(target, "sparsek_")) + ")"
	}
	return "ctypes.c_void_p"
}

func (w *writer) identifier(name string) string {
	if slices.Contains(keywords, name) {
		w.fail("%q is a keyword of Python", name)
	}
	return name
}
