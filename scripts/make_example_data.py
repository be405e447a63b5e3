#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the beam that the programs in examples/ compute, and what SciPy makes of it.

Needs numpy and scipy. usage: make_example_data.py [--cells 24x5x3] [FOLDER]    (examples/testdata)

A cantilever of hexahedra: nodes with x = 0 are clamped and taken out, the top layer is ten times as stiff as the rest, and a
load pulls the free end down. beam.npz is its stiffness matrix in blocks of 3 x 3, beam_load.npy the load,
beam_solution.npy SciPy's displacement, and beam.json has the iterations of SciPy's conjugate gradients with the inverse of
the diagonal blocks as preconditioner, and the lowest eigenvalues.
"""
import argparse
import json
import pathlib

import numpy as np
import scipy
import scipy.sparse as sp
import scipy.sparse.linalg as linalg

import hexahedra

TOLERANCE = 1e-10
EIGENVALUES = 12


def beam(cells):
    """Stiffness and load of the nodes that are free."""
    top = cells[2] - 1
    whole = hexahedra.assemble(cells, 1.0, lambda cell: 10.0 if cell[2] == top else 1.0)
    nodes = [n + 1 for n in cells]
    at_x = np.arange(np.prod(nodes)) % nodes[0]
    free = np.repeat(at_x > 0, 3)
    stiffness = whole.tocsr()[free][:, free].tobsr(blocksize=(3, 3))
    load = np.zeros(whole.shape[0])
    load[2::3][at_x == cells[0]] = -1.0 / np.count_nonzero(at_x == cells[0])
    return stiffness, load[free]


def block_jacobi(stiffness):
    """The inverse of the diagonal blocks."""
    count = stiffness.shape[0] // 3
    rows = np.repeat(np.arange(count), np.diff(stiffness.indptr))
    inverses = np.linalg.inv(stiffness.data[rows == stiffness.indices])
    return sp.bsr_matrix((inverses, np.arange(count), np.arange(count + 1)), shape=stiffness.shape)


def solve(stiffness, load):
    """SciPy's solution, and the norm of the residual after each iteration over that of the load."""
    norms = []

    def note(x):
        norms.append(float(np.linalg.norm(load - stiffness @ x) / np.linalg.norm(load)))

    x, failed = linalg.cg(stiffness, load, rtol=TOLERANCE, atol=0, M=block_jacobi(stiffness), callback=note)
    if failed:
        raise SystemExit(f"SciPy's cg ended with {failed}")
    # Programs whose sums are of another order can only be expected to stop at the same iteration where the residual
    # passes the tolerance with some distance.
    if norms[-2] < 1.1 * TOLERANCE or norms[-1] > 0.9 * TOLERANCE:
        raise SystemExit(f"the last residuals {norms[-2:]} are too close to the tolerance: choose other cells")
    return x, norms


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--cells", default="24x5x3")
    default = pathlib.Path(__file__).resolve().parent.parent / "examples/testdata"
    parser.add_argument("folder", nargs="?", type=pathlib.Path, default=default)
    args = parser.parse_args()
    stiffness, load = beam(tuple(int(n) for n in args.cells.split("x")))
    solution, norms = solve(stiffness, load)
    lowest = linalg.eigsh(stiffness, k=EIGENVALUES, sigma=0, which="LM", return_eigenvectors=False, tol=0)
    args.folder.mkdir(parents=True, exist_ok=True)
    sp.save_npz(args.folder / "beam.npz", stiffness)
    np.save(args.folder / "beam_load.npy", load)
    np.save(args.folder / "beam_solution.npy", solution)
    with open(args.folder / "beam.json", "w") as out:
        json.dump({"scipy": scipy.__version__, "numpy": np.__version__, "cells": args.cells, "tolerance": TOLERANCE,
                   "iterations": len(norms), "residual": norms[-1],
                   "eigenvalues": sorted(float(v) for v in lowest)}, out, indent=1)
        out.write("\n")
    print(f"{stiffness.shape[0]} unknowns, {len(stiffness.indices)} blocks; {len(norms)} iterations to {norms[-2:]}")


if __name__ == "__main__":
    main()
