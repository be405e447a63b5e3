#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the coefficients of cutlass_ext/src/cuda/cost_model.cpp to measured products.

    SPARSEK_TUNING_CACHE=off build/bin/sparsek tune --grid --seed 1 --cases 300 --json > grid.json    # on the GPU
    python3 scripts/fit_cost_model.py grid.json...

Needs numpy and scipy. Prints each family's coefficients, how far predictions are off, the factors with which the choice is
best, and in how many of the cases the fastest by prediction is within 5 % of the fastest; with --worst in front of the
files, the worst of both. The formulas are those of cost_model.cpp: change both. Take any seed but that of the grid by
which the tuner is judged.
"""
import json
import math
import sys

import numpy as np
from scipy.optimize import least_squares

SMS = 132
DRAM = 4.0e6  # bytes a microsecond
LEAST_ELEMENTS = 4 * 64 * 64  # of A, in the part of a CTA of a cluster: choose_cluster.cpp


def together(a, b):
    return (a**4 + b**4) ** 0.25


# family: tile_m, tile_n, CTAs an SM, largest cluster, may split; first guess of launch, tile, step, L2 rate (bytes a
# microsecond), join, copy of A, copy of B.
FAMILIES = {
    "skinny_bf16_64_16": (64, 16, 2, 4, False, (5.1, 1.2, 0.5, 2e7, 1, 0.05, 0.05)),
    "skinny_bf16_64_64": (64, 64, 2, 4, False, (5.8, 1.2, 0.5, 6.5e6, 1, 0.05, 0.05)),
    "tma_bf16_64x2_256": (128, 256, 1, 1, False, (5.6, 3.6, 0.56, 11e6, 1, 0.001, 0.001)),
    "tma_bf16_128_256": (128, 256, 1, 1, False, (5.6, 3.6, 0.56, 11e6, 1, 0.001, 0.001)),
    "gather_bf16_128_256": (128, 256, 1, 1, True, (7.6, 4.1, 0.5, 7.6e6, 6, 0.02, 0.02)),
}


def predict(case, family, theta):
    tile_m, tile_n, per_sm, most_cluster, may_split, _ = FAMILIES[family]
    launch, tile, step, l2, join, copy_a, copy_b = theta
    group = dict(case["groups_of_64_rows" if tile_m == 64 else "groups_of_128_rows"])
    if tile_m == 128:
        group["loads"] = case["entries"].get(family, group["loads"])  # in the order that the planner gives the block rows
    parts = max(1, case["block_m"] / tile_m)
    block_k = case["block_k"]
    unit = next(u for u in (64, 32, 16, 8) if block_k % u == 0)
    per_load = block_k / 64
    panels = math.ceil(case["n"] / tile_n)
    tiles = math.ceil(case["m"] / tile_m) * panels
    steps = group["loads"] * parts * panels * per_load
    longest = group["longest"] * per_load
    cluster = 1
    ctas = SMS * per_sm
    elements = case["blocks"] * case["block_m"] * block_k / math.ceil(case["m"] / tile_m)
    while cluster * 2 <= most_cluster and tiles * cluster * 2 <= ctas and elements >= LEAST_ELEMENTS * cluster * 2:
        cluster *= 2
    workers = ctas / cluster
    critical = max((steps / cluster + tile * tiles) / workers, longest / cluster + tile)
    waves = math.ceil(tiles / workers)
    if waves < 4:
        critical = max(critical, waves * (steps / tiles / cluster + tile))
    if may_split:
        critical = min(critical, (steps + tile * (tiles + workers)) / workers + join)
    values = case["blocks"] * case["block_m"] * block_k
    moved = 2 * (steps * 64 * tile_n + values * panels)
    from_l2 = moved / steps * min(ctas, tiles * cluster) / l2 if steps else 0
    per = parts * panels * block_k / unit / steps if steps else 0
    copying = (copy_b * group["loads"] + copy_a * case["blocks"]) * per
    dram = 2 * (values + min(case["k"], group["loads"] * block_k) * case["n"] + case["m"] * case["n"])
    return launch + together(critical * together(step + copying, from_l2), dram / DRAM)


TILES = [(128, 256, 1), (256, 128, 1), (128, 128, 0.85), (64, 256, 0.85), (64, 128, 0.7), (128, 64, 0.7), (64, 64, 0.5),
         (64, 32, 0.25), (64, 16, 0.125)]


def predict_dense(case, theta):
    launch, rate, memory = theta
    m, n, k = case["m"], case["n"], case["k"]
    best = min(math.ceil(math.ceil(m / tm) * math.ceil(n / tn) * split / SMS) * 2 * tm * tn * k / split / (rate / SMS * share)
               for tm, tn, share in TILES for split in (1, 2, 4, 8))
    return launch + together(best, 2 * (m * k + k * n + m * n) / memory)


def predict_bell(case, theta):
    """A tile is a block row by 128 columns, and as long as the longest row."""
    launch, per_sm, step, column, memory = theta
    rows = math.ceil(case["m"] / case["block_m"])
    blocks = case["longest_row"]
    tiles = rows * math.ceil(case["n"] / 128)
    waves = max(1, tiles / (SMS * per_sm))
    padded = blocks * rows * case["block_m"] * case["block_k"]
    moved = 2 * (padded + case["k"] * case["n"] + case["m"] * case["n"])
    return launch + together(waves * blocks * (step + column * case["block_k"] * max(1, case["block_m"] / 64)), moved / memory)


def predict_bsr(case, theta):
    """Ordinary cores, or the longest row."""
    launch, rate, step, column = theta
    values = case["blocks"] * case["block_m"] * case["block_k"]
    row = case["longest_row"] * (step + column * case["block_k"])
    return launch + together(2 * values * case["n"] / rate, row)


def fit(name, samples, model, first):
    def residuals(x):
        return [math.log(model(case, np.exp(x)) / time) for case, time in samples]

    found = least_squares(residuals, np.log(first), loss="soft_l1", f_scale=0.1)
    error = np.array(residuals(found.x))
    theta = np.exp(found.x)
    print(f"{name}: {', '.join(f'{v:.4g}' for v in theta)}   ({len(samples)} products, half of them within "
          f"{np.median(abs(error)):.1%}, 9 of 10 within {np.quantile(abs(error), 0.9):.1%})")
    for e, case, time in sorted(((e, c, t) for e, (c, t) in zip(error, samples)), key=lambda x: -abs(x[0]))[:WORST]:
        print(f"    {e:+.2f} of {time:.1f} us: {case['m']}x{case['n']}x{case['k']} b{case['block_m']}x{case['block_k']} "
              f"{case['pattern']} {case['density']:.3f} {case['groups_of_128_rows']}")
    return theta


WORST = 0


def best_factors(found, cases, times):
    """A factor of each prediction, near 1, with which the choice is good most often."""
    predicted = [{k: f(case) for k, f in found.items() if k in time} for case, time in zip(cases, times)]

    def good(factors):
        count = 0
        for known, time in zip(predicted, times):
            choice = min(known, key=lambda k: known[k] * factors[k], default=None)
            count += choice is not None and time[choice] <= 1.05 * min(time.values())
        return count

    rng = np.random.default_rng(0)
    factors = dict.fromkeys(found, 1.0)
    best = good(factors)
    for width in np.repeat([0.08, 0.04, 0.02], 600):
        tried = {k: float(np.clip(v + rng.normal(0, width) * (rng.random() < 0.4), 0.85, 1.3)) for k, v in factors.items()}
        count = good(tried)
        if count >= best:
            factors, best = tried, count
    return factors


def main(paths):
    cases = [case for path in paths for case in json.load(open(path))["cases"] if case["blocks"] > 0]
    times = [{k["kernel"]: k["seconds"] * 1e6 for k in case["candidates"] if k["runs"] > 0} for case in cases]
    for case in cases:
        case["entries"] = {k["kernel"]: k["entries"] for k in case["candidates"] if "entries" in k}
    found = {}
    for family, settings in FAMILIES.items():
        samples = [(case, time[family]) for case, time in zip(cases, times) if family in time]
        theta = fit(family, samples, lambda case, t, f=family: predict(case, f, t), settings[5])
        found[family] = lambda case, f=family, t=theta: predict(case, f, t)
    samples = [(case, time["cublas_dense"]) for case, time in zip(cases, times) if "cublas_dense" in time]
    theta = fit("cublas_dense", samples, predict_dense, (8.4, 844e6, 4.2e6))
    found["cublas_dense"] = lambda case, t=theta: predict_dense(case, t)
    samples = [(case, time["cusparse_bell"]) for case, time in zip(cases, times) if "cusparse_bell" in time]
    theta = fit("cusparse_bell", samples, predict_bell, (6, 4, 0.2, 0.01, 3e6))
    found["cusparse_bell"] = lambda case, t=theta: predict_bell(case, t)
    samples = [(case, time["cusparse_bsr"]) for case, time in zip(cases, times) if "cusparse_bsr" in time]
    theta = fit("cusparse_bsr", samples, predict_bsr, (6, 12e6, 0.1, 0.01))
    found["cusparse_bsr"] = lambda case, t=theta: predict_bsr(case, t)
    factors = best_factors(found, cases, times)
    print("factors: " + ", ".join(f"{k} {v:.2f}" for k, v in factors.items()))
    found = {k: lambda case, f=f, x=factors[k]: x * f(case) for k, f in found.items()}
    for without in ((), ("cublas_dense", "cusparse_bell", "cusparse_bsr")):
        good = 0
        for case, time in zip(cases, times):
            known = {k: f(case) for k, f in found.items() if k in time and k not in without}
            if not known:
                continue
            among = known if without else {k for k, t in time.items() if t > 0}
            choice, best = min(known, key=known.get), min(among, key=time.get)
            good += time[choice] <= 1.05 * time[best]
            if time[choice] > 1.05 * time[best] and WORST:
                print(f"    miss: {case['m']}x{case['n']}x{case['k']} b{case['block_m']}x{case['block_k']} {case['pattern']} "
                      f"{case['density']:.3f}: {choice} {time[choice]:.1f} (predicted {known[choice]:.1f}), best {best} "
                      f"{time[best]:.1f} ({known.get(best, 0):.1f})")
        print(f"choice by prediction within 5 % of the fastest{' of ours' if without else ''}: {good} of {len(cases)}")


if __name__ == "__main__":
    arguments = sys.argv[1:]
    if arguments and arguments[0] == "--worst":
        WORST = 8
        arguments = arguments[1:]
    if not arguments:
        sys.exit(__doc__)
    main(arguments)
