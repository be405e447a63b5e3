// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/sparsek/sparsek/internal/sys/testdisk"
	"github.com/sparsek/sparsek/internal/toolchain/lock"
)

// childTask tells a copy of the test program what to do instead of testing, a
// name of tasks; childLock and childCache tell with what.
const (
	childTask  = "SPARSEK_TEST_TASK"
	childLock  = "SPARSEK_TEST_LOCK"
	childCache = "SPARSEK_TEST_CACHE"
)

var tasks = map[string]func(opts Options) error{
	"prepare":   prepared,
	"full":      onFullDisk,
	"read-only": onReadOnlyDisk,
}

func TestMain(m *testing.M) {
	task := tasks[os.Getenv(childTask)]
	if task == nil {
		os.Exit(m.Run())
	}
	testdisk.Exit(task(Options{LockPath: os.Getenv(childLock), CacheDir: os.Getenv(childCache)}))
}

func prepared(opts Options) error {
	_, err := Prepare(context.Background(), opts)
	return err
}

// child is a process of its own that does a task in the world.
func (w *world) child(t *testing.T, task string) *exec.Cmd {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), lock.FileName)
	if err := w.lock.Save(file); err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), childTask+"="+task, childLock+"="+file, childCache+"="+w.cache)
	return cmd
}

// long says whether the long forms of tests are to run.
func long() bool { return os.Getenv("SPARSEK_LONG") != "" }

// rounds is how often a test tries its luck.
func rounds(short, longer int) int {
	if long() {
		return longer
	}
	return short
}

// checkNoLies fails if anything in the cache that looks finished is not what
// its name says, whatever happened to the process that made it.
func (w *world) checkNoLies(t *testing.T, when string) {
	t.Helper()
	files, _ := filepath.Glob(filepath.Join(w.cache, "sha256", "*"))
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		if sum := sha256.Sum256(data); hex.EncodeToString(sum[:]) != filepath.Base(file) {
			t.Fatalf("%s: %s does not have that sum", when, file)
		}
	}
	dir := filepath.Join(w.cache, "tree", Digest(w.lock))
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return
	}
	w.checkTree(t, when, dir)
}

// checkTree fails unless the tree has the bytes that the world's archives have.
func (w *world) checkTree(t *testing.T, when, dir string) {
	t.Helper()
	want := map[string]string{"cuda/bin/nvcc": nvccScript, "cuda/nvvm/bin/cicc": "cicc", "cuda/lib64/libcudart_static.a": "lib"}
	for name, text := range headers {
		if !strings.HasPrefix(name, "tools/library/") {
			want["cutlass/"+name] = text
		}
	}
	for name, text := range want {
		if got, err := os.ReadFile(filepath.Join(dir, name)); err != nil || string(got) != text {
			t.Fatalf("%s: %s is wrong (%v)", when, name, err)
		}
	}
	if err := checkManifest(t.Context(), dir); err != nil {
		t.Fatalf("%s: %v", when, err)
	}
}

// recover prepares the toolchain beside what others left behind. It must
// come about soon: a lock that is stuck would show.
func (w *world) recover(t *testing.T, when string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	tc, err := Prepare(ctx, w.options())
	if err != nil {
		t.Fatalf("%s: %v", when, err)
	}
	w.checkTree(t, when, filepath.Dir(tc.CUDA))
	for _, pattern := range []string{"tmp/*", "tree/.*"} {
		if left, _ := filepath.Glob(filepath.Join(w.cache, pattern)); len(left) != 0 {
			t.Fatalf("%s: left behind: %q", when, left)
		}
	}
}

// bulky adds a wheel that takes some time to send, unpack and check.
func (w *world) bulky(t *testing.T) {
	files := map[string]string{}
	var seed [32]byte
	noise := rand.NewChaCha8(seed)
	for i := range 40 {
		data := make([]byte, 16<<10)
		_, _ = noise.Read(data)
		files[fmt.Sprintf("nvidia/cu13/include/noise/%d.h", i)] = string(data)
	}
	w.wheel(t, "nvidia-bulky", files)
}

func TestKilledAtAnyMoment(t *testing.T) {
	w := newWorld(t)
	w.bulky(t)
	w.pace = time.Millisecond
	began := time.Now()
	if out, err := w.child(t, "prepare").CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	whole := time.Since(began)
	killed := 0
	// On a machine that has become less busy since, runs may end before they are killed: then the next is killed earlier.
	for round := 0; round < rounds(4, 100) || killed == 0 && round < 50; round++ {
		when := fmt.Sprintf("round %d", round)
		// What is there at the start: nothing, the archives alone, or archives and a damaged tree.
		switch round % 3 {
		case 0:
			removeAll(t, w.cache)
		case 1:
			removeAll(t, filepath.Join(w.cache, "tree"))
		case 2:
			removeAll(t, filepath.Join(w.cache, "tree", Digest(w.lock), "cuda", "nvvm"))
		}
		for range 1 + rand.IntN(3) {
			cmd := w.child(t, "prepare")
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			time.Sleep(rand.N(whole))
			_ = cmd.Process.Kill()
			var exit *exec.ExitError
			if err := cmd.Wait(); errors.As(err, &exit) && exit.ExitCode() < 0 {
				killed++
			} else if err != nil {
				t.Fatalf("%s: %v: %s", when, err, out.String())
			} else {
				whole = max(whole*3/4, time.Millisecond)
			}
			if round%3 != 2 { // there the tree was damaged by the test
				w.checkNoLies(t, when)
			}
		}
		w.recover(t, when)
	}
	t.Logf("%d processes killed, a whole run takes %v", killed, whole)
	if killed == 0 {
		t.Error("none was killed: the test tests nothing")
	}
}

func removeAll(t *testing.T, path string) {
	t.Helper()
	if err := os.RemoveAll(path); err != nil {
		t.Fatal(err)
	}
}

func TestProcessesShareOneToolchain(t *testing.T) {
	for _, n := range []int{2, 8} {
		w := newWorld(t)
		w.bulky(t)
		w.pace = time.Millisecond
		var wg sync.WaitGroup
		for range n {
			cmd := w.child(t, "prepare")
			wg.Go(func() {
				if out, err := cmd.CombinedOutput(); err != nil {
					t.Errorf("%d at once: %v: %s", n, err, out)
				}
			})
		}
		wg.Wait()
		// One page and one file for each package, and the carrier that is not there.
		if hits := w.hits.Load(); hits != 9 {
			t.Errorf("%d at once: %d requests", n, hits)
		}
		w.recover(t, fmt.Sprintf("%d at once", n))
	}
}

func TestProcessesGoOnWhereOthersAreKilled(t *testing.T) {
	for round := range rounds(1, 20) {
		w := newWorld(t)
		w.bulky(t)
		w.pace = time.Millisecond
		var wg sync.WaitGroup
		for i := range 8 {
			cmd := w.child(t, "prepare")
			var out bytes.Buffer
			cmd.Stdout = &out
			if err := cmd.Start(); err != nil {
				t.Fatal(err)
			}
			wg.Go(func() {
				if i%2 == 0 {
					time.Sleep(rand.N(300 * time.Millisecond))
					_ = cmd.Process.Kill()
					_ = cmd.Wait()
				} else if err := cmd.Wait(); err != nil {
					t.Errorf("round %d: %v: %s", round, err, out.String())
				}
			})
		}
		wg.Wait()
		w.recover(t, fmt.Sprintf("round %d", round))
	}
}
