// SPDX-License-Identifier: Apache-2.0

package picture

import (
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/bench/shapemap"
)

func sample() *shapemap.Map {
	m := &shapemap.Map{Header: shapemap.Header{Backend: "GPU", Device: "<a> GPU", Version: "1", Commit: "c", Date: "2026-01-01"}}
	for _, block := range []int{64, 1} {
		for _, n := range []int{8, 1} {
			m.Cells = append(m.Cells, shapemap.Cell{Key: shapemap.Key{DType: "bf16", Pattern: "stencil", Block: block, N: n}, Kernel: "a", Seconds: 2e-6, Bound: 1e-6,
				Timed: []shapemap.Timed{{Name: "a", Seconds: 2e-6}, {Name: "other", Rival: true, Seconds: 25e-6 / float64(n*block)}}})
		}
	}
	m.Cells = append(m.Cells, shapemap.Cell{Key: shapemap.Key{DType: "bf16", Pattern: "window", Block: 1, N: 1}, Failed: "no <memory>"})
	return m
}

// texts are what an SVG shows, in its order; an error where it is not well-formed.
func texts(t *testing.T, svg string) (list []string) {
	t.Helper()
	inText := false
	for d := xml.NewDecoder(strings.NewReader(svg)); ; {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return list
		}
		if err != nil {
			t.Fatal(err)
		}
		switch token := token.(type) {
		case xml.StartElement:
			inText = token.Name.Local == "text"
		case xml.CharData:
			if inText {
				list = append(list, string(token))
			}
		case xml.EndElement:
			inText = false
		}
	}
}

// A picture has the panels of its patterns, in each a row for each block and a column for each N, in their order.
func TestSVG(t *testing.T) {
	all := strings.Join(texts(t, SVG(sample(), shapemap.Figures[1], "bf16")), " | ")
	if want := "window | 1 | 8 | 1 | ! | 64 | stencil | 1 | 8 | 1 | 12.5 | 1.56 | 64 | 0.20 | 0.02 | "; !strings.Contains(all, want) {
		t.Errorf("%s, want %s", all, want)
	}
	if !strings.Contains(all, "<a> GPU") {
		t.Error(all)
	}
	if all := strings.Join(texts(t, SVG(sample(), shapemap.Figures[0], "bf16")), " "); !strings.Contains(all, "50%") {
		t.Error(all)
	}
}

// Values that are worse than what is fair have another colour than better ones, and can be read on it.
func TestColours(t *testing.T) {
	for _, f := range shapemap.Figures {
		low, high := colour(f, f.Fair/20), colour(f, f.Fair*20)
		if f.Name == "choice" {
			low, high = colour(f, 20), colour(f, 1)
		}
		if low != bad || high != good || colour(f, f.Fair) != fair {
			t.Errorf("%s: %v, %v, %v", f.Name, low, high, colour(f, f.Fair))
		}
	}
	if bad.ink() != "#fff" || good.ink() != "#fff" || fair.ink() != "#000" {
		t.Error("ink")
	}
}

// A map of two builds names both.
func TestTwoBuilds(t *testing.T) {
	m := sample()
	other := *m
	other.Commit, other.Cells = "d", m.Cells[:1]
	all, err := shapemap.Merge([]*shapemap.Map{m, &other})
	if err != nil {
		t.Fatal(err)
	}
	var page strings.Builder
	if err := Page(&page, all); err != nil {
		t.Fatal(err)
	}
	if svg := strings.Join(texts(t, SVG(all, shapemap.Figures[1], "bf16")), " "); !strings.Contains(svg, "commit c,") || !strings.Contains(svg, "2026-01-01 (1 cells)") ||
		!strings.Contains(page.String(), "commit c,") || !strings.Contains(page.String(), "commit d,") {
		t.Errorf("%s, %s", svg, page.String())
	}
}

func TestPage(t *testing.T) {
	var page strings.Builder
	if err := Page(&page, sample()); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"&lt;a&gt; GPU", "no &lt;memory&gt;", `id="map-rival-bf16"`, `id="map-bound-bf16"`, "the worst beyond 0.95", "Rivals: "} {
		if !strings.Contains(page.String(), want) {
			t.Errorf("the page lacks %q", want)
		}
	}
	if names := Pictures(sample()); len(names) != 3 || names["map-choice-bf16.svg"] == "" {
		t.Errorf("%d pictures", len(names))
	}
}
