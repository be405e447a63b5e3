// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"regexp"
	"strings"
	"time"

	"github.com/hashicorp/go-getter/v2"

	"github.com/sparsek/sparsek/internal/sys/term"
)

var (
	// ErrTooBig means that a carrier sent more bytes than it may.
	ErrTooBig = errors.New("more bytes than expected")
	// ErrTruncated means that a carrier sent fewer bytes than the lock says.
	ErrTruncated = errors.New("fewer bytes than expected")
	// ErrChecksum means that the bytes are not the pinned ones.
	ErrChecksum = errors.New("wrong sha256")
	// ErrStalled means that a carrier sent less than the lowest rate for the
	// time Options.Stall.
	ErrStalled = errors.New("stalled")
	// ErrRedirects means that a carrier redirected too often.
	ErrRedirects = errors.New("too many redirects")
)

// errUseless means an address for which a retry cannot help.
var errUseless = errors.New("unusable address")

// DiskError is a fault of the disk or folder of the cache.
type DiskError struct {
	Dir string
	Err error
}

func (e *DiskError) Error() string {
	return fmt.Sprintf("cache folder %s: %v; give it space and the right to write, or set %s to another folder", e.Dir, e.Err, CacheVariable)
}

func (e *DiskError) Unwrap() error { return e.Err }

// StatusError is an HTTP answer that is not the file.
type StatusError struct {
	Code       int
	RetryAfter time.Duration // the wait that the server asks for; 0 if it does not
}

func (e *StatusError) Error() string {
	s := fmt.Sprintf("the server answered %d %s", e.Code, http.StatusText(e.Code))
	switch e.Code {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		s += "; check the credentials in the URL of the index or proxy, or in netrc"
	}
	return s
}

// OfflineError is a file that is needed, is not in the cache and cannot be
// fetched offline.
type OfflineError struct {
	Name   string // what is missing
	Base   string // its file name; "" if it is not pinned
	Bytes  int64  // its size; 0 if it is not pinned
	SHA256 string // its hash; "" if it is not pinned
	Path   string // its place in the cache
	Bad    bool   // it exists, but is damaged
}

func (e *OfflineError) Error() string {
	what := "is not in the cache"
	if e.Bad {
		what = "is damaged in the cache"
	}
	s := fmt.Sprintf("offline: %s %s; fetch once with network, without the offline mode", e.Name, what)
	if e.SHA256 != "" {
		s += fmt.Sprintf(", or copy the file %s (%s, sha256 %s) to %s", e.Base, term.FormatBytes(e.Bytes), e.SHA256, e.Path)
	}
	return s
}

// fate is the next step after an error.
type fate int

const (
	retry       fate = iota // the same carrier may succeed soon
	nextCarrier             // this carrier will not succeed
	unreachable             // no answer: try others first, then perhaps again
	giveUp                  // no carrier can succeed: disk, cancellation
)

// judge classifies the error of one attempt.
func judge(ctx context.Context, err error) fate {
	var disk *DiskError
	var status *StatusError
	var dns *net.DNSError
	var timeout net.Error
	var op *net.OpError
	switch {
	case ctx.Err() != nil, errors.As(err, &disk):
		return giveUp
	case errors.As(err, &status):
		switch {
		case status.Code == http.StatusRequestTimeout, status.Code == http.StatusTooManyRequests, status.Code >= 500:
			return retry
		}
		return nextCarrier
	case errors.Is(err, ErrTooBig), errors.Is(err, ErrRedirects), errors.Is(err, errUseless), isCertificate(err):
		return nextCarrier
	case errors.As(err, &dns) && dns.IsNotFound:
		return nextCarrier
	case errors.Is(err, ErrStalled), errors.As(err, &timeout) && timeout.Timeout(), errors.As(err, &op) && op.Op == "dial":
		return unreachable
	}
	return retry
}

// isCertificate reports whether err is about a server's certificate that no
// trusted authority has signed.
func isCertificate(err error) bool {
	var cert *tls.CertificateVerificationError
	return errors.As(err, &cert)
}

// transportError converts the error of an attempt into a cause that can be
// judged and shown: without the URL, whose user info and query can be secret,
// and with our reason where we cancelled the attempt.
func transportError(ctx context.Context, err error) error {
	if err == nil {
		return nil
	}
	if errors.Is(err, ErrTooBig) || errors.Is(err, ErrTruncated) {
		return err // from our own reader, see tracker
	}
	if cause := context.Cause(ctx); cause != nil {
		return cause
	}
	var sum *getter.ChecksumError
	if errors.As(err, &sum) {
		return fmt.Errorf("%w: got %x, pinned is %x", ErrChecksum, sum.Actual, sum.Expected)
	}
	var u *url.Error
	if errors.As(err, &u) {
		err = u.Err
	}
	return &redacted{err}
}

// redacted hides secrets in the text of an error and keeps its identity.
type redacted struct{ err error }

func (e *redacted) Error() string { return Redact(e.err.Error()) }
func (e *redacted) Unwrap() error { return e.err }

var anyURL = regexp.MustCompile(`[A-Za-z][A-Za-z0-9+.-]*://[^\s"'<>]+`)

// Redact takes user info, queries and fragments out of the URLs in text, as
// they may carry credentials. A URL that does not parse is hidden whole.
func Redact(text string) string {
	return anyURL.ReplaceAllStringFunc(text, func(s string) string {
		u, err := url.Parse(s)
		if err != nil {
			scheme, _, _ := strings.Cut(s, "://")
			return scheme + "://(hidden)"
		}
		u.User, u.RawQuery, u.ForceQuery, u.Fragment, u.RawFragment = nil, "", false, "", ""
		return u.String()
	})
}
