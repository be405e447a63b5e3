# SPDX-License-Identifier: Apache-2.0
"""bsr_gemm: what A and B may be, and a cache that serves nothing stale."""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
from reference import Case
from test_process import in_child

import sparse_autotune
import sparsek
from sparsek.cache import cache as shared

sparse = pytest.importorskip("scipy.sparse", reason="skipped: SciPy is not installed")


@pytest.fixture(autouse=True)
def _empty_cache() -> Iterator[None]:
    sparsek.cache_clear()
    yield
    sparsek.cache_limit(256 << 20)


def random_bsr(seed: int = 1, dtype: Any = np.float32) -> Any:
    case = Case(seed, (64, 96), (8, 16), 0.4, dtype, np.int32)
    return sparse.bsr_array((case.values, case.col, case.crow), shape=case.shape, blocksize=case.block)


B = np.random.default_rng(2).standard_normal((96, 7)).astype(np.float32)


def check(a: Any, b: Any = B, **options: Any) -> Any:
    got = sparsek.bsr_gemm(a, b, **options)
    dense = a.to_dense() if isinstance(a, sparsek.BSR) else a.toarray()
    np.testing.assert_allclose(got, dense.astype(np.float64) @ b.astype(np.float64), rtol=1e-4, atol=1e-4)
    return got


@pytest.mark.filterwarnings("ignore:Constructing a DIA")
@pytest.mark.parametrize("form", ["bsr", "csr", "csc", "coo", "lil", "dok", "dia"])
@pytest.mark.parametrize("matrix", [False, True])
def test_scipy_formats(form: str, matrix: bool) -> None:
    a = random_bsr().asformat(form)
    check(getattr(sparse, f"{form}_matrix")(a) if matrix else a)


def test_scipy_fp64_and_int64() -> None:
    a = random_bsr(dtype=np.float64)
    a.indices, a.indptr = a.indices.astype(np.int64), a.indptr.astype(np.int64)
    got = check(a, B.astype(np.float64))
    assert got.dtype == np.float64
    np.testing.assert_allclose(got, a @ B.astype(np.float64), rtol=1e-13, atol=1e-13)


def test_scipy_unsorted_and_repeated() -> None:
    rng = np.random.default_rng(3)
    values = rng.standard_normal((4, 8, 8)).astype(np.float32)
    crow, b = np.array([0, 3, 4]), rng.standard_normal((32, 5)).astype(np.float32)
    for col in ([3, 0, 2, 1], [1, 1, 0, 0], [0, 1, 1, 3]):
        a = sparse.bsr_array((values, np.array(col), crow), shape=(16, 32))
        before = a.indices.copy(), a.data.copy()
        check(a, b)
        np.testing.assert_array_equal(a.indices, before[0])  # it is the caller's
        np.testing.assert_array_equal(a.data, before[1])


def test_scipy_with_room_behind() -> None:
    a = random_bsr()
    a.data = np.concatenate([a.data, np.full((3, 8, 16), np.nan, np.float32)])
    a.indices = np.concatenate([a.indices, np.full(3, 5, np.int32)])
    np.testing.assert_array_equal(sparsek.bsr_gemm(a, B), sparsek.bsr_gemm(random_bsr(), B))


def test_bsr_and_tuples() -> None:
    a = sparsek.BSR.from_scipy(random_bsr())
    check(a)
    np.testing.assert_array_equal(sparsek.bsr_gemm((a.values, a.crow, a.col, a.shape), B), sparsek.bsr_gemm(a, B))
    again = sparsek.BSR.from_scipy(a.to_scipy())
    np.testing.assert_array_equal(again.to_dense(), a.to_dense())


def test_from_dense() -> None:
    rng = np.random.default_rng(4)
    dense = rng.standard_normal((21, 50)).astype(np.float32)
    dense[8:16, 16:32] = 0
    a = sparsek.BSR.from_dense(dense, (8, 16))
    assert a.nnzb == 3 * 4 - 1
    np.testing.assert_array_equal(a.to_dense(), dense)
    check(a, rng.standard_normal((50, 3)).astype(np.float32))
    mask = rng.random((3, 4)) < 0.5
    mask[1, 1] = True
    kept = sparsek.BSR.from_dense(dense, (8, 16), mask)
    assert kept.nnzb == mask.sum()
    np.testing.assert_array_equal(kept.to_dense(), np.where(np.kron(mask, np.ones((8, 16), bool))[:21, :50], dense, 0))
    for wrong, block, which in [(dense[0], (8, 8), None), (dense, (0, 8), None), (dense, (8, 16), mask.T)]:
        with pytest.raises(sparsek.ArgumentError):
            sparsek.BSR.from_dense(wrong, block, which)


def test_epilogue_and_bias_axes() -> None:
    a, rng = random_bsr(), np.random.default_rng(5)
    product = a.toarray() @ B
    cases: list[tuple[Any, str | None, Callable[[Any], Any]]] = [
        (rng.standard_normal(7), None, lambda x: x[None, :]),
        (rng.standard_normal((1, 7)), None, lambda x: x),
        (rng.standard_normal((64, 1)), None, lambda x: x),
        (rng.standard_normal(64), "row", lambda x: x[:, None]),
    ]
    for bias, axis, added in cases:
        given = bias.astype(np.float32)
        got = sparsek.bsr_gemm(a, B, bias=given, bias_axis=axis, activation="relu", alpha=2.0)
        np.testing.assert_allclose(got, np.maximum(2 * product + added(given), 0), rtol=1e-4, atol=1e-4)
    with pytest.raises(sparsek.ArgumentError, match="bias_axis='row'"):
        sparsek.bsr_gemm(a, B, bias=np.zeros(64, np.float32))
    out = np.ones((64, 7), np.float32)
    assert sparsek.bsr_gemm(a, B, out=out, beta=3.0) is out
    np.testing.assert_allclose(out, product + 3, rtol=1e-4, atol=1e-4)
    assert sparsek.bsr_gemm(a, B.astype(np.float32), out_dtype="fp16").dtype == np.float16


def test_bits_of_bf16() -> None:
    a = random_bsr()
    values = (a.data.view(np.uint32) >> 16).astype(np.uint16)
    b = (B.view(np.uint32) >> 16).astype(np.uint16)
    matrix = (values, a.indptr, a.indices, a.shape)
    with pytest.raises(sparsek.DtypeError, match="dtype='bf16'"):
        sparsek.bsr_gemm(matrix, b)
    got = sparsek.bsr_gemm(matrix, b, dtype="bf16", out_dtype="fp32")
    np.testing.assert_allclose(got, a.toarray() @ B, rtol=0.05, atol=0.2)


def test_faults() -> None:
    a = random_bsr()
    with pytest.raises(sparsek.DtypeError, match="A is of fp32 and B of float64"):
        sparsek.bsr_gemm(a, B.astype(np.float64))
    with pytest.raises(sparsek.DtypeError, match="int64"):
        sparsek.bsr_gemm(a.astype(np.int64), B)
    with pytest.raises(sparsek.ArgumentError, match="no block-sparse matrix"):
        sparsek.bsr_gemm(a.toarray(), B)
    with pytest.raises(sparsek.ArgumentError, match="96 rows"):
        sparsek.bsr_gemm(a, B[1:])
    with pytest.raises(sparsek.IndexFault):
        sparsek.bsr_gemm((a.data, a.indptr, a.indices[::-1].copy(), a.shape), B)


def test_patterns_are_kept() -> None:
    a = random_bsr()
    for _ in range(3):
        check(a)
    assert sparsek.cache_info()[:3] == (2, 1, 1)
    check(a.copy())  # the same pattern elsewhere
    check(a, B[:, :3].copy())  # another plan
    a.data *= 2
    check(a)  # values are never kept
    assert sparsek.cache_info()[:3] == (5, 1, 1)
    sparsek.cache_clear()
    assert sparsek.cache_info() == (0, 0, 0, 0)


def test_a_change_in_place_is_seen() -> None:
    a = random_bsr()
    check(a)
    empty = np.flatnonzero(np.diff(a.indptr) < 6)[0]
    start, end = a.indptr[empty], a.indptr[empty + 1]
    free = sorted(set(range(6)) - set(a.indices[start:end]))[0]
    a.indices[start] = free  # the columns may be out of order now
    check(a)
    first, last = a.indices[0], a.indices[1]
    a.indices[0], a.indices[1] = last, first
    check(a)
    a.indptr[1] -= 1  # a block goes to the next row, where its column may be twice
    check(a)
    assert sparsek.cache_info().misses >= 3


def test_a_product_that_is_known_is_made_for_what_is_there_now() -> None:
    """Of the same memory and extents, with another index, other types or strides."""
    rng = np.random.default_rng(5)
    a = sparsek.BSR(rng.standard_normal((6, 4, 4)), np.array([0, 2, 4, 6, 6], np.int32), np.array([0, 3, 2, 3, 0, 2], np.int32), (16, 16))
    b = rng.standard_normal((16, 5))

    def check() -> None:
        np.testing.assert_allclose(sparsek.bsr_gemm(a, b), a.to_dense() @ b, atol=1e-12)

    check()
    check()
    a.col[1] = 1  # nothing but this
    check()
    a.crow[1] = 1  # and nothing but this
    check()
    np.testing.assert_allclose(sparsek.bsr_gemm(a, np.asfortranarray(b)), a.to_dense() @ b, atol=1e-12)
    np.testing.assert_allclose(sparsek.bsr_gemm(a, b, transpose=True), a.to_dense().T @ b, atol=1e-12)
    np.testing.assert_allclose(sparsek.bsr_gemm(a, b[:, :3].copy()), a.to_dense() @ b[:, :3], atol=1e-12)
    wider = np.repeat(b, 2, axis=1)
    np.testing.assert_allclose(sparsek.bsr_gemm(a, wider), a.to_dense() @ wider, atol=1e-12)
    out = np.ones((16, 5))
    sparsek.bsr_gemm(a, b, out=out, alpha=2.0, beta=3.0, bias=None)
    np.testing.assert_allclose(out, 2 * (a.to_dense() @ b) + 3, atol=1e-12)
    other = sparsek.BSR(a.values, a.crow, np.array([1, 0, 1, 3, 1, 2], np.int32), a.shape)  # beside the same rows
    np.testing.assert_allclose(sparsek.bsr_gemm(other, b), other.to_dense() @ b, atol=1e-12)
    for wrong in (
        sparsek.BSR(a.values, a.crow.view(np.float32), a.col, a.shape),
        sparsek.BSR(a.values, a.crow, a.col.view(np.float32), a.shape),
    ):
        with pytest.raises(TypeError, match="is of float32"):
            sparsek.bsr_gemm(wrong, b)
    with pytest.raises(TypeError, match="B of int64"):
        sparsek.bsr_gemm(a, b.view(np.int64))
    with pytest.raises(TypeError, match="int64"):
        sparsek.bsr_gemm(sparsek.BSR(a.values.view(np.int64), a.crow, a.col, a.shape), b)
    wide = np.array([0, 1, 2, 3, 0, 2, 0, 0], np.int32)
    for count in (6, 8):  # one address, but more of it
        with_more = sparsek.BSR(rng.standard_normal((6, 4, 4)), a.crow, wide[:count], a.shape)
        if count == 6:
            sparsek.bsr_gemm(with_more, b)
        else:
            with pytest.raises(ValueError):
                sparsek.bsr_gemm(with_more, b)


def test_a_recycled_address_is_seen() -> None:
    seen: dict[int, int] = {}
    again = 0
    for seed in range(60):
        case = Case(seed, (64, 96), (8, 16), 0.5, np.float32, np.int32)
        col, crow = np.full(40, 5, np.int32), case.crow.copy()
        col[: case.col.size] = case.col
        again += seen.get(col.ctypes.data, seed) != seed
        seen[col.ctypes.data] = seed
        got = sparsek.bsr_gemm((case.values, crow, col[: case.col.size], case.shape), B)
        np.testing.assert_allclose(got, case.dense() @ B, rtol=1e-4, atol=1e-4)
        del col, crow
        gc.collect()
    assert again > 0  # the allocator gave an address twice


def test_an_index_that_is_another_array_now_is_seen() -> None:
    """Of the same objects, changed in place, and of others that have their places."""
    rng = np.random.default_rng(6)
    b = rng.standard_normal((16, 5))

    def made() -> sparsek.BSR:
        col = rng.integers(0, 4, 4).astype(np.int32)
        return sparsek.BSR(rng.standard_normal((4, 4, 4)), np.arange(5, dtype=np.int32), col, (16, 16))

    a = made()
    for _ in range(3):
        np.testing.assert_allclose(sparsek.bsr_gemm(a, b), a.to_dense() @ b, atol=1e-12)
    a.col.resize(3, refcheck=False)
    with pytest.raises(ValueError):
        sparsek.bsr_gemm(a, b)
    a.col.resize(4, refcheck=False)
    np.testing.assert_allclose(sparsek.bsr_gemm(a, b), a.to_dense() @ b, atol=1e-12)
    a = made()
    kept, other = a.values, rng.standard_normal((4, 4, 4))
    for values in (kept, other, kept):  # one index, and no values that are kept
        with_values = sparsek.BSR(values, a.crow, a.col, a.shape)
        np.testing.assert_allclose(sparsek.bsr_gemm(with_values, b), with_values.to_dense() @ b, atol=1e-12)
    places = set()
    again = 0
    for _ in range(60):
        a = made()
        again += (id(a.crow), id(a.col)) in places
        places.add((id(a.crow), id(a.col)))
        for _ in range(2):
            np.testing.assert_allclose(sparsek.bsr_gemm(a, b), a.to_dense() @ b, atol=1e-12)
        del a
        gc.collect()
    assert again > 0


def test_the_cache_is_bounded() -> None:
    sparsek.cache_limit(2000)
    for seed in range(30):
        check(random_bsr(seed))
        assert sparsek.cache_info().bytes <= 2000
    assert 1 < sparsek.cache_info().patterns < 30
    assert len(shared._by_place) <= sparsek.cache_info().patterns


def test_what_is_no_index() -> None:
    """The bytes of an index say nothing without its type and its dimensions."""
    a = random_bsr()
    check(a)
    crow, col = a.indptr, a.indices
    for parts, kind, says in [
        ((crow.astype(">i4"), col), sparsek.DtypeError, "crow is of int32 of the other byte order"),
        ((crow, col.astype(">i4")), sparsek.DtypeError, "col is of int32 of the other byte order"),
        ((crow.astype(np.uint32), col), sparsek.DtypeError, "crow is of uint32"),
        ((crow[None], col), sparsek.ArgumentError, "crow has 2 dimensions"),
        ((crow, col[:, None]), sparsek.ArgumentError, "col has 2 dimensions"),
    ]:
        with pytest.raises(kind, match=says):
            sparsek.bsr_gemm((a.data, *parts, a.shape), B)
    none = sparsek.bsr_gemm((np.empty((0, 8, 16), np.float32), [0] * 9, [], (64, 96)), B)
    np.testing.assert_array_equal(none, np.zeros((64, 7), np.float32))


def test_another_index_with_the_same_checksum(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sparsek.cache.zlib.crc32", lambda *_: 7)
    col, values = np.array([0], np.int32), np.ones((1, 8, 8), np.float32)
    b = np.random.default_rng(6).standard_normal((16, 3)).astype(np.float32)
    for at in (0, 1, 0, 1):
        got = sparsek.bsr_gemm((values, np.array([0, 1], np.int32), col + at, (8, 16)), b)
        np.testing.assert_allclose(got, np.repeat(b[8 * at : 8 * at + 8].sum(0)[None], 8, 0), rtol=1e-4, atol=1e-4)
    assert sparsek.cache_info().patterns == 1


def test_entries_of_other_shapes_types_and_contexts() -> None:
    """One index means different matrices."""
    crow, col = np.array([0, 1, 2], np.int32), np.array([0, 1], np.int32)
    single = sparsek.Context("cpu", threads=1)
    for shape, dtype, context in [
        ((8, 8), np.float32, None),
        ((16, 8), np.float32, None),
        ((7, 7), np.float32, None),
        ((8, 8), np.float16, None),
        ((8, 8), np.float32, single),
    ]:
        values = np.ones((2, shape[0] // 2 + shape[0] % 2, 4), dtype)
        values[1, :, shape[1] - 4 :] = 0
        a = sparsek.BSR(values, crow, col, shape)
        check(a, np.ones((shape[1], 3), dtype), context=context)
    assert sparsek.cache_info().misses == 5


def test_threads_and_patterns() -> None:
    sparsek.cache_limit(3000)
    matrices = [random_bsr(seed) for seed in range(8)]
    exact = [a.toarray() @ B for a in matrices]

    def work(start: int) -> None:
        for turn in range(100):
            at = (start * 3 + turn) % 8
            np.testing.assert_allclose(sparsek.bsr_gemm(matrices[at], B), exact[at], rtol=1e-4, atol=1e-4)

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(work, range(6)))


def test_a_fork_while_the_cache_is_locked() -> None:
    a = random_bsr()
    check(a)

    def child() -> None:
        check(a)
        check(random_bsr(3))

    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with shared.lock:
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        in_child(child)
    finally:
        done.set()
        holder.join()
    check(a)


def test_sparse_autotune_measures() -> None:
    a = random_bsr()
    np.testing.assert_allclose(sparse_autotune.bsr_gemm(a, B, tune=0.01), a.toarray() @ B, rtol=1e-4, atol=1e-4)
    (entry,) = shared._by_content.values()
    (plan,) = entry.plans._made.values()
    assert plan.info.chosen_by == "tuning"
    np.testing.assert_allclose(sparse_autotune.bsr_gemm(a, B, tune=0.01), a.toarray() @ B, rtol=1e-4, atol=1e-4)
    assert sparsek.cache_info().misses == 1
