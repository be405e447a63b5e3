# SPDX-License-Identifier: Apache-2.0
"""What sparsek.torch keeps between products is never stale, and goes when it is not needed."""

from __future__ import annotations

import gc
import os
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

torch = pytest.importorskip("torch")

from torch_reference import Matrix  # noqa: E402

import sparsek.torch as st  # noqa: E402
from sparsek.torch import _known, _plans  # noqa: E402

SIZE, BLOCK = (64, 96), (8, 16)
B = torch.randn(96, 7, generator=torch.Generator().manual_seed(0), dtype=torch.float64)


@pytest.fixture(autouse=True)
def clear() -> Iterator[None]:
    st.cache_clear()
    yield
    st.cache_clear()


def check(a: Matrix, values: Any = None, crow: Any = None, col: Any = None) -> None:
    """All three products, each twice."""
    values, crow, col = (given if given is not None else own for given, own in ((values, a.values), (crow, a.crow), (col, a.col)))
    for _ in range(2):
        torch.testing.assert_close(st.mm(values, crow, col, a.size, B), a.dense() @ B)
        torch.testing.assert_close(st.linear(B.t(), values, crow, col, a.size), B.t() @ a.dense().t())
        lhs = B[:64]
        torch.testing.assert_close(st.sdd(lhs, B.t(), crow, col, a.size, a.block), a.blocks(lhs @ B.t()))


def test_patterns_are_kept() -> None:
    a = Matrix(1, SIZE, BLOCK)
    check(a)
    assert (st.cache_info().misses, st.cache_info().patterns) == (1, 1)
    check(a, col=a.col.clone())  # the same index elsewhere
    with torch.no_grad():
        a.values.mul_(2)  # values are never kept
    check(a)
    assert (st.cache_info().misses, st.cache_info().patterns) == (1, 1)
    st.cache_clear()
    assert st.cache_info() == (0, 0, 0, 0)


@pytest.mark.parametrize("hidden", [False, True])
def test_a_change_in_place_is_seen(hidden: bool) -> None:
    a = Matrix(1, SIZE, BLOCK)
    check(a)
    row = int((a.crow[1:] - a.crow[:-1]).argmax())
    start, end = int(a.crow[row]), int(a.crow[row + 1])
    free = sorted(set(range(6)) - set(a.col[start:end].tolist()))[0]
    if hidden:
        a.col.numpy()[start] = free  # torch counts no change
    else:
        a.col[start] = free  # the columns may be out of order now
    check(a)
    assert st.cache_info().misses == 2


def test_rows_that_change_in_place_are_seen() -> None:
    a = Matrix(1, SIZE, BLOCK)
    a.crow = torch.arange(0, 25, 3, dtype=torch.int32)
    a.col = torch.arange(24, dtype=torch.int32) % 6
    a.values = torch.randn(24, *BLOCK, dtype=torch.float64)
    check(a)
    a.crow.numpy()[1] = 2  # the first row's last block is the second row's first now
    check(a)
    assert st.cache_info().misses == 2


def test_other_columns_beside_the_same_rows() -> None:
    a = Matrix(1, SIZE, BLOCK)
    a.crow = torch.arange(0, 25, 3, dtype=torch.int32)
    a.values = torch.randn(24, *BLOCK, dtype=torch.float64)
    columns = [torch.arange(24, dtype=torch.int32) % 6, torch.arange(24, dtype=torch.int32) % 3 * 2]
    for turn in range(4):
        a.col = columns[turn % 2]
        check(a)
    columns[1].copy_(columns[0])
    columns[0].fill_(77)  # what no product may look at any more
    check(a)


def test_a_recycled_address_is_seen() -> None:
    seen: set[int] = set()
    again = 0
    for seed in range(60):
        made = torch.Generator().manual_seed(seed)
        a = Matrix(seed, SIZE, BLOCK)
        # As many blocks each time, so that nothing but the columns differs.
        a.crow = torch.arange(0, 25, 3, dtype=torch.int32)
        a.col = torch.cat([torch.randperm(6, generator=made)[:3].sort().values for _ in range(8)]).int()
        a.values = torch.randn(24, *BLOCK, generator=made, dtype=torch.float64)
        again += a.col.data_ptr() in seen
        seen.add(a.col.data_ptr())
        check(a)
        del a
    assert again > 0  # the allocator gave an address twice


def test_many_patterns_do_not_stay() -> None:
    limit = _plans.patterns.limit
    _plans.patterns.limit = 4000
    try:
        for seed in range(40):
            check(Matrix(seed, SIZE, BLOCK))
            assert st.cache_info().bytes <= 4000
        gc.collect()
        assert len(_known.alive()) <= 3 * st.cache_info().patterns
    finally:
        _plans.patterns.limit = limit


def test_strides_and_types_of_an_index() -> None:
    a = Matrix(2, SIZE, BLOCK)
    for dtype in (torch.int16, torch.int32, torch.int64):
        check(a, crow=a.crow.to(dtype), col=a.col.to(dtype))
        pairs = torch.stack([torch.full_like(a.col, 77), a.col], 1).to(dtype)
        check(a, crow=a.crow.to(torch.int32), col=pairs[:, 1])
    wide = torch.stack([a.crow, a.crow + 1], 1).flatten()
    for step in (2, 1):  # one address, but another index
        crow = wide[::step][: a.crow.numel()]
        if step == 2:
            check(a, crow=crow)
        else:
            with pytest.raises(ValueError, match="row_ptr"):
                check(a, crow=crow)


def test_threads() -> None:
    matrices = [Matrix(seed, SIZE, BLOCK) for seed in range(6)]

    def work(start: int) -> None:
        for turn in range(60):
            a = matrices[(start * 3 + turn) % 6]
            torch.testing.assert_close(st.mm(a.values, a.crow, a.col, a.size, B), a.dense() @ B)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))
    # The same pattern with values of each thread's own.
    a = matrices[0]

    def scaled(factor: int) -> None:
        for _ in range(60):
            torch.testing.assert_close(st.mm(factor * a.values, a.crow, a.col, a.size, B), factor * (a.dense() @ B))

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(scaled, range(1, 7)))


@pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")
@pytest.mark.filterwarnings("ignore:os.fork:RuntimeWarning")
def test_a_child_of_a_fork() -> None:
    a = Matrix(3, SIZE, BLOCK)
    check(a)
    exact = a.dense() @ B
    child = os.fork()
    if child == 0:
        same = bool((st.mm(a.values, a.crow, a.col, a.size, B) - exact).abs().max() < 1e-9)
        os._exit(0 if same else 1)
    assert os.waitpid(child, 0)[1] == 0
    check(a)


def test_another_number_of_threads() -> None:
    a, threads = Matrix(4, SIZE, BLOCK), torch.get_num_threads()
    try:
        for count in (1, 2):
            torch.set_num_threads(count)
            check(a)
            assert st.cache_info().misses == count  # a pattern of each context
    finally:
        torch.set_num_threads(threads)
