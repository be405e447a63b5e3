// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"
)

// Page is a document from the network.
type Page struct {
	Body        []byte
	ContentType string
	URL         *url.URL // its address, after redirects
}

const (
	pageTimeout  = 30 * time.Second
	pageAttempts = 3
	pageBackoff  = 300 * time.Millisecond
)

// GetPage reads a small document, of at most maxBytes, into memory, asking for
// the media types of accept. Temporary failures are retried. Errors name no
// URL.
func GetPage(ctx context.Context, client *http.Client, address, accept string, maxBytes int64) (*Page, error) {
	for attempt := 1; ; attempt++ {
		page, err := getPage(ctx, client, address, accept, maxBytes)
		if err == nil || judge(ctx, err) != retry || attempt >= pageAttempts {
			return page, err
		}
		if err := pause(ctx, pageBackoff, attempt, err); err != nil {
			return nil, err
		}
	}
}

func getPage(ctx context.Context, client *http.Client, address, accept string, maxBytes int64) (*Page, error) {
	slow := fmt.Errorf("%w: no whole answer within %s", ErrStalled, pageTimeout)
	pageCtx, cancel := context.WithTimeoutCause(ctx, pageTimeout, slow)
	defer cancel()
	req, err := http.NewRequestWithContext(pageCtx, http.MethodGet, address, nil)
	if err != nil {
		return nil, errors.New("the address does not parse")
	}
	req.Header.Set("Accept", accept)
	resp, err := client.Do(req)
	if err != nil {
		return nil, transportError(pageCtx, err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxBytes+1))
	if err != nil {
		return nil, transportError(pageCtx, err)
	}
	if int64(len(body)) > maxBytes {
		return nil, fmt.Errorf("%w: over %d", ErrTooBig, maxBytes)
	}
	return &Page{Body: body, ContentType: resp.Header.Get("Content-Type"), URL: resp.Request.URL}, nil
}
