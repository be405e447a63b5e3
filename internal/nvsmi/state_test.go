// SPDX-License-Identifier: Apache-2.0

package nvsmi

import "testing"

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
