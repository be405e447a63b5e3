# SPDX-License-Identifier: Apache-2.0
"""Keys and values of attention in pages of a cache, as the library takes them."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import ArgumentError

KeyShape = tuple[int, int, int, int]


def require_pages(q: Any, k: Any, v: Any, page_table: Any, keys: int | None) -> None:
    """Raises ArgumentError unless the table, where there is one, fits to a cache of k and v and to sequences of so many keys.

    Reads no elements.
    """
    if page_table is None:
        if keys:  # 0 was the default of graphs that were exported before there was None
            raise ArgumentError(f"keys={keys} is of sequences in pages, and there is no page_table: leave keys out, or give page_table")
        return
    if k.dim() != 4 or v.dim() != 4 or k.shape[:3] != v.shape[:3] or k.shape[0] < 1 or k.shape[2] < 1:
        raise ArgumentError(
            f"k of shape {tuple(k.shape)} and v of {tuple(v.shape)} are no cache of pages: with page_table they are (pages, key heads, "
            "rows of a page, head size)"
        )
    if page_table.dtype != torch.int32 or page_table.dim() != 2 or page_table.shape[0] != q.shape[0]:
        raise ArgumentError(
            f"page_table of {page_table.dtype} and shape {tuple(page_table.shape)} is not of int32 and ({q.shape[0]}, pages of a sequence)"
        )
    if page_table.device != q.device:
        raise ArgumentError(f"page_table lies on {page_table.device}, and q on {q.device}: copy it to where that is")
    if keys is None:
        raise ArgumentError(
            "keys is not given, and page_table does not tell how many keys a sequence has: give the layout's number of keys, or "
            f"without a layout up to page_table.shape[1] * k.shape[2] = {page_table.shape[1] * k.shape[2]}"
        )
    if keys < 0 or keys > page_table.shape[1] * k.shape[2]:
        raise ArgumentError(f"{keys} keys do not fit into {page_table.shape[1]} pages of {k.shape[2]} rows")


def shape_of_keys(q: Any, k: Any, page_table: Any, keys: int | None) -> KeyShape:
    """(batch, key heads, keys, head size), of k itself or of what lies in its pages. keys: of a sequence in pages."""
    if page_table is None or keys is None:
        return tuple(k.shape)
    return (q.shape[0], k.shape[1], keys, k.shape[3])


def pages_of(k: torch.Tensor, page_table: torch.Tensor | None) -> tuple[dict[str, Any], torch.Tensor | None]:
    """Members of sparsek_attention_args, and the tensor that they refer to."""
    if page_table is None or page_table.numel() == 0:
        return {}, None
    # To the library, a stride of 0 is that of a table without gaps.
    if page_table.stride(1) != 1 or page_table.stride(0) < page_table.shape[1]:
        page_table = page_table.contiguous()
    stride = page_table.stride(0) if page_table.shape[0] > 1 else 0
    members = {"page_table": page_table.data_ptr(), "page_table_stride": stride, "pages": k.shape[0], "page_rows": k.shape[2]}
    return members, page_table
