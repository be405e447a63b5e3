// SPDX-License-Identifier: Apache-2.0

package chart

import (
	"fmt"
	"image/color"
	"sync"

	"codeberg.org/go-fonts/liberation/liberationsansregular"
	"golang.org/x/image/font/opentype"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/text"
	"gonum.org/v1/plot/vg"
)

// sans is the font of all text.
var sans = font.Font{Typeface: "Liberation", Variant: "Sans"}

// fonts reads the font when it is first needed.
var fonts = sync.OnceValue(func() *font.Cache {
	face, err := opentype.Parse(liberationsansregular.TTF)
	if err != nil {
		panic(fmt.Errorf("reading the font that is linked: %w", err)) // the same bytes in each program
	}
	return font.NewCache(font.Collection{{Font: sans, Face: face}})
})

// TextStyle is that of text in black, size points high.
func TextStyle(size vg.Length) text.Style {
	return text.Style{Color: color.Black, Font: font.From(sans, size), Handler: text.Plain{Fonts: fonts()}}
}
