// SPDX-License-Identifier: Apache-2.0

package bundle

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// bom is a bill of materials in CycloneDX's format, as much of it as is
// needed. It has no time and no number of its own, so that the same contents
// give the same bytes.
type bom struct {
	Format       string       `json:"bomFormat"`
	SpecVersion  string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string          `json:"type"`
	Ref        string          `json:"bom-ref"`
	Name       string          `json:"name"`
	Version    string          `json:"version"`
	Scope      string          `json:"scope,omitempty"`
	Hashes     []hash          `json:"hashes,omitempty"`
	Licences   []licenceChoice `json:"licenses,omitempty"`
	PURL       string          `json:"purl"`
	Properties []property      `json:"properties,omitempty"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

// licenceChoice is a licence by its name in SPDX's list, or else an expression.
type licenceChoice struct {
	Licence    *namedLicence `json:"license,omitempty"`
	Expression string        `json:"expression,omitempty"`
}

type namedLicence struct {
	ID string `json:"id"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

// What is in the library or the program is required; what only makes or tests
// them is excluded, as CycloneDX calls it.
const (
	required = "required"
	excluded = "excluded"
)

// inLibrary are the packages of which headers or code end up in the library.
var inLibrary = []string{"nvidia-cuda-runtime", "nvidia-cuda-cccl", "nvidia-cuda-crt"}

func newBOM(version, commit string) *bom {
	purl := "pkg:golang/github.com/sparsek/sparsek@v" + version
	return &bom{Format: "CycloneDX", SpecVersion: "1.6", Version: 1,
		Metadata: metadata{component{Type: "library", Ref: purl, Name: "sparsek", Version: version, PURL: purl,
			Licences: licences("Apache-2.0"), Properties: []property{{"sparsek:commit", orUnknown(commit)}}}},
		Components: []component{}, Dependencies: []dependency{{purl, []string{}}}}
}

// add adds a component that sparsek is made with.
func (b *bom) add(c component) {
	c.Type, c.Ref = "library", c.PURL
	b.Components = append(b.Components, c)
	b.Dependencies[0].DependsOn = append(b.Dependencies[0].DependsOn, c.Ref)
	b.Dependencies = append(b.Dependencies, dependency{c.Ref, []string{}})
}

func (b *bom) addCUTLASS(c lock.CUTLASS) {
	b.add(component{Name: "cutlass", Version: c.Version, Scope: required, Licences: licences("BSD-3-Clause"),
		PURL:       "pkg:github/nvidia/cutlass@" + c.Commit,
		Properties: []property{{"sparsek:dirhash:include", c.Include}, {"sparsek:dirhash:tools/util/include", c.Tools}}})
}

func (b *bom) addPackage(p lock.Package, expression string) {
	c := component{Name: p.Name, Version: p.Version, Scope: excluded, PURL: p.PURL(), Hashes: []hash{{"SHA-256", p.SHA256}},
		Properties: []property{{"sparsek:file", p.File}}}
	if slices.Contains(inLibrary, p.Name) {
		c.Scope = required
	}
	if expression != "" {
		c.Licences = []licenceChoice{{Expression: expression}}
	}
	b.add(c)
}

func (b *bom) addModule(m module, sum string) {
	c := component{Name: m.Path, Version: m.Version, Scope: excluded, PURL: "pkg:golang/" + strings.ToLower(m.Path) + "@" + m.Version,
		Hashes: []hash{{"SHA-256", sum}}, Properties: []property{{"sparsek:go.sum", m.Sum}}}
	if m.linked {
		c.Scope = required
	}
	var ids []string
	for _, l := range m.licences {
		ids = append(ids, identify(l.text)...)
	}
	slices.Sort(ids)
	c.Licences = licences(slices.Compact(ids)...)
	b.add(c)
}

func licences(ids ...string) []licenceChoice {
	var all []licenceChoice
	for _, id := range ids {
		all = append(all, licenceChoice{Licence: &namedLicence{id}})
	}
	return all
}

func (b *bom) encode() ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", "  ")
	err := e.Encode(b)
	return text.Bytes(), err
}

func fileSum(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, f); err != nil {
		return "", fmt.Errorf("reading %s: %w", path, err)
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}
