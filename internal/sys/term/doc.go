// SPDX-License-Identifier: Apache-2.0

// Package term reports the progress of long work.
//
// On a terminal each running job has one live line with its progress, the
// rate and the time left. Elsewhere (a pipe, a log file, CI) the same jobs
// give a plain line when they end and one every so often in between, so that
// a log stays readable and a watcher still sees that work goes on.
//
// A nil *Reporter and a nil *Bar are valid and silent: callers need not check
// whether progress is shown. All methods may be called from any goroutine.
package term
