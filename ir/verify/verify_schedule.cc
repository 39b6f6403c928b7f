// Checks S1 over the columns and S2 once per distinct path, then S3..S6 by playing the transfers of one
// chunk after the other. Every rank that holds the chunk has a set of contributions, and all reads of a
// step come before its writes. In a compressed schedule, S7 comes first; then only chunks that represent
// their orbits are played. No translate of another transfer moves them, so a rule that holds for them holds,
// translated, for all chunks. Time: linear in transfers × chunks each moves × runs of members in a set (at
// most members ÷ 64). Memory: the sets that ranks hold of one chunk. On a damaged machine all of this is of
// the whole machine, and S8 leads its translates around the damage. A tree stays a tree when heirs take the
// places of lost ranks (S9), so that what is proved of the columns holds without them.
#include "ir/verify/verify_schedule.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>

#include "ir/analysis/chunk_index.h"
#include "ir/damaged.h"
#include "ir/verify/member_set.h"
#include "ir/verify/verify_damage.h"
#include "ir/verify/verify_path.h"
#include "ir/verify/verify_symmetry.h"

namespace xccl {
namespace {

constexpr int32_t kMaxSteps = 1 << 24;
constexpr int64_t kMaxMoves = int64_t{1} << 32;
constexpr int32_t kNoStep = std::numeric_limits<int32_t>::max();

// Keeps the first kMaxViolations by step; within a step, in order of discovery.
class Collector {
 public:
  void Add(std::string_view rule, int32_t step, std::string where, std::string text) {
    found_.push_back({step, Violation{std::string(rule), std::move(where), std::move(text)}});
    if (found_.size() >= 64 * kMaxViolations) Trim();
  }
  void AddAtStep(std::string_view rule, int32_t step, std::string text) {
    Add(rule, step, fmt::format("step {}", step), std::move(text));
  }
  bool empty() const { return found_.empty(); }
  std::vector<Violation> Take() {
    Trim();
    std::vector<Violation> violations;
    for (Found& found : found_) violations.push_back(std::move(found.violation));
    return violations;
  }

 private:
  struct Found {
    int32_t step;
    Violation violation;
  };
  void Trim() {
    std::stable_sort(found_.begin(), found_.end(),
                     [](const Found& a, const Found& b) { return a.step < b.step; });
    if (found_.size() > kMaxViolations) found_.resize(kMaxViolations);
  }
  std::vector<Found> found_;
};

// ---- S1 ----

void CheckColumnLengths(const Schedule& s, Collector& out) {
  const auto check = [&](std::string_view name, size_t size) {
    if (size != s.first.size())
      out.Add("S1", 0, fmt::format("schedule.{}", name),
              fmt::format("{} entries; expected {}, as schedule.first has", size, s.first.size()));
  };
  check("count", s.count.size());
  check("src", s.src.size());
  check("dst", s.dst.size());
  check("path", s.path.size());
  check("op", s.op.size());
  check("step", s.step.size());
  if (s.first.size() > static_cast<size_t>(std::numeric_limits<int32_t>::max()))
    out.Add("S1", 0, "schedule.first", fmt::format("{} transfers; at most 2^31-1 are supported", s.size()));
}

void CheckWhole(const Schedule& s, const Collective& collective, const Topology& topology, Collector& out) {
  if (s.num_chunks != collective.num_chunks())
    out.Add("S1", 0, "schedule.chunks",
            fmt::format("{}; {} has {}", s.num_chunks, collective.name(), collective.num_chunks()));
  if (s.symmetry.empty() &&
      (collective.num_parts() > kMostParts || s.num_chunks > std::numeric_limits<int32_t>::max()))
    out.Add("S1", 0, "schedule.chunks",
            fmt::format("{} of {} parts without symmetry; at most 2^31-1 of 2^26 are supported", s.num_chunks,
                        collective.num_parts()));
  for (Rank r : collective.ranks())
    if (r.value >= topology.num_ranks()) {
      out.Add(
          "S1", 0, "collective.ranks",
          fmt::format("rank {}; ranks of {} are 0..{}", r.value, topology.name(), topology.num_ranks() - 1));
      break;
    }
}

// The first value of transfer t that is out of range, or "".
std::string RangeError(const Schedule& s, int64_t t, int32_t ranks) {
  const Transfer x = s.at(t);
  if (x.count < 1) return fmt::format("count {}; expected at least 1", x.count);
  if (x.first.value < 0 || x.first.value >= s.num_chunks || x.count > s.num_chunks - x.first.value)
    return fmt::format("{} chunks from {} on; chunks are 0..{}", x.count, x.first.value, s.num_chunks - 1);
  if (x.src.value < 0 || x.src.value >= ranks)
    return fmt::format("src {}; ranks are 0..{}", x.src.value, ranks - 1);
  if (x.dst.value < 0 || x.dst.value >= ranks)
    return fmt::format("dst {}; ranks are 0..{}", x.dst.value, ranks - 1);
  if (x.src == x.dst) return fmt::format("rank {} sends to itself", x.src.value);
  if (x.path.value < 0 || x.path.value >= s.paths.size())
    return fmt::format("path {}; paths are 0..{}", x.path.value, s.paths.size() - 1);
  if (x.op != TransferOp::kCopy && x.op != TransferOp::kReduce) return "op is neither copy nor reduce";
  const int32_t before = t > 0 ? s.step[t - 1] : 0;
  if (t == 0 && x.step != 0) return fmt::format("step {}; the first step is 0", x.step);
  if (x.step < before) return fmt::format("step {} after step {}", x.step, before);
  if (x.step >= kMaxSteps) return fmt::format("step {}; at most {} steps are supported", x.step, kMaxSteps);
  return "";
}

void CheckTransfers(const Schedule& s, const Topology& topology, Collector& out) {
  int64_t moves = 0;
  for (int64_t t = 0; t < s.size(); ++t) {
    if (std::string error = RangeError(s, t, topology.num_ranks()); !error.empty())
      out.Add("S1", 0, fmt::format("transfer {}", t), std::move(error));
    moves += s.count[t];
  }
  if (moves > kMaxMoves)
    out.Add("S1", 0, "schedule.count",
            fmt::format("{} chunks are moved in all; at most 2^32 are supported", moves));
}

// ---- S2 ----

std::vector<PathShape> CheckPaths(const Schedule& s, const Topology& topology, Collector& out) {
  PathChecker checker(topology);
  std::vector<PathShape> shapes(static_cast<size_t>(s.paths.size()));
  for (int32_t p = 0; p < s.paths.size(); ++p) shapes[p] = checker.Check(s.paths[PathId(p)]);
  std::vector<bool> reported(shapes.size(), false);
  for (int64_t t = 0; t < s.size(); ++t) {
    const PathShape& shape = shapes[s.path[t].index()];
    const auto violate = [&](std::string_view text) {
      out.AddAtStep("S2", s.step[t],
                    fmt::format("path from rank {} to rank {} {}", s.src[t].value, s.dst[t].value, text));
    };
    if (!shape.ok) {
      if (!reported[s.path[t].index()]) violate(shape.error);
      reported[s.path[t].index()] = true;
    } else if (shape.sources.front() != s.src[t] || shape.destinations.front() != s.dst[t]) {
      violate(fmt::format("goes from rank {} to rank {}", shape.sources.front().value,
                          shape.destinations.front().value));
    }
  }
  return shapes;
}

// ---- S3..S6 ----

// Contributions for people: "{0,1,2}", "{0..7}", "nothing"; at most eight runs.
std::string SetText(std::vector<Rank> ranks) {
  if (ranks.empty()) return "nothing";
  std::sort(ranks.begin(), ranks.end());
  std::string text = "{";
  int32_t runs = 0;
  for (size_t i = 0; i < ranks.size();) {
    size_t j = i;
    while (j + 1 < ranks.size() && ranks[j + 1].value == ranks[j].value + 1) ++j;
    if (i > 0) text += ",";
    if (++runs > 8) return text + "...}";
    text +=
        j > i + 1 ? fmt::format("{}..{}", ranks[i].value, ranks[j].value) : fmt::format("{}", ranks[i].value);
    i = j > i + 1 ? j + 1 : i + 1;
  }
  return text + "}";
}

// Follows the hashes of contributions that ranks hold of one chunk, and adds the contributions that transfers
// carry to the traffic. Does nothing if there is no traffic. The traffic is meaningless if the schedule
// breaks a rule.
class CarriedHashes {
 public:
  CarriedHashes(Traffic* traffic, const Schedule& schedule, const Topology& topology,
                const std::vector<PathShape>& shapes)
      : traffic_(traffic), s_(schedule), shapes_(shapes) {
    if (traffic_ == nullptr) return;
    held_.resize(static_cast<size_t>(topology.num_ranks()));
    chains_.resize(shapes.size());
    PathChecker checker(topology);
    for (size_t p = 0; p < shapes.size(); ++p)
      if (shapes[p].ok)
        for (const std::vector<LinkId>& chain :
             checker.Branches(s_.paths[PathId(static_cast<int64_t>(p))], shapes[p]))
          chains_[p].push_back(Traffic::HashOf(chain));
  }

  void Begin(const Holding& holding) {
    if (traffic_ == nullptr) return;
    uint64_t& hash = held_[holding.rank.index()] = 0;
    for (Rank r : holding.contributions) hash += Traffic::HashOf(r);
  }

  void Step(ChunkId chunk, std::span<const int32_t> transfers) {
    if (traffic_ == nullptr) return;
    values_.clear();
    for (int32_t t : transfers) {
      const std::vector<uint64_t>& chains = chains_[s_.path[t].index()];
      const std::vector<Rank>& sources = shapes_[s_.path[t].index()].sources;
      for (size_t i = 0; i < chains.size(); ++i)
        traffic_->Add(chunk, chains[i], held_[sources[sources.size() > 1 ? i : 0].index()]);
      uint64_t& value = values_.emplace_back(0);
      for (Rank from : sources) value += held_[from.index()];
    }
    for (size_t i = 0; i < transfers.size(); ++i) {
      const int32_t t = transfers[i];
      for (Rank to : shapes_[s_.path[t].index()].destinations)
        held_[to.index()] = values_[i] + (s_.op[t] == TransferOp::kReduce ? held_[to.index()] : 0);
    }
  }

 private:
  Traffic* const traffic_;
  const Schedule& s_;
  const std::vector<PathShape>& shapes_;
  std::vector<std::vector<uint64_t>> chains_;  // by path: the hashes of its branches
  std::vector<uint64_t> held_;                 // by rank: hash of its set; stale if it holds nothing
  std::vector<uint64_t> values_;               // by transfer of the step: the hash of the set that it brings
};

class ChunkPlayer {
 public:
  ChunkPlayer(const Schedule& schedule, const Collective& collective, const Topology& topology,
              const std::vector<PathShape>& shapes, Collector& out, Traffic* traffic)
      : s_(schedule),
        collective_(collective),
        shapes_(shapes),
        out_(out),
        carried_(traffic, schedule, topology, shapes),
        sets_(static_cast<size_t>(topology.num_ranks()), MemberSet(collective.num_members())),
        wanted_(collective.num_members()),
        holds_(topology.num_ranks(), 0),
        written_(topology.num_ranks(), WriteKind::kNone) {}

  void Play(ChunkId chunk, std::span<const int32_t> transfers) {
    chunk_ = chunk;
    transfers_ = transfers;
    collective_.Before(chunk, conditions_);
    for (const Holding& holding : conditions_) {
      Hold(holding.rank);
      Fill(Set(holding.rank), holding.contributions);
      carried_.Begin(holding);
    }
    ForEachStep(s_, transfers, [&](std::span<const int32_t> same_step) { PlayStep(same_step); });
    CheckPostcondition();
    for (Rank r : holders_) {
      holds_[r.index()] = 0;
      Set(r).Clear();
    }
    holders_.clear();
  }

 private:
  enum class WriteKind : uint8_t { kNone, kCopy, kReduce };

  MemberSet& Set(Rank r) { return sets_[r.index()]; }
  void Hold(Rank r) {
    if (!holds_[r.index()]) holders_.push_back(r);
    holds_[r.index()] = 1;
  }
  void Fill(MemberSet& set, std::span<const Rank> ranks) const {
    set.Clear();
    for (Rank r : ranks) set.Add(*collective_.MemberIndex(r));
  }
  Rank RankOf(int32_t member) const { return collective_.ranks()[static_cast<size_t>(member)]; }
  std::vector<Rank> Members(const MemberSet& set) const {
    std::vector<Rank> members;
    for (const int32_t member : set.Members()) members.push_back(RankOf(member));
    return members;
  }
  // The first common member of two sets.
  std::optional<Rank> Common(const MemberSet& a, const MemberSet& b) const {
    const std::optional<int32_t> member = a.Common(b);
    return member ? std::optional(RankOf(*member)) : std::nullopt;
  }
  std::span<const Rank> Sources(int32_t t) const {
    const PathShape& shape = shapes_[s_.path[t].index()];
    return shape.ok ? std::span<const Rank>(shape.sources) : std::span(&s_.src[t], 1);
  }
  std::span<const Rank> Destinations(int32_t t) const {
    const PathShape& shape = shapes_[s_.path[t].index()];
    return shape.ok ? std::span<const Rank>(shape.destinations) : std::span(&s_.dst[t], 1);
  }

  // "which it first holds at step 3" or "which it never holds".
  std::string FirstHeld(Rank rank) const {
    for (int32_t t : transfers_) {
      const std::span<const Rank> to = Destinations(t);
      if (s_.op[t] == TransferOp::kCopy && std::find(to.begin(), to.end(), rank) != to.end())
        return fmt::format("which it first holds at step {}", s_.step[t] + 1);
    }
    return "which it never holds";
  }

  void PlayStep(std::span<const int32_t> transfers) {
    while (values_.size() < transfers.size()) values_.emplace_back(collective_.num_members());
    readable_.assign(transfers.size(), 1);
    for (size_t i = 0; i < transfers.size(); ++i) readable_[i] = Read(transfers[i], values_[i]);
    carried_.Step(chunk_, transfers);
    for (size_t i = 0; i < transfers.size(); ++i)
      if (readable_[i]) Store(transfers[i], values_[i]);
    for (int32_t t : transfers)
      for (Rank to : Destinations(t)) written_[to.index()] = WriteKind::kNone;
  }

  // Reads the contributions that transfer t carries, as they were before the step.
  bool Read(int32_t t, MemberSet& value) {
    value.Clear();
    for (Rank from : Sources(t)) {
      if (!holds_[from.index()]) {
        out_.AddAtStep("S3", s_.step[t],
                       fmt::format("rank {} sends chunk {}, {}", from.value, chunk_.value, FirstHeld(from)));
        return false;
      }
      const MemberSet& held = Set(from);
      if (const std::optional<Rank> twice = Common(value, held)) {
        out_.AddAtStep("S4", s_.step[t],
                       fmt::format("the switch before rank {} reduces chunk {} with contribution {} twice",
                                   s_.dst[t].value, chunk_.value, twice->value));
        return false;
      }
      value.Unite(held);
    }
    return true;
  }

  void Store(int32_t t, const MemberSet& value) {
    const bool reduce = s_.op[t] == TransferOp::kReduce;
    for (Rank to : Destinations(t)) {
      WriteKind& written = written_[to.index()];
      if (written == WriteKind::kCopy || (written == WriteKind::kReduce && !reduce)) {
        out_.AddAtStep(
            "S5", s_.step[t],
            fmt::format("rank {} is sent chunk {} twice, not both to reduce", to.value, chunk_.value));
        continue;
      }
      written = reduce ? WriteKind::kReduce : WriteKind::kCopy;
      MemberSet& held = Set(to);
      if (!reduce) {
        Hold(to);
        held = value;
        continue;
      }
      if (!holds_[to.index()]) {
        out_.AddAtStep(
            "S3", s_.step[t],
            fmt::format("rank {} reduces into chunk {}, {}", to.value, chunk_.value, FirstHeld(to)));
        continue;
      }
      if (const std::optional<Rank> twice = Common(value, held)) {
        out_.AddAtStep("S4", s_.step[t],
                       fmt::format("rank {} reduces contribution {} of chunk {} twice", to.value,
                                   twice->value, chunk_.value));
        continue;
      }
      held.Unite(value);
    }
  }

  void CheckPostcondition() {
    collective_.After(chunk_, conditions_);
    const Rank* same = nullptr;  // contributions of the previous entry; entries often share them
    for (const Holding& holding : conditions_) {
      if (holding.contributions.data() != same) {
        Fill(wanted_, holding.contributions);
        same = holding.contributions.data();
      }
      const MemberSet& held = Set(holding.rank);
      if (holds_[holding.rank.index()] && wanted_ == held) continue;
      const std::string have = holds_[holding.rank.index()] ? SetText(Members(held)) : "nothing";
      out_.Add("S6", kNoStep, "end",
               fmt::format("rank {} has {} of chunk {}; expected {}", holding.rank.value, have, chunk_.value,
                           SetText(Members(wanted_))));
    }
  }

  const Schedule& s_;
  const Collective& collective_;
  const std::vector<PathShape>& shapes_;
  Collector& out_;
  CarriedHashes carried_;
  std::vector<MemberSet> sets_;  // by rank; empty if it holds nothing
  MemberSet wanted_;
  std::vector<uint8_t> holds_;      // by rank
  std::vector<WriteKind> written_;  // by rank, in the step being played
  std::vector<Rank> holders_;
  std::vector<MemberSet> values_;  // by transfer of the step: the set of contributions that it brings
  std::vector<uint8_t> readable_;
  std::vector<Holding> conditions_;
  ChunkId chunk_;
  std::span<const int32_t> transfers_;
};

}  // namespace

std::vector<Violation> VerifySchedule(const Schedule& schedule, const Collective& of_machine,
                                      const Topology& machine, Traffic* traffic) {
  Collector out;
  CheckColumnLengths(schedule, out);
  if (!out.empty()) return out.Take();
  const auto report_damage = [&](std::string where, std::string text) {
    out.Add("S8", kNoStep, std::move(where), std::move(text));
  };
  const auto report_lost = [&](std::string where, std::string text) {
    out.Add("S9", kNoStep, std::move(where), std::move(text));
  };
  const std::optional<Topology> whole = CheckMissing(schedule, machine, report_damage);
  if (!out.empty()) return out.Take();
  const Topology& topology = whole ? *whole : machine;
  std::optional<Collective> of_whole;
  if (HasLostHosts(schedule)) {
    StatusOr<Collective> made = WholeOf(schedule.missing, of_machine, topology);
    if (made.ok())
      of_whole = *std::move(made);
    else
      report_lost("hosts", std::string(made.status().message()));
  } else if (!schedule.ways.empty()) {
    report_lost("ways", "no host is lost; expected none");
  }
  if (!out.empty()) return out.Take();
  const Collective& collective = of_whole ? *of_whole : of_machine;
  CheckWhole(schedule, collective, topology, out);
  CheckTransfers(schedule, topology, out);
  if (!out.empty()) return out.Take();
  // By chunk, up to the last that represents its translates. Empty in a plain schedule, where all do.
  std::vector<bool> represents;
  if (!schedule.symmetry.empty()) {
    represents = CheckSymmetry(schedule, collective, topology, [&](std::string where, std::string text) {
      out.Add("S7", 0, std::move(where), std::move(text));
    });
    if (!out.empty()) return out.Take();
  }
  const std::vector<PathShape> shapes = CheckPaths(schedule, topology, out);
  if (whole && out.empty()) CheckDetours(schedule, machine, *whole, report_damage);
  if (of_whole && out.empty()) CheckLostHosts(schedule, of_machine, machine, *whole, *of_whole, report_lost);
  ChunkPlayer player(schedule, collective, topology, shapes, out, of_whole ? nullptr : traffic);
  const bool is_plain = schedule.symmetry.empty();
  const auto add_moved = [&](int32_t transfer, int64_t chunk) {
    out.AddAtStep("S7", schedule.step[transfer],
                  fmt::format("chunk {} is moved, which is not of the lowest rank of its orbit", chunk));
  };
  const int64_t chunks = is_plain ? schedule.num_chunks : std::ssize(represents);
  for (int64_t t = 0; t < schedule.size(); ++t)
    if (int64_t{schedule.first[t].value} + schedule.count[t] > chunks)
      add_moved(static_cast<int32_t>(t), std::max<int64_t>(schedule.first[t].value, chunks));
  if (schedule.moved_chunks() > chunks) return out.Take();
  ForEachChunk(schedule, chunks, [&](ChunkId chunk, std::span<const int32_t> transfers) {
    if (is_plain || represents[chunk.index()]) return player.Play(chunk, transfers);
    if (!transfers.empty()) add_moved(transfers[0], chunk.value);
  });
  return out.Take();
}

}  // namespace xccl
