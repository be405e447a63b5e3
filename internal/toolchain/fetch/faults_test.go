// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

// cut ends the connection in the midst of an answer.
func cut(w http.ResponseWriter) {
	w.(http.Flusher).Flush()
	panic(http.ErrAbortHandler)
}

// faults are ways in which a carrier fails. Those that pass give the file at
// the second try.
var faults = map[string]struct {
	h      func(w http.ResponseWriter, r *http.Request)
	want   error // nil where the cause has no name
	passes bool
}{
	"announced too short": {func(w http.ResponseWriter, _ *http.Request) { w.Write(body[:100]) }, ErrTruncated, true},
	"cut off": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body[:1000])
		cut(w)
	}, nil, true},
	"short, length not stated": {func(w http.ResponseWriter, _ *http.Request) {
		w.Write(body[:1000])
		w.(http.Flusher).Flush()
	}, ErrChecksum, true},
	"corrupt, full length": {func(w http.ResponseWriter, _ *http.Request) {
		bad := bytes.Clone(body)
		bad[777] ^= 1
		w.Write(bad)
	}, ErrChecksum, true},
	"longer, length not stated": {func(w http.ResponseWriter, _ *http.Request) {
		w.Write(body)
		w.(http.Flusher).Flush()
		w.Write(body)
	}, ErrTooBig, false},
	"longer, announced": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(2*len(body)))
		w.Write(body)
		w.Write(body)
	}, ErrTooBig, false},
	"partial content unasked": {func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 10-%d/%d", len(body)-1, len(body)))
		w.WriteHeader(http.StatusPartialContent)
		w.Write(body[10:])
	}, ErrChecksum, true},
	"redirect loop": {func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Path+"x", http.StatusFound)
	}, ErrRedirects, false},
	"not found":   {func(w http.ResponseWriter, r *http.Request) { http.NotFound(w, r) }, nil, false},
	"forbidden":   {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusForbidden) }, nil, false},
	"broken":      {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusInternalServerError) }, nil, true},
	"overwhelmed": {func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTooManyRequests) }, nil, true},
	"silent":      {func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() }, ErrStalled, true},
	"stalled": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body[:5000])
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	}, ErrStalled, true},
	"slow drip": {func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		for i := 0; r.Context().Err() == nil && i < 300; i++ {
			w.Write(body[i : i+1])
			w.(http.Flusher).Flush()
			time.Sleep(10 * time.Millisecond)
		}
	}, ErrStalled, true},
}

func TestFaultForEver(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) { fault.h(w, r) })
			c := open(t, quick(t))
			_, err := c.Get(context.Background(), pinned(srv.URL+"/f"))
			var all *CarriersError
			if !errors.As(err, &all) || !strings.Contains(err.Error(), "thing") {
				t.Fatalf("got %v", err)
			}
			if fault.want != nil && !errors.Is(err, fault.want) {
				t.Fatalf("got %v, want %v", err, fault.want)
			}
			if fault.want != ErrRedirects {
				if n := srv.hits.Load(); (n > 1) != fault.passes || n > 3 {
					t.Errorf("asked %d times", n)
				}
				if n := srv.hits.Load(); fault.want == ErrChecksum && n != 2 {
					t.Errorf("wrong bytes were asked for %d times", n)
				}
			}
			checkOnly(t, c, false)
		})
	}
}

func TestFaultThatPasses(t *testing.T) {
	for name, fault := range faults {
		if !fault.passes {
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			srv := serve(t, func(w http.ResponseWriter, r *http.Request, hit int64) {
				if hit == 1 {
					fault.h(w, r)
					return
				}
				w.Write(body)
			})
			c := open(t, quick(t))
			if _, err := c.Get(context.Background(), pinned(srv.URL+"/f")); err != nil {
				t.Fatal(err)
			}
			checkOnly(t, c, true)
		})
	}
}

func TestFaultThenNextCarrier(t *testing.T) {
	for name, fault := range faults {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			bad := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) { fault.h(w, r) })
			c := open(t, quick(t))
			if _, err := c.Get(context.Background(), pinned(bad.URL, good(t).URL)); err != nil {
				t.Fatal(err)
			}
			checkOnly(t, c, true)
		})
	}
}

func TestNobodyThereIsLeftAtOnce(t *testing.T) {
	gone := good(t)
	gone.Close()
	opts := quick(t)
	opts.Backoff = time.Hour // a wait before the next carrier would show
	for name, dead := range map[string]string{
		"refused": gone.URL, "no such host": "http://no-such-host.invalid/f", "no such file": "file:///no/such/file",
		"unknown kind": "git::ssh://host/x", "no address": "http://[::1", "not an address": "://",
	} {
		opts.Dir = t.TempDir()
		c := open(t, opts)
		if _, err := c.Get(context.Background(), pinned(dead, good(t).URL)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		checkOnly(t, c, true)
	}
}

func TestRefusedIsAskedAgain(t *testing.T) {
	gone := good(t)
	gone.Close()
	asked := 0
	f := pinned()
	f.Sources = []Source{{Label: "a", URLs: func(context.Context) ([]string, error) {
		asked++
		return []string{gone.URL}, nil
	}}}
	if _, err := open(t, quick(t)).Get(context.Background(), f); err == nil || asked != 3 {
		t.Fatalf("asked %d times: %v", asked, err)
	}
}
