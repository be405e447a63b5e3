# SPDX-License-Identifier: Apache-2.0
"""Threads, forks, and the order in which the garbage collector takes things."""

from __future__ import annotations

import gc
import os
import threading
import traceback
import warnings
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from reference import Case

import sparsek
from sparsek._handles import Shared


def in_child(work: Callable[[], None]) -> None:
    """Runs work in a fork, and fails where that fails or takes longer than a minute."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Python and other packages warn of forks beside threads, which are meant here
        child = os.fork()
    if child == 0:
        threading.Timer(60, os._exit, (2,)).start()
        try:
            work()
            os._exit(0)
        except BaseException:
            traceback.print_exc()
            os._exit(1)
    _, status = os.waitpid(child, 0)
    assert os.waitstatus_to_exitcode(status) == 0


CASE = Case(1, (256, 256), (16, 16), 0.5, np.float32, np.int32)
B = np.random.default_rng(2).standard_normal((256, 64)).astype(np.float32)


def make() -> tuple[sparsek.Plan, Any]:
    pattern = sparsek.Pattern(CASE.crow, CASE.col, CASE.shape, CASE.block, dtype="fp32", context=sparsek.Context("cpu", threads=2))
    plan = pattern.plan(64)
    return plan, plan(CASE.values, B)


def test_threads_share_a_plan() -> None:
    plan, once = make()

    def work(factor: int) -> None:
        values = CASE.values * np.float32(2**factor)
        out = np.empty_like(once)
        for turn in range(200):
            got = plan(values, B, out if turn % 2 else None)
            np.testing.assert_array_equal(got, once * np.float32(2**factor))

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(work, range(8)))


def test_threads_tune_one_pattern() -> None:
    """Each with values that are gone when it has its plan."""
    pattern, once = make()[0].pattern, make()[1]

    def work(n: int) -> sparsek.Plan:
        return pattern.plan(n, tune=0.01, values=CASE.values.copy())

    with ThreadPoolExecutor(4) as pool:
        for plan in pool.map(work, [8, 16, 32, 64]):
            assert plan.info.chosen_by == "tuning"
            np.testing.assert_allclose(plan(CASE.values, B[:, : plan.n]), once[:, : plan.n], rtol=1e-3, atol=1e-3)


def test_a_fork_multiplies() -> None:
    plan, once = make()

    def work() -> None:
        np.testing.assert_array_equal(plan(CASE.values, B), once)
        np.testing.assert_array_equal(make()[1], once)
        sparsek.default_context()

    in_child(work)
    np.testing.assert_array_equal(plan(CASE.values, B), once)


def test_a_fork_beside_products_of_other_threads() -> None:
    plan, once = make()
    stop = threading.Event()

    def work() -> None:
        while not stop.is_set():
            plan(CASE.values, B)
            make()

    threads = [threading.Thread(target=work) for _ in range(3)]
    for thread in threads:
        thread.start()

    def child() -> None:
        nonlocal plan
        np.testing.assert_array_equal(plan(CASE.values, B), once)
        make()
        del plan
        gc.collect()

    try:
        for _ in range(10):
            in_child(child)
    finally:
        stop.set()
        for thread in threads:
            thread.join()


def test_handles_go_in_order_whatever_goes_first() -> None:
    gone: list[int] = []
    context = Shared(1, gone.append)
    matrix = Shared(2, gone.append, context)
    first, second = Shared(3, gone.append, matrix), Shared(4, gone.append, matrix)
    context.release()
    matrix.release()
    assert gone == []
    second.release()
    assert gone == [4]
    first.release()
    assert gone == [4, 3, 2, 1]


def test_cycles_of_garbage() -> None:
    """Plan, pattern and context in one cycle: the collector finalises them in an order of its own."""
    for _ in range(20):
        plan, _ = make()
        dead = weakref.ref(plan)
        parts: list[Any] = [plan.pattern.context, plan.pattern, plan]
        for part in parts:
            part.__dict__["cycle"] = parts
        del plan, parts, part
        gc.collect()
        assert dead() is None


def test_a_plan_outlives_what_it_was_made_of() -> None:
    case = Case(1, (64, 64), (16, 16), 0.5, np.float32, np.int32)
    plan = sparsek.Pattern(case.crow, case.col, case.shape, case.block, dtype="fp32").plan(4)
    b = np.ones((64, 4), np.float32)
    exact = case.dense() @ b
    case.crow[:] = -1  # the library has a copy
    case.col[:] = -1
    gc.collect()
    np.testing.assert_allclose(plan(case.values, b), exact, rtol=1e-5, atol=1e-4)


def test_a_thousand_patterns_take_no_more_memory() -> None:
    def resident() -> int:
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def some() -> None:
        for _ in range(250):
            make()

    some()
    before = resident()
    for _ in range(3):
        some()
    assert resident() - before < 8 << 20
