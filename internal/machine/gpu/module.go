// SPDX-License-Identifier: Apache-2.0

package gpu

import (
	"io/fs"
	"regexp"
)

var moduleVersion = regexp.MustCompile(`(?m)^NVRM version:.*?\s(\d+\.\d+(?:\.\d+)*)\s`)

// ModuleVersion returns the version of NVIDIA's kernel module ("580.65.06")
// out of /proc/driver/nvidia/version, "" where there is none. root is the file
// system's root: os.DirFS("/").
func ModuleVersion(root fs.FS) string {
	text, err := fs.ReadFile(root, "proc/driver/nvidia/version")
	if err != nil {
		return ""
	}
	if m := moduleVersion.FindSubmatch(text); m != nil {
		return string(m[1])
	}
	return ""
}
