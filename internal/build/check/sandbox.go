// SPDX-License-Identifier: Apache-2.0

package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/sparsek/sparsek/internal/cli/exitcode"
	"github.com/sparsek/sparsek/internal/sys/process"
)

// SandboxKernel is the kernel that the sandbox's library has.
const SandboxKernel = "tma_sandbox"

// sandboxRuns are the flags of its products: whole tiles, and tiles that stand
// out over the matrix in each direction.
var sandboxRuns = [][]string{{"--size", "4096x4096x4096"}, {"--size", "1000x1000x1000", "--density", "0.5"}}

// Sandbox has the program multiply with the sandbox's kernel, from the library
// at the absolute path given, and check every element. Where there is no GPU
// it says so and succeeds.
func Sandbox(ctx context.Context, program, library string, out io.Writer) error {
	for _, flags := range sandboxRuns {
		args := append([]string{program, "verify", "--device", "gpu", "--kernel", SandboxKernel, "--block", "128"}, flags...)
		err := process.Command{Args: args, Stdout: out, Stderr: out, Env: append(os.Environ(), "SPARSEK_LIBRARY="+library)}.Run(ctx)
		var failed *process.Error
		if errors.As(err, &failed) && failed.Code == exitcode.NoDevice {
			_, err := fmt.Fprintf(out, "%s: built, not verified: no GPU\n", SandboxKernel)
			return err
		}
		if err != nil {
			return fmt.Errorf("verifying %s: %w", SandboxKernel, err)
		}
	}
	return nil
}
