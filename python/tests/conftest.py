# SPDX-License-Identifier: Apache-2.0
"""What the tests share. They run without the package being installed, on the CPU back-end."""

from __future__ import annotations

import os
import sys
from pathlib import Path

os.environ.setdefault("SPARSEK_TUNING_CACHE", "off")
sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "src"))
