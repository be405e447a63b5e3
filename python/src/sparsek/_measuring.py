# SPDX-License-Identifier: Apache-2.0
"""One measurement of kernels at a time in a process: two would disturb each other."""

from __future__ import annotations

import os
import threading

_tuning = threading.Lock()


def _after_fork() -> None:
    global _tuning
    _tuning = threading.Lock()  # another thread of the parent may have held it


os.register_at_fork(after_in_child=_after_fork)


def measuring() -> threading.Lock:
    """What is held while kernels are measured."""
    return _tuning
