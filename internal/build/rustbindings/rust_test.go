// SPDX-License-Identifier: Apache-2.0

package rustbindings

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/build/cheader"
)

const root = "../../.."

func TestBindingsAreTheHeaders(t *testing.T) {
	h, err := cheader.Read(root)
	if err != nil {
		t.Fatal(err)
	}
	want, err := Source(h)
	if err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(filepath.Join(root, File))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s is not what %s says: go tool mage format writes it", File, cheader.Name)
	}
}

const small = `#define SPARSEK_ABI_VERSION 7
extern "C" {
typedef enum sparsek_op { SPARSEK_DSD = 0, SPARSEK_DSD_T = 1 } sparsek_op;
typedef struct sparsek_plan sparsek_plan;
typedef void* sparsek_stream;
typedef struct sparsek_some_info {
  size_t abi_size;
  const char* name;
  char text[256];
  const float *x, *y;
  const void* const* list;
  void* const* all;
  void* (*allocate)(void* user, size_t bytes);
} sparsek_some_info;
typedef struct sparsek_api {
  size_t abi_size;
  int32_t abi_version;
  sparsek_op (*make)(sparsek_plan* const* plans, const sparsek_some_info*, sparsek_plan** out, sparsek_stream);
  void (*drop)(sparsek_plan*);
} sparsek_api;
}
`

func TestSource(t *testing.T) {
	h, err := cheader.Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	text, err := Source(h)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"pub const SPARSEK_ABI_VERSION: i32 = 7;\n",
		"pub struct sparsek_plan {\n    _opaque: crate::Opaque,\n}\n",
		"pub type sparsek_stream = *mut c_void;\n",
		"pub type sparsek_op = i32;\npub const SPARSEK_DSD: sparsek_op = 0;\npub const SPARSEK_DSD_T: sparsek_op = 1;\n",
		`pub struct sparsek_some_info {
    pub abi_size: usize,
    pub name: *const c_char,
    pub text: [c_char; 256],
    pub x: *const f32,
    pub y: *const f32,
    pub list: *const *const c_void,
    pub all: *const *mut c_void,
    pub allocate: Option<unsafe extern "C" fn(user: *mut c_void, bytes: usize) -> *mut c_void>,
}

crate::versioned!(sparsek_some_info);
`,
		`pub struct sparsek_api {
    pub abi_size: usize,
    pub abi_version: i32,
    pub make: unsafe extern "C" fn(plans: *const *mut sparsek_plan, *const sparsek_some_info, out: *mut *mut sparsek_plan, sparsek_stream) -> sparsek_op,
    pub drop: unsafe extern "C" fn(*mut sparsek_plan),
}
`,
		"    (\"offsetof(sparsek_some_info, x)\", core::mem::offset_of!(sparsek_some_info, x)),\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nis not in\n%s", want, text)
		}
	}
}

func TestWhatRustCannotSayIsAnError(t *testing.T) {
	for _, c := range []struct{ old, bad, says string }{
		{"const char* name;", "long name;", `"long"`},
		{"const char* name;", "const char* type;", "keyword"},
		{"const char* name;", "const char* final;", "keyword"},
		{"sparsek_plan** out,", "sparsek_plans** out,", "sparsek_plans"},
		{"sparsek_some_info {\n  size_t abi_size;", "sparsek_some_info {", "abi_size"},
	} {
		text := strings.Replace(small, c.old, c.bad, 1)
		if text == small {
			t.Fatalf("%q is not in the header", c.old)
		}
		h, err := cheader.Parse([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Source(h); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %v, want an error that says %q", c.bad, err, c.says)
		}
	}
}

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	if err := Write(dir); err == nil || !strings.Contains(err.Error(), cheader.Name) {
		t.Errorf("without a header: %v", err)
	}
	for _, file := range []string{cheader.Name, File} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, cheader.Name), []byte(small), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	if text, err := os.ReadFile(filepath.Join(dir, File)); err != nil || !strings.Contains(string(text), "VERSION: i32 = 7") {
		t.Errorf("wrote %q, %v", text, err)
	}
}
