// SPDX-License-Identifier: Apache-2.0

package pybindings

import (
	"fmt"
	"regexp"
	"strings"
)

// header is what the bindings need of sparsek.h, in its order.
type header struct {
	abiVersion string
	enums      []enum
	structs    []structure
	functions  []function // of the table
}

type enum struct {
	name    string // without sparsek_
	members []member
}

type member struct{ name, value string } // without SPARSEK_

type structure struct {
	name   string
	fields []field
}

// field is a member of a struct, or a parameter. typ is its type in C without
// const and spaces, with its stars: "char*".
type field struct {
	name, typ string
	count     string // of an array's elements, or empty
}

type function struct {
	name   string
	result string
	params []string
}

var (
	comments   = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	directives = regexp.MustCompile(`(?m)^[ \t]*#.*$`)
	abiVersion = regexp.MustCompile(`(?m)^#define SPARSEK_ABI_VERSION (\d+)$`)
	typedef    = regexp.MustCompile(`(?s)\btypedef\s+(enum|struct)\s+sparsek_(\w+)\s*\{(.*?)\}\s*sparsek_(\w+)\s*;`)
	enumMember = regexp.MustCompile(`^SPARSEK_(\w+)\s*=\s*(\d+)$`)
	pointer    = regexp.MustCompile(`(?s)^(.*?)\(\*(\w+)\)\((.*)\)$`)
	declarator = regexp.MustCompile(`^(\*?)\s*([a-z]\w*)(?:\[(\d+)\])?$`)
	firstNames = regexp.MustCompile(`^(.*?[\w*])\s*(\b[a-z]\w*(?:\[\d+\])?)$`)
)

// table is the struct of functions.
const table = "api"

// parse reads sparsek.h.
func parse(text string) (*header, error) {
	h := &header{}
	version := abiVersion.FindStringSubmatch(text)
	if version == nil {
		return nil, fmt.Errorf("the header does not define SPARSEK_ABI_VERSION")
	}
	h.abiVersion = version[1]
	plain := directives.ReplaceAllString(comments.ReplaceAllString(text, " "), "")
	for _, m := range typedef.FindAllStringSubmatch(plain, -1) {
		kind, name, body := m[1], m[2], m[3]
		if name != m[4] {
			return nil, fmt.Errorf("%s sparsek_%s is also called sparsek_%s", kind, name, m[4])
		}
		var err error
		switch {
		case kind == "enum":
			err = h.addEnum(name, body)
		case name == table:
			err = h.addTable(body)
		default:
			err = h.addStruct(name, body)
		}
		if err != nil {
			return nil, fmt.Errorf("%s sparsek_%s: %w", kind, name, err)
		}
	}
	if n := strings.Count(plain, "{") - 1; n != len(h.enums)+len(h.structs)+1 || len(h.functions) == 0 {
		// The one brace more is that of extern "C".
		return nil, fmt.Errorf("of %d types in braces, %d enumerations, %d structs and %d functions were understood",
			n, len(h.enums), len(h.structs), len(h.functions))
	}
	return h, nil
}

func (h *header) addEnum(name, body string) error {
	e := enum{name: name}
	for item := range strings.SplitSeq(body, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		m := enumMember.FindStringSubmatch(item)
		if m == nil {
			return fmt.Errorf("%q is not SPARSEK_NAME = number", item)
		}
		e.members = append(e.members, member{m[1], m[2]})
	}
	h.enums = append(h.enums, e)
	return nil
}

func (h *header) addStruct(name, body string) error {
	s := structure{name: name}
	for _, statement := range statements(body) {
		if m := pointer.FindStringSubmatch(statement); m != nil {
			s.fields = append(s.fields, field{name: m[2], typ: "void*"}) // a function of the application
			continue
		}
		fields, err := declaration(statement)
		if err != nil {
			return err
		}
		s.fields = append(s.fields, fields...)
	}
	h.structs = append(h.structs, s)
	return nil
}

// addTable reads the functions; before them come abi_size and abi_version.
func (h *header) addTable(body string) error {
	all := statements(body)
	if len(all) < 2 || squeeze(all[0]) != "size_t abi_size" || squeeze(all[1]) != "int32_t abi_version" {
		return fmt.Errorf("it does not begin with abi_size and abi_version")
	}
	for _, statement := range all[2:] {
		m := pointer.FindStringSubmatch(statement)
		if m == nil {
			return fmt.Errorf("%q is not a function", squeeze(statement))
		}
		f := function{name: m[2], result: typeName(m[1])}
		for param := range strings.SplitSeq(m[3], ",") {
			if squeeze(param) == "void" {
				continue
			}
			f.params = append(f.params, paramType(param))
		}
		h.functions = append(h.functions, f)
	}
	return nil
}

// statements are what stands before each semicolon.
func statements(body string) []string {
	var all []string
	for s := range strings.SplitSeq(body, ";") {
		if s = strings.TrimSpace(s); s != "" {
			all = append(all, s)
		}
	}
	return all
}

// declaration reads "const float *a, *b" or "int32_t a, b" or "char a[3]".
func declaration(statement string) ([]field, error) {
	text := squeeze(statement)
	names := strings.Split(text, ",")
	m := firstNames.FindStringSubmatch(strings.TrimSpace(names[0]))
	if m == nil {
		return nil, fmt.Errorf("%q is not understood", text)
	}
	base, own := m[1], ""
	names[0] = m[2]
	if len(names) > 1 && strings.HasSuffix(base, "*") {
		base, own = strings.TrimSuffix(base, "*"), "*" // the star is the first name's
	}
	var fields []field
	for i, name := range names {
		d := declarator.FindStringSubmatch(strings.TrimSpace(name))
		if d == nil {
			return nil, fmt.Errorf("%q is not understood", text)
		}
		star := d[1]
		if i == 0 {
			star = own
		}
		fields = append(fields, field{name: d[2], typ: typeName(base + star), count: d[3]})
	}
	return fields, nil
}

// paramType is the type of a parameter, which may have a name.
func paramType(param string) string {
	text := squeeze(param)
	if i := strings.LastIndexAny(text, "* "); i >= 0 {
		last := text[i+1:]
		before := typeName(text[:i+1])
		if before != "" && last != "" && !strings.HasPrefix(last, "sparsek_") {
			return before
		}
	}
	return typeName(text)
}

// typeName is a type without const and spaces.
func typeName(text string) string {
	words := strings.Fields(strings.ReplaceAll(text, "*", " * "))
	var b strings.Builder
	for _, word := range words {
		if word != "const" {
			b.WriteString(word)
		}
	}
	return b.String()
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }
