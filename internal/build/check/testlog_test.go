// SPDX-License-Identifier: Apache-2.0

package check

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/google/go-cmp/cmp"
)

const goodTests = `package good
import "testing"
func TestGood(t *testing.T) { t.Log("of no interest") }
func TestEach(t *testing.T) {
	t.Run("cpu", func(t *testing.T) {})
	t.Run("cuda", func(t *testing.T) { t.Log("looking for one"); t.Skip("skipped: no GPU") })
}
func TestGPU(t *testing.T) { t.Skip("skipped: no GPU") }
func TestTool(t *testing.T) { t.Skipf("skipped: no %s", "pip here") }
func TestSilent(t *testing.T) {
	t.Log("looking")
	t.Run("sub", func(t *testing.T) { t.SkipNow() })
}
`

const badTests = `package bad
import "testing"
func TestGood(t *testing.T) { t.Log("of no interest") }
func TestParent(t *testing.T) {
	t.Run("quiet", func(t *testing.T) { t.Log("of no interest") })
	t.Run("loud", func(t *testing.T) { t.Errorf("first line\nsecond line") })
}
func TestGPU(t *testing.T) { t.Skip("skipped: no GPU") }
func TestPanic(t *testing.T) { panic("out of order") }
`

const exitingTests = `package exiting
import ("fmt"; "os"; "testing")
func TestMain(m *testing.M) { m.Run(); fmt.Println("cannot clean up"); os.Exit(3) }
func TestGood(t *testing.T) {}
`

// tree is a module with the files given.
func tree(t *testing.T, files map[string]string) string {
	t.Helper()
	root := t.TempDir()
	files["go.mod"] = "module m\ngo 1.26\n"
	for name, text := range files {
		path := filepath.Join(root, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o777); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	return root
}

func runIn(t *testing.T, root string) (string, error) {
	t.Helper()
	if _, err := exec.LookPath("go"); err != nil {
		t.Skip("skipped: no go")
	}
	var out bytes.Buffer
	err := runTests(t.Context(), root, [][]string{{"go", "test", "-json", "-count=1", "./..."}},
		append(os.Environ(), "GOFLAGS=", "GOWORK=off"), &out, nil)
	return out.String(), err
}

func TestSkippedTestsAreReported(t *testing.T) {
	out, err := runIn(t, tree(t, map[string]string{
		"good/good_test.go": goodTests, "none/none.go": "package none\n",
		"other/other_test.go": "package other\nimport \"testing\"\nfunc TestX(t *testing.T) { t.Skip(\"skipped: no GPU\") }\n",
	}))
	if err != nil {
		t.Fatal(err)
	}
	// Packages come in any order.
	lines := strings.Split(strings.TrimSuffix(out, "\n"), "\n")
	if len(lines) != 7 {
		t.Fatalf("%d lines:\n%s", len(lines), out)
	}
	packages := lines[:3]
	slices.Sort(packages)
	for i, want := range []string{"?   \tm/none\t[no test files]", "ok  \tm/good\t", "ok  \tm/other\t"} {
		if !strings.HasPrefix(packages[i], want) {
			t.Errorf("%q is missing:\n%s", want, out)
		}
	}
	want := []string{"skipped: no GPU: 2 tests in m/good, 1 test in m/other", "skipped: no pip here: 1 test in m/good",
		"skipped: no reason given: 1 test in m/good", "2 packages: 2 passed, 0 failed, 5 skipped"}
	if diff := cmp.Diff(want, lines[3:]); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestFailuresAreShownWhole(t *testing.T) {
	out, err := runIn(t, tree(t, map[string]string{
		"bad/bad_test.go": badTests, "broken/broken_test.go": "package broken\nfunc f() { undefined() }\n", "good/good_test.go": goodTests,
		"exiting/exiting_test.go": exitingTests,
	}))
	if err == nil {
		t.Error("no error")
	}
	for _, want := range []string{"first line\n        second line\n", "--- FAIL: TestParent", "--- FAIL: TestParent/loud",
		"--- FAIL: TestPanic", "panic: out of order", "bad_test.go:9", "FAIL\tm/bad\t",
		"cannot clean up\n", "FAIL\tm/exiting\t", "undefined: undefined", "FAIL\tm/broken [build failed]\n",
		"skipped: no GPU: 1 test in m/bad, 2 tests in m/good\n", "ok  \tm/good\t",
		"\n4 packages: 5 passed, 4 failed, 5 skipped\n"} {
		if !strings.Contains(out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	if strings.Contains(out, "of no interest") || strings.Contains(out, "TestGood") {
		t.Error("what passed is printed too")
	}
	if t.Failed() {
		t.Log(out)
	}
}

// Input comes in any pieces; what is no event is passed on; where the input
// ends early nothing is lost.
func TestLogOfPieces(t *testing.T) {
	const input = `warning: not JSON
{"Action":"output","Package":"m/a","Test":"TestA","Output":"=== RUN   TestA\n"}
{"Action":"output","Package":"m/a","Test":"TestA","Output":"half done\n"}
{"Action":"output","Package":"` + wrapper + `","Test":"TestB","Output":"    b_test.go:9: skipped: no GPU\n"}
{"Action":"skip","Package":"` + wrapper + `","Test":"TestB"}
cut off`
	var out bytes.Buffer
	log := newTestLog(&out, nil)
	buffer := make([]byte, 1)
	for r := iotest.OneByteReader(strings.NewReader(input)); ; {
		n, err := r.Read(buffer)
		if err != nil {
			break
		}
		if _, err := log.Write(buffer[:n]); err != nil {
			t.Fatal(err)
		}
	}
	if err := log.finish(); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("warning: not JSON\n=== RUN   TestA\nhalf done\ncut off\nskipped: no GPU: 1 test in wrapper\n"+
		"0 packages: 0 passed, 0 failed, 1 skipped\n", out.String()); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
