// Per pair of hosts: parts fill the rails up to a g-th of the pair's total each, first those that start or
// end on the rail, so that few take a hop inside. On a rail what starts there goes first and what ends there
// last, so that rails start before and end after the hops inside. A piece's stage is the one in which its
// middle falls; its hops are one step apart. What stays inside a host is spread over all stages.
#include "synth/textbook/two_tier.h"

#include <fmt/core.h>

#include <algorithm>

#include "synth/textbook/birkhoff.h"
#include "synth/textbook/positions.h"

namespace xccl {
namespace {

constexpr std::string_view kName = "hierarchical-alltoall";
constexpr int64_t kFinest = 128;  // pieces of a rail's load, about, that ends of stages may cut it into

// The parts of one pair of hosts, dealt to rails.
class Dealer {
 public:
  explicit Dealer(int32_t rails) : room_(static_cast<size_t>(rails)) {}

  struct Part {
    int32_t id = 0, from = 0, to = 0;  // places
    int64_t left = 0;
  };

  // Appends pieces rail by rail, each in the order in which they are to go.
  void Deal(std::vector<Part>& parts, int64_t total, std::vector<RailPiece>& pieces) {
    const int64_t rails = static_cast<int64_t>(room_.size());
    for (int64_t j = 0; j < rails; ++j)
      room_[static_cast<size_t>(j)] = total * (j + 1) / rails - total * j / rails;
    starting_.clear(), passing_.clear(), ending_.clear();
    for (Part& part : parts)
      if (part.from == part.to) Give(part, part.from, starting_);
    for (Part& part : parts) Give(part, part.from, starting_);
    for (Part& part : parts) Give(part, part.to, ending_);
    int32_t rail = 0;
    for (Part& part : parts) {
      while (part.left > 0) {
        while (room_[static_cast<size_t>(rail)] == 0) ++rail;
        Give(part, rail, passing_);
      }
    }
    for (const std::vector<RailPiece>* list : {&starting_, &passing_, &ending_})
      pieces.insert(pieces.end(), list->begin(), list->end());
  }

 private:
  void Give(Part& part, int32_t rail, std::vector<RailPiece>& to) {
    const int64_t amount = std::min(part.left, room_[static_cast<size_t>(rail)]);
    if (amount == 0) return;
    to.push_back({part.id, rail, amount});
    part.left -= amount;
    room_[static_cast<size_t>(rail)] -= amount;
  }

  std::vector<int64_t> room_;
  std::vector<RailPiece> starting_, passing_, ending_;
};

// For every pair of hosts the stages in which it is served, and how far it has come after each.
struct Service {
  std::vector<std::vector<std::pair<int32_t, int64_t>>> of_pair;
  int32_t stages = 0;
  int64_t fullest = 0;  // a host's demands, out or in
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

  // Appends a pair's pieces with their steps, cut at the ends of stages where both sides keep `least`. Those
  // of one rail come in the order in which they go.
  void AddSteps(size_t pair, int32_t rails, int64_t least, std::span<const RailPiece> dealt,
                std::vector<RailPiece>& pieces) const {
    const std::vector<std::pair<int32_t, int64_t>>& stages_of = of_pair[pair];
    std::vector<std::pair<size_t, int64_t>> at(static_cast<size_t>(rails));  // by rail: stage, amount before
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

// Units in which amounts are dealt: a g-th of what is counted, so that even counts deal evenly.
int64_t UnitsOf(const Collective& collective, int64_t rails) {
  constexpr int64_t kMostUnits = int64_t{1} << 40;
  if (collective.kind() == CollectiveKind::kAlltoall) return rails;
  const std::vector<int64_t>& counts = collective.spec().counts;
  const int64_t most = *std::max_element(counts.begin(), counts.end());
  return most <= kMostUnits / rails ? rails : 1;
}

// The collective cut into its pieces, which learn their chunks; parts of one piece stay whole.
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

}  // namespace

StatusOr<TwoTier> TwoTier::Place(const RankGraph& graph, std::span<const Rank> members) {
  XCCL_ASSIGN_OR_RETURN(const Hosts hosts, EqualHosts(graph, members, kName, "flow"));
  TwoTier made;
  made.graph_ = &graph;
  const size_t n = members.size();
  made.host_.resize(n);
  made.place_.resize(n);
  for (int32_t h = 0; h < hosts.hosts; ++h) {
    made.hosts_.emplace_back();
    for (int32_t k = 0; k < hosts.gpus; ++k) {
      made.host_[static_cast<size_t>(hosts.Member(h, k))] = h;
      made.place_[static_cast<size_t>(hosts.Member(h, k))] = k;
      made.hosts_.back().push_back(hosts.Member(h, k));
    }
  }
  made.hop_.resize(n * n);
  for (size_t a = 0; a < n; ++a) {
    for (size_t b = 0; b < n; ++b) {
      if (a == b || (made.host_[a] != made.host_[b] && made.place_[a] != made.place_[b])) continue;
      const std::optional<HopId> hop = graph.Find(members[a], members[b]);
      if (!hop)
        return InvalidInput(fmt::format(
            "{}: ranks {} and {} are not next to each other; expected a path through no other gpu inside "
            "hosts and between GPUs of one place; hint: --engine=flow",
            kName, members[a].value, members[b].value));
      made.hop_[a * n + b] = *hop;
    }
  }
  return made;
}

Synthesis TwoTier::Plan(const Collective& collective) const {
  const int32_t n = collective.num_members(), m = static_cast<int32_t>(hosts_.size());
  const int32_t g = static_cast<int32_t>(hosts_[0].size());
  const int64_t units = UnitsOf(collective, g);
  const bool even = collective.kind() == CollectiveKind::kAlltoall;
  const auto amount = [&](int32_t part) {
    return even ? units : units * collective.spec().counts[static_cast<size_t>(part)];
  };
  std::vector<int64_t> demands(static_cast<size_t>(m * m), 0);
  for (int32_t a = 0; a < n; ++a)
    for (int32_t b = 0; b < n; ++b)
      if (host_[a] != host_[b]) demands[host_[a] * m + host_[b]] += amount(a * n + b);
  const Service service(demands, m);

  std::vector<RailPiece> pieces;
  pieces.reserve(static_cast<size_t>(n) * static_cast<size_t>(n) * 5 / 4);
  Dealer dealer(g);
  std::vector<Dealer::Part> parts;
  std::vector<RailPiece> dealt;
  for (int32_t h = 0; h < m; ++h) {
    for (int32_t k = 0; k < m; ++k) {
      if (h == k || demands[h * m + k] == 0) continue;
      parts.clear();
      for (int32_t i = 0; i < g; ++i)
        for (int32_t j = 0; j < g; ++j)
          parts.push_back({hosts_[h][i] * n + hosts_[k][j], i, j, amount(hosts_[h][i] * n + hosts_[k][j])});
      dealt.clear();
      dealer.Deal(parts, demands[h * m + k], dealt);
      service.AddSteps(static_cast<size_t>(h * m + k), g, service.fullest / g / kFinest, dealt, pieces);
    }
  }
  Collective cut = CutInto(collective, pieces);
  Schedule schedule = Move(pieces, cut, service.stages);
  return {.collective = std::move(cut),
          .schedule = std::move(schedule),
          .exact = false,
          .engine = std::string(kName),
          .note = fmt::format("balanced over rails, {} stages", service.stages)};
}

Schedule TwoTier::Move(std::span<const RailPiece> pieces, const Collective& cut, int32_t stages) const {
  const int32_t n = cut.num_members(), m = static_cast<int32_t>(hosts_.size());
  const int32_t g = static_cast<int32_t>(hosts_[0].size());
  Schedule schedule;
  schedule.num_chunks = cut.num_chunks();
  schedule.Reserve(3 * static_cast<int64_t>(pieces.size()) + n * g);
  std::vector<PathId> path(static_cast<size_t>(graph_->num_hops()), PathId(-1));
  const auto send = [&](int32_t chunk, int32_t a, int32_t b, int32_t step) {
    if (a == b) return;
    const HopId h = hop_[static_cast<size_t>(a) * static_cast<size_t>(n) + static_cast<size_t>(b)];
    const Hop& hop = graph_->hop(h);
    PathId& links = path[h.index()];
    if (links.value < 0) links = schedule.paths.Intern(graph_->Links(h));
    schedule.Add({ChunkId(chunk), 1, hop.from, hop.to, links, TransferOp::kCopy, step});
  };
  for (const RailPiece& piece : pieces) {
    const int32_t a = piece.part / n, b = piece.part % n;
    const int32_t out = hosts_[host_[a]][piece.rail], in = hosts_[host_[b]][piece.rail];
    send(piece.chunk, a, out, piece.step);
    send(piece.chunk, out, in, piece.step + 1);
    send(piece.chunk, in, b, piece.step + 2);
  }
  const bool even = cut.kind() == CollectiveKind::kAlltoall;
  for (int32_t h = 0; h < m; ++h) {
    for (int32_t turn = 1; turn < g; ++turn) {
      for (int32_t i = 0; i < g; ++i) {
        const int32_t a = hosts_[h][i], b = hosts_[h][(i + turn) % g], part = a * n + b;
        if (even || cut.spec().counts[static_cast<size_t>(part)] > 0)
          send(cut.FirstChunk(PartId(part)).value, a, b, 1 + turn * stages / g);
      }
    }
  }
  Normalize(schedule);
  return schedule;
}

}  // namespace xccl
