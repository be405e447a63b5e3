// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/toolchain/fetch"
	"github.com/sparsek/sparsek/internal/toolchain/pyindex"
)

// State is how a pin stands.
type State string

const (
	// OK: available with the pinned hash, and size if the index lists it.
	OK State = "ok"
	// Unlisted: available, but the index lists neither hash nor size.
	Unlisted State = "unlisted"
	// Unreachable: there was no answer; nothing is known.
	Unreachable State = "unreachable"
	// Missing: the index answered and has it no more.
	Missing State = "missing"
	// Differs: there is something else under the pinned name.
	Differs State = "differs"
)

// Check is what Verify found out about one carrier of one pin.
type Check struct {
	Name   string // "nvidia-nvvm 13.0.88", or the URL of a carrier
	State  State
	Detail string // the cause, or where it is available
	Cached string // "whole", "damaged" or "" if it is not in the cache
}

// bad says whether a check fails Verify on its own.
func (c *Check) bad() bool {
	return c.State == Missing || c.State == Differs || c.State == Unreachable || c.Cached == "damaged"
}

// Verify asks for every pinned file of l whether the index still has it with
// the pinned hash and size, and checks those that are in the cache. Nothing is
// downloaded. The checks come in the order of the lock, those of CUTLASS last. The error says which
// pins fail; CUTLASS fails only if no carrier of it is left.
func Verify(ctx context.Context, l *Lock, index *pyindex.Resolver, cache *fetch.Cache) ([]Check, error) {
	var checks []Check
	var errs []error
	for _, p := range slices.Concat(l.CUDA.Wheels, l.Tools) {
		c := checkPackage(ctx, p, index, cache)
		checks = append(checks, c)
		if c.bad() {
			errs = append(errs, c.err())
		}
	}
	var carriers []error
	for _, carrier := range l.CUTLASS.Carriers {
		var c Check
		if carrier.Package != nil {
			c = checkPackage(ctx, *carrier.Package, index, cache)
		} else {
			c = checkURL(ctx, strings.ReplaceAll(carrier.URL, "{commit}", l.CUTLASS.Commit), cache)
		}
		checks = append(checks, c)
		if c.bad() {
			carriers = append(carriers, c.err())
		}
	}
	if len(carriers) == len(l.CUTLASS.Carriers) {
		errs = append(errs, carriers...)
	}
	if ctx.Err() != nil {
		return checks, ctx.Err()
	}
	if len(errs) > 0 {
		return checks, fmt.Errorf("the lock does not hold: %w", errors.Join(errs...))
	}
	return checks, nil
}

func (c *Check) err() error {
	if c.Cached == "damaged" {
		return fmt.Errorf("%s is damaged in the cache; the next fetch replaces it", c.Name)
	}
	return fmt.Errorf("%s: %s: %s", c.Name, c.State, c.Detail)
}

func checkPackage(ctx context.Context, p Package, index *pyindex.Resolver, cache *fetch.Cache) Check {
	c := Check{Name: p.String()}
	switch err := cache.Check(ctx, p.Bytes, p.SHA256); {
	case err == nil:
		c.Cached = "whole"
	case !errors.Is(err, fs.ErrNotExist):
		c.Cached = "damaged"
	}
	links, err := index.Find(ctx, pyindex.Coordinate{Name: p.Name, Version: p.Version, File: p.File})
	switch {
	case errors.Is(err, pyindex.ErrNotFound):
		c.State, c.Detail = Missing, err.Error()
		return c
	case err != nil:
		c.State, c.Detail = Unreachable, err.Error()
		return c
	}
	l := links[0]
	c.State, c.Detail = OK, "at "+l.From
	switch {
	case l.SHA256 != "" && l.SHA256 != p.SHA256:
		c.State, c.Detail = Differs, fmt.Sprintf("%s lists sha256 %s, the lock has %s", l.From, l.SHA256, p.SHA256)
	case l.Size != 0 && l.Size != p.Bytes:
		c.State, c.Detail = Differs, fmt.Sprintf("%s lists %d bytes, the lock has %d", l.From, l.Size, p.Bytes)
	case l.SHA256 == "":
		c.State = Unlisted
	}
	if l.Yanked {
		c.Detail += " (withdrawn by its maker)"
	}
	return c
}

// checkURL asks whether there is something at an address whose bytes are not
// pinned: its tree is checked when it is used.
func checkURL(ctx context.Context, address string, cache *fetch.Cache) Check {
	c := Check{Name: fetch.Redact(address), State: Unlisted, Detail: "its tree is checked when it is unpacked"}
	client, err := cache.Client(ctx)
	if err == nil {
		err = head(ctx, client, address)
	}
	var status *fetch.StatusError
	switch {
	case errors.As(err, &status) && status.Code == http.StatusNotFound:
		c.State, c.Detail = Missing, err.Error()
	case err != nil:
		c.State, c.Detail = Unreachable, fetch.Redact(err.Error())
	}
	return c
}

func head(ctx context.Context, client *http.Client, address string) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodHead, address, nil)
	if err != nil {
		return err
	}
	resp, err := client.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}
