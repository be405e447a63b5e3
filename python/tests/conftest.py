# SPDX-License-Identifier: Apache-2.0
"""What the tests share. They run without the package being installed, on the CPU back-end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("SPARSEK_TUNING_CACHE", "off")
os.environ.setdefault("XLA_FLAGS", "--xla_force_host_platform_device_count=2")  # for what JAX spreads over devices
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
