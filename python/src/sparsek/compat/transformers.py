# SPDX-License-Identifier: Apache-2.0
"""Attention of the library by name for transformers: attn_implementation="sparsek"."""

from __future__ import annotations

from typing import Any

import torch

from ..errors import UnsupportedError
from ..torch import attention

__all__ = ["install"]

_REFUSED = ("position_bias", "s_aux", "cache", "sliding_window")


def _forward(
    module: Any,
    query: torch.Tensor,
    key: torch.Tensor,
    value: torch.Tensor,
    attention_mask: torch.Tensor | None,
    dropout: float = 0.0,
    scaling: float | None = None,
    is_causal: bool | None = None,
    softcap: float | None = None,
    sparsek_layout: Any = None,
    **others: Any,
) -> tuple[torch.Tensor, None]:
    if dropout:
        raise UnsupportedError(
            f"attention_dropout={dropout}: no kernel drops weights of attention: set it to 0 in the model's configuration"
        )
    for name in _REFUSED:
        if others.get(name) is not None:
            raise UnsupportedError(f"{name}: attn_implementation='sparsek' does not have it: take 'sdpa' or 'eager'")
    causal = bool(getattr(module, "is_causal", True) if is_causal is None else is_causal)
    lengths = None
    if attention_mask is not None:
        if attention_mask.dim() != 2:
            raise UnsupportedError(
                "the model was given a mask of its own: give sparsek_layout what it leaves out, and padding (batch, keys)"
            )
        if key.shape[2] != query.shape[2]:
            raise UnsupportedError("sequences of a batch with different lengths cannot go on from a cache: give them one by one")
        lengths = attention_mask.sum(1, dtype=torch.int32)
        if bool((attention_mask[:, 1:] & ~attention_mask[:, :-1]).any()):
            raise UnsupportedError("a batch is padded on the left: set padding_side='right' in the tokenizer")
    layout = sparsek_layout if sparsek_layout is not None else getattr(module, "sparsek_layout", None)
    if callable(layout):
        layout = layout(query, key)
    o = attention(
        query,
        key,
        value,
        layout,
        causal=causal,
        # With lengths there are as many queries as keys, so their ends are aligned anyway. With this rule, a GPU would refuse
        # lengths together with a layout that stays on it.
        align_ends=lengths is None,
        scale=scaling,
        soft_cap=softcap or 0.0,
        lengths_q=lengths,
        lengths_k=lengths,
    )
    return o.transpose(1, 2), None


def install(name: str = "sparsek") -> None:
    """Registers attention by this name, for from_pretrained(..., attn_implementation=name) and set_attn_implementation.

    The layout is the model call's argument `sparsek_layout`, or each attention module's attribute of that name: a BlockLayout,
    or what makes one of q and k, such as a gate's `layout`; without one every block is there. Served are causal and
    bidirectional attention, sequences padded on the right, and caches that grow. What else a mask says is refused by
    UnsupportedError. Raises ImportError without transformers.
    """
    from transformers import AttentionInterface, AttentionMaskInterface, masking_utils

    def mask(
        batch_size: int,
        q_length: int,
        kv_length: int,
        q_offset: int = 0,
        kv_offset: int = 0,
        mask_function: Any = masking_utils.causal_mask_function,
        attention_mask: torch.Tensor | None = None,
        local_size: int | None = None,
        **others: Any,
    ) -> torch.Tensor | None:
        """None, or the padding (batch, keys) where there is some."""
        if mask_function not in (masking_utils.causal_mask_function, masking_utils.bidirectional_mask_function) or local_size is not None:
            raise UnsupportedError(
                "the model's mask is not causal or bidirectional alone (packed sequences, chunks, windows or a function of its own): give "
                "sparsek_layout what it leaves out, or take attn_implementation='sdpa'"
            )
        if mask_function is masking_utils.causal_mask_function and q_offset + q_length != kv_offset + kv_length:
            raise UnsupportedError("the cache has room for keys that are not there yet: take one that grows, such as DynamicCache")
        if attention_mask is None:
            return None
        padding = attention_mask[:, -kv_length:].bool()
        return None if bool(padding.all()) else padding

    AttentionInterface.register(name, _forward)
    AttentionMaskInterface.register(name, mask)
