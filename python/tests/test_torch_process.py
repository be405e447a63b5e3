# SPDX-License-Identifier: Apache-2.0
"""Layers of sparsek.torch in threads, and in the child of a fork."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from test_process import in_child  # noqa: E402
from torch.nn import functional as F  # noqa: E402, N812

import sparsek.torch as st  # noqa: E402


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    """torch's own threads do not survive a fork."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


def made(seed: int) -> tuple[Any, Any]:
    """A layer and an input."""
    torch.manual_seed(seed)
    return st.BsrLinear(96, 64, (16, 16), density=0.4, dtype=torch.float64), torch.randn(5, 96, dtype=torch.float64)


def gradients(layer: Any, x: Any) -> list[Any]:
    """The output, and the gradients of the input and of all parameters, which the layer does not keep."""
    x = x.clone().requires_grad_()
    y = layer(x)
    return [y.detach(), *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])]


def expected(layer: Any, x: Any) -> list[Any]:
    """The same by the dense weight."""
    x = x.clone().requires_grad_()
    y = F.linear(x, layer.weight, layer.bias)
    return [y.detach(), *torch.autograd.grad(y.square().sum(), [x, *layer.parameters()])]


def test_threads_share_a_layer() -> None:
    layer, _ = made(1)
    inputs = [torch.randn(3 + seed, 96, dtype=torch.float64) for seed in range(6)]
    exact = [expected(layer, x) for x in inputs]

    def work(start: int) -> None:
        for turn in range(30):
            at = (start + turn) % len(inputs)
            torch.testing.assert_close(gradients(layer, inputs[at]), exact[at])

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_threads_train_and_prune_layers_of_their_own() -> None:
    def work(seed: int) -> None:
        generator = torch.Generator().manual_seed(seed)
        layer = st.BsrLinear(96, 64, (16, 16), mask=torch.ones(4, 6, dtype=torch.bool), dtype=torch.float64)
        optimizer = torch.optim.AdamW(layer.parameters(), lr=1e-2)
        x = torch.randn(5, 96, dtype=torch.float64, generator=generator)
        for left in range(23, 3, -1):
            optimizer.zero_grad()
            layer(x).square().sum().backward()
            optimizer.step()
            assert st.prune_(layer, left / 24, optimizer=optimizer) == 1
            torch.testing.assert_close(gradients(layer, x), expected(layer, x))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_a_fork_beside_layers_in_other_threads() -> None:
    layer, x = made(2)
    exact = expected(layer, x)
    torch.testing.assert_close(gradients(layer, x), exact)
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            gradients(layer, x)

    def child() -> None:
        if not torch.cuda.is_available():
            torch.testing.assert_close(gradients(layer, x), exact)
            st.prune_(layer, 0.2)
            torch.testing.assert_close(gradients(layer, x), expected(layer, x))
            return
        # Where torch sees a GPU, its autograd refuses to work in the child of a process that has used it.
        with torch.no_grad():
            torch.testing.assert_close(layer(x), exact[0])
            st.prune_(layer, 0.2)
            torch.testing.assert_close(layer(x), F.linear(x, layer.weight, layer.bias))

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for _ in range(5):
            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()
    torch.testing.assert_close(gradients(layer, x), exact)
