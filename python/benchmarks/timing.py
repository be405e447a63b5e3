# SPDX-License-Identifier: Apache-2.0
"""Times of calls, on the host's clock or by CUDA events, of candidates that take turns."""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable
from typing import Any

import torch

Work = Callable[[], Any]


def synchronize() -> None:
    if torch.cuda.is_available():
        torch.cuda.synchronize()


def host_microseconds(candidates: dict[str, Work], calls: int = 100, rounds: int = 100) -> dict[str, float]:
    """What a call takes the host, the least of rounds, as other programs only add to it; a GPU's work is not waited for within a round."""
    for work in candidates.values():
        for _ in range(10):
            work()
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, work in candidates.items():
            synchronize()
            start = time.perf_counter()
            for _ in range(calls):
                work()
            taken[name].append((time.perf_counter() - start) / calls * 1e6)
    synchronize()
    return {name: min(times) for name, times in taken.items()}


def milliseconds(candidates: dict[str, Work], device: str, rounds: int = 10) -> dict[str, float]:
    """What a call takes the device, the median of rounds in which all take their turns."""
    for work in candidates.values():
        for _ in range(3):
            work()
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, work in candidates.items():
            synchronize()
            if device == "cuda":
                begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
                work()  # so that the device has something to do while the host enqueues
                begin.record()
                work()
                end.record()
                end.synchronize()
                taken[name].append(begin.elapsed_time(end))
            else:
                start = time.perf_counter()
                work()
                taken[name].append((time.perf_counter() - start) * 1e3)
    return {name: statistics.median(times) for name, times in taken.items()}


def graph_microseconds(candidates: dict[str, Work], calls: int = 20, rounds: int = 15) -> dict[str, float]:
    """What a call takes a GPU within a CUDA graph of some calls, where the host takes no part: the median of rounds in turn."""
    graphs = {}
    for name, work in candidates.items():
        for _ in range(2):
            work()
        synchronize()
        graphs[name] = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graphs[name]):
            for _ in range(calls):
                work()
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    for _ in range(rounds):
        for name, graph in graphs.items():
            begin, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
            graph.replay()
            begin.record()
            graph.replay()
            end.record()
            end.synchronize()
            taken[name].append(begin.elapsed_time(end) / calls * 1e3)
    return {name: statistics.median(times) for name, times in taken.items()}
