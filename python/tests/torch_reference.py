# SPDX-License-Identifier: Apache-2.0
"""Random block-sparse matrices of torch, and their dense forms, through which gradients flow. All on one device."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

torch = pytest.importorskip("torch")


class Place:
    """Where tensors are made."""

    device = "cpu"


@pytest.fixture(autouse=True, params=["cpu", *(["cuda"] if torch.cuda.is_available() else [])])
def on_device(request: pytest.FixtureRequest) -> Iterator[str]:
    """Runs the tests of a module that imports it on each kind of device there is."""
    Place.device = request.param
    yield request.param
    Place.device = "cpu"


def draw(seed: int, *shape: int, dtype: Any = torch.float64) -> Any:
    """A random tensor."""
    made = torch.randn(*shape, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    return made.to(Place.device, dtype)


class Matrix:
    """A random matrix: values (nnzb, bm, bk) with zeros beyond the size, crow, col, size, block."""

    def __init__(
        self, seed: int, size: tuple[int, int], block: tuple[int, int], density: float = 0.5, dtype: Any = None, index: Any = None
    ) -> None:
        made = torch.Generator().manual_seed(seed)
        (rows, cols), (bm, bk) = size, block
        mask = torch.rand(-(-rows // bm), -(-cols // bk), generator=made) < density
        index = index or torch.int32
        self.size, self.block = size, block
        self.crow = torch.cat([torch.zeros(1), mask.sum(1).cumsum(0)]).to(Place.device, index)
        self.col = mask.nonzero()[:, 1].to(Place.device, index)
        whole = torch.randn(mask.shape[0] * bm, mask.shape[1] * bk, generator=made, dtype=torch.float64)
        whole[rows:], whole[:, cols:] = 0, 0
        self.values = whole.unflatten(0, (-1, bm)).unflatten(2, (-1, bk)).transpose(1, 2)[mask].to(Place.device, dtype or torch.float64)

    def dense(self, values: Any = None) -> Any:
        """A, (M, K), of these values."""
        values = self.values if values is None else values
        (rows, cols), (bm, bk) = self.size, self.block
        counts = (self.crow[1:] - self.crow[:-1]).long()
        across = -(-cols // bk)
        place = torch.repeat_interleave(torch.arange(counts.numel(), device=counts.device), counts) * across + self.col.long()
        full = values.new_zeros(counts.numel() * across, bm, bk).index_copy(0, place, values)
        return full.reshape(counts.numel(), across, bm, bk).transpose(1, 2).reshape(counts.numel() * bm, across * bk)[:rows, :cols]

    def blocks(self, dense: Any) -> Any:
        """The blocks of a dense (M, K) that the pattern has; zero beyond the size."""
        (rows, cols), (bm, bk) = self.size, self.block
        down, across = -(-rows // bm), -(-cols // bk)
        whole = torch.nn.functional.pad(dense, (0, across * bk - cols, 0, down * bm - rows))
        counts = (self.crow[1:] - self.crow[:-1]).long()
        rows_of = torch.repeat_interleave(torch.arange(down, device=counts.device), counts)
        return whole.unflatten(0, (down, bm)).unflatten(2, (across, bk)).transpose(1, 2)[rows_of, self.col.long()]
