// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"errors"
	"os"
	"strings"

	"github.com/sparsek/sparsek/internal/machine/doctor"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// doctorCommand is "sparsek doctor".
type doctorCommand struct{ jsonFlag }

func (*doctorCommand) Help() string {
	return `Examples:
  sparsek doctor
  sparsek doctor --json`
}

// Run shows what of the machine serves the library and its products on a GPU.
func (o *doctorCommand) Run(ctx context.Context, e *environment) error {
	found, cuda := libraryFinding()
	report := append(doctor.Report{found}, doctor.Look(ctx, os.DirFS("/")).Judge(cuda)...)
	show := report.Print
	if o.JSON {
		show = report.PrintJSON
	}
	if err := show(e.stdout); err != nil {
		return failf(exitBadOutput, "print the result: %w", err)
	}
	switch {
	case found.State != doctor.OK:
		return fail(exitNoLibrary, errors.New("the library is not usable"))
	case !report.Works(doctor.GPU):
		return fail(exitNoDevice, errors.New("a GPU job cannot work here; products on the CPU can"))
	}
	return nil
}

// libraryFinding judges the library and returns the version of CUDA that it was made with.
func libraryFinding() (f doctor.Finding, cuda string) {
	f = doctor.Finding{Name: "libsparsek", Needed: doctor.GPU}
	lib, err := sparsek.Default()
	if err != nil {
		f.State, f.Detail = doctor.Missing, strings.TrimPrefix(err.Error(), "sparsek: ")
		f.Fix = "build it, or set SPARSEK_LIBRARY to the file or its folder"
		return f, ""
	}
	build, err := lib.BuildInfo()
	if err != nil {
		f.State, f.Detail, f.Fix = doctor.Damaged, err.Error(), "build it again"
		return f, ""
	}
	f.State, f.Detail = doctor.OK, build.Version+", CUDA "+or(build.CUDA, "none")+" ("+lib.Path()+")"
	if build.CUDA == "" {
		f.State, f.Fix = doctor.Off, "it was built without CUDA: go tool mage build makes one with it"
	}
	return f, build.CUDA
}
