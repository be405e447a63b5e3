# SPDX-License-Identifier: Apache-2.0
"""Finite elements: a beam under several loads at once, by SciPy's assembly and sparsek's products.

The stiffness matrix of linear elasticity in 3D has a block of 3x3 for each pair of neighbouring nodes. Conjugate
gradients solve for all load cases together: each step multiplies the matrix with one vector a case.

    PYTHONPATH=python/src python python/examples/elasticity.py [elements along the beam]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

import sparsek

Array = np.ndarray[Any, Any]

YOUNG, POISSON, CASES = 200.0, 0.3, 8


def element_stiffness() -> Array:
    """That of a cube of side 1 with a node at each corner, (24, 24), by 2x2x2 Gauss points."""
    lame, shear = YOUNG * POISSON / ((1 + POISSON) * (1 - 2 * POISSON)), YOUNG / (2 + 2 * POISSON)
    elastic = np.diag([2 * shear] * 3 + [shear] * 3)
    elastic[:3, :3] += lame
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    stiffness = np.zeros((24, 24))
    for point in corners / np.sqrt(3):
        factors = (1 + corners * point) / 2
        slopes = np.stack([corners[:, i] * np.delete(factors, i, 1).prod(1) for i in range(3)])  # d/dx_i of each corner's function
        strain = np.zeros((6, 24))
        for i, (j, k) in enumerate([(0, 0), (1, 1), (2, 2), (1, 2), (0, 2), (0, 1)]):
            strain[i, j::3] += slopes[k]
            if j != k:
                strain[i, k::3] += slopes[j]
        stiffness += strain.T @ elastic @ strain / 8
    return stiffness


def assemble(length: int, width: int) -> tuple[Any, Array]:
    """The stiffness matrix of a beam in blocks of 3x3, clamped at its left end, and which unknowns are free."""
    shape = (length + 1, width + 1, width + 1)
    nodes = np.arange(np.prod(shape)).reshape(shape)
    corners = [nodes[x : x + length, y : y + width, z : z + width].ravel() for x in (0, 1) for y in (0, 1) for z in (0, 1)]
    unknowns = (3 * np.stack(corners, 1)[:, :, None] + np.arange(3)).reshape(-1, 24)
    rows, cols = np.repeat(unknowns, 24, 1).ravel(), np.tile(unknowns, 24).ravel()
    values = np.tile(element_stiffness().ravel(), len(unknowns))
    free = np.repeat(nodes[1:].ravel() * 3, 3) + np.tile(np.arange(3), nodes[1:].size)
    full = scipy.sparse.coo_array((values, (rows, cols)), shape=(3 * nodes.size,) * 2).tocsr()
    return full[free][:, free].tobsr((3, 3)), free


def conjugate_gradients(product: Callable[[Array], Array], inverse_diagonal: Array, loads: Array, tolerance: float) -> tuple[Array, int]:
    """Solves for all columns of loads at once, with Jacobi's preconditioner; the solutions and the number of steps."""
    x, residual = np.zeros_like(loads), loads.copy()
    z = inverse_diagonal * residual
    direction, rho = z.copy(), (residual * z).sum(0)
    for step in range(1, 10 * len(loads)):
        image = product(direction)
        alpha = rho / (direction * image).sum(0)
        x += alpha * direction
        residual -= alpha * image
        if np.all(np.linalg.norm(residual, axis=0) <= tolerance * np.linalg.norm(loads, axis=0)):
            return x, step
        z = inverse_diagonal * residual
        last, rho = rho, (residual * z).sum(0)
        direction = z + rho / last * direction
    raise ArithmeticError("no convergence")


def main(length: int) -> float:
    """Solves, prints times and the deflection, and returns the largest residual of a load case."""
    matrix, _ = assemble(length, max(length // 4, 1))
    rng = np.random.default_rng(0)
    loads = np.zeros((matrix.shape[0], CASES))
    loads[-3 * (max(length // 4, 1) + 1) ** 2 :] = rng.standard_normal((3 * (max(length // 4, 1) + 1) ** 2, CASES))

    # Pattern and plan are made once; then each call is a product.
    a = sparsek.BSR.from_scipy(matrix)
    plan = sparsek.Pattern(a.crow, a.col, a.shape, a.block, dtype="fp64").plan(CASES)
    image = np.empty_like(loads)
    inverse = 1 / matrix.diagonal()[:, None]

    print(f"{matrix.shape[0]} unknowns, {a.nnzb} blocks of 3x3, {CASES} load cases; {plan.info.kernel}")
    solution = loads
    for name, product in [("SciPy", lambda x: matrix @ x), ("sparsek", lambda x: plan(a.values, x, image))]:
        start = time.perf_counter()
        solution, steps = conjugate_gradients(product, inverse, loads, 1e-8)
        print(f"{name:8} {steps} steps in {time.perf_counter() - start:.3f} s")
    residual = np.linalg.norm(matrix @ solution - loads, axis=0) / np.linalg.norm(loads, axis=0)
    print(f"largest deflection {np.abs(solution).max():.4g}, largest residual {residual.max():.2g}")
    return float(residual.max())


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="finite elements: conjugate gradients for eight load cases at once")
    parser.add_argument("length", type=int, nargs="?", default=24, help="of the beam, in elements")
    main(parser.parse_args().length)
