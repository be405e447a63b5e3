// SPDX-License-Identifier: Apache-2.0

package sass

import (
	"strconv"
	"strings"
)

// BaseName is the name of a function without its namespaces, template arguments and parameters, from its mangled
// symbol: "kernel" of _ZN7sparsek4cuda19wgmma_gather_kernel6kernelIfEEvi. A symbol that is not mangled is its own base name;
// one of another form has none.
func BaseName(symbol string) string {
	if len(symbol) < 2 || symbol[:2] != "_Z" {
		return symbol
	}
	rest := symbol[2:]
	if rest != "" && rest[0] == 'N' {
		rest = rest[1:]
	}
	name := ""
	for {
		rest = strings.TrimPrefix(rest, "L") // before a name that other files do not see
		if rest == "" || rest[0] < '1' || rest[0] > '9' {
			return name
		}
		digits := 1
		for digits < len(rest) && rest[digits] >= '0' && rest[digits] <= '9' {
			digits++
		}
		n, err := strconv.Atoi(rest[:digits])
		if err != nil || n > len(rest)-digits {
			return ""
		}
		name, rest = rest[digits:digits+n], rest[digits+n:]
	}
}
