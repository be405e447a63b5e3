// SPDX-License-Identifier: Apache-2.0

package build

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/sparsek/sparsek/internal/build/codegen/kernels"
	"github.com/sparsek/sparsek/internal/build/kernelreport"
	"github.com/sparsek/sparsek/internal/build/sass"
	"github.com/sparsek/sparsek/internal/build/stamp"
	"github.com/sparsek/sparsek/internal/sys/term"
)

// writeReport writes the report of the library just made, unless it is there.
func (b *builder) writeReport(ctx context.Context, list *kernels.List, units []unit) error {
	if _, err := kernelreport.Read(b.path(ReportFile), b.path(Library)); err == nil {
		return nil
	}
	sum, err := b.hasher.File(b.path(Library))
	if err != nil {
		return fmt.Errorf("reporting kernels: %w", err)
	}
	r := kernelreport.Report{Library: sum, Kernels: []kernelreport.Kernel{}, Others: []kernelreport.Source{}}
	device := slices.DeleteFunc(slices.Clone(units), func(u unit) bool { return !u.device })
	made := make([]kernelreport.Source, len(device))
	bar := b.progress.Bar("report kernels", int64(len(device)), term.Count)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, b.limits.Cores))
	for i, u := range device {
		g.Go(func() (err error) {
			if made[i], err = b.reportSource(gctx, u); err != nil {
				return fmt.Errorf("reporting kernels: %s: %w", u.source, err)
			}
			bar.Add(1)
			return nil
		})
	}
	err = g.Wait()
	bar.End(err)
	if err != nil {
		return err
	}
	sources := make(map[string]kernelreport.Source)
	for i, u := range device {
		if u.kernel != "" {
			sources[u.kernel] = made[i]
		} else if len(made[i].Functions) > 0 {
			r.Others = append(r.Others, made[i])
		}
	}
	for _, k := range list.Kernels {
		r.Kernels = append(r.Kernels, kernelreport.Kernel{Name: k.Name, Family: k.Family, DType: k.DType, Tile: k.Tile,
			Stages: k.Stages, PipelineBytes: k.PipelineBytes(), Source: sources[k.Name]})
	}
	if err := os.MkdirAll(filepath.Dir(b.path(ReportFile)), 0o777); err != nil {
		return fmt.Errorf("reporting kernels: %w", err)
	}
	return r.Write(b.path(ReportFile), b.path(b.temp))
}

// reportSource joins what ptxas said when u was compiled with the SASS in its
// object.
func (b *builder) reportSource(ctx context.Context, u unit) (kernelreport.Source, error) {
	object := u.object()
	record, ok := stamp.Load(b.path(stampPath(object)))
	if !ok {
		return kernelreport.Source{}, errors.New("its stamp is gone")
	}
	usage, notes, err := sass.ParseUsage(record.Log)
	if err != nil {
		return kernelreport.Source{}, err
	}
	code, err := sass.Dump(ctx, b.toolchain.Cuobjdump, b.toolchain.Nvdisasm, b.path(object))
	if err != nil {
		return kernelreport.Source{}, err
	}
	return kernelreport.Join(u.source, usage, notes, code)
}
