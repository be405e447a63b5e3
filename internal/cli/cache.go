// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"context"
	"flag"
	"fmt"
	"strings"

	sparsek "github.com/sparsek/sparsek/wrapper"
)

// cacheCommands are what `sparsek cache` does.
func cacheCommands() []command {
	return []command{
		{"cache list", "[flags]", "list what was measured of kernels, the newest first", cacheList},
		{"cache show", "NUMBER|KEY [flags]", "show all kernels measured for an entry of the list", cacheShow},
		{"cache merge", "FILE... --out FILE", "bring tuning caches together in a file", cacheMerge},
		{"cache export", "FILE [flags]", "copy the cache's entries into a file", cacheExport},
		{"cache import", "FILE", "take the entries of a file into the cache", cacheImport},
		{"cache clear", "", "remove the cache", cacheClear},
		{"cache path", "", "print where the cache is", cachePath},
	}
}

func cache(ctx context.Context, e *environment, args []string) error {
	if len(args) == 0 || args[0] == "help" || strings.TrimLeft(args[0], "-") == "h" || strings.TrimLeft(args[0], "-") == "help" {
		fmt.Fprint(e.stdout, "usage: sparsek cache ACTION [flags]\n\n")
		listCommands(e.stdout, cacheCommands())
		if len(args) == 0 {
			return failf(exitUsage, "cache: no action given")
		}
		return flag.ErrHelp
	}
	for _, c := range cacheCommands() {
		if c.name == "cache "+args[0] {
			return c.run(ctx, e, args[1:])
		}
	}
	return failf(exitUsage, "cache: there is no action %q: \"sparsek cache help\" lists them", args[0])
}

// openCache opens the tuning cache of a file, or the user's where path is empty. One without a single good line is
// refused; of another fault it warns.
func openCache(e *environment, path string) (*sparsek.TuningCache, error) {
	lib, err := sparsek.Default()
	if err != nil {
		return nil, fail(exitNoLibrary, err)
	}
	c, err := lib.TuningCache(path)
	if err != nil {
		return nil, err
	}
	switch {
	case c.State == sparsek.TuningAbsent && path != "":
		return nil, failf(exitBadFile, "%s: there is no such file", path)
	case c.State == sparsek.TuningForeign, c.State == sparsek.TuningUnreadable:
		return nil, failf(exitBadFile, "%s", c.Fault)
	case c.Fault != "":
		warn(e, c.Fault)
	}
	return c, nil
}

// openShipped opens what came with the library, or the user's cache.
func openShipped(e *environment, shipped bool) (*sparsek.TuningCache, error) {
	if !shipped {
		return openCache(e, "")
	}
	lib, err := sparsek.Default()
	if err != nil {
		return nil, fail(exitNoLibrary, err)
	}
	return lib.ShippedTuning()
}

func warn(e *environment, text string) {
	if text != "" {
		fmt.Fprintf(e.stderr, "sparsek: warning: %s\n", text)
	}
}

func shippedFlag(flags *flag.FlagSet) *bool {
	return flags.Bool("shipped", false, "what came with the library instead of the user's cache")
}

// parseFiles reads the flags of an action that takes files, which may stand before them or behind them.
func parseFiles(e *environment, flags *flag.FlagSet, args []string, least, most int) ([]string, error) {
	var files []string
	for rest := args; ; {
		if err := parse(e, flags, rest, true); err != nil {
			return nil, err
		}
		if flags.NArg() == 0 {
			break
		}
		files, rest = append(files, flags.Arg(0)), flags.Args()[1:]
	}
	if len(files) < least || len(files) > most {
		return nil, failf(exitUsage, "%s: %d arguments (\"sparsek %s --help\" shows what it takes)", flags.Name(), len(files), flags.Name())
	}
	for _, file := range files {
		if file == "" {
			return nil, failf(exitUsage, "%s: an empty name is no file", flags.Name())
		}
	}
	return files, nil
}

// mergeInto takes the entries of a cache into a file, or the user's cache, and says what came of it.
func mergeInto(e *environment, c *sparsek.TuningCache, path string) error {
	change, err := c.MergeInto(path)
	if err != nil {
		return fail(exitBadOutput, err)
	}
	warn(e, change.Warning)
	return say(e, "%s are new or newer, of %d\n", entries(change.Entries), len(c.Entries))
}

func entries(n int64) string {
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

func cacheMerge(_ context.Context, e *environment, args []string) error {
	flags := newFlags("cache merge")
	out := flags.String("out", "", "the `FILE` to bring them together in; entries that it has stay, unless others are newer")
	files, err := parseFiles(e, flags, args, 1, 1<<20)
	if err != nil {
		return err
	}
	if *out == "" {
		return failf(exitUsage, "cache merge: --out FILE says where the entries go")
	}
	// All are read before anything is written.
	var caches []*sparsek.TuningCache
	for _, file := range files {
		c, err := openCache(e, file)
		if err != nil {
			return err
		}
		defer c.Close()
		caches = append(caches, c)
	}
	for i, c := range caches {
		if err := say(e, "%s: ", files[i]); err != nil {
			return err
		}
		if err := mergeInto(e, c, *out); err != nil {
			return err
		}
	}
	return nil
}

func cacheExport(_ context.Context, e *environment, args []string) error {
	flags := newFlags("cache export")
	shipped := shippedFlag(flags)
	files, err := parseFiles(e, flags, args, 1, 1)
	if err != nil {
		return err
	}
	c, err := openShipped(e, *shipped)
	if err != nil {
		return err
	}
	defer c.Close()
	return mergeInto(e, c, files[0])
}

func cacheImport(_ context.Context, e *environment, args []string) error {
	flags := newFlags("cache import")
	files, err := parseFiles(e, flags, args, 1, 1)
	if err != nil {
		return err
	}
	c, err := openCache(e, files[0])
	if err != nil {
		return err
	}
	defer c.Close()
	return mergeInto(e, c, "")
}

func cacheClear(_ context.Context, e *environment, args []string) error {
	if err := parse(e, newFlags("cache clear"), args, false); err != nil {
		return err
	}
	lib, err := sparsek.Default()
	if err != nil {
		return fail(exitNoLibrary, err)
	}
	change, err := lib.ClearTuningCache("")
	if err != nil {
		return fail(exitBadOutput, err)
	}
	warn(e, change.Warning)
	return say(e, "removed %s\n", entries(change.Entries))
}

func cachePath(_ context.Context, e *environment, args []string) error {
	if err := parse(e, newFlags("cache path"), args, false); err != nil {
		return err
	}
	lib, err := sparsek.Default()
	if err != nil {
		return fail(exitNoLibrary, err)
	}
	c, err := lib.TuningCache("")
	if err != nil {
		return err
	}
	defer c.Close()
	if c.Path == "" {
		return failf(exitBadFile, "there is no tuning cache: %s", c.Fault)
	}
	return say(e, "%s\n", c.Path)
}
