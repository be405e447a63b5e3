// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/sparsek/sparsek/internal/gate/ncu"
)

// Store is what lies in ci/baseline/ of a checkout.
type Store struct {
	Log       Log
	Baselines []*Baseline
	Faults    []string // what is not as it was blessed

	logText []byte
}

// ErrNoBaseline means that nothing was ever blessed, wrapped.
var ErrNoBaseline = errors.New("there is no baseline")

// Open reads the baselines of the checkout at root and checks them: every file is the one that was blessed, every
// normal form follows from its CSV, and the log is whole. Faults lists what is wrong.
func Open(root string) (*Store, error) {
	files, err := readTree(root)
	if err != nil {
		return nil, err
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%w in %s: sparsek bless makes one", ErrNoBaseline, filepath.Join(root, Dir))
	}
	s := &Store{logText: files[LogFile]}
	s.check(files)
	return s, nil
}

// readTree reads all files below ci/baseline, by their names from root.
func readTree(root string) (map[string][]byte, error) {
	files := map[string][]byte{}
	err := filepath.WalkDir(filepath.Join(root, Dir), func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		relative, err := filepath.Rel(root, name)
		if err != nil {
			return err
		}
		files[filepath.ToSlash(relative)], err = os.ReadFile(name)
		return err
	})
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the baseline: %w", err)
	}
	return files, nil
}

func (s *Store) fault(format string, args ...any) {
	s.Faults = append(s.Faults, fmt.Sprintf(format, args...))
}

// check fills in all but the log's text.
func (s *Store) check(files map[string][]byte) {
	log, err := ParseLog(files[LogFile])
	if err != nil {
		s.fault("%v", err)
	}
	s.Log = log
	if err == nil && len(log) == 0 {
		s.fault("%s is missing or empty: nothing says who blessed the rest", LogFile)
	}
	if sum, want := string(files[LogFile+hashSuffix]), ncu.HashLine(ncu.Hash(files[LogFile]), LogFile); sum != want {
		s.fault("%s does not hold the hash of %s: lines were changed, added or removed by hand", LogFile+hashSuffix, LogFile)
	}
	if err == nil {
		s.checkHashes(files, log.files())
	}
	if string(files[legendFile]) != ncu.Legend() {
		s.fault("%s is not what this program means by the metrics: bless anew", legendFile)
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if path.Base(name) == path.Base(recordFile("")) {
			s.checkBaseline(files, path.Base(path.Dir(name)))
		}
	}
}

// checkHashes compares the files with those that were blessed.
func (s *Store) checkHashes(files map[string][]byte, blessed map[string]string) {
	for _, name := range slices.Sorted(maps.Keys(blessed)) {
		switch text, ok := files[name]; {
		case !ok:
			s.fault("%s was blessed and is missing", name)
		case ncu.Hash(text) != blessed[name]:
			s.fault("%s is not as it was blessed", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if _, ok := blessed[name]; !ok && name != LogFile && name != LogFile+hashSuffix {
			s.fault("%s was never blessed", name)
		}
	}
}

// checkBaseline reads the baseline in a folder and derives its files from its CSVs.
func (s *Store) checkBaseline(files map[string][]byte, folder string) {
	var b Baseline
	if err := json.Unmarshal(files[recordFile(folder)], &b); err != nil || b.Format != baselineFormat {
		s.fault("%s cannot be read: it is of form %d, want %d: %v", recordFile(folder), b.Format, baselineFormat, err)
		return
	}
	for i := range b.Cases {
		e := &b.Cases[i]
		csv, norm := csvFile(folder, e.Name), normFile(folder, e.Name)
		figures, err := extract(files[csv], e.Symbol)
		if err != nil {
			s.fault("%s: %v", csv, err)
		}
		s.checkNormal(files, norm, figures)
		if e.Figures, err = ncu.ParseNormal(string(files[norm])); err != nil {
			s.fault("%s: %v", norm, err)
		}
		if folder == headlineFolder && e.Name == headlineCase {
			s.checkNormal(files, headlineFile, headlineOf(figures))
		}
	}
	s.Baselines = append(s.Baselines, &b)
}

// checkNormal checks a normal form and its hash. figures are what the CSV says, nil where it says nothing.
func (s *Store) checkNormal(files map[string][]byte, name string, figures ncu.Figures) {
	text := files[name]
	if figures != nil && string(text) != figures.Normal() {
		s.fault("%s is not what its CSV gives", name)
	}
	if string(files[name+hashSuffix]) != ncu.HashLine(ncu.Hash(text), name) {
		s.fault("%s does not hold the hash of %s", name+hashSuffix, name)
	}
}

// extract takes all figures out of a CSV of one kernel, the one with that symbol.
func extract(csv []byte, symbol string) (ncu.Figures, error) {
	launches, err := ncu.Parse(bytes.NewReader(csv))
	if err != nil {
		return nil, err
	}
	samples, err := ncu.Sample(launches, ncu.Metrics())
	if err != nil {
		return nil, err
	}
	if launches[0].Kernel != symbol {
		return nil, fmt.Errorf("it is of kernel %s, and the baseline of %s", launches[0].Kernel, symbol)
	}
	return samples.Medians(), nil
}

// Baseline is that of a GPU.
func (s *Store) Baseline(gpu string) (*Baseline, error) {
	var have []string
	for _, b := range s.Baselines {
		if b.GPU == gpu {
			return b, nil
		}
		have = append(have, b.GPU)
	}
	return nil, fmt.Errorf("%w for %s, only for: %s", ErrNoBaseline, gpu, strings.Join(have, ", "))
}

// CheckFollows checks that the log only adds lines to an earlier one; what is wrong comes into Faults.
func (s *Store) CheckFollows(earlier []byte) {
	if err := Follows(s.logText, earlier); err != nil {
		s.fault("%v", err)
	}
}
