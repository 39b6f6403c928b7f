// 1. Deal distributes the parts of each pair of hosts over the g rails, a g-th of the pair's total to each. A
// part goes first to the rails on which it starts or ends, so that few bytes take a hop inside a host. On a
// rail, parts that start there go first and parts that end there go last, so that rails are busy before,
// during and after the hops inside hosts.
// 2. Service lets Birkhoff's stages say when each pair of hosts is served. A piece gets the stage in which
// its middle falls, and is cut at the end of a stage if both sides are large enough.
// 3. CutInto makes each piece a chunk. ScheduleOf adds the three hops of each piece, one step apart. Parts
// that stay inside a host are spread over all stages.
#include "synth/textbook/two_tier.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>

#include "synth/textbook/birkhoff.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "hierarchical-alltoall";
// A cut leaves pieces of at least the busiest NIC's load ÷ kFinest, because each piece costs up to three
// messages.
constexpr int64_t kFinest = 128;

// An amount of one part that goes over one rail.
struct RailPiece {
  int32_t part = 0;
  int32_t rail = 0;
  int64_t amount = 0;
  int32_t chunk = 0;  // set by CutInto
  int32_t step = 0;   // step of the first hop
};

// A part of a pair of hosts. `from` and `to` are GPU numbers within the source and destination host. `left`
// is the amount that is not dealt to a rail yet.
struct PairPart {
  int32_t id = 0, from = 0, to = 0;
  int64_t left = 0;
};

// Deals the parts of one pair of hosts to rails. Returns the pieces, those of each rail in order of sending.
std::vector<RailPiece> Deal(std::vector<PairPart>& parts, int64_t total, int64_t rails) {
  std::vector<int64_t> room;
  for (int64_t j = 0; j < rails; ++j) room.push_back(total * (j + 1) / rails - total * j / rails);
  std::vector<RailPiece> pieces, passing, ending;
  const auto give = [&](PairPart& part, int32_t rail, std::vector<RailPiece>& to) {
    const int64_t amount = std::min(part.left, room[static_cast<size_t>(rail)]);
    if (amount == 0) return;
    to.push_back({part.id, rail, amount});
    part.left -= amount;
    room[static_cast<size_t>(rail)] -= amount;
  };
  for (PairPart& part : parts)
    if (part.from == part.to) give(part, part.from, pieces);
  for (PairPart& part : parts) give(part, part.from, pieces);
  for (PairPart& part : parts) give(part, part.to, ending);
  int32_t rail = 0;
  for (PairPart& part : parts) {
    while (part.left > 0) {
      while (room[static_cast<size_t>(rail)] == 0) ++rail;
      give(part, rail, passing);
    }
  }
  pieces.insert(pieces.end(), passing.begin(), passing.end());
  pieces.insert(pieces.end(), ending.begin(), ending.end());
  return pieces;
}

// For every pair of hosts: the stages that serve the pair, each with the amount that is served at its end.
struct Service {
  std::vector<std::vector<std::pair<int32_t, int64_t>>> of_pair;
  int32_t stages = 0;
  int64_t fullest = 0;  // largest demand out of or into one host
  Service(const std::vector<int64_t>& demands, int32_t hosts) : of_pair(demands.size()) {
    std::vector<int64_t> served(demands.size(), 0);
    for (const BirkhoffStage& stage : BirkhoffStages(demands, hosts)) {
      for (int32_t h = 0; h < hosts; ++h) {
        const size_t pair = static_cast<size_t>(h * hosts + stage.to[static_cast<size_t>(h)]);
        if (served[pair] >= demands[pair]) continue;
        served[pair] += stage.amount;
        of_pair[pair].push_back({stages, served[pair]});
      }
      ++stages;
      fullest += stage.amount;
    }
  }

  // Appends a pair's pieces with their steps. Cuts a piece at the end of a stage if both sides are at least
  // `least`. Requires that the pieces of one rail come in the order of sending.
  void AddSteps(size_t pair, int32_t rails, int64_t least, std::span<const RailPiece> dealt,
                std::vector<RailPiece>& pieces) const {
    const std::vector<std::pair<int32_t, int64_t>>& stages_of = of_pair[pair];
    std::vector<std::pair<size_t, int64_t>> at(static_cast<size_t>(rails));  // by rail: stage, amount sent
    for (RailPiece piece : dealt) {
      auto& [stage, before] = at[static_cast<size_t>(piece.rail)];
      for (; stage + 1 < stages_of.size(); ++stage) {
        const int64_t fits = stages_of[stage].second / rails - before;
        if (fits >= piece.amount) break;
        if (fits < least || piece.amount - fits < least) {
          if (2 * fits >= piece.amount) break;
          continue;
        }
        RailPiece first = piece;
        first.amount = fits;
        first.step = stages_of[stage].first;
        pieces.push_back(first);
        piece.amount -= fits;
        before += fits;
      }
      piece.step = stages_of[stage].first;
      pieces.push_back(piece);
      before += piece.amount;
    }
  }
};

// Returns the factor by which all amounts are multiplied before they are dealt: the number of rails, so that
// amounts divide evenly among rails; 1 if amounts would overflow.
int64_t UnitsOf(const Collective& collective, int64_t rails) {
  if (collective.kind() == CollectiveKind::kAlltoall) return rails;
  const std::vector<int64_t>& counts = collective.spec().counts;
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  // The sum of all units must not overflow when it is multiplied by the number of rails.
  const int64_t all = rails * rails * std::ssize(counts);
  return most <= std::numeric_limits<int64_t>::max() / all ? rails : 1;
}

// Returns the collective with a chunk for each piece and each part without pieces. Sets the pieces' chunks.
Collective CutInto(const Collective& collective, std::vector<RailPiece>& pieces) {
  const size_t parts = static_cast<size_t>(collective.num_parts());
  std::vector<int32_t> chunks(parts, 0), next(parts);
  for (const RailPiece& piece : pieces) ++chunks[static_cast<size_t>(piece.part)];
  int32_t total = 0;
  for (size_t p = 0; p < parts; ++p) {
    chunks[p] = std::max(chunks[p], 1);
    next[p] = total;
    total += chunks[p];
  }
  std::vector<int64_t> weights(static_cast<size_t>(total), 1);
  for (RailPiece& piece : pieces) {
    const size_t part = static_cast<size_t>(piece.part);
    piece.chunk = next[part]++;
    if (chunks[part] > 1) weights[static_cast<size_t>(piece.chunk)] = piece.amount;
  }
  return collective.WithWeights(chunks, weights);
}

// The hosts, and the hops inside hosts and along rails.
struct Machine {
  const RankGraph& graph;
  Hosts hosts;
  std::vector<int32_t> position = {};  // by member
  std::vector<HopId> hop = {};         // by source and destination member; unset if not used
  int32_t HostOf(int32_t member) const { return position[static_cast<size_t>(member)] / hosts.gpus; }
  int32_t PlaceOf(int32_t member) const { return position[static_cast<size_t>(member)] % hosts.gpus; }
};

StatusOr<Machine> MachineOf(const RankGraph& graph, std::span<const Rank> members) {
  XCCL_ASSIGN_OR_RETURN(Hosts hosts, EqualHosts(graph, members, kName, "flow"));
  Machine made{graph, std::move(hosts)};
  const int32_t n = static_cast<int32_t>(members.size());
  made.position.resize(members.size());
  for (int32_t p = 0; p < n; ++p) made.position[made.hosts.positions.member[p]] = p;
  made.hop.resize(members.size() * members.size());
  for (int32_t a = 0; a < n; ++a) {
    for (int32_t b = 0; b < n; ++b) {
      if (a == b || (made.HostOf(a) != made.HostOf(b) && made.PlaceOf(a) != made.PlaceOf(b))) continue;
      const std::optional<HopId> hop = graph.Find(members[a], members[b]);
      if (!hop)
        return InvalidInput(fmt::format(
            "{}: ranks {} and {} are not next to each other; expected a path through no other gpu inside "
            "hosts and between GPUs of one place; hint: --engine=flow",
            kName, members[a].value, members[b].value));
      made.hop[static_cast<size_t>(a) * members.size() + static_cast<size_t>(b)] = *hop;
    }
  }
  return made;
}

Schedule ScheduleOf(const Machine& machine, std::span<const RailPiece> pieces, const Collective& cut,
                    int32_t stages) {
  const Hosts& hosts = machine.hosts;
  const int32_t n = cut.num_members(), g = hosts.gpus;
  Schedule schedule;
  schedule.num_chunks = cut.num_chunks();
  schedule.Reserve(3 * static_cast<int64_t>(pieces.size()) + n * g);
  std::vector<PathId> path(static_cast<size_t>(machine.graph.num_hops()), PathId(-1));
  const auto send = [&](int32_t chunk, int32_t a, int32_t b, int32_t step) {
    if (a == b) return;
    const HopId h = machine.hop[static_cast<size_t>(a) * static_cast<size_t>(n) + static_cast<size_t>(b)];
    const Hop& hop = machine.graph.hop(h);
    PathId& links = path[h.index()];
    if (links.value < 0) links = schedule.paths.Intern(machine.graph.Links(h));
    schedule.Add({ChunkId(chunk), 1, hop.from, hop.to, links, TransferOp::kCopy, step});
  };
  for (const RailPiece& piece : pieces) {
    const int32_t a = piece.part / n, b = piece.part % n;
    const int32_t out = hosts.Member(machine.HostOf(a), piece.rail);
    const int32_t in = hosts.Member(machine.HostOf(b), piece.rail);
    send(piece.chunk, a, out, piece.step);
    send(piece.chunk, out, in, piece.step + 1);
    send(piece.chunk, in, b, piece.step + 2);
  }
  const bool even = cut.kind() == CollectiveKind::kAlltoall;
  for (int32_t h = 0; h < hosts.hosts; ++h) {
    for (int32_t turn = 1; turn < g; ++turn) {
      for (int32_t i = 0; i < g; ++i) {
        const int32_t a = hosts.Member(h, i), b = hosts.Member(h, (i + turn) % g), part = a * n + b;
        if (even || cut.spec().counts[static_cast<size_t>(part)] > 0)
          send(cut.FirstChunk(PartId(part)).value, a, b, 1 + turn * stages / g);
      }
    }
  }
  Normalize(schedule);
  return schedule;
}

}  // namespace

StatusOr<Synthesis> PlanTwoTier(const RankGraph& graph, const Collective& collective) {
  XCCL_ASSIGN_OR_RETURN(const Machine machine, MachineOf(graph, collective.ranks()));
  const Hosts& hosts = machine.hosts;
  const int32_t n = collective.num_members(), m = hosts.hosts, g = hosts.gpus;
  const int64_t units = UnitsOf(collective, g);
  const bool even = collective.kind() == CollectiveKind::kAlltoall;
  const auto parts_of = [&](int32_t h, int32_t k) {
    std::vector<PairPart> parts;
    for (int32_t i = 0; i < g; ++i) {
      for (int32_t j = 0; j < g; ++j) {
        const int32_t part = hosts.Member(h, i) * n + hosts.Member(k, j);
        const int64_t amount = even ? 1 : collective.spec().counts[static_cast<size_t>(part)];
        parts.push_back({part, i, j, units * amount});
      }
    }
    return parts;
  };
  std::vector<int64_t> demands(static_cast<size_t>(m * m), 0);
  for (int32_t h = 0; h < m; ++h)
    for (int32_t k = 0; k < m; ++k)
      for (const PairPart& part : parts_of(h, k))
        if (h != k) demands[h * m + k] += part.left;
  const Service service(demands, m);

  std::vector<RailPiece> pieces;
  pieces.reserve(static_cast<size_t>(n) * static_cast<size_t>(n) * 5 / 4);
  for (int32_t h = 0; h < m; ++h) {
    for (int32_t k = 0; k < m; ++k) {
      const int64_t demand = demands[h * m + k];
      if (demand == 0) continue;
      std::vector<PairPart> parts = parts_of(h, k);
      service.AddSteps(static_cast<size_t>(h * m + k), g, std::max<int64_t>(1, service.fullest / g / kFinest),
                       Deal(parts, demand, g), pieces);
    }
  }
  Collective cut = CutInto(collective, pieces);
  Schedule schedule = ScheduleOf(machine, pieces, cut, service.stages);
  return Synthesis{.collective = std::move(cut),
                   .schedule = std::move(schedule),
                   .exact = false,
                   .engine = std::string(kName),
                   .note = fmt::format("balanced over rails, {} stages", service.stages)};
}

}  // namespace xccl
