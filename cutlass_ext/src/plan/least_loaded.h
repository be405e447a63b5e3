// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <limits>
#include <vector>

namespace sparsek {

// The worker with the least work so far; of several, the lowest. A tournament tree: each node holds the winner of
// its two children, so a change costs one comparison a level.
class LeastLoaded {
 public:
  // workers: at least 1. All begin with no work.
  explicit LeastLoaded(int32_t workers) {
    while (leaves_ < workers) leaves_ *= 2;
    nodes_.resize(2 * static_cast<size_t>(leaves_), {std::numeric_limits<double>::infinity(), leaves_});
    for (int32_t w = 0; w < workers; ++w) nodes_[leaves_ + w] = {0, w};
    for (int32_t node = leaves_ - 1; node > 0; --node) nodes_[node] = winner(nodes_[2 * node], nodes_[2 * node + 1]);
  }

  int32_t worker() const { return nodes_[1].worker; }
  double load() const { return nodes_[1].load; }

  // Sets the total work of worker().
  void set_load(double load) {
    Node changed = {load, worker()};
    uint32_t node = leaves_ + changed.worker;
    for (; node > 1; node /= 2) {
      nodes_[node] = changed;
      changed = winner(changed, nodes_[node ^ 1]);
    }
    nodes_[1] = changed;
  }

 private:
  struct Node {
    double load;
    int32_t worker;
  };

  // Without a branch, which would often be mispredicted.
  static Node winner(const Node& a, const Node& b) {
    const bool first = (a.load < b.load) | ((a.load == b.load) & (a.worker < b.worker));
    return {first ? a.load : b.load, first ? a.worker : b.worker};
  }

  int32_t leaves_ = 1;
  std::vector<Node> nodes_;  // nodes_[1] is the root; the workers begin at leaves_
};

}  // namespace sparsek
