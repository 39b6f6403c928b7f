// 1. Two ranks of one host send each other small messages, and so do two ranks of two hosts. This gives the
//    time of one message and of each further message. A large message in one direction gives the rate.
// 2. The hosts play the rounds of a tournament: in each round, one rank of each host sends or receives. The
//    rounds load all links between hosts.
// 3. Two hosts that keep their full rate with each other in all rounds are put on one leaf switch. The rate
//    of a leaf is the largest sum of its flows to (or from) other leaves in one round.
// 4. Ranks of host 0 send to as many ranks of host 1 at once. This gives a NIC's rate under several flows.
#include "pipeline/measure/hosts.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "ir/collective.h"
#include "pipeline/measure/programs.h"

namespace xccl {
namespace {

// How often a small message is measured. The fastest time counts, because other work only adds time.
constexpr int32_t kRepeats = 5;
// A rate is first measured with kFirstLarge bytes. The size grows by a factor of four until the run takes
// kLongEnoughUs or the size is kLargest. A short run would measure the bursts that a network absorbs.
constexpr int64_t kFirstLarge = 4 << 20, kLargest = 256 << 20;
constexpr double kLongEnoughUs = 100'000;
// A flow shares a link with other flows if its rate is below this share of what its two hosts can do. The
// rates of flows that share no link differ by 2 % (docs/benchmarks.md).
constexpr double kFullRate = 0.9;

using Pair = std::pair<Rank, Rank>;

// Returns a program in which the source of each pair sends a part to the destination, in `messages` messages.
StatusOr<LoweredProgram> Flows(int32_t ranks, const std::vector<Pair>& pairs, int32_t messages) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kSendrecv;
  for (int32_t r = 0; r < ranks; ++r) spec.ranks.push_back(Rank(r));
  spec.pairs = pairs;
  XCCL_ASSIGN_OR_RETURN(const Collective whole, Collective::Create(std::move(spec)));
  Collective collective = whole.WithChunks(messages);
  Program program;
  program.ranks.resize(static_cast<size_t>(ranks));
  program.slots = kInFlight;
  for (const auto& [src, dst] : pairs) {
    const auto place = [&](const std::vector<PartId>& parts, PartId part) {
      return static_cast<int32_t>(std::ranges::find(parts, part) - parts.begin()) * messages;
    };
    const PartId part(static_cast<int32_t>(std::ranges::find(pairs, Pair(src, dst)) - pairs.begin()));
    const int32_t from = place(collective.InputParts(src), part),
                  to = place(collective.OutputParts(dst), part);
    Threadblock sends, receives;
    sends.send_peer = dst;
    receives.recv_peer = src;
    for (int32_t m = 0; m < messages; ++m) {
      sends.instructions.push_back(
          {.op = Opcode::kSend, .count = 1, .src = {BufferKind::kInput, from + m}, .dst = {}});
      receives.instructions.push_back(
          {.op = Opcode::kRecv, .count = 1, .src = {}, .dst = {BufferKind::kOutput, to + m}});
    }
    program.ranks[src].threadblocks.push_back(std::move(sends));
    program.ranks[dst].threadblocks.push_back(std::move(receives));
    program.connections.push_back({src, dst, 0, {}});
  }
  std::ranges::sort(program.connections, {}, [](const Connection& c) { return std::pair(c.src, c.dst); });
  return LoweredProgram{std::move(collective), std::move(program)};
}

// Measures the rate of each pair in bytes per microsecond, while all pairs send at once. Increases `bytes`
// until the run takes kLongEnoughUs, but not beyond kLargest.
StatusOr<std::vector<double>> Rates(int32_t ranks, const std::vector<Pair>& pairs, int64_t& bytes,
                                    const MeasureRanks& measure) {
  XCCL_ASSIGN_OR_RETURN(const LoweredProgram flows, Flows(ranks, pairs, 1));
  while (true) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<double> times, measure(flows, bytes));
    const double longest = *std::ranges::max_element(times);
    if (longest < kLongEnoughUs && bytes < kLargest) {
      bytes *= 4;
      continue;
    }
    std::vector<double> rates;
    for (const Pair& pair : pairs)
      rates.push_back(static_cast<double>(bytes) / std::max(1e-3, times[pair.second.index()]));
    return rates;
  }
}

// Measures the link from a to b. Both send the small messages, so that each operation includes an arrival.
StatusOr<MeasuredLink> MeasurePair(int32_t ranks, Rank a, Rank b, const MeasureRanks& measure) {
  MeasuredLink link;
  const std::vector<Pair> both = {{a, b}, {b, a}};
  XCCL_ASSIGN_OR_RETURN(const LoweredProgram one, Flows(ranks, both, 1));
  XCCL_ASSIGN_OR_RETURN(const LoweredProgram many, Flows(ranks, both, kInARow));
  double small_us = std::numeric_limits<double>::infinity(), many_us = small_us;
  for (int32_t i = 0; i < kRepeats; ++i) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<double> small, measure(one, kSmallBytes));
    XCCL_ASSIGN_OR_RETURN(const std::vector<double> rows, measure(many, kInARow * kSmallBytes));
    small_us = std::min(small_us, small[a.index()]);
    many_us = std::min(many_us, rows[a.index()]);
  }
  link.alpha_us = small_us;
  link.overhead_us = std::max(0.0, (many_us - small_us) / (kInARow - 1));
  int64_t bytes = kFirstLarge;
  XCCL_ASSIGN_OR_RETURN(const std::vector<double> rates, Rates(ranks, {{a, b}}, bytes, measure));
  link.bytes_per_us = rates[0];
  return link;
}

// A flow from one host to another in one round.
struct Flow {
  int32_t from = 0, to = 0;
  double rate = 0;  // bytes per us
};
using Round = std::vector<Flow>;

// Returns the rounds of a tournament between hosts. Each pairing of the hosts gives four rounds: all pairs in
// one direction, all pairs in the other direction, and two rounds in which every second pair is reversed. A
// host either sends or receives in a round, so its time is the time of one flow. There are four rounds,
// because the flows of two pairs may share a link only if both go one way, or only if one is reversed. Two
// hosts are one pair, which gets two rounds.
std::vector<Round> Rounds(int32_t hosts) {
  const int32_t even = hosts + hosts % 2;
  std::vector<Round> rounds;
  for (int32_t k = 0; k + 1 < even; ++k) {
    for (const int32_t turned : {0b00, 0b11, 0b01, 0b10}) {  // bit i % 2: whether pair i is reversed
      Round round;
      for (int32_t i = 0; i < even / 2; ++i) {
        int32_t a = i == 0 ? even - 1 : (k + i) % (even - 1), b = (k + even - 1 - i) % (even - 1);
        if (((turned >> (i % 2)) & 1) != 0) std::swap(a, b);
        if (a < hosts && b < hosts) round.push_back({a, b});
      }
      rounds.push_back(std::move(round));
    }
    if (even == 2) rounds.resize(2);
  }
  return rounds;
}

// Puts hosts that send to each other at full rate in all rounds on one leaf. If leaves do not explain all
// rates, adds notices and puts all hosts on one leaf. Then computes the rates of the leaves.
void FindLeaves(const std::vector<Round>& rounds, MeasuredHosts& found) {
  const size_t hosts = found.names.size();
  std::vector<std::vector<double>> least(hosts, std::vector<double>(hosts, 1e300));
  for (const Round& round : rounds)
    for (const Flow& flow : round) least[flow.from][flow.to] = std::min(least[flow.from][flow.to], flow.rate);
  const auto full = [&](size_t a, size_t b) {
    return least[a][b] >= kFullRate * std::min(found.out[a], found.in[b]);
  };
  found.leaf.assign(hosts, -1);
  int32_t leaves = 0;
  for (size_t h = 0; h < hosts; ++h) {
    if (found.leaf[h] >= 0) continue;
    for (size_t g = h; g < hosts; ++g)
      if (g == h || (found.leaf[g] < 0 && full(h, g) && full(g, h))) found.leaf[g] = leaves;
    ++leaves;
  }
  for (size_t a = 0; a < hosts; ++a)
    for (size_t b = 0; b < hosts; ++b)
      if (a != b && (found.leaf[a] == found.leaf[b]) != full(a, b))
        found.notices.push_back(
            fmt::format("{} to {}: {:.1f} MB/s; {} leaves of hosts that share links do not explain it",
                        found.names[a], found.names[b], least[a][b], leaves));
  if (!found.notices.empty()) {  // describe the network as one switch instead
    found.leaf.assign(hosts, 0);
    leaves = 1;
  }
  found.up.assign(static_cast<size_t>(leaves), 0);
  found.down = found.up;
  for (const Round& round : rounds) {  // find each leaf's largest rate of all rounds
    std::vector<double> up(static_cast<size_t>(leaves), 0), down = up;
    for (const Flow& flow : round) {
      const auto from = static_cast<size_t>(found.leaf[flow.from]),
                 to = static_cast<size_t>(found.leaf[flow.to]);
      if (from == to) continue;
      up[from] += flow.rate;
      down[to] += flow.rate;
    }
    for (size_t l = 0; l < up.size(); ++l) {
      found.up[l] = std::max(found.up[l], up[l]);
      found.down[l] = std::max(found.down[l], down[l]);
    }
  }
}

Status MeasureRounds(const std::vector<Rank>& first, const MeasureRanks& measure, MeasuredHosts& found) {
  std::vector<Round> rounds = Rounds(static_cast<int32_t>(first.size()));
  int64_t bytes = kFirstLarge;
  for (Round& round : rounds) {
    std::vector<Pair> pairs;
    for (const Flow& flow : round) pairs.emplace_back(first[flow.from], first[flow.to]);
    XCCL_ASSIGN_OR_RETURN(const std::vector<double> rates,
                          Rates(static_cast<int32_t>(found.host_of.size()), pairs, bytes, measure));
    for (size_t i = 0; i < round.size(); ++i) {
      Flow& flow = round[i];
      flow.rate = rates[i];
      found.out[flow.from] = std::max(found.out[flow.from], flow.rate);
      found.in[flow.to] = std::max(found.in[flow.to], flow.rate);
    }
  }
  FindLeaves(rounds, found);
  return OkStatus();
}

class Builder {
 public:
  Builder(std::string name, std::string source) {
    spec_.name = std::move(name);
    spec_.source = std::move(source);
  }
  HostId AddHost(const std::string& name) {
    spec_.hosts.push_back({name});
    return HostId(static_cast<int32_t>(spec_.hosts.size()) - 1);
  }
  NodeId AddNode(NodeKind kind, std::string id, std::optional<HostId> host) {
    spec_.nodes.push_back({.kind = kind, .id = std::move(id), .host = host});
    return NodeId(static_cast<int32_t>(spec_.nodes.size()) - 1);
  }
  void AddLink(NodeId from, NodeId to, double bytes_per_us, double latency_us, double overhead_us) {
    spec_.links.push_back({.from = from,
                           .to = to,
                           .bandwidth_bytes_per_s = std::max<int64_t>(1, std::llround(bytes_per_us * 1e6)),
                           .latency_ps = std::llround(latency_us * 1e6),
                           .overhead_ps = std::llround(overhead_us * 1e6)});
  }
  StatusOr<Topology> Take() { return Topology::Create(std::move(spec_)); }

 private:
  TopologySpec spec_;
};

}  // namespace

StatusOr<MeasuredHosts> MeasureHosts(const std::vector<int32_t>& hosts, std::vector<std::string> names,
                                     const MeasureRanks& measure) {
  const auto ranks = static_cast<int32_t>(hosts.size());
  MeasuredHosts found;
  found.host_of = hosts;
  found.names = std::move(names);
  found.out.assign(found.names.size(), 0);
  found.in = found.out;
  std::vector<std::vector<Rank>> of(found.names.size());
  for (int32_t r = 0; r < ranks; ++r) of[static_cast<size_t>(hosts[r])].push_back(Rank(r));
  const auto several = std::ranges::find_if(of, [](const auto& host) { return host.size() > 1; });
  if (several != of.end()) {
    XCCL_ASSIGN_OR_RETURN(found.inside, MeasurePair(ranks, (*several)[0], (*several)[1], measure));
  }
  if (of.size() == 1) {
    found.leaf = {0};
    found.up = found.down = {0};
    return found;
  }
  XCCL_ASSIGN_OR_RETURN(found.between, MeasurePair(ranks, of[0][0], of[1][0], measure));
  std::vector<Rank> first;
  for (const std::vector<Rank>& host : of) first.push_back(host[0]);
  XCCL_RETURN_IF_ERROR(MeasureRounds(first, measure, found));
  if (of[0].size() > 1 && of[1].size() > 1) {
    std::vector<Pair> pairs;
    for (size_t i = 0; i < std::min(of[0].size(), of[1].size()); ++i) pairs.emplace_back(of[0][i], of[1][i]);
    int64_t bytes = kFirstLarge;
    XCCL_ASSIGN_OR_RETURN(const std::vector<double> together, Rates(ranks, pairs, bytes, measure));
    // Count every flow with the rate of the slowest flow.
    found.several = *std::ranges::min_element(together) * static_cast<double>(pairs.size()) /
                    std::min({found.out[0], found.in[1], found.between.bytes_per_us});
  }
  return found;
}

StatusOr<Topology> TopologyOf(const MeasuredHosts& measured, const std::string& source) {
  Builder made("measured", source);
  const size_t hosts = measured.names.size();
  const bool leaves = measured.up.size() > 1;
  const double inside = measured.inside.bytes_per_us > 0 ? measured.inside.bytes_per_us
                                                         : std::max(1.0, 10 * measured.between.bytes_per_us);
  std::vector<NodeId> nics;
  for (size_t h = 0; h < hosts; ++h) {
    const HostId host = made.AddHost(measured.names[h]);
    std::vector<NodeId> gpus;
    for (const int32_t of : measured.host_of)
      if (of == static_cast<int32_t>(h))
        gpus.push_back(made.AddNode(NodeKind::kGpu, std::to_string(gpus.size()), host));
    if (gpus.size() > 1) {
      const NodeId memory = made.AddNode(NodeKind::kSwitch, "memory", host);
      for (const NodeId gpu : gpus) {
        made.AddLink(gpu, memory, inside, measured.inside.alpha_us / 2, measured.inside.overhead_us);
        made.AddLink(memory, gpu, inside, measured.inside.alpha_us / 2, 0);
      }
    }
    if (hosts == 1) continue;
    nics.push_back(made.AddNode(NodeKind::kNic, "nic", host));
    for (const NodeId gpu : gpus) {
      made.AddLink(gpu, nics[h], inside, 0, measured.between.overhead_us);
      made.AddLink(nics[h], gpu, inside, 0, 0);
    }
  }
  if (hosts == 1) return made.Take();
  const NodeId top = made.AddNode(NodeKind::kSwitch, leaves ? "spine" : "network", std::nullopt);
  std::vector<NodeId> leaf(measured.up.size(), top);
  for (size_t l = 0; leaves && l < leaf.size(); ++l) {
    leaf[l] = made.AddNode(NodeKind::kSwitch, fmt::format("leaf{}", l), std::nullopt);
    made.AddLink(leaf[l], top, measured.up[l], 0, 0);
    made.AddLink(top, leaf[l], measured.down[l], 0, 0);
  }
  for (size_t h = 0; h < hosts; ++h) {
    const NodeId to = leaf[static_cast<size_t>(measured.leaf[h])];
    made.AddLink(nics[h], to, measured.out[h], measured.between.alpha_us / 2, 0);
    made.AddLink(to, nics[h], measured.in[h], measured.between.alpha_us / 2, 0);
  }
  return made.Take();
}

}  // namespace xccl
