// SPDX-License-Identifier: Apache-2.0

package sparsek

// queueSet is a set of queues. Most sets have one at most, which takes no memory beside the set.
type queueSet struct {
	first *queue
	more  map[*queue]struct{} // without first
}

func (s *queueSet) add(q *queue) {
	switch {
	case s.first == q:
	case s.first == nil && len(s.more) == 0:
		s.first = q
	default:
		if s.more == nil {
			s.more = make(map[*queue]struct{})
		}
		s.more[q] = struct{}{}
	}
}

func (s *queueSet) remove(q *queue) {
	if s.first == q {
		s.first = nil
		return
	}
	delete(s.more, q)
}

// list is nil where there are none.
func (s *queueSet) list() []*queue {
	var list []*queue
	if s.first != nil {
		list = append(list, s.first)
	}
	for q := range s.more {
		list = append(list, q)
	}
	return list
}
