// SPDX-License-Identifier: Apache-2.0

package term

import (
	"testing"
	"time"
)

// Short work shows nothing, work that takes longer does.
func TestPatient(t *testing.T) {
	for _, live := range []bool{false, true} {
		r, s, c := reporter(live)
		r.Patient(500 * time.Millisecond)
		b := r.Bar("short", 3, Count)
		c.forward(400 * time.Millisecond)
		refresh(r)
		b.Done()
		if s.text() != "" {
			t.Errorf("live %v: %q", live, s.text())
		}
		b = r.Bar("long", 3, Count)
		c.forward(600 * time.Millisecond)
		refresh(r)
		if live != (s.text() == "long  0 of 3  0 %") {
			t.Errorf("live %v: %q", live, s.text())
		}
		b.Add(3)
		b.Done()
		if s.text() != "done long: 3 in 0.6 s" {
			t.Errorf("live %v: %q", live, s.text())
		}
	}
}
