// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sparsek/sparsek/internal/build/version"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// versionRun is "sparsek version", and versionFlag "sparsek --version".
type (
	versionRun  struct{}
	versionFlag bool
)

// BeforeReset is called before a command is asked for.
func (versionFlag) BeforeReset(_ *kong.Context, e *environment) error {
	if err := (&versionRun{}).Run(e); err != nil {
		return err
	}
	return errShown
}

// IsBool makes it a flag without a value.
func (versionFlag) IsBool() bool { return true }

// Run prints the version of the program, and that of the library or why there is none.
func (*versionRun) Run(e *environment) error {
	return say(e, "sparsek %s\nlibrary %s\n", version.Sparsek, libraryVersion())
}

func libraryVersion() string {
	lib, err := sparsek.Default()
	if err != nil {
		return "not usable: " + strings.TrimPrefix(err.Error(), "sparsek: ")
	}
	info, err := lib.BuildInfo()
	if err != nil {
		return "not usable: " + err.Error()
	}
	return info.Version + " (commit " + or(info.Commit, "unknown") + ") " + lib.Path()
}
