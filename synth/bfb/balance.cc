// The height of a port is its load ÷ its speed.
// 1. Pour takes the types one by one, those with the fewest ports first. It fills the type's lowest ports up
//    to one common height.
// 2. Exchange searches breadth-first from the highest port, along types that can move units from one port to
//    another.
// 3. Units move along the path found to the port that stays lowest. If no move helps the highest port, the
//    next highest port is tried.
// The possible loads are the bases of a polymatroid: if no exchange helps the highest port, no other
// distribution has a lower highest port (Fujishige 1980).
#include "synth/bfb/balance.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "synth/common/cost_model.h"

namespace xccl {
namespace {

class Balancing {
 public:
  explicit Balancing(const BalanceProblem& problem)
      : p_(problem), load_(problem.base), flow_(problem.port.size(), 0) {}

  std::vector<int64_t> Run() {
    std::vector<int32_t> order(p_.supply.size());
    std::iota(order.begin(), order.end(), 0);
    std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return Width(a) < Width(b); });
    for (const int32_t t : order) Pour(t);
    Exchange();
    return std::move(flow_);
  }

 private:
  int32_t Width(int32_t t) const { return p_.first[t + 1] - p_.first[t]; }
  double Height(int32_t port) const { return load_[port] / p_.speed[port]; }
  double HeightWith(int32_t port, double units) const { return (load_[port] + units) / p_.speed[port]; }

  void Put(int32_t entry, int64_t units) {
    flow_[entry] += units;
    load_[p_.port[entry]] += static_cast<double>(units);
  }

  void Pour(int32_t t) {
    const int32_t begin = p_.first[t], end = p_.first[t + 1];
    if (end - begin == 1) return Put(begin, p_.supply[t]);
    entries_.resize(static_cast<size_t>(end - begin));
    std::iota(entries_.begin(), entries_.end(), begin);
    std::stable_sort(entries_.begin(), entries_.end(),
                     [&](int32_t a, int32_t b) { return Height(p_.port[a]) < Height(p_.port[b]); });
    // Finds the height up to which the lowest ports must be filled to take all units of the type.
    double speed = 0, load = static_cast<double>(p_.supply[t]), level = 0;
    for (size_t i = 0; i < entries_.size(); ++i) {
      const int32_t port = p_.port[entries_[i]];
      if (i > 0 && Height(port) >= level) break;
      speed += p_.speed[port];
      load += load_[port];
      level = load / speed;
    }
    int64_t left = p_.supply[t];
    for (const int32_t e : entries_) {
      const int32_t port = p_.port[e];
      const double room = level * p_.speed[port] - load_[port];
      const int64_t units = std::clamp<int64_t>(static_cast<int64_t>(std::floor(room + kRounding)), 0, left);
      Put(e, units);
      left -= units;
    }
    while (left > 0) {
      int32_t best = begin;
      for (int32_t e = begin + 1; e < end; ++e)
        if (HeightWith(p_.port[e], 1) < HeightWith(p_.port[best], 1) * (1 - kRounding)) best = e;
      Put(best, 1);
      --left;
    }
  }

  bool Helps(int32_t from, int32_t to) const { return HeightWith(to, 1) < Height(from) * (1 - kRounding); }

  void Exchange() {
    const size_t ports = load_.size();
    types_of_.resize(ports);
    for (size_t t = 0; t < p_.supply.size(); ++t)
      for (int32_t e = p_.first[t]; e < p_.first[t + 1]; ++e)
        if (Width(static_cast<int32_t>(t)) > 1)
          types_of_[static_cast<size_t>(p_.port[e])].push_back({static_cast<int32_t>(t), e});
    std::vector<int32_t> order(ports);
    std::iota(order.begin(), order.end(), 0);
    // Each round makes one port lower. The limit of ports × entries rounds is that of augmenting paths in a
    // flow.
    for (size_t round = 0; round < ports * p_.port.size(); ++round) {
      std::stable_sort(order.begin(), order.end(),
                       [&](int32_t a, int32_t b) { return Height(a) > Height(b); });
      if (std::ranges::none_of(order, [&](int32_t port) { return Relieve(port); })) return;
    }
  }

  // Moves units from `source` to the reachable port that is lowest with one more unit. False if no move
  // helps.
  bool Relieve(int32_t source) {
    const size_t ports = load_.size();
    bool hope = false;
    for (size_t port = 0; port < ports && !hope; ++port) hope = Helps(source, static_cast<int32_t>(port));
    if (!hope) return false;
    from_entry_.assign(ports, -1);
    to_entry_.assign(ports, -1);
    reached_ = {source};
    std::vector<bool> type_done(p_.supply.size(), false);
    int32_t best = source;
    for (size_t i = 0; i < reached_.size(); ++i) {
      const int32_t at = reached_[i];
      for (const auto& [t, entry] : types_of_[static_cast<size_t>(at)]) {
        if (flow_[entry] == 0 || type_done[static_cast<size_t>(t)]) continue;
        type_done[static_cast<size_t>(t)] = true;
        for (int32_t e = p_.first[t]; e < p_.first[t + 1]; ++e) {
          const int32_t to = p_.port[e];
          if (to == source || to_entry_[static_cast<size_t>(to)] >= 0) continue;
          to_entry_[static_cast<size_t>(to)] = e;
          from_entry_[static_cast<size_t>(to)] = entry;
          reached_.push_back(to);
          if (Helps(source, to) && (best == source || HeightWith(to, 1) < HeightWith(best, 1))) best = to;
        }
      }
    }
    if (best == source) return false;
    Shift(source, best);
    return true;
  }

  void Shift(int32_t source, int32_t target) {
    const double even = (Height(source) - Height(target)) / (1 / p_.speed[source] + 1 / p_.speed[target]);
    int64_t units = std::max<int64_t>(1, static_cast<int64_t>(std::floor(even)));
    for (int32_t at = target; at != source; at = p_.port[from_entry_[static_cast<size_t>(at)]])
      units = std::min(units, flow_[from_entry_[static_cast<size_t>(at)]]);
    for (int32_t at = target; at != source;) {
      const int32_t from = from_entry_[static_cast<size_t>(at)];
      Put(to_entry_[static_cast<size_t>(at)], units);
      Put(from, -units);
      at = p_.port[from];
    }
  }

  const BalanceProblem& p_;
  std::vector<double> load_;
  std::vector<int64_t> flow_;
  std::vector<int32_t> entries_;
  // By port, for the last step of the path to it in a search: units leave from_entry_ and enter to_entry_.
  std::vector<int32_t> from_entry_, to_entry_;
  std::vector<int32_t> reached_;  // ports in the order in which the search reaches them
  struct TypeAt {
    int32_t type, entry;
  };
  std::vector<std::vector<TypeAt>> types_of_;  // by port: the types that can also use other ports
};

}  // namespace

void BalanceProblem::AddType(int64_t units, std::span<const int32_t> ports) {
  supply.push_back(units);
  port.insert(port.end(), ports.begin(), ports.end());
  first.push_back(static_cast<int32_t>(port.size()));
}

std::vector<int64_t> Balance(const BalanceProblem& problem) { return Balancing(problem).Run(); }

}  // namespace xccl
