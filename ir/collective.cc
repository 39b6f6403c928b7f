// One table lists the parts of each kind, and the ranks that hold them before and after. Conditions and
// buffers follow from it, since a rank's input is the data that it holds and its output the data that it
// needs.
#include "ir/collective.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <set>

#include "base/strings.h"

namespace xccl {
namespace {

using Parts = KindTraits::Parts;
using Holders = KindTraits::Holders;

// By CollectiveKind.
constexpr auto kTraits = std::to_array<KindTraits>({
    {"allreduce", Parts::kOne, Holders::kAll, Holders::kAll},
    {"allgather", Parts::kPerMember, Holders::kOwn, Holders::kAll},
    {"allgatherv", Parts::kPerMember, Holders::kOwn, Holders::kAll, true},
    {"reduce_scatter", Parts::kPerMember, Holders::kAll, Holders::kOwn},
    {"reduce_scatterv", Parts::kPerMember, Holders::kAll, Holders::kOwn, true},
    {"broadcast", Parts::kOne, Holders::kRoot, Holders::kAll},
    {"reduce", Parts::kOne, Holders::kAll, Holders::kRoot},
    {"gather", Parts::kPerMember, Holders::kOwn, Holders::kRoot},
    {"scatter", Parts::kPerMember, Holders::kRoot, Holders::kOwn},
    {"alltoall", Parts::kPerPair, Holders::kOwn, Holders::kOwn},
    {"alltoallv", Parts::kPerPair, Holders::kOwn, Holders::kOwn, true},
    {"sendrecv", Parts::kListed, Holders::kOwn, Holders::kOwn},
    {"barrier", Parts::kOne, Holders::kAll, Holders::kAll},
    {"custom", Parts::kListed, Holders::kOwn, Holders::kOwn},
});
static_assert(kTraits.size() == static_cast<size_t>(CollectiveKind::kCustom) + 1);

constexpr auto kNamed = [] {
  std::array<CollectiveKind, kTraits.size() - 1> named{};
  for (size_t k = 0; k < named.size(); ++k) named[k] = static_cast<CollectiveKind>(k);
  return named;
}();

Status CheckCounts(const CollectiveSpec& spec) {
  const size_t n = spec.ranks.size();
  const int64_t expected = TraitsOf(spec.kind).counted ? NumParts(spec) : 0;
  if (std::ssize(spec.counts) != expected)
    return InvalidInput(fmt::format("{}: {} counts; expected {} for {} ranks", ToString(spec.kind),
                                    spec.counts.size(), expected, n));
  __int128 total = 0;
  for (int64_t count : spec.counts) {
    if (count < 0)
      return InvalidInput(fmt::format("{}: count {}; expected zero or more", ToString(spec.kind), count));
    total += count;
  }
  if (total > std::numeric_limits<int64_t>::max() / 2)
    return InvalidInput(fmt::format("{}: the counts' sum does not fit 63 bits; expected less than 2^62",
                                    ToString(spec.kind)));
  return OkStatus();
}

// Returns "a rank from 0 to 3" or, if some ranks in between are no members, "one of the 3 ranks from 0 to 6".
std::string OneOf(const std::set<Rank>& members) {
  const int32_t first = members.begin()->value, last = members.rbegin()->value;
  const auto ranks = static_cast<int32_t>(members.size());
  if (ranks == last - first + 1) return fmt::format("a rank from {} to {}", first, last);
  return fmt::format("one of the {} ranks from {} to {}", ranks, first, last);
}

Status CheckTable(const CollectiveSpec& spec, const std::vector<TableEntry>& table, std::string_view which,
                  const std::set<Rank>& members) {
  std::set<std::pair<Rank, PartId>> seen;
  for (const TableEntry& entry : table) {
    const auto bad = [&](std::string_view why) {
      return InvalidInput(fmt::format("{}: {} of rank {} part {}: {}", spec.custom_name, which,
                                      entry.rank.value, entry.part.value, why));
    };
    if (!members.contains(entry.rank)) return bad("expected " + OneOf(members));
    if (entry.part.value < 0 || entry.part.index() >= spec.custom_weights.size())
      return bad(
          fmt::format("no such part; parts are 0..{}", static_cast<int64_t>(spec.custom_weights.size()) - 1));
    if (entry.contributions.empty()) return bad("no contributions; expected at least one");
    if (!std::is_sorted(entry.contributions.begin(), entry.contributions.end()) ||
        std::adjacent_find(entry.contributions.begin(), entry.contributions.end()) !=
            entry.contributions.end())
      return bad("contributions out of order; expected distinct ranks in ascending order");
    for (Rank r : entry.contributions)
      if (!members.contains(r))
        return bad(fmt::format("contribution {}; expected {}", r.value, OneOf(members)));
    if (!seen.emplace(entry.rank, entry.part).second) return bad("given twice; expected once");
  }
  return OkStatus();
}

Status CheckParts(const CollectiveSpec& spec) {
  if (NumParts(spec) <= kMostParts ||
      (spec.kind == CollectiveKind::kAlltoall && std::ssize(spec.ranks) <= kMostOfAlltoall))
    return OkStatus();
  const std::string of_pairs = TraitsOf(spec.kind).parts == Parts::kPerPair
                                   ? fmt::format(", one for each pair of {} ranks", spec.ranks.size())
                                   : "";
  const std::string more = spec.kind == CollectiveKind::kAlltoall
                               ? fmt::format(", and in an alltoall as many as {} ranks have", kMostOfAlltoall)
                               : "";
  return InvalidInput(fmt::format("{}: {} parts{}; at most {} are supported{}", ToString(spec.kind),
                                  NumParts(spec), of_pairs, kMostParts, more));
}

Status CheckSpec(const CollectiveSpec& spec) {
  const std::string_view kind = ToString(spec.kind);
  if (spec.ranks.empty()) return InvalidInput(fmt::format("{}: no ranks; expected at least one", kind));
  std::set<Rank> members;
  for (Rank r : spec.ranks) {
    if (r.value < 0) return InvalidInput(fmt::format("{}: rank {}; expected zero or more", kind, r.value));
    if (!members.insert(r).second)
      return InvalidInput(fmt::format("{}: rank {} is given twice; expected each rank once", kind, r.value));
  }
  if (IsRooted(spec.kind) && !spec.root)
    return InvalidInput(fmt::format("{}: no root; hint: --root=0", kind));
  if (!IsRooted(spec.kind) && spec.root) return InvalidInput(fmt::format("{}: takes no root", kind));
  if (spec.root && !members.contains(*spec.root))
    return InvalidInput(fmt::format("{}: root {}; expected {}", kind, spec.root->value, OneOf(members)));
  XCCL_RETURN_IF_ERROR(CheckCounts(spec));
  if (spec.kind != CollectiveKind::kSendrecv && !spec.pairs.empty())
    return InvalidInput(fmt::format("{}: takes no pairs", kind));
  std::set<std::pair<Rank, Rank>> pairs;
  for (const auto& [from, to] : spec.pairs) {
    for (const Rank end : {from, to})
      if (!members.contains(end))
        return InvalidInput(fmt::format("{}: pair {}>{}: rank {}; expected {}", kind, from.value, to.value,
                                        end.value, OneOf(members)));
    if (!pairs.emplace(from, to).second)
      return InvalidInput(
          fmt::format("{}: pair {}>{} is given twice; expected each pair once", kind, from.value, to.value));
  }
  for (int64_t weight : spec.custom_weights)
    if (weight < 0) return InvalidInput(fmt::format("{}: weight {}; expected zero or more", kind, weight));
  XCCL_RETURN_IF_ERROR(CheckTable(spec, spec.pre, "precondition", members));
  XCCL_RETURN_IF_ERROR(CheckTable(spec, spec.post, "postcondition", members));
  return CheckParts(spec);
}

}  // namespace

int64_t NumParts(const CollectiveSpec& spec) {
  switch (TraitsOf(spec.kind).parts) {
    case Parts::kOne:
      return 1;
    case Parts::kPerMember:
      return std::ssize(spec.ranks);
    case Parts::kPerPair:
      return std::ssize(spec.ranks) * std::ssize(spec.ranks);
    case Parts::kListed:
      return spec.kind == CollectiveKind::kCustom ? std::ssize(spec.custom_weights) : std::ssize(spec.pairs);
  }
  return 0;
}

const KindTraits& TraitsOf(CollectiveKind kind) { return kTraits[static_cast<size_t>(kind)]; }
std::string_view ToString(CollectiveKind kind) { return TraitsOf(kind).name; }
std::span<const CollectiveKind> AllNamedCollectives() { return kNamed; }
bool IsRooted(CollectiveKind kind) {
  return TraitsOf(kind).before == Holders::kRoot || TraitsOf(kind).after == Holders::kRoot;
}
bool IsReduction(CollectiveKind kind) { return TraitsOf(kind).before == Holders::kAll; }
bool EndsAlike(CollectiveKind kind) { return TraitsOf(kind).after == Holders::kAll; }

StatusOr<CollectiveKind> ParseCollectiveKind(std::string_view name) {
  std::array<std::string_view, kNamed.size()> known;
  std::ranges::transform(kNamed, known.begin(), [](CollectiveKind kind) { return ToString(kind); });
  XCCL_ASSIGN_OR_RETURN(const size_t index, IndexOfName("collective", name, known));
  return kNamed[index];
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
    const auto index = [&](const std::vector<TableEntry>& table, TableIndex& made_index) {
      made_index.rows_of_part.resize(own.custom_weights.size());
      made_index.parts_of_member.resize(own.ranks.size());
      for (size_t i = 0; i < table.size(); ++i) {
        made_index.rows_of_part[table[i].part.index()].push_back(static_cast<int32_t>(i));
        made_index.parts_of_member[static_cast<size_t>(*made.MemberIndex(table[i].rank))].push_back(
            table[i].part);
      }
      for (std::vector<PartId>& parts : made_index.parts_of_member) std::sort(parts.begin(), parts.end());
    };
    index(own.pre, made.pre_);
    index(own.post, made.post_);
    for (const TableEntry& entry : own.post) made.reduces_ |= entry.contributions.size() > 1;
  } else {
    made.reduces_ = IsReduction(own.kind);
  }
  made.num_parts_ = NumParts(own);
  return made;
}

Collective Collective::WithChunks(int32_t chunks) const {
  XCCL_CHECK(chunks >= 1);
  Collective cut = *this;
  cut.CutEvenly(chunks);
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
  XCCL_CHECK(std::ssize(chunks) == num_parts());
  XCCL_CHECK(std::accumulate(chunks.begin(), chunks.end(), size_t{0}) == weights.size());
  XCCL_CHECK(std::ranges::all_of(chunks, [](int32_t count) { return count >= 1; }));
  XCCL_CHECK(std::ranges::all_of(weights, [](int64_t weight) { return weight >= 0; }));
  Collective cut = *this;
  cut.CutEvenly(chunks.empty() ? 1 : chunks.front());
  if (std::ranges::all_of(chunks, [&](int32_t count) { return count == chunks.front(); }) &&
      std::ranges::all_of(weights, [](int64_t weight) { return weight == 1; }))
    return cut;
  cut.even_chunks_ = 0;
  cut.chunk_part_.reserve(weights.size());
  cut.chunk_weight_.assign(weights.begin(), weights.end());
  cut.chunk_weight_before_.reserve(weights.size());
  cut.part_weight_.assign(chunks.size(), 0);
  cut.part_first_ = {0};
  for (size_t p = 0; p < chunks.size(); ++p) {
    for (int32_t i = 0; i < chunks[p]; ++i) {
      const int64_t weight = weights[cut.chunk_part_.size()];
      cut.chunk_part_.push_back(PartId(static_cast<int64_t>(p)));
      cut.chunk_weight_before_.push_back(cut.part_weight_[p]);
      cut.part_weight_[p] += weight;
    }
    cut.part_first_.push_back(static_cast<int32_t>(cut.chunk_part_.size()));
  }
  return cut;
}

void Collective::CutEvenly(int32_t chunks) {
  even_chunks_ = num_parts_ > 0 ? chunks : 1;
  part_first_ = {};
  chunk_part_ = {};
  chunk_weight_ = chunk_weight_before_ = part_weight_ = {};
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
  for (int32_t p = 1; even_chunks_ == 0 && p < num_parts(); ++p)
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

size_t Collective::HolderOf(PartId p, bool before) const {
  const KindTraits& traits = TraitsOf(spec_.kind);
  const size_t n = spec_.ranks.size();
  if ((before ? traits.before : traits.after) == Holders::kRoot)
    return static_cast<size_t>(*MemberIndex(*spec_.root));
  if (traits.parts == Parts::kPerPair) return before ? p.index() / n : p.index() % n;
  if (traits.parts == Parts::kPerMember) return p.index();
  const auto& [from, to] = spec_.pairs[p.index()];
  return static_cast<size_t>(*MemberIndex(before ? from : to));
}

void Collective::Conditions(PartId p, bool before, std::vector<Holding>& out) const {
  out.clear();
  if (spec_.kind == CollectiveKind::kCustom) {
    for (int32_t i : (before ? pre_ : post_).rows_of_part[p.index()]) {
      const TableEntry& entry = (before ? spec_.pre : spec_.post)[i];
      out.push_back({entry.rank, entry.contributions});
    }
    return;
  }
  const std::span<const Rank> members = spec_.ranks;
  const auto one = [&](size_t member) { return members.subspan(member, 1); };
  if ((before ? TraitsOf(spec_.kind).before : TraitsOf(spec_.kind).after) != Holders::kAll) {
    const std::span<const Rank> contributions =
        reduces_ ? std::span<const Rank>(sorted_ranks_) : one(HolderOf(p, true));
    out.push_back({members[HolderOf(p, before)], contributions});
    return;
  }
  for (size_t i = 0; i < members.size(); ++i)
    out.push_back({members[i], before ? one(i) : reduces_ ? sorted_ranks_ : one(HolderOf(p, true))});
}

std::vector<PartId> Collective::PartsAt(Rank r, bool before) const {
  const std::optional<int32_t> member = MemberIndex(r);
  if (!member) return {};
  if (spec_.kind == CollectiveKind::kCustom)
    return (before ? pre_ : post_).parts_of_member[static_cast<size_t>(*member)];
  const KindTraits& traits = TraitsOf(spec_.kind);
  const Holders holders = before ? traits.before : traits.after;
  if (holders == Holders::kRoot && r != *spec_.root) return {};
  if (holders == Holders::kOwn && traits.parts == Parts::kPerMember) return {PartId(*member)};
  std::vector<PartId> parts;
  const int64_t n = num_members();
  if (traits.parts == Parts::kPerPair) {
    for (int64_t other = 0; other < n; ++other)
      parts.push_back(PartId(before ? *member * n + other : other * n + *member));
    return parts;
  }
  for (int32_t p = 0; p < num_parts(); ++p) {
    const bool has =
        traits.parts != Parts::kListed || (before ? spec_.pairs[p].first : spec_.pairs[p].second) == r;
    if (has) parts.push_back(PartId(p));
  }
  return parts;
}

std::optional<Collective::InPlace> Collective::InPlaceOf(Rank r) const {
  const KindTraits& traits = TraitsOf(spec_.kind);
  const std::optional<int32_t> member = MemberIndex(r);
  if (!member || traits.parts == Parts::kPerPair || traits.parts == Parts::kListed) return std::nullopt;
  InPlace in_place;
  if (traits.parts == Parts::kOne) return in_place;
  const auto has_all = [&](Holders holders) {
    return holders == Holders::kAll || (holders == Holders::kRoot && r == *spec_.root);
  };
  if (has_all(traits.after)) in_place.input_at_output_part = *member;
  if (has_all(traits.before)) in_place.output_at_input_part = *member;
  return in_place;
}

}  // namespace xccl
