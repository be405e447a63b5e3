// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"fmt"

	sparsek "github.com/sparsek/sparsek/wrapper"
	"github.com/sparsek/sparsek/wrapper/tuning"
)

// cacheCommand is "sparsek cache".
type cacheCommand struct {
	List   cacheListCommand   `cmd:"" help:"List what was measured of kernels, the newest first."`
	Show   cacheShowCommand   `cmd:"" help:"Show all kernels that were measured for an entry of the list."`
	Merge  cacheMergeCommand  `cmd:"" help:"Merge tuning caches into a file."`
	Export cacheExportCommand `cmd:"" help:"Copy the cache's entries into a file."`
	Import cacheImportCommand `cmd:"" help:"Copy the entries of a file into the cache."`
	Clear  cacheClearCommand  `cmd:"" help:"Remove the cache."`
	Path   cachePathCommand   `cmd:"" help:"Print where the cache is."`
}

type (
	shippedFlag struct {
		Shipped bool `help:"The table that ships with the library instead of the user's cache."`
	}
	cacheListCommand struct {
		shippedFlag
		jsonFlag
	}
	cacheShowCommand struct {
		Entry string `arg:"" name:"NUMBER|KEY" help:"An entry's number in the list, or its key or how that begins."`
		shippedFlag
		jsonFlag
	}
	cacheMergeCommand struct {
		Files []string `arg:"" name:"FILE" help:"Tuning caches."`
		Out   string   `required:"" placeholder:"FILE" help:"The file to merge them into; its own entries stay, unless others are newer."`
	}
	cacheExportCommand struct {
		File string `arg:"" name:"FILE" help:"The file to copy them into; its own entries stay, unless others are newer."`
		shippedFlag
	}
	cacheImportCommand struct {
		File string `arg:"" name:"FILE" help:"A tuning cache."`
	}
	cacheClearCommand struct{}
	cachePathCommand  struct{}
)

func (*cacheCommand) Help() string {
	return `Examples:
  sparsek cache list
  sparsek cache merge a.txt b.txt --out all.txt`
}

// openCache opens the tuning cache of a file, or the user's where path is empty. One without a single good line is
// refused; of another fault it warns.
func openCache(e *environment, path string) (*tuning.Cache, error) {
	lib, err := sparsek.Default()
	if err != nil {
		return nil, fail(exitNoLibrary, err)
	}
	c, err := tuning.Open(lib, path)
	if err != nil {
		return nil, err
	}
	switch {
	case c.State == tuning.Absent && path != "":
		return nil, failf(exitBadFile, "%s: there is no such file", path)
	case c.State == tuning.Foreign, c.State == tuning.Unreadable:
		return nil, failf(exitBadFile, "%s", c.Fault)
	case c.Fault != "":
		warn(e, c.Fault)
	}
	return c, nil
}

// openShipped opens the table that ships with the library, or the user's cache.
func openShipped(e *environment, shipped bool) (*tuning.Cache, error) {
	if !shipped {
		return openCache(e, "")
	}
	lib, err := sparsek.Default()
	if err != nil {
		return nil, fail(exitNoLibrary, err)
	}
	return tuning.Shipped(lib)
}

func warn(e *environment, text string) {
	if text != "" {
		fmt.Fprintf(e.stderr, "sparsek: warning: %s\n", text)
	}
}

// mergeInto merges the entries of a cache into a file, or the user's cache, and prints the result.
func mergeInto(e *environment, c *tuning.Cache, path string) error {
	change, err := c.MergeInto(path)
	if err != nil {
		return fail(exitBadOutput, err)
	}
	warn(e, change.Warning)
	return say(e, "%s are new or newer, of %d\n", entries(change.Entries), len(c.Entries))
}

func entries(n int) string {
	if n == 1 {
		return "1 entry"
	}
	return fmt.Sprintf("%d entries", n)
}

func say(e *environment, format string, args ...any) error {
	if _, err := fmt.Fprintf(e.stdout, format, args...); err != nil {
		return failf(exitBadOutput, "print the result: %w", err)
	}
	return nil
}

// Run merges.
func (o *cacheMergeCommand) Run(e *environment) error {
	// All are read before anything is written.
	var caches []*tuning.Cache
	for _, file := range o.Files {
		c, err := openCache(e, file)
		if err != nil {
			return err
		}
		defer c.Close()
		caches = append(caches, c)
	}
	for i, c := range caches {
		if err := say(e, "%s: ", o.Files[i]); err != nil {
			return err
		}
		if err := mergeInto(e, c, o.Out); err != nil {
			return err
		}
	}
	return nil
}

// Run exports.
func (o *cacheExportCommand) Run(e *environment) error {
	c, err := openShipped(e, o.Shipped)
	if err != nil {
		return err
	}
	defer c.Close()
	return mergeInto(e, c, o.File)
}

// Run imports.
func (o *cacheImportCommand) Run(e *environment) error {
	c, err := openCache(e, o.File)
	if err != nil {
		return err
	}
	defer c.Close()
	return mergeInto(e, c, "")
}

// Run clears.
func (*cacheClearCommand) Run(e *environment) error {
	lib, err := sparsek.Default()
	if err != nil {
		return fail(exitNoLibrary, err)
	}
	change, err := tuning.Clear(lib, "")
	if err != nil {
		return fail(exitBadOutput, err)
	}
	warn(e, change.Warning)
	return say(e, "removed %s\n", entries(change.Entries))
}

// Run prints the path.
func (*cachePathCommand) Run(e *environment) error {
	lib, err := sparsek.Default()
	if err != nil {
		return fail(exitNoLibrary, err)
	}
	c, err := tuning.Open(lib, "")
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Path == "" {
		return failf(exitBadFile, "there is no tuning cache: %s", c.Fault)
	}
	return say(e, "%s\n", c.Path)
}
