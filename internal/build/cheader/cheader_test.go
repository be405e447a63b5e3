// SPDX-License-Identifier: Apache-2.0

package cheader

import (
	"reflect"
	"strings"
	"testing"
)

const small = `#define SPARSEK_ABI_VERSION 7
extern "C" {
typedef enum sparsek_op { SPARSEK_DSD = 0, /* a, b = 3 */ SPARSEK_DSD_T = 1 } sparsek_op;
typedef struct sparsek_plan sparsek_plan; // opaque
typedef void* sparsek_stream;
typedef struct sparsek_some_info {
  size_t abi_size;
  char text[256];
  int32_t a, b;
  const float *x, *y; /* two */
  const void* const* list;
  void* (*allocate)(void* user, const char*, sparsek_stream stream);
} sparsek_some_info;
typedef struct sparsek_api {
  size_t abi_size;
  int32_t abi_version;
  const char* (*last_error)(void);
  sparsek_op (*make)(sparsek_plan* const* plans, const sparsek_some_info*, const double * x,
                     sparsek_stream);
} sparsek_api;
}
`

func TestParse(t *testing.T) {
	got, err := Parse([]byte(small))
	if err != nil {
		t.Fatal(err)
	}
	want := &Header{
		ABIVersion: "7",
		Opaque:     []string{"plan"},
		Pointers:   []string{"stream"},
		Enums:      []Enum{{"op", []Member{{"DSD", "0"}, {"DSD_T", "1"}}}},
		Structs: []Struct{{"some_info", []Field{
			{Name: "abi_size", Type: "size_t"},
			{Name: "text", Type: "char", Count: "256"},
			{Name: "a", Type: "int32_t"}, {Name: "b", Type: "int32_t"},
			{Name: "x", Type: "const float*"}, {Name: "y", Type: "const float*"},
			{Name: "list", Type: "const void* const*"},
			{Name: "allocate", Type: "void*", Function: &Function{"allocate", "void*", []Field{
				{Name: "user", Type: "void*"}, {Type: "const char*"}, {Name: "stream", Type: "sparsek_stream"}}}},
		}}},
		Functions: []Function{
			{"last_error", "const char*", nil},
			{"make", "sparsek_op", []Field{{Name: "plans", Type: "sparsek_plan* const*"}, {Type: "const sparsek_some_info*"},
				{Name: "x", Type: "const double*"}, {Type: "sparsek_stream"}}},
		},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
	if bare := Type("sparsek_plan* const*").Bare(); bare != "sparsek_plan**" {
		t.Errorf("bare: %q", bare)
	}
}

func TestRead(t *testing.T) {
	h, err := Read("../../..")
	if err != nil {
		t.Fatal(err)
	}
	if len(h.Functions) < 40 || len(h.Opaque) < 5 || len(h.Enums) < 10 || len(h.Structs) < 10 {
		t.Errorf("read %d functions, %d opaque types, %d enumerations and %d structs",
			len(h.Functions), len(h.Opaque), len(h.Enums), len(h.Structs))
	}
	if _, err := Read(t.TempDir()); err == nil || !strings.Contains(err.Error(), Name) {
		t.Errorf("without a header: %v", err)
	}
}

func TestWhatIsNotUnderstoodIsAnError(t *testing.T) {
	for _, c := range []struct{ old, bad, says string }{
		{"#define SPARSEK_ABI_VERSION 7", "", "SPARSEK_ABI_VERSION"},
		{"SPARSEK_DSD_T = 1", "SPARSEK_DSD_T", "SPARSEK_NAME = number"},
		{"int32_t a, b;", "int32_t a : 3;", "int32_t a : 3"},
		{"int32_t a, b;", "struct { int x; } a;", "not understood"},
		{"} sparsek_op;", "} sparsek_ops;", "sparsek_ops"},
		{"sparsek_plan sparsek_plan;", "sparsek_plan sparsek_plans;", "sparsek_plans"},
		{"  int32_t abi_version;\n", "", "abi_version"},
		{"const char* (*last_error)(void);", "int32_t drop;", "not a function"},
		{"typedef void* sparsek_stream;", "typedef struct { int x; } unnamed;", "in braces"},
	} {
		text := strings.Replace(small, c.old, c.bad, 1)
		if text == small {
			t.Fatalf("%q is not in the header", c.old)
		}
		if _, err := Parse([]byte(text)); err == nil || !strings.Contains(err.Error(), c.says) {
			t.Errorf("%q: got %v, want an error that says %q", c.bad, err, c.says)
		}
	}
}
