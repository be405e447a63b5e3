// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bytes"
	"context"
	"encoding/pem"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/term"
	"github.com/sparsek/sparsek/internal/sys/testnet"
)

func TestSecretsStayOut(t *testing.T) {
	const secret = "hunter2"
	for name, h := range map[string]func(w http.ResponseWriter, r *http.Request){
		"refused": func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) },
		"broken":  func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) },
		"cut":     func(w http.ResponseWriter, _ *http.Request) { w.Write(body[:5]); cut(w) },
		"bad redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "ftp://u:"+secret+"@h/"+"?t="+secret, http.StatusFound)
		},
		"no host": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://u:"+secret+"@no-such-host.invalid/?t="+secret, http.StatusFound)
		},
		"no location": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Location", "http://u:"+secret+"@[bad/?t="+secret)
			w.WriteHeader(http.StatusFound)
		},
	} {
		srv := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) { h(w, r) })
		var said bytes.Buffer
		opts := quick(t)
		opts.Progress = term.New(&said)
		address := strings.Replace(srv.URL, "://", "://user-"+secret+":"+secret+"@", 1) + "/f?token=" + secret + "#" + secret
		_, err := open(t, opts).Get(context.Background(), pinned(address))
		if err == nil {
			t.Fatalf("%s: no error", name)
		}
		if strings.Contains(err.Error(), "Get \"") {
			t.Errorf("%s: the address comes twice in %v", name, err)
		}
		if strings.Contains(err.Error(), secret) || strings.Contains(said.String(), secret) {
			t.Errorf("%s: a secret shows in\n%v\n%s", name, err, said.String())
		}
		client, err := NewClient()
		if err != nil {
			t.Fatal(err)
		}
		if name == "broken" || name == "cut" {
			continue // the page is asked for again after waits that suit no test
		}
		if _, err := GetPage(context.Background(), client, address, "text/html", 100); err == nil || strings.Contains(err.Error(), secret) {
			t.Errorf("page, %s: %v", name, err)
		}
	}
}

func TestRedact(t *testing.T) {
	for in, want := range map[string]string{
		`Get "https://a:b@h.example/p?q=1#f": EOF`: `Get "https://h.example/p": EOF`,
		"https://token@h.example:8/simple/":        "https://h.example:8/simple/",
		"http://u:p w@h/":                          "http://(hidden) w@h/",
		"http://u:p@[bad/":                         "http://(hidden)",
		"no address here":                          "no address here",
		"https://h.example/@scope/x":               "https://h.example/@scope/x",
	} {
		if got := Redact(in); got != want {
			t.Errorf("Redact(%q) = %q, want %q", in, got, want)
		}
	}
}

func TestLogins(t *testing.T) {
	var user, password string
	srv := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) {
		user, password, _ = r.BasicAuth()
		w.Write(body)
	})
	file := filepath.Join(t.TempDir(), "netrc")
	if err := os.WriteFile(file, []byte("machine 127.0.0.1 login net password rc\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	t.Setenv("NETRC", file)
	for address, want := range map[string]string{
		srv.URL: "net:rc",
		strings.Replace(srv.URL, "://", "://me:mine@", 1): "me:mine",
	} {
		if _, err := open(t, quick(t)).Get(context.Background(), pinned(address)); err != nil {
			t.Fatal(err)
		}
		if got := user + ":" + password; got != want {
			t.Errorf("logged in as %q, want %q", got, want)
		}
	}
}

func TestOwnCertificates(t *testing.T) {
	testnet.NeedLoopback(t)
	srv := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.Write(body) }))
	srv.Config.ErrorLog = log.New(io.Discard, "", 0) // it would log the handshakes that we refuse
	srv.StartTLS()
	defer srv.Close()
	for _, v := range caVariables {
		t.Setenv(v, "")
	}
	_, err := open(t, quick(t)).Get(context.Background(), pinned(srv.URL))
	if !isCertificate(err) {
		t.Fatalf("an unknown certificate: got %v", err)
	}
	file := filepath.Join(t.TempDir(), "ca.pem")
	block := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw})
	if err := os.WriteFile(file, block, 0o644); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PIP_CERT", file)
	if _, err := open(t, quick(t)).Get(context.Background(), pinned(srv.URL)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PIP_CERT", "")
	opts := quick(t)
	opts.Client = func(context.Context) (*http.Client, error) { return NewClient(file) }
	if _, err := open(t, opts).Get(context.Background(), pinned(srv.URL)); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PIP_CERT", filepath.Join(t.TempDir(), "none"))
	if _, err := open(t, quick(t)).Get(context.Background(), pinned(srv.URL)); err == nil || !strings.Contains(err.Error(), "PIP_CERT") {
		t.Errorf("a missing file: got %v", err)
	}
}

func TestBytesAreTakenAsTheyAre(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) {
		if coding := r.Header.Get("Accept-Encoding"); coding != "" {
			t.Errorf("the coding %q was asked for", coding)
		}
		w.Header().Set("Content-Encoding", "gzip") // as servers say of a .tar.gz
		w.Write(body)
	})
	if _, err := open(t, quick(t)).Get(context.Background(), pinned(srv.URL)); err != nil {
		t.Fatal(err)
	}
}

func TestClientIsMadeOnceAndAskedAgainAfterFailure(t *testing.T) {
	made := 0
	opts := quick(t)
	opts.Client = func(context.Context) (*http.Client, error) {
		if made++; made == 1 {
			return nil, errors.New("not now")
		}
		return NewClient()
	}
	c := open(t, opts)
	if _, err := c.Get(context.Background(), pinned(good(t).URL)); err == nil {
		t.Fatal("no error")
	}
	for range 2 {
		if _, err := c.Client(context.Background()); err != nil {
			t.Fatal(err)
		}
	}
	if made != 2 {
		t.Errorf("made %d times", made)
	}
}

func TestGetPage(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, r *http.Request, hit int64) {
		switch {
		case r.URL.Path == "/old":
			http.Redirect(w, r, "/new/", http.StatusMovedPermanently)
		case hit == 2:
			w.WriteHeader(http.StatusServiceUnavailable)
		default:
			w.Header().Set("Content-Type", r.Header.Get("Accept"))
			w.Write([]byte("hello"))
		}
	})
	client, err := NewClient()
	if err != nil {
		t.Fatal(err)
	}
	page, err := GetPage(context.Background(), client, srv.URL+"/old", "text/x", 5)
	if err != nil {
		t.Fatal(err)
	}
	if string(page.Body) != "hello" || page.ContentType != "text/x" || page.URL.Path != "/new/" {
		t.Errorf("got %+v", page)
	}
	if _, err := GetPage(context.Background(), client, srv.URL+"/new/", "text/x", 4); !errors.Is(err, ErrTooBig) {
		t.Errorf("got %v", err)
	}
}
