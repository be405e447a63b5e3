# SPDX-License-Identifier: Apache-2.0
"""Runs the gate several times, or sums up runs of it: what it says of a library, and how often.

    python3 scripts/gate_trials.py run --program build/bin/sparsek --runs 8 --out DIR [-- gate's flags and cases]
    python3 scripts/gate_trials.py sum DIR/*.json [--slow CASE,CASE...]

With SPARSEK_LIBRARY set to a library with the blessed machine code, the runs show how often the gate blames what did not
change. internal/gate/testdata/slower.patch makes kernels slower by PLANTED_PPM millionths, all or the one of
PLANTED_KERNEL: with a library of that source the runs show how often a slower kernel is found. --slow names the cases of
that kernel: a run counts as a find where one of them is slower.
"""

import argparse
import json
import pathlib
import subprocess
import sys
import time


def run(options):
    options.out.mkdir(parents=True, exist_ok=True)
    for i in range(options.runs):
        begun = time.monotonic()
        command = [options.program, "gate", "--json", "--no-counters", "--reports", str(options.out / "reports"), "--history",
                   str(options.out / "history.jsonl"), *options.arguments]
        with open(options.out / f"run-{i + 1}.json", "w", encoding="utf-8") as out:
            code = subprocess.run(command, stdout=out, check=False).returncode
        print(f"run {i + 1}: exit code {code}, {time.monotonic() - begun:.1f} s")


def sum_up(options):
    verdicts, finds, judged, once, twice = {}, 0, 0, 0, 0
    highest = -1.0
    for name in options.files:
        with open(name, encoding="utf-8") as file:
            result = json.load(file)
        cases = [c for c in result["cases"] if c.get("paired")]
        slower = [c["name"] for c in cases if c["paired"]["slower"]]
        verdicts[result["verdict"]] = verdicts.get(result["verdict"], 0) + 1
        found = [c for c in slower if c in options.slow]
        finds += bool(found)
        judged += len(cases)
        once += sum(c["paired"]["first"]["low"] > 1.005 for c in cases)
        twice += len(slower)
        top = max(c["paired"]["first"]["low"] for c in cases)
        highest = max(highest, top)
        print(f"{name}: {result['gpu']}, {result['verdict']}; {len(cases)} cases; slower: {', '.join(slower) or 'none'}; "
              f"highest lower bound {100 * (top - 1):+.2f} %")
        for c in cases:
            if c["name"] in options.slow:
                first, second = c["paired"]["first"], c["paired"].get("second")
                again = "" if second is None else f", again {100 * (second['ratio'] - 1):+.2f} %"
                print(f"    {c['name']}: {100 * (first['ratio'] - 1):+.2f} % ({100 * (first['low'] - 1):+.2f} to "
                      f"{100 * (first['high'] - 1):+.2f}){again}")
    print(f"{len(options.files)} runs: {', '.join(f'{n} {v}' for v, n in sorted(verdicts.items()))}; of {judged} cases {once} were "
          f"slower once and {twice} twice; highest lower bound {100 * (highest - 1):+.2f} %")
    if options.slow:
        print(f"found in {finds} of {len(options.files)} runs")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(required=True)
    one = commands.add_parser("run")
    one.add_argument("--program", default="build/bin/sparsek")
    one.add_argument("--runs", type=int, default=8)
    one.add_argument("--out", type=pathlib.Path, required=True)
    one.add_argument("arguments", nargs="*")
    one.set_defaults(call=run)
    other = commands.add_parser("sum")
    other.add_argument("files", nargs="+")
    other.add_argument("--slow", type=lambda text: text.split(","), default=[])
    other.set_defaults(call=sum_up)
    options = parser.parse_args()
    options.call(options)


if __name__ == "__main__":
    sys.exit(main())
