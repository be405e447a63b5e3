// SPDX-License-Identifier: Apache-2.0

package pyindex

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"
	"sync"

	"github.com/sparsek/sparsek/internal/toolchain/fetch"
)

// ErrNotFound means that no place that was looked at has the file.
var ErrNotFound = errors.New("not in the package index")

// Coordinate names a file of a package.
type Coordinate struct {
	Name    string // the package, as in "nvidia-nvvm"
	Version string // opaque
	File    string // as in "nvidia_nvvm-13.0.88-py3-none-….whl"
}

func (c Coordinate) String() string { return c.Name + " " + c.Version }

// Resolver finds files in the places of a Config.
type Resolver struct {
	load func(context.Context) (*Config, *http.Client, error)
}

// New returns a resolver that asks the places of cfg through client, one made
// by fetch.NewClient.
func New(cfg *Config, client *http.Client) *Resolver {
	return &Resolver{func(context.Context) (*Config, *http.Client, error) { return cfg, client, nil }}
}

// Open returns a resolver for the user's own pip or uv. It looks at their
// settings when it is first needed.
func Open(env Environment) *Resolver {
	var mu sync.Mutex
	var cfg *Config
	var client *http.Client
	return &Resolver{func(ctx context.Context) (*Config, *http.Client, error) {
		mu.Lock()
		defer mu.Unlock()
		if cfg != nil {
			return cfg, client, nil
		}
		found, err := Load(ctx, env)
		if err != nil {
			return nil, nil, err
		}
		made, err := fetch.NewClient(found.CAFiles...)
		if err != nil {
			return nil, nil, err
		}
		cfg, client = found, made
		return cfg, client, nil
	}}
}

// Client returns the HTTP client that trusts what pip trusts; for
// fetch.Options. Where pip's settings cannot be read, those of the environment
// and the system apply: not every carrier needs an index.
func (r *Resolver) Client(ctx context.Context) (*http.Client, error) {
	_, client, err := r.load(ctx)
	switch {
	case err == nil:
		return client, nil
	case ctx.Err() != nil:
		return nil, ctx.Err()
	}
	return fetch.NewClient()
}

// Find returns the links to the file of c, in the order of the places that
// have it. It asks no further once a place has the file. The error is
// ErrNotFound if every place answered and none has it.
func (r *Resolver) Find(ctx context.Context, c Coordinate) ([]Link, error) {
	places, err := r.places(ctx, c.Name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", c, err)
	}
	var causes []error
	for _, list := range places {
		links, err := list(ctx)
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err != nil {
			causes = append(causes, err)
			continue
		}
		var found []Link
		for _, l := range links {
			if l.File == c.File {
				found = append(found, l)
			}
		}
		if len(found) > 0 {
			return found, nil
		}
	}
	if len(causes) > 0 {
		return nil, fmt.Errorf("%s: %w", c, errors.Join(causes...))
	}
	return nil, fmt.Errorf("%s: %s: %w", c, c.File, ErrNotFound)
}

// Files returns all files of a package that the first place with any lists.
func (r *Resolver) Files(ctx context.Context, name string) ([]Link, error) {
	places, err := r.places(ctx, name)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	var causes []error
	for _, list := range places {
		links, err := list(ctx)
		if err == nil && len(links) > 0 {
			return links, nil
		}
		causes = append(causes, err)
	}
	if err := errors.Join(causes...); err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return nil, fmt.Errorf("%s: %w", name, ErrNotFound)
}

// places are the ways to list the files of a package, in order.
func (r *Resolver) places(ctx context.Context, name string) ([]func(context.Context) ([]Link, error), error) {
	cfg, client, err := r.load(ctx)
	if err != nil {
		return nil, err
	}
	var places []func(context.Context) ([]Link, error)
	for _, at := range cfg.FindLinks {
		places = append(places, func(ctx context.Context) ([]Link, error) { return findLinks(ctx, client, at, name) })
	}
	for _, index := range cfg.Indexes {
		address := strings.TrimRight(index, "/") + "/" + Normalize(name) + "/"
		places = append(places, func(ctx context.Context) ([]Link, error) {
			links, err := readPage(ctx, client, address)
			var status *fetch.StatusError
			if errors.As(err, &status) && (status.Code == http.StatusNotFound || status.Code == http.StatusGone) {
				return nil, nil // the index answered: it has no such package
			}
			return links, err
		})
	}
	return places, nil
}

var separators = regexp.MustCompile(`[-_.]+`)

// Normalize writes the name of a package as indexes do (PEP 503).
func Normalize(name string) string {
	return strings.ToLower(separators.ReplaceAllString(name, "-"))
}

// belongs reports whether a file is one of a package, by its name.
func belongs(file, name string) bool {
	rest, ok := strings.CutPrefix(Normalize(file), Normalize(name)+"-")
	return ok && rest != "" && rest[0] >= '0' && rest[0] <= '9'
}
