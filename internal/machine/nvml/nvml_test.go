// SPDX-License-Identifier: Apache-2.0

package nvml

import (
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// stub is a management library with two GPUs: number 0 and UUID GPU-1, of which the second has no energy counter. Each
// reading finds 2 J more.
const stub = `
#include <string.h>
static int devices[2];
int nvmlInit_v2(void) { return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **d) { if (i > 1) return 2; *d = &devices[i]; return 0; }
int nvmlDeviceGetHandleByUUID(const char *u, void **d) { if (strcmp(u, "GPU-1")) return 6; *d = &devices[1]; return 0; }
int nvmlDeviceGetTotalEnergyConsumption(void *d, unsigned long long *mj) {
  static unsigned long long total;
  if (d != &devices[0]) return 3;
  *mj = total += 2000;
  return 0;
}
`

func build(t *testing.T, source string) string {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("skipped: no C compiler")
	}
	path := filepath.Join(t.TempDir(), "libnvidia-ml.so.1")
	file := path + ".c"
	if err := os.WriteFile(file, []byte(source), 0o644); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command(cc, "-shared", "-fPIC", "-o", path, file).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return path
}

func TestOpen(t *testing.T) {
	path := build(t, stub)
	d, err := open(path, "0")
	if err != nil {
		t.Fatal(err)
	}
	if joules, err := d.Joules(); err != nil || math.Mod(joules, 2) != 0 {
		t.Errorf("%v J, %v", joules, err)
	}
	m := d.Measure()
	time.Sleep(30 * poll)
	if watts := m.Stop(); !(watts > 0) {
		t.Errorf("%v W", watts)
	}
	for device, want := range map[string]string{"GPU-1": "has no energy counter", "7": "finds no GPU 7", "GPU-2": "finds no GPU GPU-2"} {
		if _, err := open(path, device); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", device, err, want)
		}
	}
	if _, err := open("libnvidia-ml-of-nobody.so.1", "0"); err == nil || !strings.Contains(err.Error(), "comes with NVIDIA's driver") {
		t.Errorf("no library: %v", err)
	}
	if _, err := open(build(t, "int nvmlInit_v2(void) { return 0; }"), "0"); err == nil || !strings.Contains(err.Error(), "too old") {
		t.Errorf("an old library: %v", err)
	}
}

func TestPower(t *testing.T) {
	at := func(ms int, joules float64) step {
		return step{time.Unix(1, 0).Add(time.Duration(ms) * time.Millisecond), joules}
	}
	if got := power(at(0, 1000), at(1500, 1900)); got != 600 {
		t.Errorf("%v W", got)
	}
	if got := power(step{}, step{}); got != 0 {
		t.Errorf("no step: %v W", got)
	}
	if got := power(at(5, 3), at(5, 3)); got != 0 {
		t.Errorf("one step: %v W", got)
	}
}
