// An event loop over the times at which messages arrive or links fall idle. At each time:
// 1. The loop delivers the messages that arrive, and marks the ranks whose situation has changed.
// 2. Each marked destination chooses a chunk for every idle direct link into it (ServeDestination). The rank
//    sees all these links, so no two of them bring the same chunk.
// 3. Each marked source chooses a chunk for every idle link into a switch, NIC or CPU, and a receiver whose
//    links are free in time (ServeSource, in flood_fabric.cc).
// 4. Each sent message adds events for its arrival and for the links that fall idle after it.
// Only marked ranks are looked at, so the cost grows with the number of moves.
#include "synth/greedy/flood.h"

#include <algorithm>
#include <bit>
#include <map>

#include "base/graph/union_find.h"
#include "base/units.h"

namespace xccl::greedy {

Flood::Flood(const CopyProblem& problem)
    : problem_(problem),
      topology_(*problem.topology),
      ranks_(topology_.num_ranks()),
      words_((problem.chunks + 63) / 64),
      costs_(LinkCosts(topology_, problem.model)),
      paths_(LinkPaths(topology_)) {
  const int32_t links = topology_.num_links();
  head_rank_.assign(static_cast<size_t>(links), -1);
  tail_rank_.assign(static_cast<size_t>(links), -1);
  direct_in_.resize(static_cast<size_t>(ranks_));
  direct_out_.resize(static_cast<size_t>(ranks_));
  uplinks_.resize(static_cast<size_t>(ranks_));
  for (int32_t l = 0; l < links; ++l) {
    const Link& link = topology_.link(LinkId(l));
    const std::optional<Rank> tail = topology_.RankOf(link.from), head = topology_.RankOf(link.to);
    if (tail) tail_rank_[l] = tail->value;
    if (head) head_rank_[l] = head->value;
    if (tail && head) {
      direct_out_[tail->index()].push_back(LinkId(l));
      direct_in_[head->index()].push_back(LinkId(l));
    } else if (tail) {
      uplinks_[tail->index()].push_back(LinkId(l));
    }
  }
  if (!problem.bytes.empty() && std::all_of(problem.bytes.begin(), problem.bytes.end(),
                                            [&](int64_t b) { return b == problem.bytes[0]; }))
    common_bytes_ = problem.bytes[0];
  for (int32_t l = 0; l < links && common_bytes_ >= 0; ++l)
    common_duration_ps_.push_back(BusyPs(costs_[l], common_bytes_));
  initial_ = BitTable(ranks_, problem.chunks);
  wants_ = BitTable(ranks_, problem.chunks);
  for (int32_t c = 0; c < problem.chunks; ++c) {
    for (int32_t r : problem.holders[c]) initial_.Set(r, c);
    for (int32_t r : problem.needers[c]) wants_.Set(r, c);
  }
  scratch_.resize(static_cast<size_t>(words_));
  seen_at_.assign(static_cast<size_t>(topology_.num_nodes()), 0);
  BuildGroups();
}

// Returns the group of each rank. Links of at least this bandwidth join their two ends. If bytes_per_s is 0,
// every link of a rank joins its ends, so that the ranks behind one switch are a group.
std::vector<int32_t> Flood::GroupsJoinedAt(int64_t bytes_per_s) const {
  UnionFind joined(static_cast<size_t>(topology_.num_nodes()));
  for (const Link& link : topology_.spec().links) {
    const bool ends_at_rank = topology_.IsGpu(link.from) || topology_.IsGpu(link.to);
    if (bytes_per_s > 0 ? link.bandwidth_bytes_per_s >= bytes_per_s : ends_at_rank)
      joined.Join(link.from.value, link.to.value);
  }
  std::map<int32_t, int32_t> group_of_root;
  std::vector<int32_t> groups;
  for (int32_t r = 0; r < ranks_; ++r) {
    const int32_t root = joined.Find(topology_.NodeOf(Rank(r)).value);
    groups.push_back(
        group_of_root.try_emplace(root, static_cast<int32_t>(group_of_root.size())).first->second);
  }
  return groups;
}

// Sets coarse_group_ and fine_group_ from the ratios of successive link bandwidths. Links above the largest
// ratio join coarse groups, if that ratio is at least 1.9. Links above the uppermost ratio of at least 1.25
// join fine groups. Without such a ratio, the ranks behind one switch are a group.
void Flood::BuildGroups() {
  std::vector<int64_t> speeds;
  for (const Link& link : topology_.spec().links) speeds.push_back(link.bandwidth_bytes_per_s);
  std::sort(speeds.begin(), speeds.end());
  int64_t coarse = 0, fine = 0;
  double gap = 1.9;
  for (size_t i = 1; i < speeds.size(); ++i) {
    const double ratio = static_cast<double>(speeds[i]) / static_cast<double>(speeds[i - 1]);
    if (ratio >= 1.25) fine = speeds[i];
    if (ratio >= gap) gap = ratio, coarse = speeds[i];
  }
  coarse_group_ = GroupsJoinedAt(coarse);
  fine_group_ = GroupsJoinedAt(fine);
}

int64_t Flood::Duration(LinkId link, int64_t bytes) const {
  if (bytes == common_bytes_) return common_duration_ps_[link.index()];
  return BusyPs(costs_[link.index()], bytes);
}

void Flood::Reset(const FloodPolicy& policy) {
  policy_ = policy;
  random_ = Random(policy.seed);
  now_ps_ = time_ps_ = work_ = missing_ = 0;
  group_ = policy.fine_groups ? fine_group_ : coarse_group_;
  has_ = initial_;
  has_or_coming_ = initial_;
  group_has_ = BitTable(ranks_, problem_.chunks);
  copies_.assign(static_cast<size_t>(problem_.chunks), 0);
  if (policy.local_rarity)
    group_copies_.assign(static_cast<size_t>(ranks_) * static_cast<size_t>(problem_.chunks), 0);
  for (int32_t c = 0; c < problem_.chunks; ++c) {
    missing_ += static_cast<int64_t>(problem_.needers[c].size());
    for (int32_t r : problem_.holders[c]) {
      group_has_.Set(group_[r], c);
      CountCopy(c, r);
    }
  }
  arrival_step_.assign(static_cast<size_t>(ranks_) * static_cast<size_t>(problem_.chunks), -1);
  free_ps_.assign(static_cast<size_t>(topology_.num_links()), 0);
  last_step_.assign(static_cast<size_t>(topology_.num_links()), -1);
  messages_.clear();
  moves_.clear();
  moves_.reserve(static_cast<size_t>(missing_));
  queue_ = EventQueue();
  destinations_ = Marks(ranks_);
  sources_ = Marks(ranks_);
  starved_.assign(static_cast<size_t>(ranks_), 0);
  rotation_.assign(static_cast<size_t>(topology_.num_links()), -1);
}

bool Flood::Run(const FloodPolicy& policy, int64_t most_work) {
  Reset(policy);
  for (int32_t r = 0; r < ranks_; ++r) {
    destinations_.Mark(r);
    if (!uplinks_[r].empty()) sources_.Mark(r);
  }
  while (missing_ > 0) {
    for (int32_t rank : destinations_.Take(random_)) ServeDestination(rank);
    for (int32_t rank : sources_.Take(random_)) ServeSource(rank);
    if (queue_.empty() || work_ > most_work) return false;
    now_ps_ = queue_.PopBatch(batch_);
    std::ranges::sort(batch_, {}, &Event::what);
    for (const Event& event : batch_) Handle(event.what);
  }
  return true;
}

void Flood::Handle(uint64_t event) {
  const uint64_t happens = event >> 32;
  const int32_t rank = static_cast<int32_t>(event & 0xffffffffU);
  if (happens == kDestinationIdle) {
    destinations_.Mark(rank);
  } else if (happens == kSourceIdle) {
    sources_.Mark(rank);
  } else if (happens == kFabricIdle) {
    for (int32_t r = 0; r < ranks_; ++r)
      if (starved_[r]) sources_.Mark(r);
  } else {
    Deliver(messages_[happens - kArrival]);
  }
}

void Flood::Deliver(const Message& message) {
  const int32_t rank = message.destination;
  for (int32_t m = message.first; m < message.first + message.count; ++m) {
    const int32_t chunk = moves_[m].chunk;
    has_.Set(rank, chunk);
    arrival_step_[static_cast<size_t>(rank) * problem_.chunks + chunk] = message.step;
  }
  missing_ -= message.count;
  time_ps_ = now_ps_;
  destinations_.Mark(rank);
  for (LinkId l : direct_out_[rank])
    if (free_ps_[l.index()] <= now_ps_) destinations_.Mark(head_rank_[l.index()]);
  if (starved_[rank]) sources_.Mark(rank);
}

int32_t Flood::FillCandidates(int32_t source, int32_t destination, bool crosses, uint64_t* row) {
  const uint64_t* has = has_.Row(source);
  const uint64_t* taken = has_or_coming_.Row(destination);
  const uint64_t* wants = wants_.Row(destination);
  int32_t count = 0;
  for (int32_t w = 0; w < words_; ++w) row[w] = has[w] & wants[w] & ~taken[w];
  if (crosses) {
    const uint64_t* group = group_has_.Row(group_[destination]);
    for (int32_t w = 0; w < words_; ++w) row[w] &= ~group[w];
  }
  for (int32_t w = 0; w < words_; ++w) count += std::popcount(row[w]);
  work_ += words_;
  return count;
}

void Flood::CountCopy(int32_t chunk, int32_t destination) {
  ++copies_[chunk];
  if (policy_.local_rarity)
    ++group_copies_[static_cast<size_t>(group_[destination]) * static_cast<size_t>(problem_.chunks) +
                    static_cast<size_t>(chunk)];
}

// Returns the rarest candidate, or the rarest of a random sample if there are more than policy_.samples.
int32_t Flood::Choose(const uint64_t* row, int32_t count, int32_t destination) {
  int32_t best = -1;
  int64_t best_score = INT64_MAX;
  const int32_t* const inside = policy_.local_rarity
                                    ? group_copies_.data() + static_cast<size_t>(group_[destination]) *
                                                                 static_cast<size_t>(problem_.chunks)
                                    : nullptr;
  const auto look = [&](int32_t chunk) {
    const int64_t score = (inside != nullptr ? static_cast<int64_t>(inside[chunk]) << 41 : 0) |
                          static_cast<int64_t>(copies_[chunk]) << 20 |
                          static_cast<int64_t>(random_.Below(1 << 20));
    if (score < best_score) best_score = score, best = chunk;
  };
  if (count <= policy_.samples) {
    for (int32_t w = 0; w < words_; ++w)
      for (uint64_t bits = row[w]; bits != 0; bits &= bits - 1) look(w * 64 + std::countr_zero(bits));
    return best;
  }
  for (int32_t i = 0; i < policy_.samples; ++i) {
    const uint64_t draw = random_.Next();
    int32_t w = static_cast<int32_t>((draw >> 32) % static_cast<uint64_t>(words_));
    while (row[w] == 0) w = w + 1 == words_ ? 0 : w + 1;
    const int32_t turn = static_cast<int32_t>(draw & 63);
    const uint64_t bits = std::rotr(row[w], turn);
    look(w * 64 + ((std::countr_zero(bits) + turn) & 63));
  }
  return best;
}

// Returns the idle direct links over which some chunk can come to the rank. Row(i) holds the candidates of
// the i-th returned link.
std::vector<Flood::LinkOffer> Flood::OffersTo(int32_t rank) {
  std::vector<LinkOffer> offers;
  for (LinkId l : direct_in_[rank]) {
    if (free_ps_[l.index()] > now_ps_) continue;
    const int32_t source = tail_rank_[l.index()];
    const bool crosses = policy_.one_entry_per_group && group_[source] != group_[rank];
    const size_t end = (offers.size() + 1) * static_cast<size_t>(words_);
    if (scratch_.size() < end) scratch_.resize(end);
    const int32_t count = FillCandidates(source, rank, crosses, Row(offers.size()));
    if (count > 0) offers.push_back({.link = l, .count = count});
  }
  return offers;
}

// Adds a chunk to the i-th link's message and removes the chunk from all links' candidates. Closes the link
// if no chunk can be added, or if the message is full. Returns true if the message may take more chunks.
bool Flood::Pick(std::vector<LinkOffer>& offers, size_t i, int32_t rank) {
  LinkOffer& offer = offers[i];
  if (offer.closed) return false;
  offer.closed = true;
  if (offer.count == 0) return false;
  const int32_t chunk = Choose(Row(i), offer.count, rank);
  const int64_t bytes = offer.bytes + problem_.bytes[chunk];
  const bool fits = offer.picked.empty() || bytes <= policy_.batch_bytes;
  const int64_t arrival = now_ps_ + Duration(offer.link, bytes) + costs_[offer.link.index()].delay_ps;
  if (!fits || arrival >= policy_.deadline_ps ||
      (policy_.defer_slow_links && ComesSoonerElsewhere(offer.link, chunk, arrival)))
    return false;
  offer.picked.push_back(chunk);
  offer.bytes = bytes;
  CountCopy(chunk, rank);
  for (size_t k = 0; k < offers.size(); ++k) {
    uint64_t& word = Row(k)[chunk >> 6];
    const uint64_t bit = uint64_t{1} << (chunk & 63);
    if (word & bit) --offers[k].count;
    word &= ~bit;
  }
  offer.closed = policy_.batch_bytes <= bytes;
  return !offer.closed;
}

// Lets the idle links into the rank pick chunks in rounds, one chunk each. The link with the fewest
// candidates picks first, because other links could take its few candidates. With fast_first, faster links
// pick earlier.
void Flood::ServeDestination(int32_t rank) {
  std::vector<LinkOffer> offers = OffersTo(rank);
  const auto before = [&](const LinkOffer& a, const LinkOffer& b) {
    const int64_t speed_a = costs_[a.link.index()].bytes_per_s, speed_b = costs_[b.link.index()].bytes_per_s;
    return policy_.fast_first && speed_a != speed_b ? speed_a > speed_b : a.count < b.count;
  };
  std::vector<size_t> order;
  for (bool more = !offers.empty(); more;) {
    more = false;
    order.clear();
    for (size_t i = 0; i < offers.size(); ++i) order.push_back(i);
    for (size_t left = order.size(); left > 0; --left) {
      size_t best = 0;
      for (size_t k = 1; k < left; ++k)
        if (before(offers[order[k]], offers[order[best]])) best = k;
      const size_t i = order[best];
      order[best] = order[left - 1];
      more |= Pick(offers, i, rank);
    }
  }
  for (const LinkOffer& offer : offers)
    if (!offer.picked.empty()) Send(std::span(&offer.link, 1), offer.picked, offer.bytes);
}

bool Flood::ComesSoonerElsewhere(LinkId link, int32_t chunk, int64_t arrival_ps) {
  const int32_t rank = head_rank_[link.index()];
  for (LinkId other : direct_in_[rank]) {
    if (other == link || !has_or_coming_.Get(tail_rank_[other.index()], chunk)) continue;
    const int64_t free = std::max(now_ps_, free_ps_[other.index()]);
    if (free + Duration(other, problem_.bytes[chunk]) + costs_[other.index()].delay_ps < arrival_ps)
      return true;
  }
  return false;
}

}  // namespace xccl::greedy
