// SPDX-License-Identifier: Apache-2.0

package nvsmi

import (
	"context"
	"errors"
	"testing"
)

func TestState(t *testing.T) {
	a := parseState("GPU-1, 580.65.06, 1980, 3201, 40, 350.5, 0x0000000000000004\n")
	if !a.Known || a.UUID != "GPU-1" || a.Driver != "580.65.06" || a.Power != 350.5 || a.Throttled() != "" || a.Slowed() != "power cap" {
		t.Errorf("%+v", a)
	}
	b := a.Merge(parseState("GPU-1, 580.65.06, 1200, 3201, 88, [N/A], 0x0000000000000048"))
	if b.SMClock != 1200 || b.Temperature != 88 || b.Seen != 2 || b.Throttled() != "hardware slowdown, too hot (hardware)" ||
		b.Slowed() != "power cap, hardware slowdown, too hot (hardware)" {
		t.Errorf("%+v: %s", b, b.Throttled())
	}
	for _, text := range []string{"", "No devices were found", "Field \"clocks_event_reasons.active\" is not a valid field to query.", "a,b,c,d,e,f,g"} {
		if s := parseState(text); s.Known || a.Merge(s) != a || s.Merge(a) != a {
			t.Errorf("%q: %+v", text, s)
		}
	}
	for _, c := range []struct {
		visible string
		device  int
		want    string
	}{{"", 0, "0"}, {"", 2, "2"}, {"3, 4", 0, "3"}, {"3, 4", 1, "4"}, {"GPU-ab", 0, "GPU-ab"}} {
		if got := visibleDevice(c.visible, c.device); got != c.want {
			t.Errorf("device %d of %q: %q, want %q", c.device, c.visible, got, c.want)
		}
	}
}

// Work runs as long as the look takes, and its error ends both.
func TestLookWhile(t *testing.T) {
	ran := make(chan struct{}, 1)
	look := func(context.Context) State {
		<-ran
		return State{Known: true, SMClock: 1500}
	}
	runs := 0
	state, err := LookWhile(context.Background(), look, func(context.Context) error {
		if runs++; runs == 3 {
			ran <- struct{}{}
		}
		return nil
	})
	if err != nil || state.SMClock != 1500 || runs < 3 {
		t.Errorf("%+v, %v after %d runs", state, err, runs)
	}
	broken := errors.New("broken")
	block := make(chan struct{})
	_, err = LookWhile(context.Background(), func(context.Context) State { <-block; return State{} }, func(context.Context) error {
		close(block)
		return broken
	})
	if !errors.Is(err, broken) {
		t.Error(err)
	}
}
