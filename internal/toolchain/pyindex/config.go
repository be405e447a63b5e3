// SPDX-License-Identifier: Apache-2.0

package pyindex

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Config is where to look for packages. Addresses may hold credentials.
type Config struct {
	FindLinks []string // folders, files and pages of links, looked at first
	Indexes   []string // addresses of simple repositories, in order
	CAFiles   []string // certificates to trust beside the system's
}

// Environment is what Load reads. The zero value is the process's own.
type Environment struct {
	// Getenv looks a variable up; nil stands for os.Getenv.
	Getenv func(string) string
	// Pip runs pip's Python and returns what it printed; nil stands for the
	// first of python3 and python on PATH.
	Pip func(ctx context.Context, args ...string) (string, error)
}

// Load finds out where the user's pip or uv looks for packages. Python is only
// asked for what the environment leaves open, and its absence is an error only
// if there is no index without it.
func Load(ctx context.Context, env Environment) (*Config, error) {
	if env.Getenv == nil {
		env.Getenv = os.Getenv
	}
	if env.Pip == nil {
		env.Pip = runPython
	}
	settings, _ := pipSettings(ctx, env) // without pip there are none
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	first := func(values ...string) string {
		for _, v := range values {
			if v != "" {
				return v
			}
		}
		return ""
	}
	cfg := &Config{
		FindLinks: append(strings.Fields(first(env.Getenv("PIP_FIND_LINKS"), settings["find-links"])),
			split(env.Getenv("UV_FIND_LINKS"), ",")...),
		CAFiles: strings.Fields(settings["cert"]),
	}
	noIndex := first(env.Getenv("PIP_NO_INDEX"), env.Getenv("UV_NO_INDEX"), settings["no-index"])
	if yes, err := truth(noIndex); err != nil || yes {
		return cfg, err
	}
	index := first(env.Getenv("PIP_INDEX_URL"), env.Getenv("UV_DEFAULT_INDEX"), env.Getenv("UV_INDEX_URL"), settings["index-url"])
	if index == "" {
		var err error
		if index, err = defaultIndex(ctx, env); err != nil {
			return nil, fmt.Errorf("no package index is known, since pip cannot be asked: %w; install pip (Debian, Ubuntu: "+
				"apt install python3-pip; Fedora: dnf install python3-pip), or set PIP_INDEX_URL to your package index", err)
		}
	}
	cfg.Indexes = append([]string{bare(index)}, strings.Fields(first(env.Getenv("PIP_EXTRA_INDEX_URL"), settings["extra-index-url"]))...)
	for _, named := range strings.Fields(env.Getenv("UV_INDEX") + " " + env.Getenv("UV_EXTRA_INDEX_URL")) {
		cfg.Indexes = append(cfg.Indexes, bare(named))
	}
	return cfg, nil
}

// bare takes the name off an index that uv knows as name=address.
func bare(index string) string {
	if name, address, ok := strings.Cut(index, "="); ok && !strings.ContainsAny(name, ":/?") {
		return address
	}
	return index
}

func split(s, sep string) []string {
	return strings.FieldsFunc(s, func(r rune) bool { return strings.ContainsRune(sep+" \t\n", r) })
}

// truth reads a switch as pip does.
func truth(s string) (bool, error) {
	switch strings.ToLower(s) {
	case "", "n", "no", "f", "false", "off", "0":
		return false, nil
	case "y", "yes", "t", "true", "on", "1":
		return true, nil
	}
	return false, fmt.Errorf("no-index is %q in pip's or uv's settings; yes or no are meant", s)
}

// pipSettings are pip's own settings by their bare names ("index-url"), read
// with "pip config list". The environment comes before the sections of the
// commands, and those before the global one.
func pipSettings(ctx context.Context, env Environment) (map[string]string, error) {
	out, err := env.Pip(ctx, "-m", "pip", "config", "list", "--disable-pip-version-check")
	if err != nil {
		return nil, err
	}
	settings := map[string]string{}
	rank := map[string]int{}
	order := map[string]int{"global": 1, "download": 2, "install": 3, ":env:": 4}
	for line := range strings.Lines(out) {
		key, literal, ok := strings.Cut(strings.TrimSpace(line), "=")
		section, name, dotted := strings.Cut(key, ".")
		if !ok || !dotted || order[section] <= rank[name] {
			continue
		}
		value, err := unquote(literal)
		if err != nil {
			return nil, fmt.Errorf("pip config list: the value of %s is not understood", key)
		}
		settings[name], rank[name] = value, order[section]
	}
	return settings, nil
}

// unquote reads a Python string literal, as repr writes it.
func unquote(s string) (string, error) {
	if len(s) < 2 || s[0] != s[len(s)-1] || (s[0] != '\'' && s[0] != '"') {
		return "", strconv.ErrSyntax
	}
	quote, rest := s[0], s[1:len(s)-1]
	var out strings.Builder
	for rest != "" {
		// repr escapes the quote in use only; Go refuses the other one escaped.
		if strings.HasPrefix(rest, `\'`) || strings.HasPrefix(rest, `\"`) {
			out.WriteByte(rest[1])
			rest = rest[2:]
			continue
		}
		r, _, tail, err := strconv.UnquoteChar(rest, quote)
		if err != nil {
			return "", err
		}
		out.WriteRune(r)
		rest = tail
	}
	return out.String(), nil
}
