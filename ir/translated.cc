// A translation is composed of three maps: element and rank to rank, rank to member, member or pair to block.
#include "ir/translated.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <span>

#include "ir/damaged.h"
#include "ir/taken_over.h"

namespace xccl {

StatusOr<ChunkBlocks> ChunkBlocksOf(const Collective& collective) {
  ChunkBlocks blocks;
  const KindTraits& traits = TraitsOf(collective.kind());
  blocks.of_pairs = traits.parts == KindTraits::Parts::kPerPair;
  if (collective.kind() == CollectiveKind::kAllreduce) {
    const int32_t n = collective.num_members();
    if (collective.num_chunks() % n != 0)
      return InvalidInput(fmt::format("allreduce has {} chunks on {} ranks; expected a multiple",
                                      collective.num_chunks(), n));
    blocks.chunks_of_each = static_cast<int32_t>(collective.num_chunks() / n);
    return blocks;
  }
  const bool per_member = traits.parts == KindTraits::Parts::kPerMember && !IsRooted(collective.kind());
  if (!per_member && !blocks.of_pairs) return InvalidInput(collective.name() + " has no part for each rank");
  blocks.chunks_of_each = collective.even_chunks();
  if (blocks.chunks_of_each > 0) return blocks;
  for (int32_t p = 0; p < collective.num_parts(); ++p)
    blocks.first.push_back(collective.FirstChunk(PartId(p)).value);
  blocks.first.push_back(static_cast<int32_t>(collective.num_chunks()));
  for (int32_t c = 0; c < collective.num_chunks(); ++c)
    blocks.of_chunk.push_back(collective.PartOf(ChunkId(c)).value);
  return blocks;
}

StatusOr<Translations> Translations::Create(const Schedule& schedule, const Collective& of_machine,
                                            const Topology& machine) {
  std::optional<Topology> whole;
  std::optional<Collective> of_whole;
  if (IsOfDamaged(schedule)) {
    XCCL_ASSIGN_OR_RETURN(whole, WholeOf(schedule, machine));
  }
  if (HasLostHosts(schedule)) {
    XCCL_ASSIGN_OR_RETURN(of_whole, WholeOf(schedule.missing, of_machine, *whole));
  }
  const Collective& collective = of_whole ? *of_whole : of_machine;
  const Topology& topology = whole ? *whole : machine;
  XCCL_ASSIGN_OR_RETURN(SymmetryGroup group, SymmetryGroup::Create(topology, schedule.symmetry));
  Translations made(std::move(group));
  XCCL_ASSIGN_OR_RETURN(made.blocks_, ChunkBlocksOf(collective));
  made.members_there_ = of_machine.num_members();
  made.members_.assign(collective.ranks().begin(), collective.ranks().end());
  made.member_of_rank_.assign(static_cast<size_t>(topology.num_ranks()), -1);
  for (size_t m = 0; m < made.members_.size(); ++m)
    made.member_of_rank_[made.members_[m].index()] = static_cast<int32_t>(m);
  for (const Rank r : made.members_)
    for (const Automorphism& g : schedule.symmetry)
      if (made.member_of_rank_[topology.RankOf(g.image[topology.NodeOf(r).index()])->index()] < 0)
        return InvalidInput(fmt::format("takes rank {} out of the collective", r.value));
  for (const Rank rank : made.members_)
    made.is_representative_.push_back(made.group_.Representative(made.group_.OrbitOf(rank)) == rank);
  for (const Link& link : topology.spec().links)
    made.tail_.push_back(topology.RankOf(link.from).value_or(Rank(0)));
  return made;
}

int32_t Translations::ImageOfBlock(int64_t e, int32_t block) const {
  const auto image = [&](int32_t member) {
    return member_of_rank_[group_.Image(e, members_[static_cast<size_t>(member)]).index()];
  };
  const int32_t n = num_members();
  return blocks_.of_pairs ? image(block / n) * n + image(block % n) : image(block);
}

ChunkId Translations::Image(int64_t e, ChunkId c) const {
  const int32_t block = blocks_.Of(c);
  return ChunkId(blocks_.First(ImageOfBlock(e, block)) + c.value - blocks_.First(block));
}

std::optional<ChunkId> Translations::InMachine(ChunkId c) const {
  const int32_t there = members_there_, block = blocks_.Of(c);
  if (there == num_members()) return c;
  if (!blocks_.of_pairs) return block < there ? std::optional(c) : std::nullopt;
  const int32_t from = block / num_members(), to = block % num_members();
  if (from >= there || to >= there) return std::nullopt;
  return ChunkId(blocks_.First(from * there + to) + c.value - blocks_.First(block));
}

int64_t Translations::PairsThere(ChunkId c) const {
  const auto [from, to] = EndsOfPair(c);
  int64_t lost = 0;
  for (const Rank end : {from, to})
    for (const Rank m : std::span(members_).subspan(static_cast<size_t>(members_there_))) {
      if (group_.OrbitOf(m) != group_.OrbitOf(end)) continue;
      const int64_t e = group_.Compose(group_.ElementOf(m), group_.Inverse(group_.ElementOf(end)));
      const bool is_counted = end == to && member_of_rank_[group_.Image(e, from).index()] >= members_there_;
      lost += is_counted ? 0 : 1;
    }
  return group_.order() - lost;
}

std::vector<ChunkId> Translations::Representatives() const {
  std::vector<ChunkId> chunks;
  const int32_t blocks_of_each = blocks_.of_pairs ? num_members() : 1;
  for (int32_t m = 0; m < num_members(); ++m) {
    if (!is_representative_[static_cast<size_t>(m)]) continue;
    for (int32_t block = m * blocks_of_each; block < (m + 1) * blocks_of_each; ++block)
      for (int32_t c = blocks_.First(block); c < blocks_.First(block + 1); ++c) chunks.emplace_back(c);
  }
  return chunks;
}

template <typename Same>
bool Translations::ForAllImages(Same same) const {
  const int32_t n = num_members();
  std::vector<int32_t> image(members_.size());  // by member
  int64_t e = 1;
  for (const Automorphism& generator : group_.generators()) {
    for (int32_t m = 0; m < n; ++m)
      image[m] = member_of_rank_[group_.Image(e, members_[static_cast<size_t>(m)]).index()];
    for (int32_t m = 0; m < n; ++m) {
      if (!blocks_.of_pairs && !same(m, image[m])) return false;
      for (int32_t k = 0; blocks_.of_pairs && k < n; ++k)
        if (!same(m * n + k, image[m] * n + image[k])) return false;
    }
    e *= generator.order;
  }
  return true;
}

bool Translations::KeepParts(const Collective& collective) const {
  const std::vector<int64_t>& counts = collective.spec().counts;
  if (counts.empty() && collective.even_chunks() > 0) return true;
  return ForAllImages([&](int32_t from, int32_t to) {
    if (blocks_.Count(from) != blocks_.Count(to)) return false;
    if (!counts.empty() && counts[from] != counts[to]) return false;
    for (int32_t c = 0; c < blocks_.Count(from); ++c)
      if (collective.Weight(ChunkId(blocks_.First(from) + c)) !=
          collective.Weight(ChunkId(blocks_.First(to) + c)))
        return false;
    return true;
  });
}

bool Translations::KeepSizes(const CollectiveSizes& sizes) const {
  if (blocks_.of_pairs && sizes.HasAlikeParts()) return true;
  return ForAllImages([&](int32_t from, int32_t to) {
    for (int32_t c = 0; c < blocks_.Count(from); ++c)
      if (sizes.ChunkBytes(ChunkId(blocks_.First(from) + c)) !=
          sizes.ChunkBytes(ChunkId(blocks_.First(to) + c)))
        return false;
    return true;
  });
}

bool Translations::KeepApart(const PathTable& paths) const {
  std::vector<int32_t> seen(static_cast<size_t>(group_.num_link_orbits()),
                            -1);  // the last path of each orbit
  for (int32_t p = 0; p < paths.size(); ++p)
    for (LinkId l : paths[PathId(p)])
      if (!group_.IsFreeOn(l) || std::exchange(seen[static_cast<size_t>(group_.OrbitOf(l))], p) == p)
        return false;
  return true;
}

std::vector<int32_t> Translations::PathClasses(const PathTable& paths) const {
  // The translate whose first link leaves the lowest rank of its orbit represents its class.
  PathTable canonical;
  std::vector<int32_t> classes;
  std::vector<LinkId> links;
  for (int32_t p = 0; p < paths.size(); ++p) {
    links.assign(paths[PathId(p)].begin(), paths[PathId(p)].end());
    const int64_t back = group_.Inverse(group_.ElementOf(tail_[links.front().index()]));
    for (LinkId& l : links) l = group_.Image(back, l);
    classes.push_back(canonical.Intern(links).value);
  }
  return classes;
}

namespace {

// Calls visit(first, count) for each run of the transfer's chunks that lies in one block.
template <typename Visit>
void ForEachRun(const Translations& translations, const Transfer& transfer, Visit visit) {
  const int32_t end = transfer.first.value + transfer.count;
  for (ChunkId first = transfer.first; first.value < end;) {
    const int32_t stop = std::min(end, translations.EndOfBlock(first).value);
    visit(first, stop - first.value);
    first = ChunkId(stop);
  }
}

// Calls visit(first, count) for the runs of the transfer's translate under element e, without the chunks of
// lost ranks. Joins neighbouring runs. `runs` is working memory.
template <typename Visit>
void ForEachRunOfImage(const Translations& translations, const Transfer& transfer, int64_t e,
                       std::vector<std::pair<int32_t, int32_t>>& runs, Visit visit) {
  runs.clear();
  ForEachRun(translations, transfer, [&](ChunkId first, int32_t count) {
    if (const std::optional<ChunkId> image = translations.InMachine(translations.Image(e, first)))
      runs.emplace_back(image->value, count);
  });
  std::ranges::sort(runs);
  for (size_t i = 0; i < runs.size();) {
    auto [first, count] = runs[i];
    for (++i; i < runs.size() && runs[i].first == first + count; ++i) count += runs[i].second;
    visit(ChunkId(first), count);
  }
}

// The most runs of a plain form in which CountExpanded() looks for neighbours; more would take over a second.
constexpr int64_t kMostRuns = int64_t{1} << 25;

int64_t CountExpanded(const Schedule& schedule, const Translations& translations) {
  const int64_t order = translations.group().order();
  int64_t runs_of_base = 0, of_pairs_there = 0, transfers = 0;
  const bool has_lost = HasLostHosts(schedule), lacks_pairs = has_lost && translations.of_pairs();
  for (int64_t t = 0; t < schedule.size(); ++t)
    ForEachRun(translations, schedule.at(t), [&](ChunkId first, int32_t) {
      ++runs_of_base;
      if (lacks_pairs) of_pairs_there += translations.PairsThere(first);
    });
  // A chunk has one transfer to, or from, each rank but its own. Without the lost ranks, each chunk that is
  // left has one transfer for each other rank that is left.
  const int64_t ranks = translations.num_members(), there = translations.members_there();
  if (has_lost && !lacks_pairs) return runs_of_base * order / (ranks * (ranks - 1)) * (there * (there - 1));
  const bool one_run_each = runs_of_base == schedule.size();
  if ((one_run_each && !lacks_pairs) || runs_of_base * order > kMostRuns ||
      schedule.num_chunks > std::numeric_limits<int32_t>::max())
    return lacks_pairs ? of_pairs_there : runs_of_base * order;
  std::vector<std::pair<int32_t, int32_t>> runs;
  for (int64_t t = 0; t < schedule.size(); ++t)
    for (int64_t e = 0; e < order; ++e)
      ForEachRunOfImage(translations, schedule.at(t), e, runs, [&](ChunkId, int32_t) { ++transfers; });
  return transfers;
}

// Returns whether the collective is an allgather, reduce_scatter or alltoall of all ranks, with one chunk of
// equal weight in every part. Any permutation of the ranks then keeps the parts.
bool AreRanksAlike(const Collective& collective, const Topology& topology) {
  const CollectiveKind kind = collective.kind();
  const bool even = kind == CollectiveKind::kAllgather || kind == CollectiveKind::kReduceScatter ||
                    kind == CollectiveKind::kAlltoall;
  if (!even || collective.num_members() != topology.num_ranks() ||
      collective.num_chunks() != collective.num_parts())
    return false;
  if (collective.even_chunks() > 0) return true;
  for (int32_t c = 1; c < collective.num_chunks(); ++c)
    if (collective.Weight(ChunkId(c)) != collective.Weight(ChunkId(0))) return false;
  return true;
}

}  // namespace

SymmetryGroup TranslationsFor(const Collective& collective, const Topology& topology,
                              const CollectiveSizes* sizes) {
  if (AreRanksAlike(collective, topology)) return FindTranslations(topology);
  if (!ChunkBlocksOf(collective).ok()) return SymmetryGroup(topology);
  SymmetryGroup group = FindTranslations(topology);
  Schedule empty;
  empty.symmetry = group.generators();
  const StatusOr<Translations> translations = Translations::Create(empty, collective, topology);
  const bool kept = translations.ok() && translations->KeepParts(collective) &&
                    (sizes == nullptr || translations->KeepSizes(*sizes));
  return kept ? group : SymmetryGroup(topology);
}

Schedule Translate(Schedule base, const SymmetryGroup& group) {
  base.symmetry = group.generators();
  Normalize(base);
  return base;
}

int64_t ExpandedTransfers(const Schedule& schedule, const Collective& collective, const Topology& topology) {
  if (schedule.symmetry.empty()) return schedule.size();
  const StatusOr<Translations> translations = Translations::Create(schedule, collective, topology);
  if (!translations.ok()) return 0;
  return CountExpanded(schedule, *translations);
}

StatusOr<Schedule> Expand(const Schedule& schedule, const Collective& collective, const Topology& topology,
                          int64_t most_transfers, const Deadline& deadline) {
  if (schedule.symmetry.empty()) return schedule;
  XCCL_ASSIGN_OR_RETURN(const Translations translations,
                        Translations::Create(schedule, collective, topology));
  const SymmetryGroup& group = translations.group();
  const int64_t transfers = CountExpanded(schedule, translations);
  if (transfers > most_transfers)
    return LimitReached(fmt::format("schedule: {} transfers without its symmetry; at most {} are written out",
                                    transfers, most_transfers));
  Schedule plain;
  plain.num_chunks = collective.num_chunks();
  plain.Reserve(transfers);
  std::optional<Topology> whole;
  std::optional<Detours> detours;
  if (IsOfDamaged(schedule)) {
    XCCL_ASSIGN_OR_RETURN(whole, WholeOf(schedule, topology));
    detours.emplace(*whole, schedule.missing, schedule.detours);
  }
  const bool has_lost = HasLostHosts(schedule);
  const auto is_lost = [&](Rank r) { return IsLost(whole->NodeOf(r), *whole, schedule.missing); };
  std::vector<LinkId> links;
  std::vector<std::pair<int32_t, int32_t>> runs;
  for (int64_t t = 0; t < schedule.size(); ++t) {
    if (deadline()) return LimitReached("schedule: " + deadline.Passed() + " while it was written out");
    const Transfer base = schedule.at(t);
    for (int64_t e = 0; e < group.order(); ++e) {
      const Rank src = group.Image(e, base.src), dst = group.Image(e, base.dst);
      if (has_lost && (is_lost(src) || is_lost(dst))) continue;
      links.clear();
      for (LinkId l : schedule.paths[base.path]) links.push_back(group.Image(e, l));
      if (detours) detours->Apply(links);
      ForEachRunOfImage(translations, base, e, runs, [&](ChunkId first, int32_t count) {
        plain.Add(first, count, src, dst, links, base.op, base.step);
      });
    }
  }
  if (has_lost) {
    XCCL_RETURN_IF_ERROR(AddTakenOver(schedule, translations, *whole, plain));
    Normalize(plain);
  }
  return plain;
}

Schedule ExpandWhereSmall(Schedule schedule, const Collective& collective, const Topology& topology) {
  int64_t transfers = schedule.size();
  for (const Automorphism& generator : schedule.symmetry) transfers *= generator.order;
  if (schedule.symmetry.empty() || transfers > kFewTransfers) return schedule;
  StatusOr<Schedule> plain = Expand(schedule, collective, topology);
  return plain.ok() ? *std::move(plain) : schedule;
}

}  // namespace xccl
