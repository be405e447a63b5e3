// SPDX-License-Identifier: Apache-2.0

package tests

import (
	"os"
	"testing"

	"github.com/sparsek/sparsek/internal/sys/testdisk"
)

// childTask tells a copy of the test program what to do instead of testing, a
// name of tasks, with its arguments.
const childTask = "SPARSEK_TEST_TASK"

func TestMain(m *testing.M) {
	task := tasks[os.Getenv(childTask)]
	if task == nil {
		code := m.Run()
		tuning.remove()
		os.Exit(code)
	}
	testdisk.Exit(task(os.Args[1], os.Args[2]))
}

// rounds is how often a test tries its luck.
func rounds(short, longer int) int {
	if os.Getenv("SPARSEK_LONG") != "" {
		return longer
	}
	return short
}
