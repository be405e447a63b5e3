#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Fits the coefficients of the GPU's cost model to measured products.

    SPARSEK_TUNING_CACHE=off build/bin/sparsek tune --grid --seed 1 --cases 400 --budget 100ms --json > grid.json
    SPARSEK_TUNING_CACHE=off build/bin/sparsek bench --suite map --keep map.jsonl
    python3 scripts/fit_cost_model.py grid.json map.jsonl...     # how good the coefficients of the source are
    python3 scripts/fit_cost_model.py --fit grid.json...         # fits, and reports on cases that were held out
    python3 scripts/fit_cost_model.py --write grid.json...       # fits, and writes them into cost_coefficients.h

Needs a C++ compiler, NumPy and SciPy. Each file is of one GPU; give files of all kinds of GPU together, measured with
any seed but that by which the tuner is judged. --misses lists the cases where the choice costs more than 5 %.

The formulas are those of cutlass_ext/src/cuda/cost_model.cpp, which is compiled and called. The predictions for each
kernel are fitted to its times, most of all where it is nearly as fast as the fastest.
"""
import argparse
import ctypes
import json
import pathlib
import subprocess
import tempfile

import numpy as np
from scipy.optimize import least_squares

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADER = ROOT / "cutlass_ext/src/cuda/cost_coefficients.h"
SOURCES = ["tests/testdata/cost_model_library.cpp", "src/cuda/cost_model.cpp", "src/cuda/cost_of_chunks.cpp",
           "src/cuda/cost_of_libraries.cpp", "src/cuda/cost_of_rows.cpp", "src/cuda/chunk_sizes.cpp", "src/cuda/choose_cluster.cpp", "src/cuda/lane_layout.cpp",
           "src/cuda/lane_ways.cpp", "src/cuda/window_layout.cpp",
           "src/abi/error.cpp"] + [f"src/plan/{name}.cpp" for name in (
               "plan", "schedule_tiles", "split", "chunk_plan", "column_bits", "column_union", "panel_ends", "row_groups", "row_order",
               "row_matching")]
ELEMENT_BYTES = {"bf16": 2, "fp32": 4, "fp64": 8}
GOOD = 1.05  # a choice that takes at most so many times as long as the fastest kernel
FAIR = 1.3  # and one that takes more costs too much
NEAR = 2  # a kernel is fitted to the cases where it takes at most so many times as long as the fastest ...
FAR = 30  # ... and, with little weight, at most so many times
SPREAD = 0.25  # times whose quartiles are further apart were disturbed, and are left out
FOLDS = 5
ROUNDS = 3
# A kernel of each part of the coefficients; few_columns has one for each of its ways.
KNOWN = ["skinny_bf16_64_16", "skinny_bf16_64_64", "tma_bf16_64x2_256", "tma_bf16_128_256", "gather_bf16_128_256",
         "simt_bf16", "cublas_dense", "cusparse_bsr", "cusparse_bell", "cusparse_csr", "stream", "bundles",
         "singles", "fixed", "tensor", "skinny_fp32_16_16", "planes_fp32_128_128", "dmma_fp64_64_128", "packed_bf16_128_256",
         "window_fp32_3", "dmma_fp32_64_64"]


class Model:
    """cost_model.cpp, compiled."""

    def __init__(self):
        with tempfile.TemporaryDirectory() as folder:
            library = f"{folder}/cost_model.so"
            subprocess.run(["g++", "-std=c++17", "-O2", "-shared", "-fPIC", "-Iinclude", "-Isrc",
                            "-Itests/testdata/no_cuda", "-o", library, *SOURCES], cwd=ROOT / "cutlass_ext", check=True)
            self.library = ctypes.CDLL(library)
        self.count = self.library.coefficient_count()
        self.source = np.zeros(self.count)
        self.library.coefficients_of_source(self.source.ctypes.data_as(ctypes.c_void_p))

    def range(self, kernel):
        count = ctypes.c_int()
        begin = self.library.coefficient_range(kernel.encode(), ctypes.byref(count))
        return begin, begin + count.value

    def predict(self, kernel, cases, coefficients):
        """Microseconds of each row of cases, see case_row."""
        out = np.zeros(len(cases))
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (cases, coefficients, out)]
        self.library.predict_cases(kernel.encode(), pointers[0], len(cases), pointers[1], pointers[2])
        return out


def case_row(case, device, kept):
    """struct Case of cost_model_library.cpp."""
    low, high = case["groups_of_64_rows"], case["groups_of_128_rows"]
    return [case["m"], case["n"], case["k"], case["block_m"], case["block_k"], case["blocks"], case["longest_row"],
            low["loads"], low["longest"], high["loads"], high["longest"], case["ordered_loads"], device["sm_count"],
            device["clock_hz"], device["memory_bytes_per_second"], device["l2_bytes"], case.get("element_bytes", 2), float(kept)]


def read(path):
    """What tune --grid --json printed, or a map of bench --suite map --keep in the same form. Of a map fp16 is left out,
    which has the coefficients of bf16."""
    text = open(path).read()
    head, _, lines = text.partition("\n")
    if not head.startswith('{"map_format"'):
        return json.loads(text)
    head = json.loads(head)
    result = {"seed": head["seed"], "device": dict(head["rates"], name=head["device"]), "cases": [],
              "kept_values": head.get("kept_values", False)}
    for number, cell in enumerate(json.loads(line) for line in lines.splitlines() if line.endswith("}")):
        if cell["dtype"] not in ELEMENT_BYTES or "failed" in cell:
            continue
        case = dict(cell, number=number, block_m=cell["block"], block_k=cell["block"],
                    element_bytes=ELEMENT_BYTES[cell["dtype"]], candidates=[dict(t, kernel=t["name"]) for t in cell["timed"]])
        result["cases"].append(case)
    return result


class Data:
    """Measured products. times[kernel]: microseconds, NaN where a kernel was not measured."""

    def __init__(self, paths, ours=False):
        self.cases, self.devices, rows, times, self.groups = [], [], [], [], []
        for path in paths:
            result = read(path)
            for case in result["cases"]:
                measured = {c["kernel"]: c["seconds"] * 1e6 for c in case["candidates"]
                            if c["runs"] > 0 and c.get("spread", 0) < SPREAD and
                            not (ours and c["kernel"].startswith(("cublas", "cusparse")))}
                if case["blocks"] == 0 or not measured:
                    continue
                self.cases.append(case)
                self.devices.append(result["device"]["name"])
                self.groups.append((result["seed"], case["number"]))
                rows.append(case_row(case, result["device"], result.get("kept_values", False)))
                times.append(measured)
        self.rows = np.ascontiguousarray(rows, dtype=float)
        self.kernels = sorted({kernel for measured in times for kernel in measured})
        self.times = np.array([[measured.get(kernel, np.nan) for kernel in self.kernels] for measured in times])
        self.best = np.nanmin(self.times, axis=1)
        self.devices = np.array(self.devices)
        # The same product on two GPUs is in one fold.
        places = {group: place for place, group in enumerate(sorted(set(self.groups)))}
        self.fold = np.array([places[group] % FOLDS for group in self.groups])

    def predictions(self, model, coefficients, chosen):
        out = np.full((len(chosen), len(self.kernels)), np.nan)
        for place, kernel in enumerate(self.kernels):
            known = np.flatnonzero(~np.isnan(self.times[chosen, place]))
            out[known, place] = model.predict(kernel, np.ascontiguousarray(self.rows[chosen[known]]), coefficients)
        out[out == 0] = np.nan  # of kernels that cost_model_library.cpp does not know
        return out


def fit(model, data, chosen, only):
    """The predictions for kernels to their times, by least squares of their logarithms: those with the same coefficients
    together, unless `only` lists others. Kernels that were chosen and should not have been count there as if they were the
    fastest, in another fit."""
    fitted, full = model.source, np.zeros((len(chosen), len(data.kernels)), dtype=bool)
    for _ in range(ROUNDS):
        fitted = fit_once(model, data, chosen, only, fitted, full)
        ratios, choice, _ = good_choices(model, data, chosen, fitted)
        wrong = np.flatnonzero(ratios > GOOD)
        full[wrong, choice[wrong]] = True
    return fitted


def fit_once(model, data, chosen, only, coefficients, full):
    """full: of each case and kernel, whether it has full weight however long it takes."""
    fitted = coefficients.copy()
    groups = {}
    for place, kernel in enumerate(data.kernels):
        if model.range(kernel)[0] >= 0 and (not only or any(kernel.startswith(name) for name in only)):
            groups.setdefault(model.range(kernel), []).append((place, kernel))
    for (begin, end), members in groups.items():
        parts = []
        for place, kernel in members:
            times, best = data.times[chosen, place], data.best[chosen]
            known = ~np.isnan(times) & (times < FAR * best)
            rows, times = np.ascontiguousarray(data.rows[chosen[known]]), times[known]
            weight = np.where(times < NEAR * best[known], best[known] / times, 0.1)
            weight[full[known, place]] = 1
            parts.append((kernel, rows, times, weight))
        free = begin + np.flatnonzero(coefficients[begin:end] > 0)
        start = np.log(coefficients[free])

        def residuals(x):
            fitted[free] = np.exp(x)
            errors = [weight * np.log(model.predict(kernel, rows, fitted) / times)
                      for kernel, rows, times, weight in parts if len(times) > 0]
            return np.concatenate([*errors, 0.01 * (x - start)])

        found = least_squares(residuals, start, bounds=(start - 3, start + 3), loss="soft_l1", f_scale=0.05)
        fitted[free] = np.exp(found.x)
    return fitted


def good_choices(model, data, chosen, coefficients):
    predicted = data.predictions(model, coefficients, chosen)
    choice = np.nanargmin(predicted, axis=1)
    taken = data.times[chosen, choice]
    return taken / data.best[chosen], choice, predicted


def report(title, ratios, devices):
    for device in sorted(set(devices)):
        of = ratios[devices == device]
        print(f"{title}, {device}: choice within {GOOD - 1:.0%} of the fastest in {np.sum(of <= GOOD)} of {len(of)} "
              f"({np.mean(of <= GOOD):.1%}), {np.mean(of) - 1:.1%} slower on average, more than {FAIR - 1:.0%} slower "
              f"in {np.sum(of > FAIR)}, at most {np.max(of) - 1:.0%}")


def list_misses(data, chosen, ratios, choice, predicted):
    for i in np.flatnonzero(ratios > GOOD):
        case, times = data.cases[chosen[i]], data.times[chosen[i]]
        near = [f"{kernel} {times[place]:.1f} ({predicted[i, place]:.1f})" for place, kernel in enumerate(data.kernels)
                if times[place] < 1.5 * data.best[chosen[i]]]
        print(f"  {data.devices[chosen[i]]} {case['m']}x{case['n']}x{case['k']} b{case['block_m']}x{case['block_k']} "
              f"{case['pattern']} {case['density']:.3f}: {data.kernels[choice[i]]} +{ratios[i] - 1:.0%}; measured "
              f"(predicted): {', '.join(near)}")


def report_errors(model, data, coefficients):
    everything = np.arange(len(data.rows))
    errors = np.abs(np.log(data.predictions(model, coefficients, everything) / data.times))
    for place, kernel in enumerate(data.kernels):
        of = errors[data.times[:, place] < NEAR * data.best, place]
        if len(of) > 0:
            print(f"{kernel}: {len(of)} products, half of the predictions within {np.median(of):.1%}, nine in ten "
                  f"within {np.quantile(of, 0.9):.1%}")


def write(coefficients, model):
    """Into the header, a line for each part. The parts are where those of kernels begin."""
    begins = sorted({model.range(kernel)[0] for kernel in KNOWN})
    lines = ["    {" + ", ".join(f"{value:.4g}" for value in coefficients[begin:end]) + "},\n"
             for begin, end in zip(begins, [*begins[1:], model.count])]
    text = HEADER.read_text()
    begin = text.index("constexpr CostCoefficients kCostCoefficients = {\n")
    end = text.index("};\n", begin)
    HEADER.write_text(text[:begin] + "constexpr CostCoefficients kCostCoefficients = {\n" + "".join(lines) + text[end:])


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--fit", action="store_true")
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--misses", action="store_true")
    parser.add_argument("--only", default="", help="fit kernels whose names begin so, with commas between them")
    parser.add_argument("--ours", action="store_true", help="leave out the kernels of other libraries")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    only = [name for name in options.only.split(",") if name]
    model, data = Model(), Data(options.files, options.ours)
    everything = np.arange(len(data.rows))
    coefficients = model.source
    if options.fit:
        held_out = np.zeros(len(data.rows))
        for fold in range(FOLDS):
            inside, outside = np.flatnonzero(data.fold != fold), np.flatnonzero(data.fold == fold)
            held_out[outside] = good_choices(model, data, outside, fit(model, data, inside, only))[0]
        report("held out", held_out, data.devices)
    if options.fit or options.write:
        coefficients = fit(model, data, everything, only)
    if options.write:
        write(coefficients, model)
    ratios, choice, predicted = good_choices(model, data, everything, coefficients)
    report("all", ratios, data.devices)
    report_errors(model, data, coefficients)
    if options.misses:
        list_misses(data, everything, ratios, choice, predicted)


if __name__ == "__main__":
    main()
