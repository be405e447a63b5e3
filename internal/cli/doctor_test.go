// SPDX-License-Identifier: Apache-2.0

package cli

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestDoctor(t *testing.T) {
	var stdout, stderr bytes.Buffer
	code := Main(t.Context(), []string{"doctor", "--json"}, &stdout, &stderr)
	var got struct {
		Build    *bool               `json:"build"`
		GPUJob   *bool               `json:"gpu_job"`
		Findings []map[string]string `json:"findings"`
	}
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil {
		t.Fatalf("%v\n%s%s", err, stdout.String(), stderr.String())
	}
	if got.Build != nil || got.GPUJob == nil || len(got.Findings) == 0 || got.Findings[0]["name"] != "libsparsek" {
		t.Fatalf("got %s", stdout.String())
	}
	want := exitOK
	switch {
	case got.Findings[0]["state"] != "ok":
		want = exitNoLibrary
	case !*got.GPUJob:
		want = exitNoDevice
	}
	if code != want {
		t.Errorf("code %d, want %d for\n%s", code, want, stdout.String())
	}
}

func TestDoctorUsage(t *testing.T) {
	if code := Main(t.Context(), []string{"doctor", "extra"}, &bytes.Buffer{}, &bytes.Buffer{}); code != exitUsage {
		t.Errorf("an argument: code %d", code)
	}
	var stdout bytes.Buffer
	if code := Main(t.Context(), []string{"doctor", "--help"}, &stdout, &bytes.Buffer{}); code != exitOK || !strings.Contains(stdout.String(), "--json") {
		t.Errorf("code %d, %s", code, stdout.String())
	}
}
