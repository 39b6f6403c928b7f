#include "synth/smt_instance.h"

#include <algorithm>
#include <map>
#include <numeric>
#include <queue>

#include "topologies/paths.h"

namespace xccl::smt {

Machine MakeMachine(const Topology& topology) {
  Machine machine;
  machine.ranks = topology.num_ranks();
  machine.out.resize(static_cast<size_t>(machine.ranks));
  machine.in.resize(static_cast<size_t>(machine.ranks));
  const NeighbourTable neighbours = GpuNeighbours(topology);
  std::map<LinkId, std::vector<int32_t>> users;
  int64_t divisor = 0;
  for (int32_t r = 0; r < machine.ranks; ++r) {
    for (const Neighbour& neighbour : neighbours[Rank(r)]) {
      Edge edge{.from = r, .to = neighbour.rank.value, .lanes = {}};
      if (neighbour.path.size() == 1) {
        for (LinkId l : topology.Out(topology.NodeOf(Rank(r))))
          if (topology.link(l).to == topology.NodeOf(neighbour.rank)) edge.lanes.push_back({l});
      } else {
        edge.lanes.emplace_back(neighbour.path.begin(), neighbour.path.end());
      }
      const int32_t id = static_cast<int32_t>(machine.edges.size());
      for (const std::vector<LinkId>& lane : edge.lanes) {
        int64_t fixed = 0;
        for (LinkId l : lane) {
          users[l].push_back(id);
          divisor = std::gcd(divisor, topology.link(l).bandwidth_bytes_per_s);
          fixed += topology.link(l).latency_ps + topology.link(l).overhead_ps;
        }
        machine.alpha_ps = std::max(machine.alpha_ps, fixed);
      }
      machine.out[r].push_back(id);
      machine.in[neighbour.rank.index()].push_back(id);
      machine.edges.push_back(std::move(edge));
    }
  }
  machine.bytes_per_s_of_one = std::max<int64_t>(1, divisor);
  machine.in_per_round.assign(static_cast<size_t>(machine.ranks), 0);
  machine.out_per_round.assign(static_cast<size_t>(machine.ranks), 0);
  std::map<std::vector<int32_t>, int64_t> direct;  // lanes of one edge add up
  for (const auto& [link, edges] : users) {
    const int64_t per_round = topology.link(link).bandwidth_bytes_per_s / machine.bytes_per_s_of_one;
    if (const auto tail = topology.RankOf(topology.link(link).from))
      machine.out_per_round[tail->index()] += per_round;
    if (const auto head = topology.RankOf(topology.link(link).to))
      machine.in_per_round[head->index()] += per_round;
    if (edges.size() == 1 && machine.edges[edges[0]].lanes.size() > 1) {
      direct[edges] += per_round;
    } else {
      machine.capacities.push_back({edges, per_round});
    }
  }
  for (const auto& [edges, per_round] : direct) machine.capacities.push_back({edges, per_round});
  return machine;
}

namespace {

// Edges from the nearest of some ranks to every rank; -1: not reached.
std::vector<int32_t> Distances(const Machine& machine, const std::vector<int32_t>& from) {
  std::vector<int32_t> distance(static_cast<size_t>(machine.ranks), -1);
  std::queue<int32_t> queue;
  for (int32_t r : from) {
    distance[r] = 0;
    queue.push(r);
  }
  while (!queue.empty()) {
    const int32_t r = queue.front();
    queue.pop();
    for (int32_t e : machine.out[r])
      if (const int32_t to = machine.edges[e].to; distance[to] < 0) {
        distance[to] = distance[r] + 1;
        queue.push(to);
      }
  }
  return distance;
}

}  // namespace

Farthest FarthestNeed(const Machine& machine, const greedy::CopyProblem& problem) {
  Farthest farthest;
  for (int32_t c = 0; c < problem.chunks; ++c) {
    if (problem.needers[c].empty()) continue;
    const std::vector<int32_t> distance = Distances(machine, problem.holders[c]);
    for (int32_t r : problem.needers[c])
      if (distance[r] > farthest.steps)
        farthest = {.steps = distance[r], .holder = problem.holders[c].front(), .needer = r};
  }
  return farthest;
}

Fullest FullestRank(const Machine& machine, const greedy::CopyProblem& problem) {
  std::vector<int64_t> in(static_cast<size_t>(machine.ranks), 0), out(static_cast<size_t>(machine.ranks), 0);
  for (int32_t c = 0; c < problem.chunks; ++c) {
    for (int32_t r : problem.needers[c]) ++in[r];
    if (problem.holders[c].size() == 1 && !problem.needers[c].empty()) ++out[problem.holders[c][0]];
  }
  Fullest fullest;
  for (int32_t r = 0; r < machine.ranks; ++r) {
    for (const bool incoming : {true, false}) {
      const int64_t chunks = incoming ? in[r] : out[r];
      const int64_t per_round = incoming ? machine.in_per_round[r] : machine.out_per_round[r];
      if (chunks == 0 || per_round == 0) continue;
      const int64_t rounds = (chunks + per_round - 1) / per_round;
      if (rounds > fullest.rounds) fullest = {rounds, chunks, per_round, r, incoming};
    }
  }
  return fullest;
}

Total TotalSends(const Machine& machine, const greedy::CopyProblem& problem) {
  Total total;
  for (int32_t c = 0; c < problem.chunks; ++c) {
    if (problem.needers[c].empty()) continue;
    const std::vector<int32_t> distance = Distances(machine, problem.holders[c]);
    int64_t sends = static_cast<int64_t>(problem.needers[c].size());
    for (int32_t r : problem.needers[c]) sends = std::max<int64_t>(sends, distance[r]);
    total.sends += sends;
  }
  total.per_round = std::accumulate(machine.in_per_round.begin(), machine.in_per_round.end(), int64_t{0});
  total.per_round = std::max<int64_t>(1, total.per_round);
  return total;
}

int64_t EncodingSize(const Instance& instance) {
  int64_t chunks = 0;
  for (const std::vector<int32_t>& needers : instance.problem->needers) chunks += needers.empty() ? 0 : 1;
  return chunks * static_cast<int64_t>(instance.machine->edges.size() + instance.machine->ranks) *
         instance.steps;
}

}  // namespace xccl::smt
