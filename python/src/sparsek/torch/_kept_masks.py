# SPDX-License-Identifier: Apache-2.0
"""Masks of blocks that sizes alone tell."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch

from ._device_patterns import is_capturing

_masks: dict[Any, torch.Tensor] = {}
_MOST_MASKS = 32


def kept_mask(key: Any, device: torch.device, make: Callable[[], torch.Tensor]) -> torch.Tensor:
    """A mask that sizes alone tell, made once in each stream: a GPU would wait for the host, which takes longer to have it made than the
    rest takes."""
    capturing = device.type == "cuda" and is_capturing()
    # A capture begins when the device has ended what it had, so there the mask of any stream is one.
    stream = torch.cuda.current_stream(device).cuda_stream if device.type == "cuda" and not capturing else None
    found = _masks.get((key, device, stream))
    if found is None:
        found = make()
        # What a capture makes holds nothing until the graph runs, what a trace makes is no tensor, and what inference mode makes
        # cannot be used where there are gradients.
        if type(found) is torch.Tensor and not (capturing or found.is_inference() or torch.compiler.is_compiling()):
            if len(_masks) >= _MOST_MASKS:
                _masks.clear()
            _masks[key, device, stream] = _masks[key, device, None] = found
    return found
