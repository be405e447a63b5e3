// SPDX-License-Identifier: Apache-2.0

package ncu

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/renameio/v2"
)

// NormalFile is the name of the normal form that Extract writes; its hash stands in a file with ".sha256" behind it.
const NormalFile = "nsight_baseline.norm.txt"

// ExtractOptions say what is made of a measurement.
type ExtractOptions struct {
	In       string // CSV, or a report
	Out      string // folder
	Kernel   string // regular expression that the kernel's name matches; "": there is only one
	Metrics  []Metric
	Profiler string // ncu's path, beside which its Python module lies; "": not known
}

// Extract writes the normal form of a measurement, medians over the launches of one kernel, and its hash, which it
// returns. Where anything is wrong, what was there before stays.
func Extract(ctx context.Context, o ExtractOptions) (hash string, err error) {
	text, err := o.read(ctx)
	if err != nil {
		return "", fmt.Errorf("extracting: %w", err)
	}
	launches, err := Parse(bytes.NewReader(text))
	if err != nil {
		return "", fmt.Errorf("%s: %w", o.In, err)
	}
	if launches, err = choose(launches, o.Kernel); err != nil {
		return "", fmt.Errorf("%s: %w", o.In, err)
	}
	samples, err := Sample(launches, o.Metrics)
	if err != nil {
		return "", fmt.Errorf("%s: %w", o.In, err)
	}
	normal := []byte(samples.Medians().Normal())
	hash = Hash(normal)
	file := filepath.Join(o.Out, NormalFile)
	if err := os.MkdirAll(o.Out, 0o777); err != nil {
		return "", fmt.Errorf("extracting: %w", err)
	}
	for _, f := range []struct {
		name    string
		content []byte
	}{{file, normal}, {file + ".sha256", []byte(HashLine(hash, filepath.ToSlash(file)))}} {
		if err := renameio.WriteFile(f.name, f.content, 0o644); err != nil {
			return "", fmt.Errorf("extracting: %w", err)
		}
	}
	return hash, nil
}

func (o *ExtractOptions) read(ctx context.Context) ([]byte, error) {
	if strings.HasSuffix(o.In, ReportSuffix) {
		return ReadReport(ctx, o.Profiler, o.In, o.Metrics)
	}
	return os.ReadFile(o.In)
}

// choose takes the launches of the kernel that is asked for, which must be one.
func choose(launches []Launch, kernel string) ([]Launch, error) {
	wanted, err := regexp.Compile(kernel)
	if err != nil {
		return nil, fmt.Errorf("kernel %q: %w", kernel, err)
	}
	var names []string
	var chosen []Launch
	for _, l := range launches {
		if !wanted.MatchString(l.Kernel) {
			continue
		}
		chosen = append(chosen, l)
		if !slices.Contains(names, l.Kernel) {
			names = append(names, l.Kernel)
		}
	}
	switch len(names) {
	case 0:
		return nil, fmt.Errorf("no kernel matches %q", kernel)
	case 1:
		return chosen, nil
	}
	return nil, fmt.Errorf("there are %d kernels, choose one (-kernel): %s", len(names), strings.Join(names, ", "))
}
