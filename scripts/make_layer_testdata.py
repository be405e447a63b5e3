#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Writes rust/sparsek-burn/testdata/linear.safetensors: a layer of sparsek.torch, and what it makes of x.

Needs torch, safetensors and sparsek with its library. usage: make_layer_testdata.py [FILE]
"""

import pathlib
import sys

import torch
from safetensors.torch import save_file

import sparsek.torch as st


def main() -> None:
    default = pathlib.Path(__file__).resolve().parent.parent / "rust/sparsek-burn/testdata/linear.safetensors"
    file = pathlib.Path(sys.argv[1]) if len(sys.argv) > 1 else default
    torch.manual_seed(1)
    layer = st.BsrLinear(24, 16, (4, 8), density=0.5)
    x = torch.randn(3, 24)
    state = {f"layer.{name}": tensor for name, tensor in layer.state_dict().items()}
    save_file({**state, "x": x, "y": layer(x).detach()}, file)


if __name__ == "__main__":
    main()
