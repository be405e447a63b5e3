# SPDX-License-Identifier: Apache-2.0
"""Figures of sparsek.torch: costs of calls, layers, a model, and patterns that come and go.

    python python/benchmarks/torch_figures.py [--device cuda|cpu] [--only SECTION,...] [--json FILE]

On the CPU all sizes are small: that it runs is what counts there. Candidates take turns in one process; a figure is the
median of rounds, of the host's time the least of them. Operands are random, bf16 on a GPU and fp32 on the CPU; 12.5 % of the
blocks of 64x64 are stored.
Sections are calls, compiled, linear, frozen, training, forward, step and decode of a model of Llama's shape, and patterns.
"""

from __future__ import annotations

import argparse
import copy
import functools
import gc
import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from torch.nn import functional as F  # noqa: N812

sys.path[:0] = [str(Path(__file__).resolve().parent), str(Path(__file__).resolve().parents[1] / "src")]

from model_figures import ModelBench  # noqa: E402
from timing import graph_microseconds, host_microseconds, milliseconds, synchronize  # noqa: E402

import sparsek  # noqa: E402
import sparsek.torch as st  # noqa: E402
from sparsek.torch import _known  # noqa: E402

BLOCK, DENSITY = (64, 64), 0.125


class Bench:
    """Where and how large."""

    def __init__(self, device: str) -> None:
        self.device, self.is_gpu = device, device == "cuda"
        self.dtype = torch.bfloat16 if self.is_gpu else torch.float32

    def random(self, *shape: int) -> Any:
        return torch.randn(*shape, device=self.device, dtype=self.dtype)

    def linear(self, inputs: int, outputs: int, bias: bool = False) -> Any:
        return nn.Linear(inputs, outputs, bias=bias, device=self.device, dtype=self.dtype)

    def _small(self) -> tuple[int, int, tuple[int, int]]:
        """Rows of x, the weight's width and its blocks: of a product that takes less than the host needs to call it."""
        return (16, 1024, BLOCK) if self.is_gpu else (4, 64, (8, 8))

    def calls(self) -> dict[str, float]:
        """Microseconds of the host for y = x W^T + bias, 16 rows of x, W 1024x1024; on the CPU 4 rows, 64x64 in blocks of 8x8."""
        rows, width, block = self._small()
        dense = self.linear(width, width, bias=True)
        layer = st.BsrLinear.from_dense(dense, block, density=DENSITY)
        x = self.random(rows, width)
        values, crow, col, size = layer.values, layer.crow, layer.col, layer.size
        bias: Any = layer.bias
        with torch.no_grad():
            y = st.linear(x, values, crow, col, size, bias)
        call = _known.alive()[-1]
        spare = call._new_args()
        args = spare[0]
        args.values, args.b, args.bias, args.c = values.data_ptr(), x.data_ptr(), bias.data_ptr(), y.data_ptr()
        if self.is_gpu:
            args.stream = torch.cuda.current_stream().cuda_stream
        candidates: dict[str, Callable[[], Any]] = {
            "linear": lambda: st.linear(x, values, crow, col, size, bias),
            "BsrLinear": lambda: layer(x),
            "F.linear": lambda: F.linear(x, dense.weight, dense.bias),
        }
        with torch.no_grad():
            found = host_microseconds({"library alone": lambda: call._multiply(call._plan.pointer, spare[1]), **candidates})
        found.update(host_microseconds({f"{name} with gradients": work for name, work in candidates.items()}))
        found.update(self._numpy_calls())
        return {f"{name}, us": value for name, value in found.items()}

    def compiled(self) -> dict[str, float]:
        """Microseconds of the host for a compiled BsrLinear, as in calls."""
        rows, width, block = self._small()
        dense = self.linear(width, width, bias=True)
        x = self.random(rows, width)
        layers = {"BsrLinear": st.BsrLinear.from_dense(dense, block, density=DENSITY), "nn.Linear": dense}
        with torch.no_grad():
            works: dict[str, Callable[[], Any]] = {
                f"{name}, us": functools.partial(torch.compile(layer, fullgraph=True), x) for name, layer in layers.items()
            }
            return host_microseconds(works)

    @staticmethod
    def _numpy_calls() -> dict[str, float]:
        import numpy as np

        rng = np.random.default_rng(0)
        a = sparsek.BSR.from_dense(rng.standard_normal((64, 64), np.float32), (8, 8))
        b = rng.standard_normal((64, 8), np.float32)
        plan = sparsek.Pattern(a.crow, a.col, a.shape, a.block, dtype="fp32", context=sparsek.Context("cpu", threads=1)).plan(8)
        out = plan(a.values, b)
        spare = plan._new_args()
        spare[0].values, spare[0].b, spare[0].c = a.values.ctypes.data, b.ctypes.data, out.ctypes.data
        return host_microseconds(
            {
                "NumPy: library alone": lambda: plan._multiply(plan._pointer, spare[1]),
                "NumPy: plan": lambda: plan(a.values, b),
                "NumPy: plan into out": lambda: plan(a.values, b, out),
                "NumPy: bsr_gemm": lambda: sparsek.bsr_gemm(a, b),
            },
            calls=2000,
        )

    def linear_product(self) -> dict[str, Any]:
        """y = x W^T against the library's own C = A B of the same sizes."""
        tokens, width = (8192, 8192) if self.is_gpu else (64, 512)
        layer = st.BsrLinear.from_dense(self.linear(width, width), BLOCK, density=DENSITY)
        x, g = self.random(tokens, width), self.random(tokens, width)
        b = x.t().contiguous()
        weight = (layer.values.detach(), layer.crow, layer.col, layer.size)
        dense = self.linear(width, width).weight.detach()
        found: dict[str, Any] = milliseconds(
            {
                "C = A B": lambda: st.mm(*weight, b),
                "y = x W^T": lambda: st.linear(x, *weight),
                "dx = g W": lambda: st.linear(g, *weight, transpose=True),
                "dW (SDD)": lambda: st.sdd(g.t(), x, *weight[1:], BLOCK),
                "dense y": lambda: x @ dense.t(),
            },
            self.device,
        )
        found = {f"{name}, ms": value for name, value in found.items()}
        found["y = x W^T over C = A B"] = found["y = x W^T, ms"] / found["C = A B, ms"]
        if self.is_gpu:
            with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CUDA]) as profile:
                st.linear(x, *weight)
                synchronize()
            found["kernels of y = x W^T"] = sorted({event.name[:90] for event in profile.events() if event.device_type.name == "CUDA"})
        return found

    def frozen(self) -> dict[str, Any]:
        """y = x W^T and C = A B of weights of several blocks, as they are and frozen, beside a dense layer."""
        width, tokens = (4096, (16, 256, 4096)) if self.is_gpu else (128, (16,))
        found: dict[str, Any] = {}
        for dtype in (torch.bfloat16, torch.float32) if self.is_gpu else (torch.float32,):
            dense = nn.Linear(width, width, bias=False, device=self.device, dtype=dtype)
            for edge in (1, 4, 8, 16, 64) if self.is_gpu else (8,):
                layer = st.BsrLinear.from_dense(dense, (edge, edge), density=DENSITY)
                frozen = copy.deepcopy(layer)
                st.freeze_(frozen)
                for rows in tokens:
                    x = torch.randn(rows, width, device=self.device, dtype=dtype)
                    b = x.t().contiguous()
                    works: dict[str, Callable[[], Any]] = {
                        "y": functools.partial(layer.forward, x),
                        "frozen y": functools.partial(frozen.forward, x),
                        "dense y": functools.partial(dense, x),
                        "C": functools.partial(st.mm, layer.values, layer.crow, layer.col, layer.size, b),
                        "frozen C": functools.partial(st.mm, frozen.values, frozen.crow, frozen.col, frozen.size, b),
                    }
                    with torch.no_grad():
                        times = graph_microseconds(works) if self.is_gpu else milliseconds(works, self.device)
                    case = f"{str(dtype).removeprefix('torch.')} {edge}x{edge}, {rows} rows of x"
                    found[case] = ", ".join(f"{name} {time:.1f}" for name, time in times.items())
        return found

    def training(self) -> dict[str, Any]:
        """Forward and both gradients of BsrLinear, nn.Linear, and torch's BSR product forward."""
        tokens, inputs, outputs = (8192, 4096, 16384) if self.is_gpu else (64, 256, 512)
        dense = self.linear(inputs, outputs)
        layer = st.BsrLinear.from_dense(dense, BLOCK, density=DENSITY)
        x, g = self.random(tokens, inputs).requires_grad_(), self.random(tokens, outputs)
        bsr = torch.sparse_bsr_tensor(layer.crow.long(), layer.col.long(), layer.values.detach(), layer.size)
        columns = x.detach().t().contiguous()

        def step(module: Any) -> None:
            module.zero_grad(set_to_none=True)
            x.grad = None
            module(x).backward(g)

        found: dict[str, Any] = milliseconds(
            {"BsrLinear": lambda: step(layer), "nn.Linear": lambda: step(dense), "torch's BSR, forward": lambda: bsr @ columns}, self.device
        )
        sparse = found["BsrLinear"]
        found = {f"{name}, ms": value for name, value in found.items()}
        found["nn.Linear over BsrLinear"] = found["nn.Linear, ms"] / sparse
        found["torch's BSR forward over BsrLinear"] = found["torch's BSR, forward, ms"] / sparse
        if self.is_gpu:
            found.update(self._memory_of(step, layer, x, outputs))
        return found

    def _memory_of(self, step: Callable[[Any], None], layer: Any, x: Any, outputs: int) -> dict[str, int]:
        layer.zero_grad(set_to_none=True)
        x.grad = None
        synchronize()
        torch.cuda.reset_peak_memory_stats()
        before = torch.cuda.memory_allocated()
        step(layer)
        synchronize()
        operands = x.numel() * x.element_size() + x.shape[0] * outputs * x.element_size() + layer.values.nbytes  # dx, y and dW
        return {
            "most memory of a step beyond y and gradients, bytes": torch.cuda.max_memory_allocated() - before - operands,
            "values, bytes": layer.values.nbytes,
            "index, bytes": layer.crow.nbytes + layer.col.nbytes,
        }

    def patterns(self) -> dict[str, Any]:
        """A thousand patterns made, used twice and dropped: growth of memory, and microseconds of the host for each."""
        x, values = self.random(64, 1024), self.random(64, 64, 64)

        def some(count: int) -> None:
            for _ in range(count):
                col = torch.randperm(256, device=self.device)[:64].sort().values
                crow = torch.searchsorted(col, torch.arange(0, 257, 16, device=self.device))
                col %= 16
                st.linear(x, values, crow, col, (1024, 1024))
                st.linear(x, values, crow, col, (1024, 1024), transpose=True)

        some(200 if self.is_gpu else 20)
        gc.collect()
        synchronize()
        before, free = (torch.cuda.memory_allocated(), torch.cuda.mem_get_info()[0]) if self.is_gpu else (0, 0)
        taken = host_microseconds({"made, used twice and dropped": lambda: some(1)}, calls=100 if self.is_gpu else 5, rounds=10)
        found: dict[str, Any] = {f"{name}, us": value for name, value in taken.items()}
        if self.is_gpu:
            found["growth in torch's allocator, bytes"] = torch.cuda.memory_allocated() - before
            found["growth on the device, bytes"] = free - torch.cuda.mem_get_info()[0]
            torch.cuda._sleep(1 << 30)
            busy = torch.cuda.Event()
            busy.record()
            some(20)
            found["waits for the device"] = busy.query()
            synchronize()
        found["patterns that are kept"] = st.cache_info().patterns
        return found


SECTIONS: dict[str, Callable[[Bench], dict[str, Any]]] = {
    "calls": Bench.calls,
    "compiled": Bench.compiled,
    "linear": Bench.linear_product,
    "frozen": Bench.frozen,
    "training": Bench.training,
    "forward": lambda bench: ModelBench(bench.device, BLOCK, DENSITY).forward(),
    "step": lambda bench: ModelBench(bench.device, BLOCK, DENSITY).step(),
    "decode": lambda bench: ModelBench(bench.device, BLOCK, DENSITY).decode(),
    "patterns": Bench.patterns,
}


def main() -> None:
    parser = argparse.ArgumentParser(description="Figures of sparsek.torch.")
    parser.add_argument("--device", choices=["cuda", "cpu"], default="cuda" if torch.cuda.is_available() else "cpu")
    parser.add_argument("--only", default=",".join(SECTIONS), help="sections, separated by commas")
    parser.add_argument("--json", help="a file to write the figures to")
    given = parser.parse_args()
    bench = Bench(given.device)
    name = torch.cuda.get_device_name() if bench.is_gpu else "CPU"
    report: dict[str, Any] = {"device": name, "torch": torch.__version__, "sparsek": sparsek.build_info().commit}
    print(f"{name}, torch {torch.__version__}")
    for section in given.only.split(","):
        torch.manual_seed(0)
        report[section] = SECTIONS[section](bench)
        print(f"{section}:")
        for what, value in report[section].items():
            print(f"  {value:12.3f}  {what}" if isinstance(value, float) else f"  {what}: {value}", flush=True)
        if given.json:
            Path(given.json).write_text(json.dumps(report, indent=1) + "\n")


if __name__ == "__main__":
    main()
