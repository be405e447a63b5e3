// SPDX-License-Identifier: Apache-2.0

package humanize

import (
	"math"
	"strings"
	"testing"
)

func TestDigits(t *testing.T) {
	for v, want := range map[float64]string{
		0: "0", 123456: "123456", 999.6: "1000", 123.4: "123", 12.34: "12.3", 1.234: "1.23", 0.1234: "0.123", 0.0123: "0.012",
		0.00123: "1.2e-03", -12.34: "-12.3", 1.2e7: "1.2e+07", 99.96: "100", 9.996: "10.0", math.Inf(1): "+Inf",
	} {
		if got := Digits(v); got != want {
			t.Errorf("%v: %s, want %s", v, got, want)
		}
	}
	for s, want := range map[float64]string{12: "12.0 s", 0.0123: "12.3 ms", 0.9999: "1.00 s", 5e-6: "5.00 us", 41e-9: "0.041 us", 0.9999e-3: "1.00 ms"} {
		if got := Seconds(s); got != want {
			t.Errorf("%v: %s, want %s", s, got, want)
		}
	}
}

func TestTable(t *testing.T) {
	table := Table{Left: 1}
	table.Add("case", "time")
	table.Add("b64", "1.00 ms")
	var text, markdown strings.Builder
	if err := table.Print(&text); err != nil {
		t.Fatal(err)
	}
	if err := table.Markdown(&markdown); err != nil {
		t.Fatal(err)
	}
	if want := "case     time\nb64   1.00 ms\n"; text.String() != want {
		t.Errorf("%q, want %q", text.String(), want)
	}
	if want := "| case | time |\n| --- | --- |\n| b64 | 1.00 ms |\n"; markdown.String() != want {
		t.Errorf("%q, want %q", markdown.String(), want)
	}
}
