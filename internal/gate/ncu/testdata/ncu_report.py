# SPDX-License-Identifier: Apache-2.0
# Stands in for the module of Nsight Compute: a report with two ranges, of one and of two launches.
VALUES = {
    "sm__cycles_active.avg.pct_of_peak_sustained_elapsed": 72.3,
    "sm__pipe_tensor_cycles_active.avg.pct_of_peak_sustained_elapsed": 65.8,
    "dram__throughput.avg.pct_of_peak_sustained_elapsed": 45.2,
}


class IAction:
    NameBase_FUNCTION, NameBase_DEMANGLED, NameBase_MANGLED = range(3)

    def name(self, base=0):
        assert base == self.NameBase_MANGLED
        return "_Z1kv"

    def metric_by_name(self, name):
        return Metric(VALUES[name]) if name in VALUES else None


class Metric:
    def __init__(self, value):
        self.number = value

    def value(self):
        return self.number

    def unit(self):
        return "%"


class Range:
    def __init__(self, actions):
        self.actions = actions

    def num_actions(self):
        return self.actions

    def action_by_idx(self, at):
        return IAction()


class Report:
    def num_ranges(self):
        return 2

    def range_by_idx(self, at):
        return Range(at + 1)


def load_report(path):
    assert path.endswith(".ncu-rep")
    return Report()
