// SPDX-License-Identifier: Apache-2.0

package report

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/google/renameio/v2"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
	"gonum.org/v1/plot/vg/vgimg"
	"gonum.org/v1/plot/vg/vgsvg"

	"github.com/sparsek/sparsek/internal/bench"
)

// Size of a picture.
const (
	pictureWidth, pictureHeight = 7.5 * vg.Inch, 4.6 * vg.Inch
	dotsPerInch                 = 144
)

func drawSVG(p *picture) ([]byte, error) {
	canvas := vgsvg.New(pictureWidth, pictureHeight)
	p.plot.Draw(draw.New(canvas))
	var text bytes.Buffer
	_, err := canvas.WriteTo(&text)
	return text.Bytes(), err
}

func drawPNG(p *picture) ([]byte, error) {
	canvas := vgimg.NewWith(vgimg.UseWH(pictureWidth, pictureHeight), vgimg.UseDPI(dotsPerInch))
	p.plot.Draw(draw.New(canvas))
	var data bytes.Buffer
	_, err := vgimg.PngCanvas{Canvas: canvas}.WriteTo(&data)
	return data.Bytes(), err
}

// inline is a picture as a page takes it in: just the element, which needs no namespaces there.
func inline(text []byte) string {
	s := string(text)
	if at := strings.Index(s, "<svg"); at >= 0 {
		s = s[at:]
	}
	head, rest, _ := strings.Cut(s, ">")
	var kept []string
	for _, word := range strings.Fields(head) {
		if !strings.HasPrefix(word, "xmlns") && !strings.HasPrefix(word, "width=") && !strings.HasPrefix(word, "height=") {
			kept = append(kept, word)
		}
	}
	return strings.Join(kept, " ") + ">" + rest
}

// Plots writes the pictures into a folder, which is made where it is not there, each as SVG and PNG. It gives their
// names.
func Plots(folder string, r *bench.Report) ([]string, error) {
	list, err := pictures(r)
	if err != nil {
		return nil, err
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		return nil, err
	}
	var names []string
	for _, p := range list {
		for _, kind := range []struct {
			ending string
			draw   func(*picture) ([]byte, error)
		}{{"svg", drawSVG}, {"png", drawPNG}} {
			data, err := kind.draw(&p)
			if err != nil {
				return names, fmt.Errorf("draw %s: %w", p.name, err)
			}
			path := filepath.Join(folder, p.name+"."+kind.ending)
			if err := renameio.WriteFile(path, data, 0o644); err != nil {
				return names, err
			}
			names = append(names, path)
		}
	}
	return names, nil
}

// HTMLFile writes the page to a file, which appears when it is whole.
func HTMLFile(path string, r *bench.Report) error {
	var text bytes.Buffer
	if err := HTML(&text, r); err != nil {
		return err
	}
	return renameio.WriteFile(path, text.Bytes(), 0o644)
}
