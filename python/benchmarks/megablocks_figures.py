# SPDX-License-Identifier: Apache-2.0
"""MegaBlocks' dMoE on a GPU: its sparse MLP with the products of sparsek, beside its grouped MLP.

    python python/benchmarks/megablocks_figures.py [--tokens 16384] [--hidden 2048] [--ffn 8192] [--json FILE] [--profile FILE]

Needs packages megablocks 0.7 and stanford-stk 0.7. Eight experts, of which each token takes two, bf16; both layers have the same
weights and take turns in one process. The grouped MLP's products are torch's grouped ones: package grouped_gemm, which it imports, is
replaced by `torch._grouped_mm`, and counts of tokens stay on the device, so that nothing waits for them.
A time is the median of rounds, by CUDA events, of a call while the GPU still has the call before to do; the host's is that of a
call alone. --profile writes what each kernel of a step takes.
"""

from __future__ import annotations

import argparse
import functools
import importlib
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "src")]

from timing import Work, host_microseconds, milliseconds  # noqa: E402

import sparsek.compat.megablocks  # noqa: E402

EXPERTS, TOP = 8, 2


def gmm(a: torch.Tensor, b: torch.Tensor, counts: torch.Tensor, trans_b: bool = False) -> torch.Tensor:
    """The rows of each expert times its matrix. a: (tokens, k), counts: (experts), b: (experts, k, n), or (experts, n, k) with trans_b."""
    return torch._grouped_mm(a, b.mT if trans_b else b, offs=counts.cumsum(0, dtype=torch.int32))


def install() -> None:
    """Lets megablocks be imported, with sparsek's products and torch's grouped ones."""
    grouped: Any = ModuleType("grouped_gemm")
    grouped.backend, grouped.ops = ModuleType("grouped_gemm.backend"), ModuleType("grouped_gemm.ops")
    grouped.ops.gmm = gmm
    sys.modules["grouped_gemm"] = grouped
    sparsek.compat.megablocks.install()
    grouped_mlp: Any = importlib.import_module("megablocks.layers.mlp").GroupedMLP

    def forward(self: Any, x: torch.Tensor, tokens_per_expert: torch.Tensor) -> torch.Tensor:
        w1, w2 = (w.view(EXPERTS, -1, self.args.hidden_size) for w in (self.w1, self.w2))
        return gmm(self.args.activation_fn(gmm(x, w1, tokens_per_expert, trans_b=True)), w2, tokens_per_expert)

    grouped_mlp.forward = forward  # MegaBlocks' own, but for the copy of the counts to the host


def layers(hidden: int, ffn: int) -> dict[str, Any]:
    """The layer by each MLP, with equal weights."""
    arguments: Any = importlib.import_module("megablocks.layers.arguments").Arguments
    layer: Any = importlib.import_module("megablocks.layers.dmoe").dMoE
    made: dict[str, Any] = {}
    for name in ("sparse", "grouped"):
        made[name] = layer(
            arguments(
                hidden_size=hidden,
                ffn_hidden_size=ffn,
                moe_num_experts=EXPERTS,
                moe_top_k=TOP,
                mlp_impl=name,
                bias=False,
                memory_optimized_mlp=False,
                fp16=False,
                bf16=True,
                moe_loss_weight=0,
                return_bias=False,
            )
        )
    made["grouped"].load_state_dict(made["sparse"].state_dict())
    return made


def profiled(work: Work) -> str:
    """The kernels of a call and the host's operators, those that take longest first."""
    work()
    with torch.profiler.profile() as profile:
        work()
        torch.cuda.synchronize()
    averages = profile.key_averages()
    tables = [averages.table(sort_by=f"self_{where}_time_total", row_limit=45, max_name_column_width=80) for where in ("cuda", "cpu")]
    return "\n".join(tables)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--hidden", type=int, default=2048)
    parser.add_argument("--ffn", type=int, default=8192)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--profile", type=Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    install()
    made = layers(options.hidden, options.ffn)
    x = torch.randn(1, options.tokens, options.hidden, device="cuda", dtype=torch.bfloat16, requires_grad=True)
    g = torch.randn_like(x)
    with torch.no_grad():
        difference = (made["sparse"](x).float() - made["grouped"](x).float()).abs().max().item()
        largest = made["grouped"](x).abs().max().item()
    if not difference <= 0.02 * largest:
        raise SystemExit(f"the layers' results differ by {difference:.3g}, of {largest:.3g}")

    def step(layer: Any) -> None:
        layer(x).backward(g)
        x.grad = None
        layer.zero_grad(set_to_none=True)

    with torch.no_grad():
        forward: dict[str, Work] = {name: functools.partial(layer, x) for name, layer in made.items()}
        found = {f"{name} forward, ms": taken for name, taken in milliseconds(forward, "cuda", 20).items()}
        found |= {f"{name} forward, host, us": taken for name, taken in host_microseconds(forward, calls=1, rounds=20).items()}
    steps: dict[str, Work] = {name: functools.partial(step, layer) for name, layer in made.items()}
    found |= {f"{name} step, ms": taken for name, taken in milliseconds(steps, "cuda", 20).items()}
    found |= {f"{name} step, host, us": taken for name, taken in host_microseconds(steps, calls=1, rounds=20).items()}
    for what in ("forward", "step"):
        found[f"grouped over sparse, {what}"] = found[f"grouped {what}, ms"] / found[f"sparse {what}, ms"]
    for name, value in found.items():
        print(f"{value:12.3f}  {name}")
    if options.json:
        options.json.write_text(json.dumps({"tokens": options.tokens, "hidden": options.hidden, "ffn": options.ffn, **found}, indent=1))
    if options.profile:
        options.profile.write_text("\n\n".join(f"{name}\n{profiled(work)}" for name, work in steps.items()))


if __name__ == "__main__":
    main()
