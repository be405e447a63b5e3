// SPDX-License-Identifier: Apache-2.0

package cheader

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
)

// Name is where the header is, in the checkout.
const Name = "cutlass_ext/include/sparsek.h"

// Header is what bindings need of sparsek.h, in its order.
type Header struct {
	ABIVersion string
	Opaque     []string // structs that only have a name, without sparsek_
	Pointers   []string // names of void*, without sparsek_
	Enums      []Enum
	Structs    []Struct
	Functions  []Function // of the table
}

// Enum is an enumeration. Its name is without sparsek_.
type Enum struct {
	Name    string
	Members []Member
}

// Member is one of an enumeration, without SPARSEK_.
type Member struct{ Name, Value string }

// Struct is a struct. Its name is without sparsek_.
type Struct struct {
	Name   string
	Fields []Field
}

// Field is a member of a struct, or a parameter, which may have no name.
type Field struct {
	Name     string
	Type     Type
	Count    string    // of an array's elements, or empty
	Function *Function // that the member points to, or nil
}

// Type is a type as C writes it, with single spaces between words and none
// before stars: "const char*", "sparsek_plan* const*".
type Type string

// Bare is the type without const and spaces: "sparsek_plan**".
func (t Type) Bare() string {
	var b strings.Builder
	for word := range strings.FieldsSeq(strings.ReplaceAll(string(t), "*", " * ")) {
		if word != "const" {
			b.WriteString(word)
		}
	}
	return b.String()
}

// Function is one of the table, or one of the application's.
type Function struct {
	Name   string
	Result Type
	Params []Field
}

var (
	comments   = regexp.MustCompile(`(?s)/\*.*?\*/|//[^\n]*`)
	directives = regexp.MustCompile(`(?m)^[ \t]*#.*$`)
	abiVersion = regexp.MustCompile(`(?m)^#define SPARSEK_ABI_VERSION (\d+)$`)
	opaque     = regexp.MustCompile(`\btypedef\s+struct\s+sparsek_(\w+)\s+sparsek_(\w+)\s*;`)
	untyped    = regexp.MustCompile(`\btypedef\s+void\s*\*\s*sparsek_(\w+)\s*;`)
	typedef    = regexp.MustCompile(`(?s)\btypedef\s+(enum|struct)\s+sparsek_(\w+)\s*\{(.*?)\}\s*sparsek_(\w+)\s*;`)
	enumMember = regexp.MustCompile(`^SPARSEK_(\w+)\s*=\s*(\d+)$`)
	pointer    = regexp.MustCompile(`(?s)^(.*?)\(\*(\w+)\)\((.*)\)$`)
	declarator = regexp.MustCompile(`^(\*?)\s*([a-z]\w*)(?:\[(\d+)\])?$`)
	firstNames = regexp.MustCompile(`^(.*?[\w*])\s*(\b[a-z]\w*(?:\[\d+\])?)$`)
)

// table is the struct of functions.
const table = "api"

// Read reads the header of the checkout at root.
func Read(root string) (*Header, error) {
	text, err := os.ReadFile(filepath.Join(root, Name))
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Parse reads the text of sparsek.h.
func Parse(text []byte) (*Header, error) {
	h := &Header{}
	if err := h.parse(string(text)); err != nil {
		return nil, fmt.Errorf("%s: %w", Name, err)
	}
	return h, nil
}

func (h *Header) parse(text string) error {
	version := abiVersion.FindStringSubmatch(text)
	if version == nil {
		return fmt.Errorf("the header does not define SPARSEK_ABI_VERSION")
	}
	h.ABIVersion = version[1]
	plain := directives.ReplaceAllString(comments.ReplaceAllString(text, " "), "")
	for _, m := range opaque.FindAllStringSubmatch(plain, -1) {
		if m[1] != m[2] {
			return fmt.Errorf("struct sparsek_%s is also called sparsek_%s", m[1], m[2])
		}
		h.Opaque = append(h.Opaque, m[1])
	}
	for _, m := range untyped.FindAllStringSubmatch(plain, -1) {
		h.Pointers = append(h.Pointers, m[1])
	}
	for _, m := range typedef.FindAllStringSubmatch(plain, -1) {
		kind, name, body := m[1], m[2], m[3]
		if name != m[4] {
			return fmt.Errorf("%s sparsek_%s is also called sparsek_%s", kind, name, m[4])
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
			return fmt.Errorf("%s sparsek_%s: %w", kind, name, err)
		}
	}
	if n := strings.Count(plain, "{") - 1; n != len(h.Enums)+len(h.Structs)+1 || len(h.Functions) == 0 {
		// The one brace more is that of extern "C".
		return fmt.Errorf("of %d types in braces, %d enumerations, %d structs and %d functions were understood",
			n, len(h.Enums), len(h.Structs), len(h.Functions))
	}
	return nil
}

func (h *Header) addEnum(name, body string) error {
	e := Enum{Name: name}
	for item := range strings.SplitSeq(body, ",") {
		item = strings.TrimSpace(item)
		if item == "" {
			continue
		}
		m := enumMember.FindStringSubmatch(item)
		if m == nil {
			return fmt.Errorf("%q is not SPARSEK_NAME = number", item)
		}
		e.Members = append(e.Members, Member{m[1], m[2]})
	}
	h.Enums = append(h.Enums, e)
	return nil
}

func (h *Header) addStruct(name, body string) error {
	s := Struct{Name: name}
	for _, statement := range statements(body) {
		if m := pointer.FindStringSubmatch(statement); m != nil {
			s.Fields = append(s.Fields, Field{Name: m[2], Type: "void*", Function: newFunction(m)})
			continue
		}
		fields, err := declaration(statement)
		if err != nil {
			return err
		}
		s.Fields = append(s.Fields, fields...)
	}
	h.Structs = append(h.Structs, s)
	return nil
}

// addTable reads the functions; before them come abi_size and abi_version.
func (h *Header) addTable(body string) error {
	all := statements(body)
	if len(all) < 2 || squeeze(all[0]) != "size_t abi_size" || squeeze(all[1]) != "int32_t abi_version" {
		return fmt.Errorf("it does not begin with abi_size and abi_version")
	}
	for _, statement := range all[2:] {
		m := pointer.FindStringSubmatch(statement)
		if m == nil {
			return fmt.Errorf("%q is not a function", squeeze(statement))
		}
		h.Functions = append(h.Functions, *newFunction(m))
	}
	return nil
}

// newFunction is the function of a match of pointer.
func newFunction(m []string) *Function {
	f := &Function{Name: m[2], Result: typeOf(m[1])}
	for param := range strings.SplitSeq(m[3], ",") {
		if squeeze(param) != "void" {
			f.Params = append(f.Params, parameter(param))
		}
	}
	return f
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
func declaration(statement string) ([]Field, error) {
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
	var fields []Field
	for i, name := range names {
		d := declarator.FindStringSubmatch(strings.TrimSpace(name))
		if d == nil {
			return nil, fmt.Errorf("%q is not understood", text)
		}
		star := d[1]
		if i == 0 {
			star = own
		}
		fields = append(fields, Field{Name: d[2], Type: typeOf(base + star), Count: d[3]})
	}
	return fields, nil
}

// parameter is a parameter, which may have a name.
func parameter(param string) Field {
	text := squeeze(param)
	if i := strings.LastIndexAny(text, "* "); i >= 0 {
		last, before := text[i+1:], typeOf(text[:i+1])
		if before.Bare() != "" && last != "" && last != "const" && !strings.HasPrefix(last, "sparsek_") {
			return Field{Name: last, Type: before}
		}
	}
	return Field{Type: typeOf(text)}
}

// typeOf is a type in the form of [Type].
func typeOf(text string) Type {
	return Type(strings.ReplaceAll(squeeze(strings.ReplaceAll(text, "*", "* ")), " *", "*"))
}

func squeeze(text string) string { return strings.Join(strings.Fields(text), " ") }
