// SPDX-License-Identifier: Apache-2.0

package lock

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"regexp"
	"strings"

	"github.com/Masterminds/semver/v3"
)

var (
	sha256Pattern  = regexp.MustCompile(`^[0-9a-f]{64}$`)
	commitPattern  = regexp.MustCompile(`^[0-9a-f]{40}$`)
	packagePattern = regexp.MustCompile(`^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$`)
	versionPattern = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+!_-]*$`)
	filePattern    = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9.+!_-]*\.(whl|tar\.gz|zip)$`)
)

// Validate says what is wrong with the lock, all of it, or nil.
func (l *Lock) Validate() error {
	var errs []error
	check := func(where string, err error) {
		if err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", where, err))
		}
	}
	c := &l.CUTLASS
	check("cutlass.version", checkConstraint(c.Version, c.Constraint))
	if !commitPattern.MatchString(c.Commit) {
		check("cutlass.commit", fmt.Errorf("%q is not 40 lower-case hex digits", c.Commit))
	}
	check("cutlass.include", checkTreeDigest(c.Include))
	check("cutlass.tools", checkTreeDigest(c.Tools))
	if len(c.Carriers) == 0 {
		check("cutlass.carriers", errors.New("none"))
	}
	for i, carrier := range c.Carriers {
		check(fmt.Sprintf("cutlass.carriers[%d]", i), carrier.validate())
	}
	if _, err := semver.StrictNewVersion(l.CUDA.Version); err != nil {
		check("cuda.version", fmt.Errorf("%q: %w", l.CUDA.Version, err))
	}
	if len(l.CUDA.Wheels) == 0 {
		check("cuda.wheels", errors.New("none"))
	}
	names := map[string]bool{}
	for _, list := range []struct {
		name     string
		packages []Package
	}{{"cuda.wheels", l.CUDA.Wheels}, {"tools", l.Tools}} {
		for i, w := range list.packages {
			where := fmt.Sprintf("%s[%d]", list.name, i)
			check(where, w.validate())
			if names[w.Name] {
				check(where, fmt.Errorf("%q comes twice", w.Name))
			}
			names[w.Name] = true
		}
	}
	return errors.Join(errs...)
}

func checkConstraint(version, constraint string) error {
	c, err := semver.NewConstraint(constraint)
	if err != nil {
		return fmt.Errorf("constraint %q: %w", constraint, err)
	}
	v, err := semver.StrictNewVersion(version)
	if err != nil {
		return fmt.Errorf("%q: %w", version, err)
	}
	if !c.Check(v) {
		return fmt.Errorf("%s does not satisfy %q", version, constraint)
	}
	return nil
}

func checkTreeDigest(digest string) error {
	b64, ok := strings.CutPrefix(digest, "h1:")
	if raw, err := base64.StdEncoding.DecodeString(b64); !ok || err != nil || len(raw) != 32 {
		return fmt.Errorf("%q is not h1: and the base64 of 32 bytes", digest)
	}
	return nil
}

func (c *Carrier) validate() error {
	dir, slash := strings.CutSuffix(strings.ReplaceAll(c.Prefix, "{commit}", "x"), "/")
	if !slash || !fs.ValidPath(dir) || dir == "." {
		return fmt.Errorf("prefix %q is not a folder in an archive that ends in \"/\"", c.Prefix)
	}
	switch {
	case (c.URL == "") == (c.Package == nil):
		return errors.New("either a url or a package is needed")
	case c.Package != nil && c.MaxBytes != 0:
		return errors.New("max_bytes goes with a url; a package has its exact size")
	case c.Package != nil:
		return c.Package.validate()
	}
	u, err := url.Parse(c.URL)
	if err != nil || u.Scheme != "https" || u.Host == "" || u.User != nil {
		return errors.New("the url is not of the form https://host/path")
	}
	if !strings.HasSuffix(u.Path, ".tar.gz") && !strings.HasSuffix(u.Path, ".zip") {
		return errors.New("the url ends in neither .tar.gz nor .zip")
	}
	if c.MaxBytes <= 0 {
		return fmt.Errorf("max_bytes is %d; a bound above zero is needed", c.MaxBytes)
	}
	return nil
}

func (p *Package) validate() error {
	switch {
	case !packagePattern.MatchString(p.Name):
		return fmt.Errorf("name %q is not one of a package", p.Name)
	case !versionPattern.MatchString(p.Version):
		return fmt.Errorf("%s: version %q is none", p.Name, p.Version)
	case !filePattern.MatchString(p.File):
		return fmt.Errorf("%s: file %q is not a plain .whl, .tar.gz or .zip name", p.Name, p.File)
	case p.Bytes <= 0:
		return fmt.Errorf("%s: a size of %d bytes", p.Name, p.Bytes)
	case !sha256Pattern.MatchString(p.SHA256):
		return fmt.Errorf("%s: sha256 %q is not 64 lower-case hex digits", p.Name, p.SHA256)
	}
	return nil
}
