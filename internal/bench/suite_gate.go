// SPDX-License-Identifier: Apache-2.0

package bench

import "slices"

// ofTraining are the cases of the training suite that the gate has: of each product and order some, by the kernels that
// read and write operands as they lie, and of each kernel of SDD that has a goal.
var ofTraining = []string{
	"b64-random-dsd_t", "b64-random-dds-b", "b64-random-dds_t-bc", "b64-window-dds_t",
	"b128-random-dsd_t-bc", "b128-random-dds", "b128-random-dds_t-c",
	"sdd-b128-random", "sdd-b64-random", "sdd-b64-window", "sdd-b32-random", "sdd-b16-random",
}

// gateSuite are the cases that must not get slower: those of roofline, and some of training. Goals are those suites'
// own: a case may have one only in relation to others there.
func gateSuite(s Settings) []Case {
	list := rooflineSuite(s)
	for _, c := range trainingSuite(s) {
		if slices.Contains(ofTraining, c.Name) {
			list = append(list, c)
		}
	}
	for i := range list {
		list[i].Graph, list[i].Reach, list[i].GraphReach = false, Reach{}, Reach{}
	}
	return list
}

// GateCases are the cases of the suite gate that have one of the names, or all where there are none.
func GateCases(names []string) ([]Case, error) { return Cases(Gate, Settings{}, names) }

// GateNames are those of all its cases.
func GateNames() (names []string) {
	for _, c := range gateSuite(Settings{}) {
		names = append(names, c.Name)
	}
	return names
}
