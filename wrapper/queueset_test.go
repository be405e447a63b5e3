// SPDX-License-Identifier: Apache-2.0

package sparsek

import (
	"maps"
	"testing"

	"pgregory.net/rapid"
)

// A queueSet is what a map of queues would be.
func TestQueueSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var all [4]queue
		var set queueSet
		want := make(map[*queue]struct{})
		t.Repeat(map[string]func(*rapid.T){
			"add": func(t *rapid.T) {
				q := &all[rapid.IntRange(0, len(all)-1).Draw(t, "queue")]
				set.add(q)
				want[q] = struct{}{}
			},
			"remove": func(t *rapid.T) {
				q := &all[rapid.IntRange(0, len(all)-1).Draw(t, "queue")]
				set.remove(q)
				delete(want, q)
			},
			"": func(t *rapid.T) {
				list := set.list()
				got := make(map[*queue]struct{}, len(list))
				for _, q := range list {
					got[q] = struct{}{}
				}
				if len(list) != len(want) || !maps.Equal(got, want) {
					t.Fatalf("the set lists %v instead of %v", list, want)
				}
			},
		})
	})
}
