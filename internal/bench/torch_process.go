// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/sys/process"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// torchScript is a program for python3 that times torch's products. Its head says what it reads and prints.
//
//go:embed torch_bsr.py
var torchScript string

// torchProcess is python3 with the script, started once for all cases: torch takes seconds to load.
type torchProcess struct {
	started bool
	absent  error // why it cannot be used
	version string
	folder  string // for the script and the cases, removed at the end

	requests *os.File
	answers  *bufio.Reader
	notes    bytes.Buffer // what it wrote to its standard error; to be read when it has ended
	ended    chan error
	kill     context.CancelFunc
}

type torchRequest struct {
	Op      string `json:"op"`
	Path    string `json:"path,omitempty"`
	Repeats int    `json:"repeats,omitempty"`
}

type torchAnswer struct {
	Error   string    `json:"error"`
	Torch   string    `json:"torch"`
	Entry   string    `json:"entry"`
	Seconds []float64 `json:"seconds"`
}

// torchError is what the script itself says that it could not do.
type torchError struct{ text string }

func (e *torchError) Error() string { return "torch: " + e.text }

// start starts the process, unless that was tried already: then the outcome is the same.
func (t *torchProcess) start(ctx context.Context, on sparsek.EngineInfo) error {
	if t.started {
		return t.absent
	}
	t.started = true
	const fix = "install torch for the python3 on PATH"
	python, err := exec.LookPath("python3")
	if err != nil {
		t.absent = &missing{Torch, "there is no python3 on PATH", "install Python 3 with torch"}
		return t.absent
	}
	device := "cpu"
	if on.Backend == sparsek.CUDA {
		device = fmt.Sprintf("cuda:%d", on.Device)
	}
	if err := t.launch(ctx, python, device); err != nil {
		t.absent = &missing{Torch, err.Error(), "fix that, or leave torch out"}
		return t.absent
	}
	answer, err := t.receive(ctx)
	var said *torchError
	if errors.As(err, &said) {
		t.absent = &missing{Torch, said.text, fix}
		return t.absent
	}
	if err != nil {
		if ctx.Err() == nil {
			err = &missing{Torch, err.Error(), fix}
		}
		t.absent = err
	}
	t.version = answer.Torch
	return t.absent
}

// launch runs the script until its requests end.
func (t *torchProcess) launch(ctx context.Context, python, device string) (err error) {
	if t.folder, err = os.MkdirTemp("", "sparsek-torch-"); err != nil {
		return err
	}
	script := filepath.Join(t.folder, "torch_bsr.py")
	if err := os.WriteFile(script, []byte(torchScript), 0o600); err != nil {
		return fmt.Errorf("write the script for torch: %w", err)
	}
	childIn, requests, err := os.Pipe()
	if err != nil {
		return err
	}
	answers, childOut, err := os.Pipe()
	if err != nil {
		return errors.Join(err, childIn.Close(), requests.Close())
	}
	t.requests, t.answers, t.ended = requests, bufio.NewReader(answers), make(chan error, 1)
	ctx, t.kill = context.WithCancel(ctx)
	go func() {
		err := process.Command{Args: []string{python, script, device}, Stdin: childIn, Stdout: childOut, Stderr: &t.notes}.Run(ctx)
		// Without these ends a read of the answers comes to its end.
		_ = errors.Join(childIn.Close(), childOut.Close())
		t.ended <- err
	}()
	return nil
}

func (t *torchProcess) ask(ctx context.Context, request torchRequest) (torchAnswer, error) {
	line, err := json.Marshal(request)
	if err != nil {
		return torchAnswer{}, err
	}
	if _, err := t.requests.Write(append(line, '\n')); err != nil {
		return torchAnswer{}, t.broken(ctx, err)
	}
	return t.receive(ctx)
}

// receive reads an answer. Lines that are none, which libraries may print, are passed over.
func (t *torchProcess) receive(ctx context.Context) (answer torchAnswer, err error) {
	for {
		line, err := t.answers.ReadBytes('\n')
		if err != nil {
			return answer, t.broken(ctx, err)
		}
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return answer, t.giveUp(fmt.Errorf("torch: an answer that cannot be read: %w", err))
		}
		if answer.Error != "" {
			return answer, &torchError{answer.Error}
		}
		return answer, nil
	}
}

// broken says why the process is gone, as far as it said so itself.
func (t *torchProcess) broken(ctx context.Context, err error) error {
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	ended := <-t.ended
	t.ended <- ended // for end
	if errors.Is(err, io.EOF) {
		err = errors.New("python3 ended too early")
	}
	if ended != nil {
		err = fmt.Errorf("%w (%v)", err, ended)
	}
	if notes := strings.TrimSpace(t.notes.String()); notes != "" {
		lines := strings.Split(notes, "\n")
		err = fmt.Errorf("%w: %s", err, lines[len(lines)-1])
	}
	return t.giveUp(err)
}

// giveUp has torch missing in all further cases: what it answers is not to be relied on.
func (t *torchProcess) giveUp(err error) error {
	t.absent = &missing{Torch, err.Error(), "see what python3 says to: import torch"}
	return err
}

// patience is how long the process may take to end by itself when it has nothing more to do.
const patience = time.Second

// end lets the process end and takes away what was made for it.
func (t *torchProcess) end() error {
	if t.folder == "" {
		return nil
	}
	if t.requests != nil {
		_ = t.requests.Close() // the script ends where its requests do
		defer t.kill()
		select {
		case <-t.ended: // how does not matter any more
		case <-time.After(patience):
			t.kill()
			<-t.ended
		}
	}
	return os.RemoveAll(t.folder)
}
