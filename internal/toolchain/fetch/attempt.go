// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"
	"os"
	"regexp"
	"sync/atomic"
	"time"

	"github.com/hashicorp/go-getter/v2"

	"github.com/sparsek/sparsek/internal/sys/term"
)

// minRate is the lowest rate of a carrier, in bytes a second over the stall
// time, so that a very slow transfer ends as well as a silent one.
const minRate = 1 << 10

// attempt downloads address to dst once, with go-getter. A pinned file has the
// right bytes when it returns nil.
func (d *download) attempt(ctx context.Context, address string) error {
	// go-getter would append to an existing file.
	if err := os.Remove(d.dst); err != nil && !errors.Is(err, os.ErrNotExist) {
		return d.cache.diskError(err)
	}
	d.bar.Set(0)
	src, err := getterSource(address, d.file.SHA256)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tr := &tracker{file: d.file, bar: d.bar}
	defer tr.watch(d.cache.opts.Stall, cancel)()

	g := &getter.Client{
		Getters: []getter.Getter{
			&getter.HttpGetter{Client: d.client, DoNotCheckHeadFirst: true, XTerraformGetDisabled: true},
			new(getter.FileGetter),
		},
		Decompressors:   map[string]getter.Decompressor{},
		DisableSymlinks: true,
	}
	_, err = g.Get(ctx, &getter.Request{Src: src, Dst: d.dst, GetMode: getter.ModeFile, Copy: true, ProgressListener: tr})
	if err := transportError(ctx, err); err != nil {
		return d.cache.diskError(err)
	}
	return tr.finish(d.dst)
}

// repeatedSlash is go-getter's mark of a sub-folder.
var repeatedSlash = regexp.MustCompile(`/{2,}`)

// getterSource converts address to the form that go-getter expects: with the
// sum to check in its query, and without anything that go-getter would
// interpret as an instruction.
func getterSource(address, sha string) (string, error) {
	u, err := url.Parse(address)
	if err != nil {
		return "", fmt.Errorf("%w: the address %s does not parse", errUseless, Redact(address))
	}
	switch u.Scheme {
	case "http", "https":
	case "file":
		if info, err := os.Stat(u.Path); err != nil || !info.Mode().IsRegular() {
			return "", fmt.Errorf("%w: there is no file %s", errUseless, u.Path)
		}
	default:
		return "", fmt.Errorf("%w: an address of the kind %q; http, https and file are known", errUseless, u.Scheme)
	}
	u.Fragment, u.RawFragment = "", ""
	u.Path, u.RawPath = repeatedSlash.ReplaceAllString(u.Path, "/"), repeatedSlash.ReplaceAllString(u.RawPath, "/")
	q := u.Query()
	q.Set("archive", "false")
	q.Del("checksum")
	if sha != "" {
		q.Set("checksum", "sha256:"+sha)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// tracker counts the bytes of one attempt, shows them, and stops it when there
// are too many. go-getter's own cap does not hold beside a tracker.
type tracker struct {
	file File
	bar  *term.Bar
	got  atomic.Int64
}

// TrackProgress is called by go-getter when the body begins. total is below
// zero where the server does not report it.
func (t *tracker) TrackProgress(_ string, _, total int64, body io.ReadCloser) io.ReadCloser {
	b := &trackedBody{ReadCloser: body, t: t}
	switch f := t.file; {
	case total > f.Bytes:
		b.err = fmt.Errorf("%w: %d announced, %d expected", ErrTooBig, total, f.Bytes)
	case total >= 0 && total < f.Bytes && f.pinned():
		b.err = fmt.Errorf("%w: %d announced, %d expected", ErrTruncated, total, f.Bytes)
	case total > 0 && !f.pinned():
		t.bar.SetTotal(total)
	}
	return b
}

type trackedBody struct {
	io.ReadCloser
	t   *tracker
	err error
}

func (b *trackedBody) Read(p []byte) (int, error) {
	if b.err != nil {
		return 0, b.err
	}
	n, err := b.ReadCloser.Read(p)
	got := b.t.got.Add(int64(n))
	b.t.bar.Set(got)
	if got > b.t.file.Bytes {
		b.err = fmt.Errorf("%w: over %d", ErrTooBig, b.t.file.Bytes)
		return 0, b.err
	}
	return n, err
}

// watch cancels the attempt when less than minRate came in over the time
// stall. The function it returns ends the watch.
func (t *tracker) watch(stall time.Duration, cancel context.CancelCauseFunc) (stop func()) {
	done := make(chan struct{})
	go func() {
		tick := time.NewTicker(stall)
		defer tick.Stop()
		least := max(int64(stall.Seconds()*minRate), 1)
		for last := int64(0); ; {
			select {
			case <-done:
				return
			case <-tick.C:
				now := t.got.Load()
				if now-last < least {
					cancel(fmt.Errorf("%w: %d bytes in %s", ErrStalled, now-last, stall))
					return
				}
				last = now
			}
		}
	}()
	return func() { close(done) }
}

// finish checks the size of the received file: the transport does not check
// it where the server reports no length, and no tracker sees a copied file.
func (t *tracker) finish(dst string) error {
	info, err := os.Stat(dst)
	if err != nil {
		return err
	}
	switch size := info.Size(); {
	case size > t.file.Bytes:
		return fmt.Errorf("%w: %d, not %d", ErrTooBig, size, t.file.Bytes)
	case t.file.pinned() && size < t.file.Bytes:
		return fmt.Errorf("%w: %d of %d", ErrTruncated, size, t.file.Bytes)
	}
	t.bar.Set(info.Size())
	return nil
}
