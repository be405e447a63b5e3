// SPDX-License-Identifier: Apache-2.0

package pybindings

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
	header, err := os.ReadFile(filepath.Join(root, cheader.Name))
	if err != nil {
		t.Fatal(err)
	}
	want, err := Source(header)
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

func TestWrite(t *testing.T) {
	dir := t.TempDir()
	for _, file := range []string{cheader.Name, File} {
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(file)), 0o777); err != nil {
			t.Fatal(err)
		}
	}
	if err := Write(dir); err == nil || !strings.Contains(err.Error(), cheader.Name) {
		t.Errorf("without a header: %v", err)
	}
	if err := os.WriteFile(filepath.Join(dir, cheader.Name), []byte(small), 0o666); err != nil {
		t.Fatal(err)
	}
	if err := Write(dir); err != nil {
		t.Fatal(err)
	}
	want, err := Source([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := os.ReadFile(filepath.Join(dir, File)); err != nil || !bytes.Equal(got, want) {
		t.Errorf("wrote %q, %v", got, err)
	}
}

const small = `#ifndef H_
#define SPARSEK_ABI_VERSION 7
extern "C" {
typedef enum sparsek_tuning_source { SPARSEK_TUNING_FILE = 0, /* a, b = 3 */ SPARSEK_TUNING_SHIPPED = 1 } sparsek_tuning_source;
typedef enum sparsek_op { SPARSEK_DSD = 0, SPARSEK_DSD_T = 1 } sparsek_op;
typedef struct sparsek_plan sparsek_plan; // opaque
typedef void* sparsek_stream;
typedef struct sparsek_some_info {
  size_t abi_size;
  const char* name;
  char text[256];
  int32_t a, b;
  const float *x, *y; /* two */
  const void* const* list;
  void* (*allocate)(void* user, size_t bytes);
  sparsek_stream stream;
} sparsek_some_info;
typedef struct sparsek_api {
  size_t abi_size;
  int32_t abi_version;
  const char* (*last_error)(void);
  sparsek_op (*make)(sparsek_plan* const* plans, const sparsek_some_info*, int32_t n, sparsek_plan** out, double* seconds,
                     sparsek_stream);
  void (*drop)(sparsek_plan*);
} sparsek_api;
}
#endif
`

func TestSource(t *testing.T) {
	text, err := Source([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"ABI_VERSION = 7\n",
		"class TuningSource(enum.IntEnum):\n    FILE = 0\n    SHIPPED = 1\n",
		"class Op(enum.IntEnum):\n    DSD = 0\n    DSD_T = 1\n",
		`class SomeInfo(Versioned):
    _fields_ = (
        ("abi_size", ctypes.c_size_t),
        ("name", ctypes.c_char_p),
        ("text", ctypes.c_char * 256),
        ("a", ctypes.c_int32),
        ("b", ctypes.c_int32),
        ("x", ctypes.c_void_p),
        ("y", ctypes.c_void_p),
        ("list", ctypes.c_void_p),
        ("allocate", ctypes.c_void_p),
        ("stream", ctypes.c_void_p),
    )
`,
		"        (\"last_error\", ctypes.CFUNCTYPE(ctypes.c_char_p)),\n",
		`        (
            "make",
            ctypes.CFUNCTYPE(
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.POINTER(SomeInfo),
                ctypes.c_int32,
                ctypes.c_void_p,
                ctypes.c_void_p,
                ctypes.c_void_p,
            ),
        ),
`,
		"        (\"drop\", ctypes.CFUNCTYPE(None, ctypes.c_void_p)),\n",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s\nis not in\n%s", want, text)
		}
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, c := range []struct{ old, bad, says string }{
		{"#define SPARSEK_ABI_VERSION 7", "", "SPARSEK_ABI_VERSION"},
		{"SPARSEK_DSD_T = 1", "SPARSEK_DSD_T", "SPARSEK_NAME = number"},
		{"int32_t a, b;", "long a;", `"long"`},
		{"int32_t a, b;", "int32_t a : 3;", "int32_t a : 3"},
		{"int32_t a, b;", "int32_t from;", "keyword"},
		{"int32_t a, b;", "struct { int x; } a;", "not understood"},
		{"int32_t n,", "long n,", `"long"`},
		{"} sparsek_op;", "} sparsek_ops;", "sparsek_ops"},
		{"  int32_t abi_version;\n", "", "abi_version"},
		{"void (*drop)(sparsek_plan*);", "int32_t drop;", "not a function"},
		{"sparsek_some_info {\n  size_t abi_size;", "sparsek_some_info {", "abi_size"},
		{"typedef void* sparsek_stream;", "typedef struct { int x; } unnamed;", "in braces"},
	} {
		text := strings.Replace(small, c.old, c.bad, 1)
		if text == small {
			t.Fatalf("%q is not in the header", c.old)
		}
		if _, err := Source([]byte(text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %v, want an error that says %q", c.bad, err, c.says)
		}
	}
}
