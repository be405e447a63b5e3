# SPDX-License-Identifier: Apache-2.0
"""Caches of pages for tests of attention."""

from __future__ import annotations

from typing import Any

import torch


class Cache:
    """Keys and values, (batch, heads, keys, size), in pages in random order, (pages, heads, rows, size), between pages of NaN.

    rows_first: they lie as (pages, rows, heads, size). holes: every so many pages are none of the cache, and their keys hidden; 0: none.
    """

    def __init__(self, k: Any, v: Any, rows: int, *, rows_first: bool = False, holes: int = 0, seed: int = 0) -> None:
        batch, _, keys, _ = k.shape
        own = -(-keys // rows)
        count = batch * own + 2
        generator = torch.Generator().manual_seed(seed)
        order = torch.randperm(count, generator=generator)[: batch * own]
        self.rows, self.keys = rows, keys
        self.k, self.v = (self._filled(x, order, count, rows_first) for x in (k, v))
        self.table = order.reshape(batch, own).to(k.device, torch.int32)
        self.hidden = torch.zeros(batch, keys, dtype=torch.bool, device=k.device)
        if holes:
            missing = torch.arange(batch * own).reshape(batch, own) % holes == holes - 1
            none = torch.tensor([-1, count, 2**31 - 1, -(2**31)], dtype=torch.int32)[torch.arange(batch * own).reshape(batch, own) % 4]
            self.table = torch.where(missing.to(k.device), none.to(k.device), self.table)
            self.hidden = missing.repeat_interleave(rows, 1)[:, :keys].to(k.device)

    def _filled(self, x: Any, order: Any, count: int, rows_first: bool) -> Any:
        batch, heads, keys, size = x.shape
        whole = torch.full((batch, heads, -(-keys // self.rows) * self.rows, size), torch.nan, dtype=x.dtype, device=x.device)
        whole[:, :, :keys] = x.detach()
        pages = whole.reshape(batch, heads, -1, self.rows, size).transpose(1, 2).reshape(-1, heads, self.rows, size)
        shape = (count, self.rows, heads, size) if rows_first else (count, heads, self.rows, size)
        cache = torch.full(shape, torch.nan, dtype=x.dtype, device=x.device)
        by_heads = cache.transpose(1, 2) if rows_first else cache
        by_heads[order.to(x.device)] = pages
        return by_heads
