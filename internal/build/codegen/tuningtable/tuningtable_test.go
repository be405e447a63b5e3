// SPDX-License-Identifier: Apache-2.0

package tuningtable

import (
	"strings"
	"testing"
	"testing/fstest"
)

func TestSource(t *testing.T) {
	text, err := Source(fstest.MapFS{
		"h200.txt": {Data: []byte("first \"line\"\nsecond")}, "a100.txt": {Data: nil}, "notes.md": {Data: []byte("not this")},
	})
	if err != nil {
		t.Fatal(err)
	}
	want := `    {"a100.txt",
     ""},
    {"h200.txt",
     "first \"line\"\012"
     "second"
     ""},
    {nullptr, nullptr}};
const int kShippedFileCount = 2;
`
	if !strings.Contains(string(text), want) {
		t.Errorf("got\n%s\nwant in it\n%s", text, want)
	}
	if text, err := Source(fstest.MapFS{}); err != nil || !strings.Contains(string(text), "kShippedFileCount = 0;") {
		t.Errorf("without a file: %s, %v", text, err)
	}
}
