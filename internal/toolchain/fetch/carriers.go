// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// CarriersError holds the reasons why no carrier provided a file.
type CarriersError struct {
	Name   string
	Causes []error // one for each carrier that was tried, in order
}

func (e *CarriersError) Error() string {
	const fix = "check the network, the proxy (HTTPS_PROXY) and pip's index settings"
	switch len(e.Causes) {
	case 0:
		return fmt.Sprintf("fetch %s: no carrier is known; fix the lock", e.Name)
	case 1:
		return fmt.Sprintf("fetch %s from %v; %s", e.Name, e.Causes[0], fix)
	}
	var s strings.Builder
	fmt.Fprintf(&s, "fetch %s: no carrier gave it; %s:", e.Name, fix)
	for _, cause := range e.Causes {
		fmt.Fprintf(&s, "\n  %v", cause)
	}
	return s.String()
}

// Unwrap returns the causes, for errors.Is and errors.As.
func (e *CarriersError) Unwrap() []error { return e.Causes }

// download brings f to dst from the first carrier that gives it.
func (c *Cache) download(ctx context.Context, client *http.Client, f File, dst string) error {
	total := f.Bytes
	if !f.pinned() {
		total = 0
	}
	d := &download{cache: c, client: client, file: f, dst: dst, bar: c.opts.Progress.Bar(f.Name, total, term.Bytes)}
	err := d.fromAny(ctx)
	// The caller reports err, or has another carrier to try; of several
	// downloads that one failure cancelled, only that one is reported.
	d.bar.End(err)
	return err
}

// download is one file on its way to dst.
type download struct {
	cache  *Cache
	client *http.Client
	file   File
	dst    string
	bar    *term.Bar
}

func (d *download) say(format string, args ...any) {
	d.cache.opts.Progress.Printf("%s: %s", d.file.Name, fmt.Sprintf(format, args...))
}

// fromAny tries the carriers in order. One that does not answer is skipped at
// once, and tried again after all others.
func (d *download) fromAny(ctx context.Context) error {
	f, attempts := d.file, d.cache.opts.Attempts
	causes := make([]error, len(f.Sources))
	pending := make([]int, len(f.Sources))
	for i := range pending {
		pending[i] = i
	}
	for pass := 0; pass < attempts && len(pending) > 0; pass++ {
		if pass > 0 {
			if err := pause(ctx, d.cache.opts.Backoff, pass, nil); err != nil {
				return err
			}
		}
		var again []int
		for _, i := range pending {
			src := f.Sources[i]
			err := d.fromSource(ctx, src)
			if err == nil {
				return nil
			}
			causes[i] = fmt.Errorf("%s: %w", src.Label, err)
			switch judge(ctx, err) {
			case giveUp:
				return fmt.Errorf("fetch %s: %w", f.Name, err)
			case unreachable:
				again = append(again, i)
			}
			if i < len(f.Sources)-1 {
				d.say("%v; trying the next carrier", causes[i])
			}
		}
		pending = again
	}
	return &CarriersError{Name: f.Name, Causes: causes}
}

// fromSource tries the addresses of one carrier and returns the last error.
func (d *download) fromSource(ctx context.Context, src Source) error {
	urls, err := src.URLs(ctx)
	if err != nil {
		return err
	}
	err = errors.New("it knows no address of the file")
	for _, u := range urls {
		if err = d.fromURL(ctx, u); err == nil || judge(ctx, err) == giveUp {
			return err
		}
	}
	return err
}

// fromURL tries one address as often as a retry may help.
func (d *download) fromURL(ctx context.Context, address string) error {
	for attempt := 1; ; attempt++ {
		err := d.attempt(ctx, address)
		if err == nil || judge(ctx, err) != retry || attempt >= d.cache.opts.Attempts {
			return err
		}
		// Wrong bytes once may be a fault of the transfer; twice, they are the carrier's.
		if errors.Is(err, ErrChecksum) && attempt >= 2 {
			return err
		}
		d.say("%v; trying again", err)
		if err := pause(ctx, d.cache.opts.Backoff, attempt, err); err != nil {
			return err
		}
	}
}

// pause waits before the next attempt after n failed ones: as long as the
// server asked for in cause, else the back-off, doubled each time, with some
// chance in it so that many processes do not come back at once.
func pause(ctx context.Context, backoff time.Duration, n int, cause error) error {
	wait := backoff << (n - 1)
	wait += rand.N(wait/4 + 1)
	var status *StatusError
	if errors.As(cause, &status) {
		wait = max(wait, status.RetryAfter)
	}
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-time.After(wait):
		return nil
	}
}
