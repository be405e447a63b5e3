// SPDX-License-Identifier: Apache-2.0

package bench

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/sparsek/sparsek/internal/bench/workload"
	sparsek "github.com/sparsek/sparsek/wrapper"
)

// torch is torch's own block-sparse product, in a process of python3 that takes its turns.
type torch[T sparsek.Element] struct{ process *torchProcess }

// torchCase is what the script reads of a case.
type torchCase struct {
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

func (t torch[T]) enter(ctx context.Context, s *subject[T]) ([]entrant, error) {
	if err := t.process.start(ctx, s.engine.Info()); err != nil {
		return nil, err
	}
	spec := torchCase{
		M: s.shape.M, N: s.shape.N, K: s.shape.K, BlockM: s.a.BlockM, BlockK: s.a.BlockK, DType: s.element.Name,
		RowPtr: s.a.RowPtr, ColIdx: s.a.ColIdx, Copies: max(s.copies, workload.SetCount),
	}
	entry, err := t.process.prepare(ctx, spec)
	if err != nil {
		return nil, err
	}
	e := entrant{name: Torch, kernel: fmt.Sprintf("torch %s, %s", t.process.version, entry), time: t.process.time}
	if err := tryOnce(ctx, &e, mendTorch); err != nil {
		return nil, err
	}
	return []entrant{e}, nil
}

const mendTorch = "choose blocks, sizes and a type that torch takes"

// prepare has the script make the operands of a case, and gives the name of the way that it takes.
func (t *torchProcess) prepare(ctx context.Context, spec torchCase) (string, error) {
	text, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	path := filepath.Join(t.folder, "case.json")
	if err := os.WriteFile(path, text, 0o600); err != nil {
		return "", fmt.Errorf("hand a case to torch: %w", err)
	}
	answer, err := t.ask(ctx, torchRequest{Op: "case", Path: path})
	var said *torchError
	if errors.As(err, &said) {
		return "", &missing{Torch, said.text, mendTorch}
	}
	return answer.Entry, err
}

// time times products of the case that was prepared last.
func (t *torchProcess) time(ctx context.Context, repeats int) ([]time.Duration, error) {
	answer, err := t.ask(ctx, torchRequest{Op: "time", Repeats: repeats})
	if err != nil {
		return nil, err
	}
	if len(answer.Seconds) != repeats {
		return nil, t.giveUp(fmt.Errorf("torch gave %d times, not %d", len(answer.Seconds), repeats))
	}
	times := make([]time.Duration, repeats)
	for i, s := range answer.Seconds {
		if !(s > 0) || math.IsInf(s, 0) {
			return nil, t.giveUp(fmt.Errorf("torch gave a time of %v s", s))
		}
		times[i] = time.Duration(math.Round(s * float64(time.Second)))
	}
	return times, nil
}
