// Each kind answers three questions: how many parts it has, who holds a part before, and who needs it
// after. Conditions gives the last two; buffers follow from it, since a rank's input is what it holds and
// its output what it needs.
#include "ir/collective.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>

#include "base/strings.h"

namespace xccl {
namespace {

constexpr std::array<CollectiveKind, 13> kNamed = {
    CollectiveKind::kAllreduce,     CollectiveKind::kAllgather,      CollectiveKind::kAllgatherv,
    CollectiveKind::kReduceScatter, CollectiveKind::kReduceScatterv, CollectiveKind::kBroadcast,
    CollectiveKind::kReduce,        CollectiveKind::kGather,         CollectiveKind::kScatter,
    CollectiveKind::kAlltoall,      CollectiveKind::kAlltoallv,      CollectiveKind::kSendrecv,
    CollectiveKind::kBarrier};

struct KindTraits {
  bool rooted = false, reduces = false, ends_alike = false;
};

KindTraits TraitsOf(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
      return {.reduces = true, .ends_alike = true};
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
      return {.reduces = true};
    case CollectiveKind::kReduce:
      return {.rooted = true, .reduces = true};
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
      return {.ends_alike = true};
    case CollectiveKind::kBroadcast:
      return {.rooted = true, .ends_alike = true};
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return {.rooted = true};
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
    case CollectiveKind::kCustom:
      return {};
  }
  return {};
}

Status CheckCounts(const CollectiveSpec& spec) {
  const size_t n = spec.ranks.size();
  size_t expected = 0;
  if (spec.kind == CollectiveKind::kAllgatherv || spec.kind == CollectiveKind::kReduceScatterv) expected = n;
  if (spec.kind == CollectiveKind::kAlltoallv) expected = n * n;
  if (spec.counts.size() != expected)
    return InvalidInput(fmt::format("{}: {} counts; expected {} for {} ranks", ToString(spec.kind),
                                    spec.counts.size(), expected, n));
  __int128 total = 0;
  for (int64_t count : spec.counts) {
    if (count < 0)
      return InvalidInput(fmt::format("{}: count {}; expected zero or more", ToString(spec.kind), count));
    total += count;
  }
  if (total > std::numeric_limits<int64_t>::max() / 2)
    return InvalidInput(fmt::format("{}: the counts' sum does not fit 63 bits", ToString(spec.kind)));
  return OkStatus();
}

Status CheckTable(const CollectiveSpec& spec, const std::vector<TableEntry>& table, std::string_view which,
                  const std::set<Rank>& members) {
  std::set<std::pair<Rank, PartId>> seen;
  for (const TableEntry& entry : table) {
    const auto bad = [&](std::string_view why) {
      return InvalidInput(fmt::format("{}: {} of rank {} part {}: {}", spec.custom_name, which,
                                      entry.rank.value, entry.part.value, why));
    };
    if (!members.contains(entry.rank)) return bad("the rank is not a member");
    if (entry.part.value < 0 || entry.part.index() >= spec.custom_weights.size())
      return bad(
          fmt::format("no such part; parts are 0..{}", static_cast<int64_t>(spec.custom_weights.size()) - 1));
    if (entry.contributions.empty()) return bad("no contributions");
    if (!std::is_sorted(entry.contributions.begin(), entry.contributions.end()) ||
        std::adjacent_find(entry.contributions.begin(), entry.contributions.end()) !=
            entry.contributions.end())
      return bad("contributions must be distinct and sorted");
    for (Rank r : entry.contributions)
      if (!members.contains(r)) return bad(fmt::format("contribution {} is not a member", r.value));
    if (!seen.emplace(entry.rank, entry.part).second) return bad("given twice");
  }
  return OkStatus();
}

Status CheckSpec(const CollectiveSpec& spec) {
  const std::string_view kind = ToString(spec.kind);
  if (spec.ranks.empty()) return InvalidInput(fmt::format("{}: no ranks; expected at least one", kind));
  std::set<Rank> members;
  for (Rank r : spec.ranks) {
    if (r.value < 0) return InvalidInput(fmt::format("{}: rank {}; expected zero or more", kind, r.value));
    if (!members.insert(r).second)
      return InvalidInput(fmt::format("{}: rank {} is given twice", kind, r.value));
  }
  if (IsRooted(spec.kind) && !spec.root)
    return InvalidInput(fmt::format("{}: no root; hint: --root=0", kind));
  if (!IsRooted(spec.kind) && spec.root) return InvalidInput(fmt::format("{}: takes no root", kind));
  if (spec.root && !members.contains(*spec.root))
    return InvalidInput(fmt::format("{}: root {} is not one of the ranks", kind, spec.root->value));
  XCCL_RETURN_IF_ERROR(CheckCounts(spec));
  if (spec.kind != CollectiveKind::kSendrecv && !spec.pairs.empty())
    return InvalidInput(fmt::format("{}: takes no pairs", kind));
  std::set<std::pair<Rank, Rank>> pairs;
  for (const auto& [from, to] : spec.pairs) {
    if (!members.contains(from) || !members.contains(to))
      return InvalidInput(fmt::format("{}: pair {}>{}: not both are members", kind, from.value, to.value));
    if (!pairs.emplace(from, to).second)
      return InvalidInput(fmt::format("{}: pair {}>{} is given twice", kind, from.value, to.value));
  }
  for (int64_t weight : spec.custom_weights)
    if (weight < 0) return InvalidInput(fmt::format("{}: weight {}; expected zero or more", kind, weight));
  XCCL_RETURN_IF_ERROR(CheckTable(spec, spec.pre, "precondition", members));
  XCCL_RETURN_IF_ERROR(CheckTable(spec, spec.post, "postcondition", members));
  if (NumParts(spec) > std::numeric_limits<int32_t>::max() / 2)
    return InvalidInput(fmt::format("{}: {} parts; at most 2^30 are supported", kind, NumParts(spec)));
  return OkStatus();
}

}  // namespace

int64_t NumParts(const CollectiveSpec& spec) {
  const int64_t n = static_cast<int64_t>(spec.ranks.size());
  switch (spec.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
    case CollectiveKind::kBarrier:
      return 1;
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
    case CollectiveKind::kGather:
    case CollectiveKind::kScatter:
      return n;
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
      return n * n;
    case CollectiveKind::kSendrecv:
      return static_cast<int64_t>(spec.pairs.size());
    case CollectiveKind::kCustom:
      return static_cast<int64_t>(spec.custom_weights.size());
  }
  return 0;
}

std::string_view ToString(CollectiveKind kind) {
  switch (kind) {
    case CollectiveKind::kAllreduce:
      return "allreduce";
    case CollectiveKind::kAllgather:
      return "allgather";
    case CollectiveKind::kAllgatherv:
      return "allgatherv";
    case CollectiveKind::kReduceScatter:
      return "reduce_scatter";
    case CollectiveKind::kReduceScatterv:
      return "reduce_scatterv";
    case CollectiveKind::kBroadcast:
      return "broadcast";
    case CollectiveKind::kReduce:
      return "reduce";
    case CollectiveKind::kGather:
      return "gather";
    case CollectiveKind::kScatter:
      return "scatter";
    case CollectiveKind::kAlltoall:
      return "alltoall";
    case CollectiveKind::kAlltoallv:
      return "alltoallv";
    case CollectiveKind::kSendrecv:
      return "sendrecv";
    case CollectiveKind::kBarrier:
      return "barrier";
    case CollectiveKind::kCustom:
      return "custom";
  }
  return "";
}

std::span<const CollectiveKind> AllNamedCollectives() { return kNamed; }
bool IsRooted(CollectiveKind kind) { return TraitsOf(kind).rooted; }
bool IsReduction(CollectiveKind kind) { return TraitsOf(kind).reduces; }
bool EndsAlike(CollectiveKind kind) { return TraitsOf(kind).ends_alike; }

StatusOr<CollectiveKind> ParseCollectiveKind(std::string_view name) {
  std::vector<std::string_view> known;
  for (CollectiveKind kind : kNamed) {
    if (ToString(kind) == name) return kind;
    known.push_back(ToString(kind));
  }
  return InvalidInput(fmt::format("no collective '{}'{}", name, DidYouMean(name, known)));
}

StatusOr<Collective> Collective::Create(CollectiveSpec spec) {
  XCCL_RETURN_IF_ERROR(CheckSpec(spec));
  Collective made;
  made.spec_ = std::move(spec);
  const CollectiveSpec& own = made.spec_;
  made.sorted_ranks_ = own.ranks;
  std::sort(made.sorted_ranks_.begin(), made.sorted_ranks_.end());
  made.member_of_rank_.assign(made.sorted_ranks_.back().index() + 1, -1);
  for (size_t i = 0; i < own.ranks.size(); ++i)
    made.member_of_rank_[own.ranks[i].index()] = static_cast<int32_t>(i);
  if (own.kind == CollectiveKind::kCustom) {
    made.pre_of_part_.resize(own.custom_weights.size());
    made.post_of_part_.resize(own.custom_weights.size());
    const auto index = [&](const std::vector<TableEntry>& table, std::vector<std::vector<int32_t>>& of_part,
                           std::vector<std::vector<PartId>>& of_member) {
      of_member.resize(own.ranks.size());
      for (size_t i = 0; i < table.size(); ++i) {
        of_part[table[i].part.index()].push_back(static_cast<int32_t>(i));
        of_member[static_cast<size_t>(made.member_of_rank_[table[i].rank.index()])].push_back(table[i].part);
      }
      for (std::vector<PartId>& parts : of_member) std::sort(parts.begin(), parts.end());
    };
    index(own.pre, made.pre_of_part_, made.pre_of_member_);
    index(own.post, made.post_of_part_, made.post_of_member_);
    for (const TableEntry& entry : own.post) made.reduces_ |= entry.contributions.size() > 1;
  } else {
    made.reduces_ = IsReduction(own.kind);
  }
  made.part_first_.assign(static_cast<size_t>(NumParts(own)) + 1, 0);
  const int32_t whole = 1;
  made.Cut(std::span(&whole, 1), {});
  return made;
}

Collective Collective::WithChunks(int32_t chunks) const {
  XCCL_CHECK(chunks >= 1);
  Collective cut = *this;
  cut.Cut(std::span(&chunks, 1), {});
  return cut;
}

Collective Collective::WithWeights(const std::vector<std::vector<int64_t>>& weights) const {
  std::vector<int32_t> chunks;
  std::vector<int64_t> flat;
  chunks.reserve(weights.size());
  for (const std::vector<int64_t>& part : weights) {
    chunks.push_back(static_cast<int32_t>(part.size()));
    flat.insert(flat.end(), part.begin(), part.end());
  }
  return WithWeights(chunks, flat);
}

Collective Collective::WithWeights(std::span<const int32_t> chunks, std::span<const int64_t> weights) const {
  XCCL_CHECK(static_cast<int32_t>(chunks.size()) == num_parts());
  XCCL_CHECK(std::accumulate(chunks.begin(), chunks.end(), size_t{0}) == weights.size());
  Collective cut = *this;
  cut.Cut(chunks, weights);
  return cut;
}

void Collective::Cut(std::span<const int32_t> chunks, std::span<const int64_t> weights) {
  const size_t parts = part_first_.size() - 1;
  const auto count_of = [&](size_t p) { return chunks.size() == 1 ? chunks[0] : chunks[p]; };
  size_t total = 0;
  for (size_t p = 0; p < parts; ++p) total += static_cast<size_t>(count_of(p));
  chunk_part_.clear();
  chunk_weight_.clear();
  chunk_weight_before_.clear();
  chunk_part_.reserve(total);
  chunk_weight_.reserve(total);
  chunk_weight_before_.reserve(total);
  part_weight_.assign(parts, 0);
  for (size_t p = 0; p < parts; ++p) {
    XCCL_CHECK(count_of(p) >= 1);
    part_first_[p] = static_cast<int32_t>(chunk_part_.size());
    for (int32_t i = 0; i < count_of(p); ++i) {
      const int64_t weight = weights.empty() ? 1 : weights[chunk_part_.size()];
      XCCL_CHECK(weight >= 0);
      chunk_part_.push_back(PartId(static_cast<int64_t>(p)));
      chunk_weight_.push_back(weight);
      chunk_weight_before_.push_back(part_weight_[p]);
      part_weight_[p] += weight;
    }
  }
  part_first_[parts] = static_cast<int32_t>(chunk_part_.size());
}

std::string Collective::name() const {
  return spec_.kind == CollectiveKind::kCustom ? spec_.custom_name : std::string(ToString(spec_.kind));
}

std::optional<int32_t> Collective::MemberIndex(Rank r) const {
  if (r.value < 0 || r.index() >= member_of_rank_.size() || member_of_rank_[r.index()] < 0)
    return std::nullopt;
  return member_of_rank_[r.index()];
}

bool Collective::HasEvenParts() const {
  for (int32_t p = 1; p < num_parts(); ++p)
    if (ChunksOf(PartId(p)) != ChunksOf(PartId(0))) return false;
  return true;
}

bool Collective::AlwaysEmpty(ChunkId c) const {
  const size_t part = PartOf(c).index();
  const bool empty_part = spec_.kind == CollectiveKind::kCustom
                              ? spec_.custom_weights[part] == 0
                              : !spec_.counts.empty() && spec_.counts[part] == 0;
  return empty_part || Weight(c) == 0;
}

void Collective::Conditions(PartId p, bool before, std::vector<Holding>& out) const {
  out.clear();
  const std::span<const Rank> members = spec_.ranks;
  const auto one = [&](size_t member) { return members.subspan(member, 1); };
  const auto each_its_own = [&] {
    for (size_t i = 0; i < members.size(); ++i) out.push_back({members[i], one(i)});
  };
  const auto everyone = [&](std::span<const Rank> contributions) {
    for (Rank r : members) out.push_back({r, contributions});
  };
  const auto root = [&] { return static_cast<size_t>(*MemberIndex(*spec_.root)); };
  const size_t n = members.size();
  switch (spec_.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
      before ? each_its_own() : everyone(sorted_ranks_);
      return;
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
      before ? out.push_back({members[p.index()], one(p.index())}) : everyone(one(p.index()));
      return;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
      before ? each_its_own() : out.push_back({members[p.index()], sorted_ranks_});
      return;
    case CollectiveKind::kBroadcast:
      before ? out.push_back({*spec_.root, one(root())}) : everyone(one(root()));
      return;
    case CollectiveKind::kReduce:
      before ? each_its_own() : out.push_back({*spec_.root, sorted_ranks_});
      return;
    case CollectiveKind::kGather:
      out.push_back({before ? members[p.index()] : *spec_.root, one(p.index())});
      return;
    case CollectiveKind::kScatter:
      out.push_back({before ? *spec_.root : members[p.index()], one(root())});
      return;
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
      out.push_back({members[before ? p.index() / n : p.index() % n], one(p.index() / n)});
      return;
    case CollectiveKind::kSendrecv: {
      const auto& [from, to] = spec_.pairs[p.index()];
      out.push_back({before ? from : to, one(static_cast<size_t>(*MemberIndex(from)))});
      return;
    }
    case CollectiveKind::kCustom:
      for (int32_t i : (before ? pre_of_part_ : post_of_part_)[p.index()]) {
        const TableEntry& entry = (before ? spec_.pre : spec_.post)[i];
        out.push_back({entry.rank, entry.contributions});
      }
      return;
  }
}

std::vector<PartId> Collective::InputParts(Rank r) const {
  std::vector<PartId> parts;
  const std::optional<int32_t> member = MemberIndex(r);
  if (!member) return parts;
  const int64_t n = num_members();
  const auto all = [&](int64_t count) {
    for (int64_t p = 0; p < count; ++p) parts.push_back(PartId(p));
  };
  switch (spec_.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kReduce:
      all(1);
      break;
    case CollectiveKind::kBroadcast:
      if (r == *spec_.root) all(1);
      break;
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
    case CollectiveKind::kGather:
      parts.push_back(PartId(*member));
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
      all(n);
      break;
    case CollectiveKind::kScatter:
      if (r == *spec_.root) all(n);
      break;
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
      for (int64_t to = 0; to < n; ++to) parts.push_back(PartId(*member * n + to));
      break;
    case CollectiveKind::kSendrecv:
      for (size_t p = 0; p < spec_.pairs.size(); ++p)
        if (spec_.pairs[p].first == r) parts.push_back(PartId(static_cast<int64_t>(p)));
      break;
    case CollectiveKind::kCustom:
      parts = pre_of_member_[static_cast<size_t>(*member)];
      break;
  }
  return parts;
}

std::vector<PartId> Collective::OutputParts(Rank r) const {
  std::vector<PartId> parts;
  const std::optional<int32_t> member = MemberIndex(r);
  if (!member) return parts;
  const int64_t n = num_members();
  const auto all = [&](int64_t count) {
    for (int64_t p = 0; p < count; ++p) parts.push_back(PartId(p));
  };
  switch (spec_.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kBroadcast:
      all(1);
      break;
    case CollectiveKind::kReduce:
      if (r == *spec_.root) all(1);
      break;
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
      all(n);
      break;
    case CollectiveKind::kGather:
      if (r == *spec_.root) all(n);
      break;
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
    case CollectiveKind::kScatter:
      parts.push_back(PartId(*member));
      break;
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
      for (int64_t from = 0; from < n; ++from) parts.push_back(PartId(from * n + *member));
      break;
    case CollectiveKind::kSendrecv:
      for (size_t p = 0; p < spec_.pairs.size(); ++p)
        if (spec_.pairs[p].second == r) parts.push_back(PartId(static_cast<int64_t>(p)));
      break;
    case CollectiveKind::kCustom:
      parts = post_of_member_[static_cast<size_t>(*member)];
      break;
  }
  return parts;
}

std::optional<Collective::InPlace> Collective::InPlaceOf(Rank r) const {
  const std::optional<int32_t> member = MemberIndex(r);
  if (!member) return std::nullopt;
  switch (spec_.kind) {
    case CollectiveKind::kAllreduce:
    case CollectiveKind::kBarrier:
    case CollectiveKind::kBroadcast:
    case CollectiveKind::kReduce:
      return InPlace{};
    case CollectiveKind::kAllgather:
    case CollectiveKind::kAllgatherv:
      return InPlace{.input_at_output_part = *member};
    case CollectiveKind::kGather:
      return r == *spec_.root ? InPlace{.input_at_output_part = *member} : InPlace{};
    case CollectiveKind::kReduceScatter:
    case CollectiveKind::kReduceScatterv:
      return InPlace{.output_at_input_part = *member};
    case CollectiveKind::kScatter:
      return r == *spec_.root ? InPlace{.output_at_input_part = *member} : InPlace{};
    case CollectiveKind::kAlltoall:
    case CollectiveKind::kAlltoallv:
    case CollectiveKind::kSendrecv:
    case CollectiveKind::kCustom:
      return std::nullopt;
  }
  return std::nullopt;
}

}  // namespace xccl
