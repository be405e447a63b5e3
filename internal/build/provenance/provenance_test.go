// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

func sample() Predicate {
	return Predicate{
		BuildDefinition: BuildDefinition{
			BuildType:          BuildType,
			ExternalParameters: ExternalParameters{Commit: "c0ffee", Target: "libx.so"},
			InternalParameters: InternalParameters{Compilers: map[string]string{"host": "g++ <1>"},
				Commands: []Command{{"x.o", []string{"g++", "-DX=\"a\\b\"", "x.cpp"}}}},
			ResolvedDependencies: []Resource{{Name: "x.cpp", Digest: map[string]string{"sha256": "abc"}}},
		},
		RunDetails: RunDetails{BuilderID{Builder, map[string]string{"sparsek": "1"}}},
	}
}

// library links a shared library as the build does, with a note if there is a
// payload.
func library(t *testing.T, payload []byte) string {
	t.Helper()
	cxx, err := exec.LookPath("g++")
	if err != nil {
		t.Skip("skipped: no g++")
	}
	dir := t.TempDir()
	args := []string{"-shared", "-fPIC", "-Wl,--gc-sections", "-Wl,--strip-debug", "-o", "libx.so", "x.cpp"}
	files := map[string][]byte{"x.cpp": []byte("extern \"C\" int x() { return 1; }\n")}
	if payload != nil {
		files["p.json"], files["p.s"] = payload, Assembly("p.json")
		args = append(args, "p.s")
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o666); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(cxx, args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return filepath.Join(dir, "libx.so")
}

func TestThroughALibrary(t *testing.T) {
	text, err := sample().Encode()
	if err != nil {
		t.Fatal(err)
	}
	path := library(t, text)
	got, err := Read(path)
	if err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	sum := sha256.Sum256(data)
	if diff := cmp.Diff(sample().About("libx.so", hex.EncodeToString(sum[:])), got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if out, err := exec.Command("readelf", "-lW", path).CombinedOutput(); err == nil && bytes.Contains(out, []byte(section)) {
		t.Error("the note is loaded")
	}
}

func TestReadRefuses(t *testing.T) {
	if _, err := Read(library(t, nil)); !errors.Is(err, ErrNone) {
		t.Errorf("no note: %v", err)
	}
	if _, err := Read(library(t, []byte("no JSON"))); err == nil || !strings.Contains(err.Error(), section) {
		t.Errorf("no JSON: %v", err)
	}
	text := filepath.Join(t.TempDir(), "x")
	if err := os.WriteFile(text, []byte("no ELF file"), 0o666); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{text, text + "-missing"} {
		if _, err := Read(path); err == nil || !strings.Contains(err.Error(), path) {
			t.Errorf("%s: %v", path, err)
		}
	}
}

func note(name string, kind uint32, payload []byte) []byte {
	data := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
	data = binary.LittleEndian.AppendUint32(data, uint32(len(payload)))
	data = binary.LittleEndian.AppendUint32(data, kind)
	for _, part := range [][]byte{[]byte(name), payload} {
		data = append(data, part...)
		for len(data)%4 != 0 {
			data = append(data, 0)
		}
	}
	return data
}

func TestParseNote(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		payload := rapid.SliceOfN(rapid.Byte(), 0, 40).Draw(t, "payload")
		whole := note(owner+"\x00", noteType, payload)
		got, err := parseNote(whole, binary.LittleEndian)
		if err != nil || !bytes.Equal(got, payload) {
			t.Fatalf("%q, %v", got, err)
		}
		// Nothing past the end is read, whatever the sizes say.
		cut := rapid.IntRange(0, len(whole)).Draw(t, "cut")
		if got, err := parseNote(whole[:cut:cut], binary.LittleEndian); err == nil && !bytes.Equal(got, payload) {
			t.Fatalf("cut to %d: %q", cut, got)
		}
		damaged := bytes.Clone(whole)
		damaged[rapid.IntRange(0, 11).Draw(t, "at")] ^= 0x80
		if got, err := parseNote(damaged, binary.LittleEndian); err == nil {
			t.Fatalf("damaged: %q", got)
		}
	})
	for name, data := range map[string][]byte{
		"another owner": note("someone\x00", noteType, nil), "another type": note(owner+"\x00", 2, nil), "empty": nil,
	} {
		if got, err := parseNote(data, binary.LittleEndian); err == nil {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// The names are those of the specifications.
func TestStatementFormat(t *testing.T) {
	text, err := sample().About("libx.so", "abc").Encode()
	if err != nil {
		t.Fatal(err)
	}
	var got map[string]any
	if err := json.Unmarshal(text, &got); err != nil {
		t.Fatal(err)
	}
	predicate := got["predicate"].(map[string]any)
	if got["_type"] != "https://in-toto.io/Statement/v1" || got["predicateType"] != "https://slsa.dev/provenance/v1" {
		t.Errorf("%s", text)
	}
	for name, object := range map[string]any{
		"buildType": predicate["buildDefinition"], "externalParameters": predicate["buildDefinition"],
		"resolvedDependencies": predicate["buildDefinition"], "builder": predicate["runDetails"], "subject": got,
	} {
		if _, ok := object.(map[string]any)[name]; !ok {
			t.Errorf("no %s in %s", name, text)
		}
	}
	if !bytes.Contains(text, []byte("g++ <1>")) {
		t.Errorf("letters are escaped: %s", text)
	}
}

func TestDirHash(t *testing.T) {
	got, err := DirHash("h1:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=")
	if want := "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"; err != nil || got != want {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"", "h1:", "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=", "h1:AAAA", "h1:?"} {
		if got, err := DirHash(bad); err == nil {
			t.Errorf("%q gives %q", bad, got)
		}
	}
}
