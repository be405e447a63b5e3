// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/gate/ncu"
)

// Blessing is a line of the log: what was made the baseline of a GPU, by what right, and why.
type Blessing struct {
	Number   int                `json:"number"`   // 1 for the first
	Previous string             `json:"previous"` // sha256 of the line before, its newline with it; of the first one zeros
	Date     time.Time          `json:"date"`
	Commit   string             `json:"commit"` // that was measured; nothing was changed in it
	GPU      string             `json:"gpu"`
	Driver   string             `json:"driver"`
	NCU      string             `json:"ncu"`
	Reason   string             `json:"reason"`
	SASS     map[string]string  `json:"sass_sha256"` // of the function that each case ran
	Cycles   map[string]float64 `json:"cycles"`      // of each case
	Files    map[string]string  `json:"files"`       // sha256 of every file that was written
}

// Log is all blessings, the first one first.
type Log []Blessing

var noPrevious = strings.Repeat("0", 64)

// cleanCommit is a commit from which nothing was changed.
var cleanCommit = regexp.MustCompile(`^[0-9a-f]{40}$`)

// ParseLog reads a log and checks that each line follows from the one before.
func ParseLog(text []byte) (Log, error) {
	var log Log
	previous := noPrevious
	for line := range bytes.Lines(text) {
		var b Blessing
		at := fmt.Sprintf("%s, line %d", LogFile, len(log)+1)
		if err := json.Unmarshal(line, &b); err != nil {
			return nil, fmt.Errorf("%s cannot be read: %w", at, err)
		}
		again, err := b.line()
		if err != nil {
			return nil, err
		}
		switch {
		case !bytes.Equal(again, line):
			return nil, fmt.Errorf("%s is not as bless wrote it", at)
		case b.Number != len(log)+1:
			return nil, fmt.Errorf("%s has number %d: lines are missing or were moved", at, b.Number)
		case b.Previous != previous:
			return nil, fmt.Errorf("%s does not follow from the line before: one of them was changed", at)
		case !cleanCommit.MatchString(b.Commit):
			return nil, fmt.Errorf("%s names no clean commit: %q", at, b.Commit)
		case strings.TrimSpace(b.Reason) == "":
			return nil, fmt.Errorf("%s gives no reason", at)
		}
		previous = ncu.Hash(line)
		log = append(log, b)
	}
	return log, nil
}

// line is the blessing as it stands in the log.
func (b *Blessing) line() ([]byte, error) {
	text, err := json.Marshal(b)
	if err != nil {
		return nil, fmt.Errorf("log of blessings: %w", err)
	}
	return append(text, '\n'), nil
}

// files are the hashes of all files that should be there. A blessing replaces all files of its GPU's folder.
func (l Log) files() map[string]string {
	all := map[string]string{}
	for _, b := range l {
		for name := range all {
			if strings.HasPrefix(name, Dir+"/"+folderOf(b.GPU)+"/") {
				delete(all, name)
			}
		}
		for name, hash := range b.Files {
			all[name] = hash
		}
	}
	return all
}

// Follows says whether the log in text only adds lines to the earlier one: what a log that is replaced as a whole, with
// a chain of its own, does not.
func Follows(text, earlier []byte) error {
	if !bytes.HasPrefix(text, earlier) {
		return fmt.Errorf("%s does not begin with the log as it was before: lines were removed or changed", LogFile)
	}
	return nil
}
