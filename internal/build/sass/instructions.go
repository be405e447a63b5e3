// SPDX-License-Identifier: Apache-2.0

package sass

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strings"

	"github.com/sparsek/sparsek/internal/sys/process"
)

// Function is the machine code of one kernel or device function.
type Function struct {
	Symbol string // mangled
	// Opcodes counts instructions by the name before the first dot: "HGMMA"
	// for HGMMA.64x256x16.F32.BF16. Padding (NOP) counts too.
	Opcodes map[string]int
	// SHA256 is that of the instructions as they are encoded, in hexadecimal
	// digits: where it is the same, so is the machine code.
	SHA256 string
}

// Total is the number of instructions.
func (f Function) Total() int {
	n := 0
	for _, count := range f.Opcodes {
		n += count
	}
	return n
}

var (
	functionLine = regexp.MustCompile(`^\s*Function : (\S+)\s*$`)
	// An instruction: its address, an optional predicate, the opcode.
	instructionLine = regexp.MustCompile(`^\s*/\*[0-9a-f]{4,}\*/\s+(?:@!?U?P(?:[0-9]+|T)\s+)?([A-Z][A-Z0-9_]*)`)
	// The encoding of one, half of it a line.
	encodingPart = regexp.MustCompile(`/\* (0x[0-9a-f]+) \*/\s*$`)
)

// Parse reads what `cuobjdump -sass` writes. Functions come in its order.
func Parse(r io.Reader) ([]Function, error) {
	var functions []Function
	digest := sha256.New()
	end := func() {
		if len(functions) > 0 {
			functions[len(functions)-1].SHA256 = hex.EncodeToString(digest.Sum(nil))
			digest.Reset()
		}
	}
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		line := lines.Text()
		if m := functionLine.FindStringSubmatch(line); m != nil {
			end()
			functions = append(functions, Function{Symbol: m[1], Opcodes: map[string]int{}})
		} else if m := instructionLine.FindStringSubmatch(line); m != nil {
			if len(functions) == 0 {
				return nil, fmt.Errorf("sass: an instruction before the first function: %q", line)
			}
			functions[len(functions)-1].Opcodes[m[1]]++
		}
		if m := encodingPart.FindStringSubmatch(line); m != nil {
			fmt.Fprintln(digest, m[1])
		}
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("sass: %w", err)
	}
	end()
	return functions, nil
}

// Dump disassembles the device code in an object file or library. cuobjdump
// runs nvdisasm; both are paths of the programs. A file without device code
// has no functions.
func Dump(ctx context.Context, cuobjdump, nvdisasm, file string) ([]Function, error) {
	command := process.Command{
		Args: []string{cuobjdump, "-sass", file},
		Env:  append(os.Environ(), "NVDISASM_PATH="+filepath.Dir(nvdisasm)),
	}
	text, err := command.Output(ctx)
	if err != nil {
		return nil, fmt.Errorf("disassembling %s: %w", file, err)
	}
	functions, err := Parse(strings.NewReader(text))
	if err != nil {
		return nil, fmt.Errorf("disassembling %s: %w", file, err)
	}
	return functions, nil
}
