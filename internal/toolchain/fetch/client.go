// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"crypto/x509"
	"fmt"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/bgentry/go-netrc/netrc"
)

const (
	dialTimeout = 5 * time.Second
	tlsTimeout  = 10 * time.Second
	// headerTimeout leaves a server time to pack an archive before it sends.
	headerTimeout = 20 * time.Second
	maxRedirects  = 10
	// maxRetryAfter bounds the wait that a server may ask for.
	maxRetryAfter = 30 * time.Second
)

// caVariables name files of certificates that Python's tools trust and Go does
// not look at. SSL_CERT_FILE and SSL_CERT_DIR are read by Go itself.
var caVariables = []string{"PIP_CERT", "REQUESTS_CA_BUNDLE", "CURL_CA_BUNDLE"}

// NewClient returns an HTTP client for indexes and files. It goes through the
// proxy that the environment names, gives up on a host that does not answer
// within seconds, logs in as netrc says where a URL has no user of its own,
// and trusts, beside the system's certificates, those in caFiles and in the
// files that PIP_CERT, REQUESTS_CA_BUNDLE and CURL_CA_BUNDLE name. An answer
// other than success is an error, a *StatusError.
func NewClient(caFiles ...string) (*http.Client, error) {
	for _, v := range caVariables {
		caFiles = append(caFiles, os.Getenv(v))
	}
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DialContext = (&net.Dialer{Timeout: dialTimeout, KeepAlive: 30 * time.Second}).DialContext
	t.TLSHandshakeTimeout = tlsTimeout
	t.ResponseHeaderTimeout = headerTimeout
	// The bytes must reach the disk unchanged: transparent decompression would
	// change lengths, or turn a .tar.gz into a .tar.
	t.DisableCompression = true
	if err := trust(t, caFiles); err != nil {
		return nil, err
	}
	return &http.Client{
		Transport: &checked{next: t, logins: sync.OnceValue(readNetrc)},
		CheckRedirect: func(_ *http.Request, via []*http.Request) error {
			if len(via) >= maxRedirects {
				return ErrRedirects
			}
			return nil
		},
	}, nil
}

// trust adds the certificates in files to those that t trusts. It skips empty
// names, and folders, which the library requests accepts and Go does not.
func trust(t *http.Transport, files []string) error {
	var pool *x509.CertPool
	for _, file := range files {
		if info, err := os.Stat(file); file == "" || (err == nil && info.IsDir()) {
			continue
		}
		pem, err := os.ReadFile(file)
		if err != nil {
			return fmt.Errorf("certificates: %w; correct PIP_CERT, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or pip's cert setting", err)
		}
		if pool == nil {
			if pool, err = x509.SystemCertPool(); err != nil {
				pool = x509.NewCertPool()
			}
		}
		if !pool.AppendCertsFromPEM(pem) {
			return fmt.Errorf("certificates: %s has no PEM certificate; correct PIP_CERT, REQUESTS_CA_BUNDLE, CURL_CA_BUNDLE or pip's cert setting", file)
		}
	}
	if pool != nil {
		t.TLSClientConfig.RootCAs = pool
	}
	return nil
}

// checked turns answers that are not successes into errors and adds logins.
type checked struct {
	next   http.RoundTripper
	logins func() *netrc.Netrc
}

func (c *checked) RoundTrip(req *http.Request) (*http.Response, error) {
	if req.Header.Get("Authorization") == "" && req.URL.User == nil {
		if m := machine(c.logins(), req.URL.Hostname()); m != nil {
			req = req.Clone(req.Context())
			req.SetBasicAuth(m.Login, m.Password)
		}
	}
	resp, err := c.next.RoundTrip(req)
	if err != nil || resp.StatusCode < 400 {
		return resp, err
	}
	resp.Body.Close()
	return nil, &StatusError{Code: resp.StatusCode, RetryAfter: retryAfter(resp.Header.Get("Retry-After"))}
}

func retryAfter(header string) time.Duration {
	n, err := strconv.Atoi(header)
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(n)*time.Second, maxRetryAfter)
}

// readNetrc reads the user's netrc file: the one NETRC names, else ~/.netrc.
// One that is missing or cannot be read gives no logins, as with pip: a login
// that was needed shows as the server's refusal.
func readNetrc() *netrc.Netrc {
	file := os.Getenv("NETRC")
	if file == "" {
		home, err := os.UserHomeDir()
		if err != nil {
			return nil
		}
		file = filepath.Join(home, ".netrc")
	}
	n, err := netrc.ParseFile(file)
	if err != nil {
		return nil
	}
	return n
}

func machine(n *netrc.Netrc, host string) *netrc.Machine {
	if n == nil {
		return nil
	}
	return n.FindMachine(host)
}
