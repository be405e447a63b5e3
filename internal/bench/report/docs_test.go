// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench"
)

// region is a part of a document that the program makes: the command that prints it stands in front.
var region = regexp.MustCompile(`(?s)<!-- sparsek bench ([^\n]*) -->\n.*?<!-- end -->\n`)

// The figures in documents are what the program makes of the results that lie beside them; -update writes them anew.
func TestDocuments(t *testing.T) {
	const root = "../../.."
	list, err := filepath.Glob(root + "/docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	for _, path := range append(list, root+"/README.md") {
		old, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		text := region.ReplaceAllStringFunc(string(old), func(part string) string {
			found++
			command := region.FindStringSubmatch(part)[1]
			made, err := printed(root, strings.Fields(command))
			if err != nil {
				t.Errorf("%s: sparsek bench %s: %v", path, command, err)
				return part
			}
			return fmt.Sprintf("<!-- sparsek bench %s -->\n%s<!-- end -->\n", command, made)
		})
		if text == string(old) {
			continue
		}
		if !*update {
			t.Errorf("%s is not what its results say: go test ./internal/bench/report -run Documents -update", path)
		} else if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if found == 0 {
		t.Error("no document has a part that the program makes")
	}
}

// printed is what bench prints with --from, --markdown and --method.
func printed(root string, args []string) (string, error) {
	var reports []*bench.Report
	method, markdown := false, false
	for i := 0; i < len(args); i++ {
		switch args[i] {
		case "--markdown":
			markdown = true
		case "--method":
			method = true
		case "--from":
			if i++; i == len(args) {
				return "", fmt.Errorf("--from without a file")
			}
			r, err := Read(filepath.Join(root, args[i]))
			if err != nil {
				return "", err
			}
			reports = append(reports, r)
		default:
			return "", fmt.Errorf("%s is not for a document", args[i])
		}
	}
	if !markdown || len(reports) == 0 {
		return "", fmt.Errorf("give --from FILE and --markdown")
	}
	var out bytes.Buffer
	err := Markdown(&out, reports, method)
	return out.String(), err
}
