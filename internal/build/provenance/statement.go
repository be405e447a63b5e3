// SPDX-License-Identifier: Apache-2.0

package provenance

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
)

// The identifiers of what is written.
const (
	statementType = "https://in-toto.io/Statement/v1"
	predicateType = "https://slsa.dev/provenance/v1"
	// BuildType names the page that defines the parameters.
	BuildType = "https://github.com/sparsek/sparsek/blob/main/docs/release.md#provenance"
	// Builder names what ran the build.
	Builder = "https://github.com/sparsek/sparsek/tree/main/internal/build"
)

// Statement says how its subject, one file, was made.
type Statement struct {
	Type          string     `json:"_type"`
	Subject       []Resource `json:"subject"`
	PredicateType string     `json:"predicateType"`
	Predicate     Predicate  `json:"predicate"`
}

// Predicate is the part of a Statement that does not depend on the subject.
type Predicate struct {
	BuildDefinition BuildDefinition `json:"buildDefinition"`
	RunDetails      RunDetails      `json:"runDetails"`
}

// BuildDefinition is all that the bytes of the library follow from.
type BuildDefinition struct {
	BuildType          string             `json:"buildType"`
	ExternalParameters ExternalParameters `json:"externalParameters"`
	InternalParameters InternalParameters `json:"internalParameters"`
	// ResolvedDependencies are the materials: the toolchain and every source
	// file that was read.
	ResolvedDependencies []Resource `json:"resolvedDependencies"`
}

// ExternalParameters are what the one who builds chooses.
type ExternalParameters struct {
	Commit string `json:"commit"` // of the sources; empty where unknown
	Target string `json:"target"` // what is made
}

// InternalParameters are what the build adds by itself.
type InternalParameters struct {
	Compilers map[string]string `json:"compilers"` // what each says it is
	Commands  []Command         `json:"commands"`
}

// Command makes one file. In its arguments {root}, {cuda}, {cutlass} and the
// like stand for folders and files that lie elsewhere on each machine.
type Command struct {
	Makes     string   `json:"makes"`
	Arguments []string `json:"arguments"`
}

// RunDetails say who ran the build.
type RunDetails struct {
	Builder BuilderID `json:"builder"`
}

// BuilderID identifies the builder.
type BuilderID struct {
	ID      string            `json:"id"`
	Version map[string]string `json:"version"`
}

// Resource is a file or tree identified by its digests, in-toto's
// ResourceDescriptor.
type Resource struct {
	URI    string            `json:"uri,omitempty"`
	Name   string            `json:"name,omitempty"`
	Digest map[string]string `json:"digest"`
}

// About makes the statement about the file of that name and SHA-256, in hex.
func (p Predicate) About(name, sum string) Statement {
	return Statement{statementType, []Resource{{Name: name, Digest: map[string]string{"sha256": sum}}}, predicateType, p}
}

// Encode writes the predicate on one line.
func (p Predicate) Encode() ([]byte, error) { return encode(p, "") }

// Encode writes the statement for people to read.
func (s Statement) Encode() ([]byte, error) { return encode(s, "  ") }

func encode(value any, indent string) ([]byte, error) {
	var text bytes.Buffer
	e := json.NewEncoder(&text)
	e.SetEscapeHTML(false)
	e.SetIndent("", indent)
	err := e.Encode(value)
	return text.Bytes(), err
}

// DirHash turns a Hash1, "h1:" and base64, into the hex of in-toto's dirHash.
func DirHash(h1 string) (string, error) {
	sum, ok := strings.CutPrefix(h1, "h1:")
	raw, err := base64.StdEncoding.DecodeString(sum)
	if !ok || err != nil || len(raw) != 32 {
		return "", fmt.Errorf("%q is no h1 digest", h1)
	}
	return hex.EncodeToString(raw), nil
}
