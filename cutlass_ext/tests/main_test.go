// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"errors"
	"fmt"
	"os"
	"testing"
)

// childTask tells a copy of the test program what to do instead of testing, a
// name of tasks, with its arguments.
const childTask = "SPARSEK_TEST_TASK"

// notAllowed is how a child ends that may not mount anything.
const notAllowed = 77

var errNotAllowed = errors.New("no disk of our own to be had")

func TestMain(m *testing.M) {
	task := tasks[os.Getenv(childTask)]
	if task == nil {
		code := m.Run()
		tuning.remove()
		os.Exit(code)
	}
	err := task(os.Args[1], os.Args[2])
	if err != nil {
		fmt.Println(err)
		if errors.Is(err, errNotAllowed) {
			os.Exit(notAllowed)
		}
		os.Exit(1)
	}
}

// rounds is how often a test tries its luck.
func rounds(short, longer int) int {
	if os.Getenv("SPARSEK_LONG") != "" {
		return longer
	}
	return short
}
