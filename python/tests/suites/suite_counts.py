# SPDX-License-Identifier: Apache-2.0
"""For the plugins that run suites of others: which tests are left out and why, and counts of all at the end, with pytest-xdist too.

SUITE_SHARE=2/5 runs the second of five shares, so that a long suite is run in several calls, and SUITE_SECONDS=150 begins no test
after as many seconds.
"""

from __future__ import annotations

import os
import re
import time
from collections import Counter
from collections.abc import Callable, Generator
from typing import Any
from zlib import crc32

import pytest

from sparsek.errors import UnsupportedError

_LEFT_OUT = "left out: "
_SIZES = re.compile(r" \(\d+\)|(?<=[a-z_])=\d+")  # of a single test, in its reason
_notes: list[str] = []
_until = time.monotonic() + float(os.environ.get("SUITE_SECONDS", "inf"))


def note(what: str) -> None:
    """Counts something that the running test did, for the end."""
    _notes.append(what)


def leave_out(items: list[Any], why: Callable[[Any], str | None]) -> None:
    """Has the tests not run for which `why` has a reason, nor those of another share."""
    part, parts = (int(number) for number in os.environ.get("SUITE_SHARE", "1/1").split("/"))
    for item in items:
        reason = why(item)
        if reason is None and crc32(item.nodeid.encode()) % parts != part - 1:
            reason = f"another share than {part} of {parts}"
        if reason is not None:
            item.add_marker(pytest.mark.skip(reason=_LEFT_OUT + reason), append=False)


def pytest_runtest_setup() -> None:
    """Begins no test when the time is over."""
    if time.monotonic() > _until:
        pytest.skip(f"{_LEFT_OUT}the time was over")


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_call() -> Generator[None, Any, None]:
    """Skips what sparsek says that it does not serve."""
    outcome = yield
    if outcome.excinfo is not None and issubclass(outcome.excinfo[0], UnsupportedError):
        outcome.force_exception(pytest.skip.Exception(f"not served: {outcome.excinfo[1]}"))


@pytest.hookimpl(hookwrapper=True)
def pytest_runtest_makereport(call: Any) -> Generator[None, Any, None]:
    """Puts the notes of a test into its report, which goes to the process that prints."""
    report = (yield).get_result()
    if call.when == "call":
        report.user_properties.extend(("note", what) for what in _notes)
        _notes.clear()


def pytest_terminal_summary(terminalreporter: Any) -> None:
    """How many passed, failed, were skipped and left out, and why."""
    stats = terminalreporter.stats
    reports = [report for kind in ("passed", "failed", "xfailed", "xpassed", "skipped") for report in stats.get(kind, [])]
    notes = Counter(what for report in reports for name, what in report.user_properties if name == "note")
    skipped: Counter[str] = Counter()
    left_out: Counter[str] = Counter()
    for report in stats.get("skipped", []):
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)
        reason = _SIZES.sub("", reason.removeprefix("Skipped: "))
        (left_out if reason.startswith(_LEFT_OUT) else skipped)[reason.removeprefix(_LEFT_OUT)] += 1
    numbers = [f"{len(stats.get(kind, []))} {kind}" for kind in ("passed", "failed", "error")]
    terminalreporter.write_line(", ".join([*numbers, f"{skipped.total()} skipped", f"{left_out.total()} left out"]))
    for kind, counts in (("left out", left_out), ("skipped", skipped), ("done", notes)):
        for reason, count in counts.most_common():
            terminalreporter.write_line(f"  {count} {kind}: {reason}")
