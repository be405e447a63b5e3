# SPDX-License-Identifier: Apache-2.0
"""Leaves the single times out of what `sparsek bench --json` prints: for results that are kept.

Usage: python3 scripts/without_rounds.py < run.json > docs/performance/NAME.json
"""

import json
import sys

report = json.load(sys.stdin)
for case in report["cases"]:
    for timed in case["timed"]:
        timed["rounds_seconds"] = None
json.dump(report, sys.stdout, indent=1)
print()
