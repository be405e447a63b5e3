# SPDX-License-Identifier: Apache-2.0
"""What attention, layouts and gates take from torch.

    python python/benchmarks/attention_figures.py [--device cuda|cpu] [--seq 16384] [--heads 32] [--block 128] [--json FILE]

Random operands, bf16 on a GPU and fp32 on the CPU, one batch, heads of 128; an eighth of the blocks of each block row.
Candidates take turns; a figure is the median of rounds, in milliseconds. With a new layout each time, a GPU makes the lists of
blocks, and the host waits for nothing.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch
from torch.nn import functional as F  # noqa: N812

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "src")]

from timing import host_microseconds, milliseconds  # noqa: E402

import sparsek.torch as st  # noqa: E402
from sparsek.torch import gate as gates  # noqa: E402


def figures(device: str, seq: int, heads: int, block: int, rounds: int = 10) -> dict[str, Any]:
    """The times of each step."""
    torch.manual_seed(0)
    size, dtype = (128, torch.bfloat16) if device == "cuda" else (32, torch.float32)
    q, k, v = (torch.randn(1, heads, seq, size, device=device, dtype=dtype) for _ in range(3))
    count = max(1, seq // block // 8)
    gate = st.LearnableTopKGate(heads, heads, size, block, count=count, causal=False).to(device)
    leaves = [operand.clone().requires_grad_() for operand in (q, k, v)]
    grad = torch.randn_like(q)
    with torch.no_grad():
        scores = gate(q, k)
        kept = gate.layout(q, k, scores)
        one = st.BlockLayout.from_scores(torch.randn(seq // block, seq // block, device=device), block, count=count)
        near = st.layouts.window(seq, block, 1023, 0, device=device)
        found: dict[str, Any] = milliseconds(
            {
                "torch, dense": lambda: F.scaled_dot_product_attention(q, k, v),
                "torch, causal": lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True),
                "dense": lambda: st.attention(q, k, v),
                "causal": lambda: st.attention(q, k, v, causal=True),
                "window of 1024": lambda: st.attention(q, k, v, near, window=(1023, 0)),
                "an eighth, one layout for all heads": lambda: st.attention(q, k, v, one),
                "an eighth, a layout for each head": lambda: st.attention(q, k, v, kept),
                "gate: scores": lambda: gate(q, k),
                "gate: layout of scores": lambda: gate.layout(q, k, scores),
                "mean pooling: scores": lambda: gates.mean_pool_scores(q, k, block, causal=False),
            },
            device,
            rounds,
        )
        found |= milliseconds({"scores, new layout, attention": lambda: st.attention(q, k, v, gate.layout(q, k))}, device, 2)
        few = [operand[:, :, : 2 * block] for operand in (q, k, v)]
        small = st.layouts.full(2 * block, block, device=device)
        host = {"host, us: attention that is known": lambda: st.attention(few[0], few[1], few[2], small)}
        found |= host_microseconds(host, calls=20, rounds=rounds)

    def gradients(o: torch.Tensor) -> Any:
        return lambda: torch.autograd.grad(o, leaves, grad, retain_graph=True)

    passes = {
        "torch, causal": F.scaled_dot_product_attention(leaves[0], leaves[1], leaves[2], is_causal=True),
        "causal": st.attention(leaves[0], leaves[1], leaves[2], causal=True),
        "an eighth, a layout for each head": st.attention(leaves[0], leaves[1], leaves[2], kept),
    }
    return found | milliseconds({f"gradients: {name}": gradients(o) for name, o in passes.items()}, device, rounds)


def main() -> None:
    """Prints the figures, and writes them."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--seq", type=int, default=16384)
    parser.add_argument("--heads", type=int, default=32)
    parser.add_argument("--block", type=int, default=128)
    parser.add_argument("--json", type=Path)
    given = parser.parse_args()
    found = figures(given.device, given.seq, given.heads, given.block)
    for name, time in found.items():
        print(f"{name:<40} {time:10.3f}")
    if given.json is not None:
        device = torch.cuda.get_device_name() if given.device == "cuda" else "CPU"
        given.json.write_text(json.dumps({"device": device, "torch": torch.__version__, **vars(given), "json": None, "times": found}))


if __name__ == "__main__":
    main()
