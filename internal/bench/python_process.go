// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/sparsek/sparsek/internal/sys/process"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// pythonProcess is python3 with a script that times the products of a peer, started once for all cases: its packages take
// seconds to load. The head of torch_bsr.py says what such a script reads and prints.
type pythonProcess struct {
	peer    string
	script  string
	install string // the fix where it cannot be started
	served  string // the fix where it does not take a case

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

type pythonRequest struct {
	Op      string `json:"op"`
	Path    string `json:"path,omitempty"`
	Way     string `json:"way,omitempty"`
	Repeats int    `json:"repeats,omitempty"`
}

type pythonAnswer struct {
	Error   string    `json:"error"`
	Version string    `json:"version"`
	Entry   string    `json:"entry"`
	Dense   bool      `json:"dense"`
	Seconds []float64 `json:"seconds"`
}

// scriptError is what a script itself says that it could not do.
type scriptError struct{ peer, text string }

func (e *scriptError) Error() string { return e.peer + ": " + e.text }

// start starts the process, unless that was tried already: then the outcome is the same.
func (t *pythonProcess) start(ctx context.Context, on sparsek.EngineInfo) error {
	if t.started {
		return t.absent
	}
	t.started = true
	python, err := exec.LookPath("python3")
	if err != nil {
		t.absent = &missing{t.peer, "there is no python3 on PATH", "install Python 3, and " + t.install}
		return t.absent
	}
	device := "cpu"
	if on.Backend == sparsek.CUDA {
		device = fmt.Sprintf("cuda:%d", on.Device)
	}
	if err := t.launch(ctx, python, device); err != nil {
		t.absent = &missing{t.peer, err.Error(), "fix that, or leave " + t.peer + " out"}
		return t.absent
	}
	answer, err := t.receive(ctx)
	var said *scriptError
	if errors.As(err, &said) {
		t.absent = &missing{t.peer, said.text, t.served}
		return t.absent
	}
	if err != nil {
		if ctx.Err() == nil {
			err = &missing{t.peer, err.Error(), t.install}
		}
		t.absent = err
	}
	t.version = answer.Version
	return t.absent
}

// launch runs the script until its requests end.
func (t *pythonProcess) launch(ctx context.Context, python, device string) (err error) {
	if t.folder, err = os.MkdirTemp("", "sparsek-"+t.peer+"-"); err != nil {
		return err
	}
	script := filepath.Join(t.folder, "time_"+t.peer+".py") // no name of a package
	if err := os.WriteFile(script, []byte(t.script), 0o600); err != nil {
		return fmt.Errorf("write the script for %s: %w", t.peer, err)
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

func (t *pythonProcess) ask(ctx context.Context, request pythonRequest) (pythonAnswer, error) {
	line, err := json.Marshal(request)
	if err != nil {
		return pythonAnswer{}, err
	}
	if _, err := t.requests.Write(append(line, '\n')); err != nil {
		return pythonAnswer{}, t.broken(ctx, err)
	}
	return t.receive(ctx)
}

// receive reads an answer. Lines that are none, which libraries may print, are passed over.
func (t *pythonProcess) receive(ctx context.Context) (answer pythonAnswer, err error) {
	for {
		line, err := t.answers.ReadBytes('\n')
		if err != nil {
			return answer, t.broken(ctx, err)
		}
		if !bytes.HasPrefix(line, []byte("{")) {
			continue
		}
		if err := json.Unmarshal(line, &answer); err != nil {
			return answer, t.giveUp(fmt.Errorf("%s: an answer that cannot be read: %w", t.peer, err))
		}
		if answer.Error != "" {
			return answer, &scriptError{t.peer, answer.Error}
		}
		return answer, nil
	}
}

// broken says why the process is gone, as far as it said so itself.
func (t *pythonProcess) broken(ctx context.Context, err error) error {
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

// giveUp has the peer missing in all further cases: what it answers is not to be relied on.
func (t *pythonProcess) giveUp(err error) error {
	t.absent = &missing{t.peer, err.Error(), "see what python3 says to: import " + t.peer}
	return err
}

// patience is how long the process may take to end by itself when it has nothing more to do.
const patience = time.Second

// end lets the process end and takes away what was made for it.
func (t *pythonProcess) end() error {
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

// pythonCase is what a script reads of a case.
type pythonCase struct {
	Op     string  `json:"op"`
	M      int     `json:"m"`
	N      int     `json:"n"`
	K      int     `json:"k"`
	BlockM int     `json:"block_m"`
	BlockK int     `json:"block_k"`
	DType  string  `json:"dtype"`
	RowPtr []int32 `json:"row_ptr"`
	ColIdx []int32 `json:"col_idx"`
	Copies int     `json:"copies"`
}

// prepare has the script make the operands of a case, and gives the name of the way that it takes.
func (t *pythonProcess) prepare(ctx context.Context, spec any) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	path := filepath.Join(t.folder, "case.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("hand a case to %s: %w", t.peer, err)
	}
	answer, err := t.ask(ctx, pythonRequest{Op: "case", Path: path})
	var said *scriptError
	if errors.As(err, &said) {
		return "", &missing{t.peer, said.text, t.served}
	}
	return answer.Entry, err
}

// time times products of the case that was prepared last.
func (t *pythonProcess) time(ctx context.Context, repeats int) ([]time.Duration, error) {
	return t.timeWay(ctx, "", repeats)
}

// timeWay is time of a script that has several ways in one case.
func (t *pythonProcess) timeWay(ctx context.Context, way string, repeats int) ([]time.Duration, error) {
	answer, err := t.ask(ctx, pythonRequest{Op: "time", Way: way, Repeats: repeats})
	if err != nil {
		return nil, err
	}
	if len(answer.Seconds) != repeats {
		return nil, t.giveUp(fmt.Errorf("%s gave %d times, not %d", t.peer, len(answer.Seconds), repeats))
	}
	times := make([]time.Duration, repeats)
	for i, s := range answer.Seconds {
		if !(s > 0) || math.IsInf(s, 0) {
			return nil, t.giveUp(fmt.Errorf("%s gave a time of %v s", t.peer, s))
		}
		times[i] = time.Duration(math.Round(s * float64(time.Second)))
	}
	return times, nil
}
