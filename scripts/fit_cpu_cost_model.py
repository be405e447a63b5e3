#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Measures products on this processor and fits the coefficients of the CPU's cost model to them.

    python3 scripts/fit_cpu_cost_model.py build/lib/libsparsek.so

Needs NumPy and SciPy, and takes some minutes. One thread, bf16, fp32 and fp64, blocks from 1x1 to 128x128, N from 1 to
512; each product is measured in several rounds, and the shortest time counts, since other programs only make it longer.
Prints for each kernel how far the fit is off and its rows of coefficients, in the order of RowCosts and TileCosts in
cutlass_ext/src/cpu/cost_model.cpp, whose formulas this repeats; and what the choice by these costs against the fastest.
With --cases, also some of the products with the times of the kernels, as cutlass_ext/tests/testdata/cpu_cost_check.cpp
has them.
"""
import argparse
import ctypes as c
import random

import numpy as np
from scipy.optimize import least_squares, nnls

# With the bytes of a vector, the rows that are summed at once, and the vectors of a strip of so many rows.
KERNELS = {
    "cpu_avx512": (64, 8, lambda rows: 6 if rows <= 4 else 3),
    "cpu_avx2": (32, 6, lambda rows: 4 if rows <= 2 else 3 if rows == 3 else 2),
    "cpu_generic": (16, 6, lambda rows: 4 if rows <= 2 else 3 if rows == 3 else 2),
}
BLOCKS = [(b, b) for b in (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 128)] + [(4, 16), (16, 4), (64, 1)]
COLUMNS = [1, 2, 4, 8, 16, 40, 64, 128, 200, 512]
TYPES = {1: 2, 3: 4, 4: 8}  # SPARSEK_BF16, _FP32 and _FP64, with their bytes
PRODUCTS = 2e7  # multiplications of a product, about
TILE = 288  # columns of a tile, cpu/kernel.h
PIECE = 64  # rows of a piece of a block row, cpu/kernel.h
ROUNDS = 3


def struct(name, *fields):
    types = {"z": c.c_size_t, "l": c.c_int64, "i": c.c_int32, "p": c.c_void_p, "s": c.c_char_p, "d": c.c_double,
             "f": c.c_float}
    return type(name, (c.Structure,), {"_fields_": [(f"m{i}", types[kind]) for i, kind in enumerate("".join(fields))]})


Context = struct("Context", "ziii")
Matrix = struct("Matrix", "zlllll", "iiii", "ppp")
Options = struct("Options", "zlll", "iis", "iiii", "ii", "d")
Arguments = struct("Arguments", "zffplplpp")


class Library:
    """The functions of sparsek.h that are needed, by their places in the table."""

    PLACES = {"last_error": 1, "context_create": 7, "matrix_create": 10, "matrix_destroy": 12, "plan_create": 13,
              "plan_destroy": 15, "multiply_time": 17}

    def __init__(self, path):
        get_api = c.CDLL(path).sparsek_get_api
        get_api.restype = c.POINTER(c.c_void_p)
        table = get_api(1)
        first = 2  # behind the sizes and the version
        self.functions = {}
        for name, place in self.PLACES.items():
            result = c.c_char_p if name == "last_error" else c.c_int
            self.functions[name] = c.CFUNCTYPE(result)(table[first + place])

    def call(self, name, *arguments):
        status = self.functions[name](*arguments)
        if name.endswith("_destroy"):
            return
        if status != 0:
            raise RuntimeError(f"{name}: {self.functions['last_error']().decode()}")


def takes_rows(dtype, bm, n):
    """The rule of cpu/row_rule.h."""
    return dtype == 4 or bm <= 32 or n <= 48


def row_features(kernel, dtype, bm, bk, n, block_rows, nnzb):
    size, most, vectors_of = KERNELS[kernel]
    lanes = size // (8 if dtype == 4 else 4)
    pieces = -(-bm // PIECE)
    height = -(-bm // pieces)
    parts = -(-height // most)
    panels, vectors = -(-n // TILE), -(-n // lanes)
    strips = -(-vectors // vectors_of(-(-height // parts)))
    walks = nnzb * pieces * parts
    return [walks * strips, walks * bk * strips, walks * bk * vectors, nnzb * bm * bk * vectors,
            nnzb * bm * bk * panels * (dtype == 1), block_rows * bm * panels, block_rows * bm * vectors]


def tile_features(kernel, dtype, bm, bk, n, block_rows, nnzb):
    lanes = KERNELS[kernel][0] // 4
    panels, vectors, rest = -(-n // TILE), -(-n // lanes), n % lanes
    return [nnzb * panels, nnzb * bm * bk * panels, nnzb * bk * panels, nnzb * bk * vectors,
            nnzb * bm * bk * vectors, nnzb * bk * rest, block_rows * bm * panels, block_rows * bm * vectors]


def measure(library, rng):
    """Yields (case, {kernel: seconds})."""
    context, options = c.c_void_p(), Context(c.sizeof(Context), 1, 0, 1)
    library.call("context_create", c.byref(options), c.byref(context))
    for (bm, bk) in BLOCKS:
        for n in COLUMNS:
            for dtype, size in TYPES.items():
                in_row = rng.randint(3, 27)
                rows = max(4, int(min(max(PRODUCTS / (bm * bk * n), 200), 60000)) // in_row)
                nnzb, cols = rows * in_row, max(rows, 2 * in_row)
                row_ptr = np.arange(rows + 1, dtype=np.int32) * in_row
                gap = cols // in_row
                col_idx = (np.arange(in_row) * gap + np.random.randint(0, gap, (rows, in_row))).astype(np.int32).ravel()
                values, b, out = (np.zeros(count * size + 64, np.uint8) for count in (nnzb * bm * bk, cols * bk * n, rows * bm * n))
                a = Matrix(c.sizeof(Matrix), rows * bm, cols * bk, bm, bk, nnzb, dtype, 1, 1, 0, row_ptr.ctypes.data,
                           col_idx.ctypes.data, values.ctypes.data)
                matrix, times = c.c_void_p(), {}
                library.call("matrix_create", context, c.byref(a), c.byref(matrix))
                for kernel in KERNELS:
                    plan = c.c_void_p()
                    options = Options(c.sizeof(Options), n, 0, 0, size, 0, kernel.encode())
                    try:
                        library.call("plan_create", matrix, c.byref(options), c.byref(plan))
                    except RuntimeError:
                        continue  # this processor lacks its instructions
                    seconds = (c.c_double * 7)()
                    arguments = Arguments(c.sizeof(Arguments), 1, 0, b.ctypes.data, 0, out.ctypes.data)
                    library.call("multiply_time", plan, c.byref(arguments), 1, 1, 7, seconds)
                    times[kernel] = min(seconds)
                    library.call("plan_destroy", plan)
                library.call("matrix_destroy", matrix)
                yield (dtype, bm, bk, n, rows, nnzb), times


def fit(x, y):
    start, _ = nnls(x / y[:, None], np.ones(len(y)))
    found = least_squares(lambda logs: np.log(x @ np.exp(logs) / y), np.log(np.maximum(start, 1e-12)), loss="soft_l1")
    return np.exp(found.x)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("library")
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--cases", action="store_true")
    arguments = parser.parse_args()
    library, best = Library(arguments.library), {}
    for turn in range(arguments.rounds):
        np.random.seed(1)
        for case, times in measure(library, random.Random(1)):
            known = best.setdefault(case, times)
            best[case] = {kernel: min(known[kernel], seconds) for kernel, seconds in times.items()}
        print(f"round {turn + 1} of {arguments.rounds}: {len(best)} products", flush=True)
    predicted = {}
    for kernel in KERNELS:
        for name, rows, features in (("rows", True, row_features), ("tiles", False, tile_features)):
            # One column takes another way but with SSE2 (DotCosts).
            cases = [case for case in best if kernel in best[case] and takes_rows(case[0], case[1], case[3]) == rows
                     and (case[3] > 1 or kernel == "cpu_generic")]
            if not cases:
                continue
            x = np.array([features(kernel, *case) for case in cases], dtype=float)
            y = np.array([best[case][kernel] for case in cases]) - 1e-6
            costs = fit(x, y)
            for case, seconds in zip(cases, x @ costs):
                predicted.setdefault(case, {})[kernel] = seconds
            ratio = x @ costs / y
            print(f"{kernel}, {name}: {np.mean((ratio > 0.5) & (ratio < 2)):.1%} of {len(cases)} within a factor of 2, "
                  f"median {np.median(ratio):.2f}")
            print("   ", ", ".join(f"{1e9 * cost:.2g}" for cost in costs))
    if arguments.cases:
        for case in best:
            if case[0] == 3 and case[1] == case[2] in (1, 3, 8, 16, 32, 64) and case[3] in (1, 4, 8, 40, 128, 512):
                times = ", ".join(f"{best[case].get(kernel, 0):.3g}" for kernel in KERNELS)
                print(f"    {{{case[1]}, {case[2]}, {case[3]}, {case[4]}, {case[5]}, {{{times}}}}},")
    lost = [best[case][min(of, key=of.get)] / min(best[case].values()) for case, of in predicted.items()]
    print(f"time of the chosen kernel / of the fastest: median {np.median(lost):.2f}, 90 % below {np.quantile(lost, 0.9):.2f}")


if __name__ == "__main__":
    main()
