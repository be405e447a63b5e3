// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"testing"
	"testing/fstest"
)

func TestModuleVersion(t *testing.T) {
	for text, want := range map[string]string{
		"NVRM version: NVIDIA UNIX x86_64 Kernel Module  535.183.01  Sun May 12 19:39:15 UTC 2024\nGCC version: 12.3.0\n":                                      "535.183.01",
		"NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.65.06  Release Build  (dvs-builder@U22)  Sun Jul 27\nGCC version:  gcc version 12.2.0\n": "580.65.06",
		"something else 1.2": "",
	} {
		root := fstest.MapFS{"proc/driver/nvidia/version": &fstest.MapFile{Data: []byte(text)}}
		if got := ModuleVersion(root); got != want {
			t.Errorf("%q, want %q in %q", got, want, text)
		}
	}
	if got := ModuleVersion(fstest.MapFS{}); got != "" {
		t.Errorf("%q without a driver", got)
	}
}
