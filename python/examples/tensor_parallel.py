# SPDX-License-Identifier: Apache-2.0
"""Times an MLP with block-sparse layers on several GPUs, or on the CPU, against one and against torch's dense tensor parallelism.

Every process holds the whole MLP as well, so that all are timed in turn, and results are compared:

- one: each process computes the whole sparse MLP, as one GPU would;
- sparse: the sparse MLP, dealt to the processes by nonzero blocks;
- dense: an MLP of nn.Linear of the same size, by ColwiseParallel and RowwiseParallel.

The dealt ones take the tokens at once and in chunks: the sums over processes of one chunk go on beside the next chunk's products.

    torchrun --nproc-per-node 4 python/examples/tensor_parallel.py --json
    torchrun --nproc-per-node 2 python/examples/tensor_parallel.py --width 256 --hidden 1024 --tokens 512 --dtype float32
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import sys
import time
from collections.abc import Callable
from typing import Any

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

import sparsek.torch as st
import sparsek.torch.distributed as sd


def chunked(model: nn.Module, count: int) -> Callable[[torch.Tensor], torch.Tensor]:
    """The model on so many chunks of tokens, one after the other."""
    return model if count == 1 else lambda x: torch.cat([model(part) for part in x.chunk(count)])


def sparse_mlp(options: argparse.Namespace, device: torch.device, dtype: torch.dtype) -> nn.Sequential:
    """width -> hidden -> width with a share of blocks at random places, the same on all processes."""
    torch.manual_seed(0)
    kind: dict[str, Any] = {"density": options.density, "device": device, "dtype": dtype}
    block = (options.block, options.block)
    first = st.BsrLinear(options.width, options.hidden, block, activation="relu", **kind)
    model = nn.Sequential(first, st.BsrLinear(options.hidden, options.width, block, **kind))
    sd.broadcast_pattern_(model)
    return model


def dense_mlp(options: argparse.Namespace, device: torch.device, dtype: torch.dtype, mesh: Any) -> nn.Module:
    """The dense MLP of the same size, by torch's tensor parallelism."""
    kind: dict[str, Any] = {"device": device, "dtype": dtype}
    model = nn.Sequential(nn.Linear(options.width, options.hidden, **kind), nn.ReLU(), nn.Linear(options.hidden, options.width, **kind))
    return parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})


class Clock:
    """Times work that all processes do together, in turns of all kinds of work."""

    def __init__(self, device: torch.device) -> None:
        self.device = device

    def once(self, work: Callable[[], Any], calls: int) -> float:
        """Seconds a call, of the slowest process."""
        if self.device.type == "cuda":
            torch.cuda.synchronize()
        dist.barrier()
        if self.device.type == "cuda":
            start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
            start.record()
            for _ in range(calls):
                work()
            end.record()
            torch.cuda.synchronize()
            seconds = start.elapsed_time(end) / 1e3 / calls
        else:
            before = time.perf_counter()
            for _ in range(calls):
                work()
            seconds = (time.perf_counter() - before) / calls
        slowest = torch.tensor(seconds, device=self.device, dtype=torch.float64)
        dist.all_reduce(slowest, dist.ReduceOp.MAX)
        return float(slowest)

    def medians(self, works: dict[str, Callable[[], Any]], rounds: int, calls: int) -> dict[str, float]:
        """The median seconds of each, over rounds in which each has a turn."""
        for work in works.values():
            self.once(work, 2)
        taken: dict[str, list[float]] = {name: [] for name in works}
        for _ in range(rounds):
            for name, work in works.items():
                taken[name].append(self.once(work, calls))
        return {name: statistics.median(each) for name, each in taken.items()}


def finish(y: torch.Tensor) -> None:
    """Lets what follows wait for a sum over processes that nothing has read yet."""
    if hasattr(y, "wait"):
        y.wait()


def step(run: Callable[[torch.Tensor], torch.Tensor], model: nn.Module, x: torch.Tensor, gradient: torch.Tensor) -> Callable[[], None]:
    """Forward and backward, with gradients of x and of all parameters."""

    def work() -> None:
        for parameter in model.parameters():
            parameter.grad = None
        given = x.detach().requires_grad_()
        y = run(given)
        finish(y)
        y.backward(gradient)

    return work


def forward(run: Callable[[torch.Tensor], torch.Tensor], x: torch.Tensor) -> Callable[[], None]:
    """The products alone."""

    def work() -> None:
        with torch.no_grad():
            finish(run(x))

    return work


def error(got: torch.Tensor, exact: torch.Tensor) -> float:
    """The norm of the difference as a share of exact's."""
    return float((got.float() - exact.float()).norm() / exact.float().norm())


def measure(options: argparse.Namespace, device: torch.device) -> dict[str, Any]:
    """Compares and times everything."""
    dtype, ranks = getattr(torch, options.dtype), dist.get_world_size()
    mesh = init_device_mesh(device.type, (ranks,))
    whole, model = sparse_mlp(options, device, dtype), sparse_mlp(options, device, dtype)
    model.load_state_dict(whole.state_dict())
    deal = sd.deal_blocks(model[0], model[1], ranks)
    parallelize_module(model, mesh, {"0": sd.ColwiseBsr(deal), "1": sd.RowwiseBsr(deal)})
    dense = dense_mlp(options, device, dtype, mesh)
    x, gradient = (torch.randn(options.tokens, options.width, device=device, dtype=dtype) for _ in range(2))
    for tensor in (x, gradient):
        dist.broadcast(tensor, 0)

    counts = [torch.zeros(2, dtype=torch.long, device=device) for _ in range(ranks)]
    dist.all_gather(counts, torch.tensor([layer.col.numel() for layer in model], device=device))
    with torch.no_grad():
        some = x[:64]
        exact = torch.relu(some.float() @ whole[0].weight.float().t() + whole[0].bias.float())
        exact = exact @ whole[1].weight.float().t() + whole[1].bias.float()
        errors = {"one": error(whole(some), exact), "sparse": error(model(some) + 0, exact), "sparse_to_one": error(model(x) + 0, whole(x))}
    clock = Clock(device)
    runs = {"one": (whole, 1), "sparse": (model, 1), "dense": (dense, 1)}
    for chunks in options.chunks:
        runs |= {f"sparse, {chunks} chunks": (model, chunks), f"dense, {chunks} chunks": (dense, chunks)}
    works: dict[str, Callable[[], Any]] = {name: forward(chunked(*run), x) for name, run in runs.items()}
    seconds = {"forward": clock.medians(works, options.rounds, options.calls)}
    if not options.no_step:
        works = {name: step(chunked(*run), run[0], x, gradient) for name, run in runs.items()}
        seconds["step"] = clock.medians(works, options.rounds, options.calls)
    speedups = {}
    for what, times in seconds.items():
        best = {kind: min(taken for name, taken in times.items() if name.startswith(kind)) for kind in ("sparse", "dense")}
        speedups[what] = {"over_one": times["one"] / best["sparse"], "over_dense": best["dense"] / best["sparse"]}
    return {
        "device": torch.cuda.get_device_name() if device.type == "cuda" else "cpu",
        "torch": torch.__version__,
        "ranks": ranks,
        "case": {name: getattr(options, name) for name in ("width", "hidden", "tokens", "block", "density", "dtype")},
        "blocks": [each.tolist() for each in counts],
        "relative_errors": errors,
        "seconds": seconds,
        "speedups": speedups,
    }


def arguments() -> argparse.Namespace:
    """Those of the command line."""
    parser = argparse.ArgumentParser(description="an MLP on several GPUs: block-sparse against one GPU and against dense")
    parser.add_argument("--width", type=int, default=8192)
    parser.add_argument("--hidden", type=int, default=32768)
    parser.add_argument("--tokens", type=int, default=16384)
    parser.add_argument("--block", type=int, default=64)
    parser.add_argument("--density", type=float, default=0.125)
    parser.add_argument("--dtype", default="bfloat16", choices=["bfloat16", "float16", "float32"])
    parser.add_argument("--chunks", type=int, nargs="*", default=[2, 4])
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--calls", type=int, default=5, help="in a row, in each round")
    parser.add_argument("--no-step", action="store_true", help="forward products alone")
    parser.add_argument("--device", default="auto", choices=["auto", "cpu", "cuda"])
    parser.add_argument("--json", action="store_true")
    return parser.parse_args()


def main() -> None:
    """Runs one process of torchrun's, of which the first prints."""
    options = arguments()
    if "RANK" not in os.environ:
        sys.exit(f"{sys.argv[0]} is one of several processes: torchrun --nproc-per-node 2 {sys.argv[0]} starts two")
    cuda = options.device == "cuda" or (options.device == "auto" and torch.cuda.is_available())
    device = torch.device("cuda", int(os.environ["LOCAL_RANK"])) if cuda else torch.device("cpu")
    if cuda:
        torch.cuda.set_device(device)
    dist.init_process_group("nccl" if cuda else "gloo")
    found = measure(options, device)
    if dist.get_rank() == 0:
        if options.json:
            print(json.dumps(found, indent=1))
        else:
            print(f"{found['device']}, {found['ranks']} processes, blocks of each layer on each: {found['blocks']}")
            for what, times in found["seconds"].items():
                print("  ".join([f"{what:8}", *(f"{name}: {1e3 * taken:.3f} ms" for name, taken in times.items())]))
                print(f"{what:8}  {found['speedups'][what]['over_one']:.2f} x one, {found['speedups'][what]['over_dense']:.2f} x dense")
    dist.destroy_process_group()
    # A thread of gloo may still have the last sum's tensor to let go of. With torch 2.11 that takes Python's lock, and a thread that asks
    # for it while Python ends aborts the process. So the process ends without that.
    sys.stdout.flush()
    os._exit(0)


if __name__ == "__main__":
    main()
