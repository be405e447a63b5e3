// SPDX-License-Identifier: Apache-2.0

package stamp

import (
	"crypto/sha256"
	"encoding/hex"
	"io"
	"os"
	"sync"
	"time"
)

// Hasher hashes files and remembers them for as long as their size and
// modification time stay. It may be used from several goroutines at once.
type Hasher struct {
	mu    sync.Mutex
	known map[string]hashed
}

type hashed struct {
	size     int64
	modified time.Time
	sum      string
}

// NewHasher returns a Hasher that knows no file yet.
func NewHasher() *Hasher { return &Hasher{known: make(map[string]hashed)} }

// File returns the SHA-256 of the file's content, in hex.
func (h *Hasher) File(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return "", err
	}
	h.mu.Lock()
	known, ok := h.known[path]
	h.mu.Unlock()
	if ok && known.size == info.Size() && known.modified.Equal(info.ModTime()) {
		return known.sum, nil
	}
	digest := sha256.New()
	if _, err := io.Copy(digest, f); err != nil {
		return "", err
	}
	sum := hex.EncodeToString(digest.Sum(nil))
	h.mu.Lock()
	h.known[path] = hashed{info.Size(), info.ModTime(), sum}
	h.mu.Unlock()
	return sum, nil
}

// Key is the digest of parts, each one distinct from its neighbours.
func Key(parts ...string) string {
	digest := sha256.New()
	for _, part := range parts {
		sum := sha256.Sum256([]byte(part))
		digest.Write(sum[:])
	}
	return hex.EncodeToString(digest.Sum(nil))
}
