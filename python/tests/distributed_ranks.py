# SPDX-License-Identifier: Apache-2.0
"""What each rank of test_torch_distributed.py runs: cases by name and arguments, a line of standard input each, in one process group.

python distributed_ranks.py RANK RANKS FOLDER DEVICE
"""

from __future__ import annotations

import sys
import traceback
from datetime import timedelta

import conftest  # noqa: F401  # finds the package
import distributed_data_cases
import distributed_tensor_cases
import torch
import torch.distributed as dist
from distributed_common import DEVICE, FOLDER, RANK, RANKS

CASES = {**vars(distributed_tensor_cases), **vars(distributed_data_cases)}


def main() -> None:
    """Runs the cases that standard input names, and says how each went."""
    store = f"file://{FOLDER / f'store{RANKS}'}"
    if DEVICE == "cuda":
        torch.cuda.set_device(RANK % torch.cuda.device_count())  # several ranks may share one
    dist.init_process_group(
        "nccl" if DEVICE == "cuda" else "gloo", init_method=store, rank=RANK, world_size=RANKS, timeout=timedelta(seconds=60)
    )
    torch.set_num_threads(1)
    print("ready", flush=True)
    for line in sys.stdin:
        name, *arguments = line.split()
        try:
            CASES[f"case_{name}"](*arguments)
            print("passed", flush=True)
        except Exception:
            traceback.print_exc()
            print("failed", flush=True)
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
