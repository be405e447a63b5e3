// SPDX-License-Identifier: Apache-2.0

package fetch

import (
	"bufio"
	"context"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// These variables tell a copy of the test program what to do instead: fetch
// body and end, or take a lock and keep it.
const (
	childURL   = "SPARSEK_TEST_FETCH_URL"
	childCache = "SPARSEK_TEST_FETCH_CACHE"
	keepLock   = "lock:" // as the URL: keep the lock of the name behind it
)

func TestMain(m *testing.M) {
	if url := os.Getenv(childURL); strings.HasPrefix(url, keepLock) {
		c, err := Open(Options{Dir: os.Getenv(childCache)})
		if err == nil {
			_, err = c.Lock(context.Background(), strings.TrimPrefix(url, keepLock), "work")
		}
		fmt.Println("locked", err)
		time.Sleep(time.Hour)
	} else if url != "" {
		c, err := Open(Options{Dir: os.Getenv(childCache)})
		if err == nil {
			_, err = c.Get(context.Background(), pinned(url))
		}
		if err != nil {
			fmt.Println(err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

// child is a process that fetches body from url into dir.
func child(t *testing.T, url, dir string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childURL+"="+url, childCache+"="+dir)
	return cmd
}

func TestProcessesShareOneDownload(t *testing.T) {
	srv := serve(t, func(w http.ResponseWriter, _ *http.Request, _ int64) {
		time.Sleep(100 * time.Millisecond)
		w.Write(body)
	})
	c := open(t, quick(t))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if out, err := child(t, srv.URL, c.Dir()).CombinedOutput(); err != nil {
				t.Errorf("%v: %s", err, out)
			}
		})
	}
	for range 2 {
		wg.Go(func() {
			if _, err := open(t, Options{Dir: c.Dir()}).Get(context.Background(), pinned(srv.URL)); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if n := srv.hits.Load(); n != 1 {
		t.Errorf("%d downloads for ten takers", n)
	}
	checkOnly(t, c, true)
}

func TestKilledInTheMidst(t *testing.T) {
	begun := make(chan struct{}, 1)
	slow := serve(t, func(w http.ResponseWriter, r *http.Request, _ int64) {
		w.Header().Set("Content-Length", fmt.Sprint(len(body)))
		w.Write(body[:len(body)/2])
		w.(http.Flusher).Flush()
		begun <- struct{}{}
		<-r.Context().Done()
	})
	c := open(t, quick(t))
	cmd := child(t, slow.URL, c.Dir())
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	<-begun
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if parts, _ := filepath.Glob(filepath.Join(c.Dir(), "tmp", "*")); len(parts) != 1 {
		t.Fatalf("the test killed too early or late: %q", parts)
	}
	// No lock is stuck, nothing looks finished, and the rest is cleared away.
	if files, _ := filepath.Glob(filepath.Join(c.Dir(), "sha256", "*")); len(files) != 0 {
		t.Fatalf("half a file in the cache: %q", files)
	}
	if _, err := c.Get(context.Background(), pinned(good(t).URL)); err != nil {
		t.Fatal(err)
	}
	checkOnly(t, c, true)
}

func TestDiskFull(t *testing.T) {
	sh, err := exec.LookPath("sh")
	if err != nil {
		t.Skip("skipped: no sh to set a limit with")
	}
	srv := good(t)
	c := open(t, quick(t))
	// A limit on the size of files stops a write as a full disk does.
	cmd := child(t, srv.URL, c.Dir())
	cmd.Args = []string{"sh", "-c", `ulimit -f 8 && exec "$0"`, cmd.Path}
	cmd.Path = sh
	out, err := cmd.CombinedOutput()
	if err == nil {
		t.Fatal("no error on a full disk")
	}
	if !strings.Contains(string(out), c.Dir()) || !strings.Contains(string(out), CacheVariable) {
		t.Errorf("got %s", out)
	}
	if n := srv.hits.Load(); n != 1 {
		t.Errorf("%d downloads to a full disk", n)
	}
	checkOnly(t, c, false)
}

func TestKilledWithTheLock(t *testing.T) {
	c := open(t, quick(t))
	cmd := child(t, keepLock+"k", c.Dir())
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil || line != "locked <nil>\n" {
		t.Fatalf("%q, %v", line, err)
	}
	take := func(wait time.Duration) error {
		ctx, cancel := context.WithTimeout(context.Background(), wait)
		defer cancel()
		unlock, err := c.Lock(ctx, "k", "work")
		if err == nil {
			unlock()
		}
		return err
	}
	if err := take(50 * time.Millisecond); err != context.DeadlineExceeded {
		t.Errorf("while the other had it: %v", err)
	}
	if err := cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if err := take(10 * time.Second); err != nil {
		t.Errorf("the lock is stuck: %v", err)
	}
}

func TestLockIsWaitedFor(t *testing.T) {
	c := open(t, quick(t))
	unlock, err := c.Lock(context.Background(), "k", "work")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := c.Lock(ctx, "k", "work"); err != context.DeadlineExceeded {
		t.Fatalf("got %v while the lock was held", err)
	}
	unlock()
	again, err := c.Lock(context.Background(), "k", "work")
	if err != nil {
		t.Fatal(err)
	}
	again()
}
