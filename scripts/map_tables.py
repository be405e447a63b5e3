#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Prints the tables of docs/map.md.

    python3 scripts/map_tables.py docs/performance/h100-map.jsonl docs/performance/h100-map-2.jsonl

Each file is one that `sparsek bench --suite map --keep FILE` wrote. A cell that is in several is that of the last. Of a
GPU's map it prints, by size of block and columns, in how many cells the chosen kernel takes at most as long as the
fastest rival (0.95 or more), the median share of the bound, and the rival's time over ours, the median and the least;
and the worst cells, in us. Of a CPU's map it prints the rival's time over ours, of all or of those that --rivals names.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys

FORMAT = 1
TYPES = ["bf16", "fp16", "fp32", "fp64"]
KEEPS_UP = 0.95  # the least that the rival's time over ours may be
WORSE = 1.3  # the most that the chosen kernel's time over that of our fastest may be
WORST_RIVALS, WORST_BOUNDS = 16, 10  # rows of the tables of single cells
GPU_BLOCKS = {"1": (1, 1), "2 to 8": (2, 8), "12 to 32": (12, 32), "48 to 256": (48, 256)}
GPU_COLUMNS = {"1": (1, 1), "2 to 32": (2, 32), "64 to 256": (64, 256), "1024, 4096": (1024, 4096)}
CPU_BLOCKS = {"single nonzeros": (1, 1), "blocks of 2 to 8": (2, 8), "blocks of 12 and more": (12, 256)}
CPU_COLUMNS = {"one column": (1, 1), "more columns": (2, 4096)}


def read_one(path: str) -> tuple[dict, list[dict]]:
    """The head of a file and its cells, also those that failed. A last line that is not whole is left out."""
    try:
        with open(path, encoding="utf-8") as file:
            head, *lines = file
            cells = [json.loads(line) for line in lines if line.endswith("}\n")]
            head = json.loads(head)
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
    except ValueError:
        head = {}
    if not isinstance(head, dict) or head.get("map_format") != FORMAT:
        sys.exit(f"{path}: no map of format {FORMAT}: write one by `sparsek bench --suite map --keep FILE`")
    return head, cells


def read(paths: list[str]) -> tuple[dict, list[dict]]:
    """The head of the last file and all cells that were measured."""
    cells: dict[tuple, dict] = {}
    head: dict = {}
    for path in paths:
        own, measured = read_one(path)
        if head and (own["device"], own["backend"]) != (head["device"], head["backend"]):
            sys.exit(f"{path}: of {own['device']}, and the file before it of {head['device']}: give files of one device")
        head = own
        cells |= {(cell["dtype"], cell["pattern"], cell["block"], cell["n"]): cell for cell in measured}
    whole = [cell for cell in cells.values() if "failed" not in cell]
    if len(whole) < len(cells):
        print(f"{len(cells) - len(whole)} cells failed and are left out", file=sys.stderr)
    if not whole:
        sys.exit(f"no cells in {', '.join(paths)}")
    return head, sorted(whole, key=lambda cell: TYPES.index(cell["dtype"]))


def fastest(cell: dict, rivals: tuple[str, ...] = ()) -> dict | None:
    """The fastest rival, of all or of those whose names begin so."""
    of = [t for t in cell["timed"] if t.get("rival") and t["seconds"] > 0 and (not rivals or t["name"].startswith(rivals))]
    return min(of, key=lambda t: t["seconds"]) if of else None


def inside(cell: dict, blocks: tuple[int, int], columns: tuple[int, int]) -> bool:
    return blocks[0] <= cell["block"] <= blocks[1] and columns[0] <= cell["n"] <= columns[1]


def table(titles: list[str], rows: list[list[str]]) -> None:
    print("| " + " | ".join(titles) + " |")
    print("|" + "---|" * len(titles))
    for row in rows:
        print("| " + " | ".join(row) + " |")
    print()


def gpu_groups(cells: list[dict]) -> None:
    types = list(dict.fromkeys(cell["dtype"] for cell in cells))
    titles = ["blocks", "N"]
    for dtype in types:
        titles += [f"{dtype}: cells", "bound", "rival"]
    rows = []
    for block_name, blocks in GPU_BLOCKS.items():
        for column_name, columns in GPU_COLUMNS.items():
            row = [block_name, column_name]
            for dtype in types:
                of = [c for c in cells if c["dtype"] == dtype and inside(c, blocks, columns)]
                ratios = [rival["seconds"] / c["seconds"] for c in of if (rival := fastest(c))]
                if not ratios:
                    sys.exit(f"no {dtype} cell with a rival has blocks of {block_name} and N of {column_name}: measure the whole map")
                bound = statistics.median(c["bound"] / c["seconds"] for c in of)
                keeps_up = sum(ratio >= KEEPS_UP for ratio in ratios)
                row += [
                    f"{keeps_up} of {len(ratios)}",
                    f"{bound:.0%}".replace("%", " %"),
                    f"{statistics.median(ratios):.2f} ({min(ratios):.2f})",
                ]
            rows.append(row)
    table(titles, rows)


def one_of_each_matrix(cells: list[dict]) -> list[dict]:
    """The first of each."""
    first: dict[tuple, dict] = {}
    for cell in cells:
        first.setdefault((cell["dtype"], cell["block"], cell["pattern"]), cell)
    return list(first.values())


def name(cell: dict) -> str:
    return f"{cell['dtype']} {cell['block']}x{cell['block']}, {cell['pattern']}, N = {cell['n']}"


def worst_cells(cells: list[dict]) -> None:
    ratios = {id(c): rival["seconds"] / c["seconds"] for c in cells if (rival := fastest(c))}
    by_rival = one_of_each_matrix(sorted((c for c in cells if id(c) in ratios), key=lambda c: ratios[id(c)]))
    rows = []
    for cell in by_rival[:WORST_RIVALS]:
        rival = fastest(cell)
        rows.append(
            [
                name(cell),
                f"{cell['seconds'] * 1e6:.0f}, {cell['kernel']}",
                f"{rival['seconds'] * 1e6:.0f}, {rival['name']}",
                f"{ratios[id(cell)]:.2f}",
            ]
        )
    table(["cell", "ours", "rival", "rival over ours"], rows)
    by_bound = one_of_each_matrix(sorted(cells, key=lambda c: c["bound"] / c["seconds"]))
    table(
        ["cell", "us, kernel", "bound, us", "share"],
        [
            [name(c), f"{c['seconds'] * 1e6:.0f}, {c['kernel']}", f"{c['bound'] * 1e6:.1f}", f"{c['bound'] / c['seconds']:.3f}"]
            for c in by_bound[:WORST_BOUNDS]
        ],
    )


def choices(cells: list[dict]) -> None:
    ratios = []
    for cell in cells:
        of = [t["seconds"] for t in cell["timed"] if not t.get("rival") and t["seconds"] > 0]
        if of:
            ratios.append(cell["seconds"] / min(of))
    worse = sum(ratio > WORSE for ratio in ratios)
    print(
        f"The chosen kernel took more than {WORSE} times as long as our fastest in {worse} of {len(ratios)} cells, "
        f"{max(ratios):.1f} times at most."
    )


def cpu_groups(cells: list[dict], rivals: tuple[str, ...]) -> None:
    rows = []
    for dtype in dict.fromkeys(cell["dtype"] for cell in cells):
        for block_name, blocks in CPU_BLOCKS.items():
            for column_name, columns in CPU_COLUMNS.items():
                of = [c for c in cells if c["dtype"] == dtype and inside(c, blocks, columns)]
                ratios = [rival["seconds"] / c["seconds"] for c in of if (rival := fastest(c, rivals))]
                if ratios:
                    rows.append(
                        [
                            f"{dtype}, {block_name}, {column_name}",
                            str(len(ratios)),
                            f"{statistics.median(ratios):.2f}",
                            f"{min(ratios):.2f}",
                            str(sum(ratio >= KEEPS_UP for ratio in ratios)),
                        ]
                    )
    table(["the fastest rival over ours", "cells", "median", "worst", f"at least {KEEPS_UP}"], rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rivals", default="", help="on a CPU: those whose names begin so, with commas between them")
    parser.add_argument("files", nargs="+")
    options = parser.parse_args()
    head, cells = read(options.files)
    print(f"{head['device']}, {len(cells)} cells\n")
    if head["backend"] == "GPU":
        gpu_groups(cells)
        worst_cells(cells)
    else:
        cpu_groups(cells, tuple(filter(None, options.rivals.split(","))))
    choices(cells)


if __name__ == "__main__":
    main()
