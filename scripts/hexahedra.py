# SPDX-License-Identifier: Apache-2.0
"""Stiffness matrices of linear elasticity on boxes of 8-node hexahedra, for the scripts that write matrices."""
import numpy as np
import scipy.sparse as sp

CORNERS = np.array([[i, j, k] for k in (0, 1) for j in (0, 1) for i in (0, 1)])


def element(side, poisson=0.3):
    """Stiffness of a trilinear cube (24, 24): three degrees of freedom a corner, Young's modulus 1."""
    lame, shear = poisson / ((1 + poisson) * (1 - 2 * poisson)), 1 / (2 * (1 + poisson))
    material = np.zeros((6, 6))
    material[:3, :3] = lame
    material[range(6), range(6)] += [2 * shear] * 3 + [shear] * 3

    signs = 2.0 * CORNERS - 1
    stiffness = np.zeros((24, 24))
    for point in signs / np.sqrt(3):  # the Gauss points lie towards the corners
        terms = 1 + signs * point
        gradient = np.stack([signs[:, a] * np.prod(np.delete(terms, a, axis=1), axis=1) / 8 * 2 / side for a in range(3)])
        strain = np.zeros((6, 24))
        for a in range(3):
            strain[a, a::3] = gradient[a]
        for row, (a, b) in enumerate([(0, 1), (1, 2), (0, 2)], start=3):
            strain[row, a::3], strain[row, b::3] = gradient[b], gradient[a]
        stiffness += strain.T @ material @ strain * (side / 2) ** 3
    return stiffness


def assemble(cells, side, young=lambda cell: 1.0):
    """Stiffness of a box of cells[0] x cells[1] x cells[2] cubes, in blocks of 3 x 3, one a pair of nodes. Nodes are
    numbered along the first axis first. young(cell) is Young's modulus of a cell."""
    nodes = [n + 1 for n in cells]
    own = element(side)
    rows, cols, values = [], [], []
    for cell in np.ndindex(*cells):
        at = (cell + CORNERS) @ [1, nodes[0], nodes[0] * nodes[1]]
        dofs = (3 * at[:, None] + np.arange(3)).ravel()
        rows.append(np.repeat(dofs, 24))
        cols.append(np.tile(dofs, 24))
        values.append(young(cell) * own.ravel())
    size = 3 * np.prod(nodes)
    assembled = sp.coo_matrix((np.concatenate(values), (np.concatenate(rows), np.concatenate(cols))), shape=(size, size))
    return assembled.tobsr(blocksize=(3, 3))
