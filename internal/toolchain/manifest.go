// SPDX-License-Identifier: Apache-2.0

package toolchain

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"runtime"
	"slices"

	"golang.org/x/sync/errgroup"
)

const manifestFile = "manifest.json"

// manifest is what the folders cuda and licenses hold: paths with forward
// slashes from the tree's root.
type manifest struct {
	Files map[string]fileState `json:"files"`
	Links map[string]string    `json:"links"` // symbolic links and their targets
}

// fileState identifies a file's bytes and whether it runs.
type fileState struct {
	Bytes      int64  `json:"bytes"`
	SHA256     string `json:"sha256"`
	Executable bool   `json:"executable"`
}

// scan reads what is there.
func scan(ctx context.Context, dir string) (*manifest, error) {
	m := &manifest{Files: map[string]fileState{}, Links: map[string]string{}}
	for _, part := range []string{cudaDir, licensesDir} {
		err := filepath.WalkDir(filepath.Join(dir, part), func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			rel, err := filepath.Rel(dir, path)
			if err != nil {
				return err
			}
			name := filepath.ToSlash(rel)
			info, err := d.Info()
			if err != nil {
				return err
			}
			switch {
			case info.Mode().IsRegular():
				m.Files[name] = fileState{Bytes: info.Size(), Executable: info.Mode()&0o100 != 0}
			case info.Mode().Type() == fs.ModeSymlink:
				target, err := os.Readlink(path)
				m.Links[name] = target
				return err
			default:
				return fmt.Errorf("%s is neither a file nor a link", name)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
	}
	return m, m.hash(ctx, dir)
}

// hash fills in the sums of all files, as many at once as there are cores.
func (m *manifest) hash(ctx context.Context, dir string) error {
	names := slices.Sorted(maps.Keys(m.Files))
	sums := make([]string, len(names))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i, name := range names {
		g.Go(func() (err error) {
			if err := ctx.Err(); err != nil {
				return err
			}
			sums[i], err = hashFile(filepath.Join(dir, filepath.FromSlash(name)))
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return err
	}
	for i, name := range names {
		state := m.Files[name]
		state.SHA256 = sums[i]
		m.Files[name] = state
	}
	return nil
}

func hashFile(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// writeManifest records what dir holds.
func writeManifest(ctx context.Context, dir string) error {
	m, err := scan(ctx, dir)
	if err != nil {
		return err
	}
	data, err := json.MarshalIndent(m, "", " ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(dir, manifestFile), data, 0o644)
}

// checkManifest compares what dir holds with what was recorded.
func checkManifest(ctx context.Context, dir string) error {
	data, err := os.ReadFile(filepath.Join(dir, manifestFile))
	if err != nil {
		return err
	}
	var want manifest
	if err := json.Unmarshal(data, &want); err != nil {
		return fmt.Errorf("%s: %w", manifestFile, err)
	}
	if len(want.Files) == 0 {
		return errors.New("the manifest is empty")
	}
	got, err := scan(ctx, dir)
	if err != nil {
		return err
	}
	if err := compare("file", want.Files, got.Files); err != nil {
		return err
	}
	return compare("link", want.Links, got.Links)
}

// compare names the first difference in the order of names.
func compare[V comparable](what string, want, got map[string]V) error {
	for _, name := range slices.Sorted(maps.Keys(want)) {
		switch v, ok := got[name]; {
		case !ok:
			return fmt.Errorf("the %s %s is missing", what, name)
		case v != want[name]:
			return fmt.Errorf("the %s %s is not as it was unpacked", what, name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(got)) {
		if _, ok := want[name]; !ok {
			return fmt.Errorf("the %s %s is not of the tree", what, name)
		}
	}
	return nil
}
