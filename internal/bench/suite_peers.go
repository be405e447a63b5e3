// SPDX-License-Identifier: Apache-2.0

package bench

// peersSuite are a few typical cases, for a table beside all that one would take without this library.
func peersSuite(Settings) []Case {
	return []Case{
		cube("b64-random", 8192, 64, 64, "random", eighth, Reach{}),
		cube("b128-random", 8192, 128, 128, "random", eighth, Reach{}),
		cube("b32-random", 8192, 32, 32, "random", eighth, Reach{}),
		cube("b16-random", 8192, 16, 16, "random", eighth, Reach{}),
		cube("b128-random-50", 8192, 128, 128, "random", 0.5, Reach{}),
		cube("b64-window", 8192, 64, 64, "window", eighth, Reach{}),
		cube("b64-causal", 8192, 64, 64, "causal", 0, Reach{}),
		narrow("decode-16", 16, Reach{}, Reach{}),
	}
}
