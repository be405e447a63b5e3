# SPDX-License-Identifier: Apache-2.0
"""A block-sparse matrix as four things, and its ways from and to dense arrays and SciPy."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from ._extents import extents
from .errors import ArgumentError

__all__ = ["BSR"]


@dataclass(frozen=True, eq=False, repr=False)
class BSR:
    """A block-sparse matrix.

    values: (nnzb, bm, bk). crow: (ceil(M/bm) + 1), where each block row begins. col: (nnzb), the block column of each
    block, increasing within a block row. shape: (M, K). Where M or K is no multiple of the block, the last blocks extend
    beyond the matrix: values beyond column K must be zero, and those beyond row M where the transpose is multiplied.
    The arrays are those of the caller, of any package, and not copied.
    """

    values: Any
    crow: Any
    col: Any
    shape: tuple[int, int]

    # Without this, NumPy takes A in A @ b for an array without dimensions, and says that it has too few. Now it refuses A by its type.
    __array_ufunc__ = None

    def __post_init__(self) -> None:
        if not hasattr(self.values, "shape"):
            name = type(self.values).__name__
            raise ArgumentError(f"values are a {name}, and not an array (nnzb, bm, bk): numpy.array(values, dtype) makes one")
        if len(self.values.shape) != 3:
            raise ArgumentError(f"values have the shape {tuple(self.values.shape)}, and not (nnzb, bm, bk)")
        extents(self.shape, "shape", "M", "K")

    def __repr__(self) -> str:
        (rows, cols), (bm, bk) = self.shape, self.block
        return f"BSR({rows}x{cols} in {bm}x{bk}, {self.nnzb} blocks, {self.values.dtype})"

    @property
    def block(self) -> tuple[int, int]:
        """(bm, bk)"""
        _, bm, bk = self.values.shape
        return int(bm), int(bk)

    @property
    def nnzb(self) -> int:
        """How many blocks are stored."""
        return int(self.values.shape[0])

    @staticmethod
    def from_dense(dense: Any, block: tuple[int, int], mask: Any = None) -> BSR:
        """The blocks of a NumPy array (M, K) in which something is not zero, or those that mask names.

        mask: (ceil(M/bm), ceil(K/bk)), of bool: the blocks to store, zero or not.
        """
        full = np.asarray(dense)
        if full.ndim != 2:
            raise ArgumentError(f"dense has {full.ndim} dimensions, and not two")
        (rows, cols), (bm, bk) = full.shape, extents(block, "block", "rows", "columns")
        if bm < 1 or bk < 1:
            raise ArgumentError(f"blocks of {bm}x{bk} do not exist")
        block_rows, block_cols = -(-rows // bm), -(-cols // bk)
        padded = np.zeros((block_rows * bm, block_cols * bk), full.dtype)
        padded[:rows, :cols] = full
        blocks = padded.reshape(block_rows, bm, block_cols, bk).swapaxes(1, 2)
        if mask is None:
            mask = (blocks != 0).any(axis=(2, 3))
        mask = np.asarray(mask, bool)
        if mask.shape != (block_rows, block_cols):
            raise ArgumentError(f"mask has the shape {mask.shape}, and not {(block_rows, block_cols)}")
        crow = np.zeros(block_rows + 1, np.int32)
        np.cumsum(mask.sum(axis=1), out=crow[1:])
        return BSR(np.ascontiguousarray(blocks[mask]), crow, np.nonzero(mask)[1].astype(np.int32), (rows, cols))

    @staticmethod
    def from_scipy(matrix: Any) -> BSR:
        """A copy of a SciPy matrix: of a bsr_array its blocks, of others single nonzeros.

        Duplicates are summed up, and columns sorted.
        """
        return _arrays_of(_summed(matrix))

    def to_dense(self) -> np.ndarray[Any, Any]:
        """The matrix as a NumPy array, (M, K), of the values' type; absent blocks are zeros."""
        values, crow, col = (np.asarray(array) for array in (self.values, self.crow, self.col))
        (rows, cols), (bm, bk) = self.shape, self.block
        full = np.zeros((-(-rows // bm), -(-cols // bk), bm, bk), values.dtype)
        full[np.repeat(np.arange(crow.size - 1), np.diff(crow)), col] = values
        dense: np.ndarray[Any, Any] = full.swapaxes(1, 2).reshape(full.shape[0] * bm, full.shape[1] * bk)[:rows, :cols]
        return dense

    def to_scipy(self) -> Any:
        """A scipy.sparse.bsr_array of the same arrays. Its shape is that of whole blocks."""
        from scipy.sparse import bsr_array

        (rows, cols), (bm, bk) = self.shape, self.block
        shape = (-(-rows // bm) * bm, -(-cols // bk) * bk)
        return bsr_array((self.values, self.col, self.crow), shape=shape, blocksize=(bm, bk))


def _arrays_of(matrix: Any) -> BSR:
    nnzb = int(matrix.indptr[-1])
    values = matrix.data[:nnzb] if matrix.format == "bsr" else matrix.data[:nnzb].reshape(-1, 1, 1)
    return BSR(values, matrix.indptr, matrix.indices[:nnzb], (int(matrix.shape[0]), int(matrix.shape[1])))


def _compressed(matrix: Any) -> Any:
    if matrix.ndim != 2:
        raise ArgumentError(f"a matrix has two dimensions, and not {matrix.ndim}")
    return matrix if matrix.format in ("bsr", "csr") else matrix.tocsr()


def _summed(matrix: Any) -> Any:
    made = _compressed(matrix).copy()
    made.has_sorted_indices = made.has_canonical_format = False  # SciPy keeps them from before a change in place
    made.sum_duplicates()
    return made


def of_scipy(matrix: Any) -> BSR:
    """A SciPy matrix by its own arrays where it is of BSR or CSR: columns may be unsorted, and may repeat."""
    return _arrays_of(_compressed(matrix))


def is_scipy(matrix: Any) -> bool:
    """Whether it is a sparse matrix of SciPy."""
    sparse = sys.modules.get("scipy.sparse")
    return sparse is not None and bool(sparse.issparse(matrix))
