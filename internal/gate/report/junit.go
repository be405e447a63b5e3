// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/xml"
	"io"
	"strings"

	"github.com/sparsek/sparsek/internal/gate"
)

type junitSuites struct {
	XMLName xml.Name     `xml:"testsuites"`
	Suites  []junitSuite `xml:"testsuite"`
}

type junitSuite struct {
	Name      string      `xml:"name,attr"`
	Tests     int         `xml:"tests,attr"`
	Failures  int         `xml:"failures,attr"`
	Errors    int         `xml:"errors,attr"`
	Timestamp string      `xml:"timestamp,attr"`
	Cases     []junitCase `xml:"testcase"`
}

type junitCase struct {
	Class   string     `xml:"classname,attr"`
	Name    string     `xml:"name,attr"`
	Failure *junitSays `xml:"failure"`
	Error   *junitSays `xml:"error"`
	Out     string     `xml:"system-out,omitempty"`
}

type junitSays struct {
	Type    string `xml:"type,attr"`
	Message string `xml:"message,attr"`
	Text    string `xml:",chardata"`
}

// JUnit writes a test for each case and one for the whole. What got worse is a failure, and what is stale where it was
// measured: elsewhere it cannot be fixed, and it passes with a warning. What could not be decided or measured is an
// error, and nothing is skipped.
func JUnit(w io.Writer, r *gate.Result) error {
	suite := junitSuite{Name: "sparsek profile gate", Timestamp: r.Date.UTC().Format("2006-01-02T15:04:05")}
	whole := gate.Pass
	if len(r.Reasons) > 0 {
		whole = r.Verdict
	}
	suite.add("gate", "baseline and machine", whole, append(append([]string{}, r.Reasons...), r.Notes...))
	for i := range r.Cases {
		c := &r.Cases[i]
		v, lines := c.Verdict, details(c)
		if v == gate.Stale && !measured(r) {
			v, lines = gate.Intact, append([]string{"warning: " + string(gate.Stale)}, lines...)
		}
		suite.add("gate."+c.Kernel, c.Name, v, lines)
	}
	if _, err := io.WriteString(w, xml.Header); err != nil {
		return err
	}
	encoder := xml.NewEncoder(w)
	encoder.Indent("", "  ")
	if err := encoder.Encode(junitSuites{Suites: []junitSuite{suite}}); err != nil {
		return err
	}
	_, err := io.WriteString(w, "\n")
	return err
}

func (s *junitSuite) add(class, name string, v gate.Verdict, lines []string) {
	one := junitCase{Class: class, Name: name}
	text := strings.Join(lines, "\n")
	message, _, _ := strings.Cut(text, "\n")
	says := &junitSays{string(v), message, text}
	switch v {
	case gate.Pass, gate.Intact:
		one.Out = text
	case gate.Fail, gate.Stale:
		one.Failure = says
		s.Failures++
	default:
		one.Error = says
		s.Errors++
	}
	s.Tests++
	s.Cases = append(s.Cases, one)
}
