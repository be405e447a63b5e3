// SPDX-License-Identifier: Apache-2.0

package report

import (
	"encoding/json"
	"io"
	"strings"

	"github.com/sparsek/sparsek/internal/gate"
)

type sarifLog struct {
	Schema  string     `json:"$schema"`
	Version string     `json:"version"`
	Runs    []sarifRun `json:"runs"`
}

type sarifRun struct {
	Tool    sarifTool     `json:"tool"`
	Results []sarifResult `json:"results"`
}

type sarifTool struct {
	Driver sarifDriver `json:"driver"`
}

type sarifDriver struct {
	Name  string      `json:"name"`
	Rules []sarifRule `json:"rules"`
}

type sarifRule struct {
	ID    string    `json:"id"`
	Short sarifText `json:"shortDescription"`
}

type sarifText struct {
	Text string `json:"text"`
}

type sarifResult struct {
	Rule      string          `json:"ruleId"`
	Level     string          `json:"level"`
	Message   sarifText       `json:"message"`
	Locations []sarifLocation `json:"locations"`
	// Prints identify the same finding in two runs.
	Prints map[string]string `json:"partialFingerprints"`
}

type sarifLocation struct {
	Physical sarifPhysical `json:"physicalLocation"`
}

type sarifPhysical struct {
	Artifact struct {
		URI string `json:"uri"`
	} `json:"artifactLocation"`
	Region struct {
		StartLine int `json:"startLine"` // some readers take no finding without one
	} `json:"region"`
}

// ruleOf is the rule of a verdict; "" for those that are no finding.
func ruleOf(v gate.Verdict) string {
	switch v {
	case gate.Fail, gate.NotMeasurable, gate.Ambiguous, gate.Stale, gate.Drift:
		return strings.ReplaceAll(strings.ToLower(string(v)), " ", "-")
	}
	return ""
}

// levelOf is how bad a finding is. What is stale without a measurement is a warning: only a GPU can fix it.
func levelOf(v gate.Verdict, r *gate.Result) string {
	if v == gate.Ambiguous || v == gate.Drift || v == gate.Stale && !measured(r) {
		return "warning"
	}
	return "error"
}

// SARIF writes a result for each case that did not pass and for each reason of the whole, at the files of the baseline.
func SARIF(w io.Writer, r *gate.Result) error {
	run := sarifRun{Tool: sarifTool{sarifDriver{Name: "sparsek gate"}}, Results: []sarifResult{}}
	for _, v := range []gate.Verdict{gate.Fail, gate.NotMeasurable, gate.Ambiguous, gate.Stale, gate.Drift} {
		run.Tool.Driver.Rules = append(run.Tool.Driver.Rules, sarifRule{ruleOf(v), sarifText{meaning(v)}})
	}
	for _, reason := range r.Reasons {
		run.add(r.Verdict, levelOf(r.Verdict, r), reason, gate.LogFile, reason)
	}
	for i := range r.Cases {
		c := &r.Cases[i]
		at := gate.LogFile
		if c.Folder != "" {
			at = gate.Dir + "/" + c.Folder + "/" + c.Name + ".norm.txt"
		}
		run.add(c.Verdict, levelOf(c.Verdict, r), c.Name+": "+strings.Join(details(c), "; "), at, c.Name)
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(sarifLog{"https://json.schemastore.org/sarif-2.1.0.json", "2.1.0", []sarifRun{run}})
}

func (s *sarifRun) add(v gate.Verdict, level, text, at, print string) {
	id := ruleOf(v)
	if id == "" {
		return
	}
	one := sarifResult{Rule: id, Level: level, Message: sarifText{text}, Prints: map[string]string{"finding/v1": id + " " + print}}
	var where sarifLocation
	where.Physical.Artifact.URI, where.Physical.Region.StartLine = at, 1
	one.Locations = []sarifLocation{where}
	s.Results = append(s.Results, one)
}
