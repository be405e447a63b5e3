#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes the files of wrapper/matio/testdata with SciPy and NumPy.

Needs numpy and scipy. usage: make_testdata.py [FOLDER]

Beside each sparse file NAME.npz, NAME.mtx or NAME.mtx.gz stands NAME.EXT.expect.npy, the same matrix as a dense array
of f8, as SciPy itself reads the file back; of NAME.npy it is the array as f8 in C order.
"""
import gzip
import pathlib
import shutil
import sys
import warnings

import numpy as np
import scipy.io
import scipy.sparse as sp

import hexahedra


def stencil(n):
    """7-point Laplacian of an n**3 grid."""
    line = sp.diags([-1.0, 2.0, -1.0], [-1, 0, 1], shape=(n, n))
    one = sp.identity(n)
    return sum(sp.kron(sp.kron(*([line if a == b else one for b in (0, 1)])), line if a == 2 else one) for a in range(3))


def duplicates(dtype):
    """7 x 9 with repeated places and empty rows; all sums are exact."""
    rows, cols = [0, 0, 0, 5, 5, 2, 2, 6], [1, 1, 8, 3, 3, 4, 4, 0]
    values = np.array([1, 2, 3, 4, 0, 6, 1, 7]).astype(dtype)
    return sp.coo_matrix((values, (rows, cols)), shape=(7, 9))


def unsorted_csr():
    """Columns out of order and repeated, and more indices stored than indptr uses."""
    m = sp.csr_matrix((4, 6), dtype=np.float32)
    m.data = np.array([1.5, 2, -3, 4, 5, 99], dtype=np.float32)
    m.indices = np.array([5, 0, 5, 3, 3, 1], dtype=np.int32)
    m.indptr = np.array([0, 3, 3, 5, 5], dtype=np.int32)
    return m


def sparse_files(folder):
    rng = np.random.default_rng(1)
    small = sp.random(13, 11, density=0.3, format="csr", random_state=rng)
    square = sp.random(9, 9, density=0.3, format="coo", random_state=rng)
    dia = sp.dia_matrix((np.arange(1.0, 25).reshape(4, 6), [0, -2, 3, 9]), shape=(7, 12))
    npz = {
        "elasticity_bsr": hexahedra.assemble((2, 2, 2), 1 / 2),
        "stencil_csr": stencil(4).tocsr(),
        "stencil_dia": stencil(3).todia(),
        "csr": small, "csc": small.tocsc(), "coo": small.tocoo(), "bsr": sp.csr_matrix(small[:12, :10]).tobsr((4, 5)), "dia": dia,
        "array_coo": sp.coo_array(small),
        "duplicates_f4": duplicates(np.float32), "duplicates_i1": duplicates(np.int8), "duplicates_bool": duplicates(bool),
        "unsorted_csr": unsorted_csr(),
        "empty_csr": sp.csr_matrix((3, 5)), "empty_coo": sp.coo_matrix((0, 4)),
    }
    for name, m in npz.items():
        sp.save_npz(folder / f"{name}.npz", m)
    for name in ("csr", "bsr", "dia"):
        sp.save_npz(folder / f"{name}_stored.npz", npz[name], compressed=False)
    for kind in ("i2", "i4", "i8", "u1", "u2", "u4", "u8", "f8"):
        sp.save_npz(folder / f"type_{kind}.npz", sp.csr_matrix(np.array([[0, 3], [100, 0]], dtype=kind)))

    # Variations that save_npz of other versions wrote, or that follow from what the matrix was made of.
    wide = small.copy()
    wide.indices, wide.indptr = wide.indices.astype(np.int64), wide.indptr.astype(np.int64)
    parts = {"indices": wide.indices, "indptr": wide.indptr, "shape": small.shape, "data": small.data}
    np.savez(folder / "index64.npz", format=b"csr", **parts)
    np.savez(folder / "text_format.npz", format="csr", **parts)
    c = small.tocoo()
    np.savez(folder / "coords.npz", format=b"coo", shape=c.shape, data=c.data, coords=np.array([c.row, c.col]), _is_array=True)
    np.savez(folder / "big_endian.npz", format=b"csr", shape=small.shape, data=small.data.astype(">f8"),
             indices=small.indices.astype(">i4"), indptr=small.indptr.astype(">i4"))
    half = small.astype(np.float32)
    half.data = half.data.astype(np.float16)
    np.savez(folder / "type_f2.npz", format=b"csr", shape=half.shape, data=half.data, indices=half.indices, indptr=half.indptr)
    b = npz["bsr"]
    np.savez(folder / "fortran_bsr.npz", format=b"bsr", shape=b.shape, data=np.asfortranarray(b.data), indices=b.indices, indptr=b.indptr)
    sp.save_npz(folder / "refused_complex.npz", sp.csr_matrix(np.array([[1j, 0]])))

    lower = sp.tril(square)
    symmetric, skew = (lower + sp.tril(lower, -1).T).tocoo(), (sp.tril(lower, -1) - sp.tril(lower, -1).T).tocoo()
    whole = sp.coo_matrix(np.round(square.toarray() * 100).astype(np.int64))
    mtx = {
        "general_real": (small, {}), "general_integer": (whole, {}), "general_pattern": (small, {"field": "pattern"}),
        "symmetric_real": (symmetric, {"symmetry": "symmetric"}), "skew_real": (skew, {"symmetry": "skew-symmetric"}),
        "symmetric_pattern": (symmetric, {"field": "pattern", "symmetry": "symmetric"}),
        "array_real": (small.toarray(), {}), "array_integer": (whole.toarray(), {}),
        "array_symmetric": (symmetric.toarray(), {"symmetry": "symmetric"}),
        "array_skew": (skew.toarray(), {"symmetry": "skew-symmetric"}),
        "unsigned": (sp.coo_matrix(np.array([[0, 2**64 - 2048]], dtype=np.uint64)), {}),
        "duplicates": (duplicates(np.float64), {}), "empty": (sp.coo_matrix((4, 3)), {}),
        "stencil": (stencil(4).tocoo(), {"comment": "7-point stencil\nof two comment lines"}),
        "refused_complex": (sp.coo_matrix(np.array([[1j, 0], [0, 2]])), {"symmetry": "general"}),
        "refused_hermitian": (sp.coo_matrix(np.array([[1, 2j], [-2j, 2]])), {"symmetry": "hermitian"}),
    }
    for name, (m, options) in mtx.items():
        scipy.io.mmwrite(folder / f"{name}.mtx", m, **options)
    with open(folder / "stencil.mtx", "rb") as plain, gzip.GzipFile(folder / "stencil.mtx.gz", "wb", mtime=0) as packed:
        shutil.copyfileobj(plain, packed)


def dense_files(folder):
    values = np.random.default_rng(2).standard_normal((5, 7))
    values[0, :4] = [np.inf, -np.inf, -0.0, 1e-7]
    for kind in ("f2", "f4", "f8"):
        for order in "CF":
            np.save(folder / f"dense_{kind}_{order}.npy", np.asarray(values.astype(kind), order=order))
        np.save(folder / f"dense_{kind}_big.npy", values.astype(f">{kind}"))
    np.save(folder / "vector.npy", values[0].astype("f4"))
    np.save(folder / "nothing.npy", np.zeros((3, 0), dtype="f4"))
    for major in (2, 3):
        with open(folder / f"version{major}.npy", "wb") as f, warnings.catch_warnings():
            warnings.simplefilter("ignore")  # version 3 is younger than some readers
            np.lib.format.write_array(f, values.astype("f4"), version=(major, 0))
    np.save(folder / "refused_complex.npy", np.ones((2, 2), dtype=complex))
    np.save(folder / "refused_integers.npy", np.ones((2, 2), dtype=int))
    np.save(folder / "refused_cube.npy", np.ones((2, 2, 2)))
    np.save(folder / "refused_objects.npy", np.array([[None]]), allow_pickle=True)
    np.save(folder / "refused_structure.npy", np.zeros(2, dtype=[("a", "f4"), ("b", "f4")]))


def expectations(folder):
    for path in sorted(folder.iterdir()):
        if path.name.startswith("refused_"):
            continue
        if path.suffix == ".npz":
            m = sp.load_npz(path)
            if m.data.dtype == np.float16:  # SciPy has no sums of it
                m.data = m.data.astype(np.float32)
            dense = m.toarray()
        elif path.suffix == ".npy":
            dense = np.load(path)
            dense = dense.reshape(dense.shape[0], -1)
        else:
            dense = scipy.io.mmread(path)
            dense = dense.toarray() if sp.issparse(dense) else dense
        np.save(folder / f"{path.name}.expect.npy", np.ascontiguousarray(dense, dtype="f8"))


def main():
    default = pathlib.Path(__file__).resolve().parent.parent / "wrapper/matio/testdata"
    folder = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    shutil.rmtree(folder / "scipy", ignore_errors=True)
    folder = folder / "scipy"
    folder.mkdir(parents=True)
    sparse_files(folder)
    dense_files(folder)
    expectations(folder)
    print(f"{len(list(folder.iterdir()))} files, {sum(p.stat().st_size for p in folder.iterdir())} bytes in {folder}")


if __name__ == "__main__":
    main()
