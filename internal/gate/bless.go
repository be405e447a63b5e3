// SPDX-License-Identifier: Apache-2.0

package gate

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/renameio/v2"

	"github.com/sparsek/sparsek/internal/gate/ncu"
	"github.com/sparsek/sparsek/internal/gate/profile"
)

// BlessOptions say what becomes the baseline.
type BlessOptions struct {
	Root   string             // of the checkout
	Reason string             // for the log
	Cases  []string           // that there must be: all of the suite
	Runs   []*profile.Profile // whose launches, taken together, are the figures
	Noise  []*profile.Profile // more runs of the same library, for the noise floors
	Date   time.Time
}

// ErrNotBlessed means that profiles cannot become a baseline, wrapped.
var ErrNotBlessed = errors.New("this cannot be blessed")

// Bless makes profiles the baseline of their GPU and adds a line to the log, which is written last: what is cut short
// does not pass for a baseline.
func Bless(o BlessOptions) (*Baseline, error) {
	if err := o.validate(); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrNotBlessed, err)
	}
	files, err := readTree(o.Root)
	if err != nil {
		return nil, err
	}
	log, err := ParseLog(files[LogFile])
	if err != nil {
		return nil, fmt.Errorf("%w: fix the log first, from the repository's history: %w", ErrNotBlessed, err)
	}
	b, made, err := o.make(files)
	if err != nil {
		return nil, err
	}
	line, err := o.blessing(log, files[LogFile], b, made).line()
	if err != nil {
		return nil, err
	}
	text := append(files[LogFile], line...)
	if err := removeOld(o.Root, files, b.folder(), made); err != nil {
		return nil, err
	}
	for name, content := range made {
		if err := writeFile(o.Root, name, content); err != nil {
			return nil, err
		}
	}
	err = errors.Join(
		writeFile(o.Root, LogFile+hashSuffix, []byte(ncu.HashLine(ncu.Hash(text), LogFile))),
		writeFile(o.Root, LogFile, text))
	return b, err
}

// validate refuses runs that do not make one baseline.
func (o *BlessOptions) validate() error {
	if strings.TrimSpace(o.Reason) == "" {
		return errors.New("there is no reason: say why these figures are right")
	}
	if len(o.Runs) == 0 {
		return profile.ErrNoProfile
	}
	first := o.Runs[0]
	if !cleanCommit.MatchString(first.Commit) {
		return fmt.Errorf("the library that was measured is of commit %q: commit everything, build and measure again", first.Commit)
	}
	for _, p := range append(append([]*profile.Profile{}, o.Runs...), o.Noise...) {
		for _, same := range []struct{ what, got, want string }{
			{"library", p.Library, first.Library}, {"commit", p.Commit, first.Commit}, {"GPU", p.GPU, first.GPU},
			{"driver", p.Driver, first.Driver}, {"version of ncu", p.NCU, first.NCU},
		} {
			if same.got != same.want {
				return fmt.Errorf("runs of more than one %s: %q and %q; remove the folders of the old ones", same.what, same.want, same.got)
			}
		}
		if why := p.State.Throttled(); why != "" {
			return fmt.Errorf("a run was slowed down: %s", why)
		}
		if err := sameCases(p, first, o.Cases); err != nil {
			return err
		}
	}
	return nil
}

// sameCases requires of a run all cases, and the functions that the first run had.
func sameCases(p, first *profile.Profile, want []string) error {
	if len(p.Cases) != len(want) {
		return fmt.Errorf("a run has %d cases of %d: measure all", len(p.Cases), len(want))
	}
	for i, name := range want {
		if p.Cases[i].Name != name {
			return fmt.Errorf("a run has no case %s: measure all", name)
		}
		if p.Cases[i].Symbol != first.Cases[i].Symbol || p.Cases[i].SASS != first.Cases[i].SASS {
			return fmt.Errorf("runs of other kernels in case %s", name)
		}
	}
	return nil
}

// make makes the baseline and the contents of its files.
func (o *BlessOptions) make(old map[string][]byte) (*Baseline, map[string][]byte, error) {
	first := o.Runs[0]
	b := &Baseline{
		Format: baselineFormat, Date: o.Date, GPU: first.GPU, Driver: first.Driver, NCU: first.NCU, Commit: first.Commit,
		Library: first.Library, Runs: len(o.Runs), Launches: first.Launches,
	}
	for _, p := range o.Runs {
		b.State = b.State.Merge(p.State)
	}
	b.State.UUID = ""
	all, measured := noiseOf(append(append([]*profile.Profile{}, o.Runs...), o.Noise...))
	earlier := &Baseline{}
	if measured.Starts >= fewestStarts {
		b.Noise = measured
	} else if text, ok := old[recordFile(b.folder())]; ok { // the floors that there were stay
		store := &Store{}
		store.checkBaseline(map[string][]byte{recordFile(b.folder()): text}, b.folder())
		if len(store.Baselines) == 1 {
			earlier = store.Baselines[0]
			b.Noise = earlier.Noise
		}
	}
	made := map[string][]byte{legendFile: []byte(ncu.Legend())}
	for i := range first.Cases {
		c := &first.Cases[i]
		e := Entry{Name: c.Name, Kernel: c.Kernel, Symbol: c.Symbol, SASS: c.SASS, Opcodes: c.Opcodes, Plan: c.Plan, FLOP: c.FLOP}
		if measured.Starts >= fewestStarts {
			e.Noise = floors(all, c.Name)
		} else if was, ok := earlier.Find(c.Name); ok {
			e.Noise = was.Noise
		}
		csv, err := joinCSV(o.Runs, i)
		if err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		if e.Figures, err = extract(csv, e.Symbol); err != nil {
			return nil, nil, fmt.Errorf("%s: %w", c.Name, err)
		}
		made[csvFile(b.folder(), e.Name)] = csv
		addNormal(made, normFile(b.folder(), e.Name), e.Figures)
		if b.folder() == headlineFolder && e.Name == headlineCase {
			addNormal(made, headlineFile, headlineOf(e.Figures))
		}
		b.Cases = append(b.Cases, e)
	}
	record, err := encode(b)
	made[recordFile(b.folder())] = record
	return b, made, err
}

// joinCSV puts the launches of a case in all runs into one CSV.
func joinCSV(runs []*profile.Profile, at int) ([]byte, error) {
	var tables []ncu.Raw
	for _, p := range runs {
		t, err := ncu.ParseRaw(p.Cases[at].CSV)
		if err != nil {
			return nil, err
		}
		tables = append(tables, t)
	}
	all, err := ncu.Join(tables)
	return []byte(all.String()), err
}

func addNormal(files map[string][]byte, name string, f ncu.Figures) {
	text := []byte(f.Normal())
	files[name] = text
	files[name+hashSuffix] = []byte(ncu.HashLine(ncu.Hash(text), name))
}

// blessing is the line of the log that follows the others.
func (o *BlessOptions) blessing(log Log, text []byte, b *Baseline, made map[string][]byte) *Blessing {
	line := &Blessing{
		Number: len(log) + 1, Previous: noPrevious, Date: o.Date, Commit: b.Commit, GPU: b.GPU, Driver: b.Driver, NCU: b.NCU,
		Reason: strings.TrimSpace(o.Reason), SASS: map[string]string{}, Cycles: map[string]float64{}, Files: map[string]string{},
	}
	if len(log) > 0 {
		last := text[:len(text)-1]
		line.Previous = ncu.Hash(append([]byte{}, text[strings.LastIndexByte(string(last), '\n')+1:]...))
	}
	for i := range b.Cases {
		line.SASS[b.Cases[i].Name], line.Cycles[b.Cases[i].Name] = b.Cases[i].SASS, b.Cases[i].Figures["cycles"]
	}
	for name, content := range made {
		line.Files[name] = ncu.Hash(content)
	}
	return line
}

// removeOld takes away what was blessed for the GPU and is not any more.
func removeOld(root string, old map[string][]byte, folder string, made map[string][]byte) error {
	for name := range old {
		if _, stays := made[name]; path.Dir(name) == path.Join(Dir, folder) && !stays {
			if err := os.Remove(filepath.Join(root, name)); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return fmt.Errorf("removing the old baseline: %w", err)
			}
		}
	}
	return nil
}

func writeFile(root, name string, content []byte) error {
	file := filepath.Join(root, name)
	if err := os.MkdirAll(filepath.Dir(file), 0o777); err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	if err := renameio.WriteFile(file, content, 0o644); err != nil {
		return fmt.Errorf("writing the baseline: %w", err)
	}
	return nil
}
