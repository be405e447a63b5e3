// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o666); err != nil {
		t.Fatal(err)
	}
}

func TestFresh(t *testing.T) {
	root := t.TempDir()
	in, out, file := filepath.Join(root, "in"), filepath.Join(root, "out"), filepath.Join(root, "s.json")
	outside := filepath.Join(t.TempDir(), "outside")
	reset := func() {
		write(t, in, "in")
		write(t, out, "out")
		write(t, outside, "outside")
	}
	reset()
	s, err := Stamp{Key: "key", Log: "said", Milliseconds: 7}.Record(NewHasher(), root, time.Now().Add(time.Hour), []string{"in", outside}, []string{"out"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Write(file); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		change func()
		key    string
		want   bool
	}{
		"nothing changed": {func() {}, "key", true},
		"touched": {func() {
			if err := os.Chtimes(in, time.Now(), time.Now().Add(time.Minute)); err != nil {
				t.Fatal(err)
			}
		}, "key", true},
		"other command":  {func() {}, "other", false},
		"input":          {func() { write(t, in, "IN") }, "key", false},
		"outside input":  {func() { write(t, outside, "OUTSIDE") }, "key", false},
		"output":         {func() { write(t, out, "ou") }, "key", false},
		"missing output": {func() { os.Remove(out) }, "key", false},
		"missing input":  {func() { os.Remove(in) }, "key", false},
	} {
		reset()
		c.change()
		loaded, ok := Load(file)
		if !ok || loaded.Log != "said" {
			t.Fatalf("%s: loaded %+v, %v", name, loaded, ok)
		}
		if got := loaded.Fresh(NewHasher(), root, c.key); got != c.want {
			t.Errorf("%s: fresh is %v", name, got)
		}
	}
}

func TestDamagedStampIsNone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "s.json")
	if _, ok := Load(path); ok {
		t.Error("a missing stamp was loaded")
	}
	write(t, path, `{"key": "k`)
	if _, ok := Load(path); ok {
		t.Error("half a stamp was loaded")
	}
	write(t, path, `{}`)
	if s, ok := Load(path); ok && s.Fresh(NewHasher(), "", "") {
		t.Error("an empty stamp is fresh")
	}
}

func TestRecordRefusesInputsOfNow(t *testing.T) {
	root := t.TempDir()
	began, err := Now(root)
	if err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(root, "in"), "in")
	// An old modification time, as tar and cp -p give, does not hide it.
	if err := os.Chtimes(filepath.Join(root, "in"), time.Unix(1, 0), time.Unix(1, 0)); err != nil {
		t.Fatal(err)
	}
	_, err = Stamp{Key: "key"}.Record(NewHasher(), root, began, []string{"in"}, nil)
	if !errors.Is(err, ErrChanged) {
		t.Errorf("got %v, want ErrChanged", err)
	}
	began, err = Now(root)
	if err != nil {
		t.Fatal(err)
	}
	if _, err = (Stamp{Key: "key"}).Record(NewHasher(), root, began, []string{"in"}, nil); err != nil {
		t.Errorf("written before: %v", err)
	}
	if left, _ := filepath.Glob(filepath.Join(root, "clock*")); left != nil {
		t.Errorf("left behind: %v", left)
	}
}

func TestHasherSeesChanges(t *testing.T) {
	path := filepath.Join(t.TempDir(), "f")
	h := NewHasher()
	sums := map[string]bool{}
	for i, text := range []string{"a", "b", "bb"} {
		write(t, path, text)
		if err := os.Chtimes(path, time.Time{}, time.Unix(int64(i), 0)); err != nil {
			t.Fatal(err)
		}
		sum, err := h.File(path)
		if err != nil {
			t.Fatal(err)
		}
		sums[sum] = true
	}
	if len(sums) != 3 {
		t.Errorf("three contents gave %d digests", len(sums))
	}
	if _, err := h.File(path + "x"); err == nil {
		t.Error("a missing file was hashed")
	}
}

func TestKeySeparatesParts(t *testing.T) {
	if Key("ab", "c") == Key("a", "bc") || Key("a") == Key("a", "") {
		t.Error("parts run into each other")
	}
}

func TestParseDepfile(t *testing.T) {
	got, err := ParseDepfile("x.o : b/../a.cu \\\n  /usr/include/s.h \\\n  /cuda/bin/..//include/c.h a.cu\n" +
		"y.o: with\\ space.h hash\\#.h dollar$$.h\n")
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"/cuda/include/c.h", "/usr/include/s.h", "a.cu", "dollar$.h", "hash#.h", "with space.h"}
	if !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
	for _, bad := range []string{"", "\n", "a.cu b.h\n", "x.o:\n"} {
		if got, err := ParseDepfile(bad); err == nil {
			t.Errorf("%q gave %q", bad, got)
		}
	}
}

func TestParseDepfileReadsWhatIsEscaped(t *testing.T) {
	escape := strings.NewReplacer(" ", `\ `, "#", `\#`, "$", "$$")
	rapid.Check(t, func(t *rapid.T) {
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[a-zA-Z0-9_.+#$-][a-zA-Z0-9_.+#$ -]*[a-z]`), 1, 8, rapid.ID).
			Draw(t, "names")
		var b strings.Builder
		b.WriteString("out.o:")
		for _, name := range names {
			b.WriteString(" \\\n  " + escape.Replace(name))
		}
		got, err := ParseDepfile(b.String() + "\n")
		if err != nil {
			t.Fatal(err)
		}
		slices.Sort(names)
		if !slices.Equal(got, names) {
			t.Fatalf("wrote %q, read %q", names, got)
		}
	})
}

func FuzzParseDepfile(f *testing.F) {
	f.Add("x.o: a.cu \\\n b.h\n")
	f.Fuzz(func(t *testing.T, text string) {
		if files, err := ParseDepfile(text); err == nil && len(files) == 0 {
			t.Error("neither files nor an error")
		}
	})
}
