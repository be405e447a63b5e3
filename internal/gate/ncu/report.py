# SPDX-License-Identifier: Apache-2.0
# Prints metrics of a report of Nsight Compute as CSV in long form: report.py FILE COUNTER...
import csv
import sys

import ncu_report

out = csv.writer(sys.stdout, quoting=csv.QUOTE_ALL, lineterminator="\n")
out.writerow(["ID", "Kernel Name", "Metric Name", "Metric Unit", "Metric Value"])
report = ncu_report.load_report(sys.argv[1])
number = 0
for at in range(report.num_ranges()):
    of = report.range_by_idx(at)
    for action in (of.action_by_idx(i) for i in range(of.num_actions())):
        for counter in sys.argv[2:]:
            metric = action.metric_by_name(counter)
            if metric is not None:
                name = action.name(ncu_report.IAction.NameBase_MANGLED)
                out.writerow([number, name, counter, metric.unit(), repr(metric.value())])
        number += 1
