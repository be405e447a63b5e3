// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/alecthomas/kong"

	"github.com/sparsek/sparsek/internal/bench"
	"github.com/sparsek/sparsek/internal/bench/shapemap"
	"github.com/sparsek/sparsek/internal/bench/tunereval"
	"github.com/sparsek/sparsek/internal/gate/profile"
	"github.com/sparsek/sparsek/internal/matrix/pattern"
)

// errShown ends the program well: what was asked for has been printed.
var errShown = errors.New("shown")

// helpFlag shows the usage of the command that it comes with.
type helpFlag bool

// BeforeReset is called before anything is checked, so that help needs no other flags.
func (helpFlag) BeforeReset(ctx *kong.Context) error {
	if err := ctx.PrintUsage(false); err != nil {
		return failf(exitBadOutput, "print the help: %w", err)
	}
	return errShown
}

// IsBool makes it a flag without a value.
func (helpFlag) IsBool() bool { return true }

// newParser makes the parser of the command line.
func newParser(e *environment) (*kong.Kong, error) {
	return kong.New(&program{},
		kong.Name("sparsek"),
		kong.Description("sparsek multiplies block-sparse matrices by dense ones.\n\n"+
			"Exit codes: 0 done, 1 wrong result, 2 usage, 10 to 19 input, 20 to 29 library and device, 30 output, "+
			"40 to 44 the profile gate, 130 interrupted."),
		kong.NoDefaultHelp(),
		kong.Writers(e.stdout, e.stderr),
		kong.Bind(e),
		kong.Help(printHelp),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true, WrapUpperBound: 100}),
		kong.ValueFormatter(describeValue),
		kong.Vars{
			"density":     fmt.Sprint(defaultDensity),
			"patterns":    strings.Join(pattern.Names(), ", "),
			"suites":      strings.Join(suiteNames(), ", "),
			"rounds":      fmt.Sprint(bench.DefaultRounds),
			"gridcases":   fmt.Sprint(tunereval.Count),
			"launches":    fmt.Sprint(profile.DefaultLaunches),
			"mappatterns": strings.Join(shapemap.PatternNames(), ", "),
			"peers":       strings.Join(bench.Peers(), ", "),
		})
}

// printHelp prints the usage of a command, and its examples at the end.
func printHelp(options kong.HelpOptions, ctx *kong.Context) error {
	node := ctx.Selected()
	if node == nil {
		return kong.DefaultHelpPrinter(options, ctx)
	}
	for _, f := range ctx.Model.Flags {
		f.Hidden = true // those of every command
	}
	examples := node.Detail
	node.Detail = ""
	if err := kong.DefaultHelpPrinter(options, ctx); err != nil || examples == "" {
		return err
	}
	_, err := fmt.Fprintf(ctx.Stdout, "\n%s\n", examples)
	return err
}

// describeValue is the help of a flag with its default.
func describeValue(v *kong.Value) string {
	if v.Default == "" || v.Flag == nil || v.IsBool() {
		return v.Help
	}
	return strings.TrimSuffix(v.Help, ".") + " (default: " + v.Default + ")."
}

// inOrder brings arguments into the order that the parser takes: the flags of a command before its other arguments, which
// people may mix. A value that begins with one hyphen, such as a negative number, is joined to its flag. "help" before a
// command becomes "--help" behind it.
func inOrder(root *kong.Node, args []string) []string {
	node, commands := root, 0
	for commands < len(args) {
		i := slices.IndexFunc(node.Children, func(child *kong.Node) bool { return child.Name == args[commands] })
		if i < 0 {
			break
		}
		node = node.Children[i]
		commands++
	}
	if commands < len(args) && args[commands] == "help" && len(node.Children) > 0 {
		return inOrder(root, append(slices.Concat(args[:commands], args[commands+1:]), "--help"))
	}
	flags, others := slices.Clone(args[:commands]), []string(nil)
	for rest := args[commands:]; len(rest) > 0; rest = rest[1:] {
		one := rest[0]
		switch {
		case one == "--":
			return slices.Concat(flags, []string{"--"}, others, rest[1:])
		case !strings.HasPrefix(one, "-") || one == "-":
			others = append(others, one)
		case takesValue(node, one) && len(rest) > 1 && !strings.HasPrefix(rest[1], "--"):
			flags = append(flags, one+"="+rest[1])
			rest = rest[1:]
		default:
			flags = append(flags, one)
		}
	}
	return append(flags, others...)
}

// takesValue is whether the argument is a flag of the node whose value is the next argument.
func takesValue(node *kong.Node, argument string) bool {
	for _, level := range node.AllFlags(false) {
		for _, f := range level {
			if argument == "--"+f.Name {
				return !f.IsBool()
			}
		}
	}
	return false
}

// givenFlags are the flags that were given.
func givenFlags(parsed *kong.Context) map[string]bool {
	given := map[string]bool{}
	for _, p := range parsed.Path {
		if p.Flag != nil {
			given[p.Flag.Name] = true
		}
	}
	return given
}

// usageError says for which command the arguments are wrong, and where to look.
func usageError(err error) error {
	var f *failure
	var parse *kong.ParseError
	if errors.As(err, &f) || !errors.As(err, &parse) {
		return err
	}
	var name strings.Builder
	for _, p := range parse.Context.Path {
		if p.Command != nil {
			name.WriteString(p.Command.Name + " ")
		}
	}
	prefix := ""
	if name.Len() > 0 {
		prefix = strings.TrimSpace(name.String()) + ": "
	}
	return failf(exitUsage, "%s%w (see \"sparsek %s--help\")", prefix, err, name.String())
}
