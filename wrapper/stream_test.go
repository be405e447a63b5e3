// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// A product of the usual length is not slept through, and a long one is asked after ever more rarely.
func TestPollPause(t *testing.T) {
	for waited := time.Duration(0); waited < time.Minute; waited = waited*5/4 + time.Microsecond {
		pause := pollPause(waited)
		if waited < time.Millisecond != (pause == 0) || pause > waited/8 || pause > time.Millisecond {
			t.Fatalf("after %v the pause is %v", waited, pause)
		}
	}
	if pollPause(time.Hour) != time.Millisecond {
		t.Errorf("after an hour the pause is %v", pollPause(time.Hour))
	}
}

func TestPollEnds(t *testing.T) {
	broken := errors.New("broken")
	ask := 0
	if err := poll(t.Context(), func() (bool, error) { ask++; return ask == 1000, nil }); err != nil || ask != 1000 {
		t.Errorf("error %v after %d questions", err, ask)
	}
	if err := poll(t.Context(), func() (bool, error) { return false, broken }); err != broken {
		t.Errorf("error is %v", err)
	}
	// At once where it spins, and in the midst of a sleep.
	stopped, stop := context.WithCancel(t.Context())
	stop()
	if err := poll(stopped, func() (bool, error) { return false, nil }); err != context.Canceled {
		t.Errorf("error is %v", err)
	}
	synctest.Test(t, func(t *testing.T) {
		ending, stop := context.WithTimeout(t.Context(), time.Second+time.Microsecond)
		defer stop()
		first := true
		err := poll(ending, func() (bool, error) {
			if first { // time goes by in sleep alone here
				time.Sleep(2 * time.Millisecond)
			}
			first = false
			return false, nil
		})
		if err != context.DeadlineExceeded {
			t.Errorf("error is %v", err)
		}
	})
}
