// SPDX-License-Identifier: Apache-2.0

package interleave

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"
)

// All take turns, and every time is kept, with its round.
func TestInterleave(t *testing.T) {
	var turns []string
	fake := func(name string, each time.Duration) Timer {
		return func(_ context.Context, repeats int) ([]time.Duration, error) {
			turns = append(turns, name)
			return slices.Repeat([]time.Duration{each}, repeats), nil
		}
	}
	all, err := Interleave(context.Background(), 3, 0, []Turn{{fake("ours", 1), 4}, {fake("graph", 2), 1}, {fake("dense", 3), 2}})
	if err != nil || len(all) != 3 {
		t.Fatalf("%v, %v", all, err)
	}
	for i, want := range []int{12, 3, 6} {
		if !slices.Equal(all[i].All(), slices.Repeat([]time.Duration{time.Duration(i + 1)}, want)) || len(all[i]) != 3 {
			t.Errorf("timer %d: %v", i, all[i])
		}
	}
	if got := strings.Join(turns, " "); got != strings.TrimSpace(strings.Repeat("ours graph dense ", 3)) {
		t.Errorf("turns: %s", got)
	}
	broken := errors.New("broken")
	fails := func(context.Context, int) ([]time.Duration, error) { return nil, broken }
	for _, list := range [][]Turn{{{fails, 1}, {fake("dense", 1), 1}}, {{fake("ours", 1), 1}, {fails, 1}}} {
		if _, err = Interleave(context.Background(), 2, 0, list); !errors.Is(err, broken) {
			t.Error(err)
		}
	}
}

// Each turn begins after a rest, and who stops waits for none.
func TestRest(t *testing.T) {
	const rest = 20 * time.Millisecond
	last := time.Now()
	turn := Turn{func(context.Context, int) ([]time.Duration, error) {
		if since := time.Since(last); since < rest {
			t.Errorf("a turn %v after the last one", since)
		}
		last = time.Now()
		return []time.Duration{1}, nil
	}, 1}
	if all, err := Interleave(context.Background(), 2, rest, []Turn{turn, turn}); err != nil || len(all[1]) != 2 {
		t.Errorf("%v, %v", all, err)
	}
	ctx, stop := context.WithCancel(context.Background())
	stop()
	for _, rest := range []time.Duration{0, time.Hour} {
		if all, err := Interleave(ctx, 1, rest, []Turn{turn}); !errors.Is(err, context.Canceled) {
			t.Errorf("with rests of %v: %v, %v", rest, all, err)
		}
	}
}

func TestRepeats(t *testing.T) {
	for one, want := range map[time.Duration]int{0: 8, 10 * time.Microsecond: 8, 3 * time.Millisecond: 3, time.Second: 1} {
		if got := Repeats(one); got != want {
			t.Errorf("%v: %d, want %d", one, got, want)
		}
	}
}
