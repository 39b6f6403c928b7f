// The slots of a connection are shared out to the workers. With Aim::kLatency each worker gets one for every
// row that its tokens may have, so that no sender waits; else its share, two at least where the plan has two,
// since with one a sender would wait for each message to be taken.
#include "runtime/experts/cuda/layout.h"

#include <algorithm>
#include <cstring>

#include "base/check.h"

namespace xccl::dispatch {
namespace {

using device::ExpertRank;
using device::kLineBytes;
using device::RingEnd;
using device::RingState;

int64_t RoundUp(int64_t value, int64_t to) { return (value + to - 1) / to * to; }
int64_t Shares(int64_t value, int64_t of) { return (value + of - 1) / of; }

int32_t DepthOf(const ExpertPlan& plan, const Hop& hop) {
  const auto at = std::ranges::find(plan.stage_of_depth, hop.stage);
  XCCL_CHECK(at != plan.stage_of_depth.end());
  return static_cast<int32_t>(at - plan.stage_of_depth.begin());
}

int64_t SlotBytes(const ExpertPlan& plan) {
  return RoundUp(
      static_cast<int64_t>(sizeof(device::SlotHead)) +
          plan.rows_per_message * (plan.sizes.row_bytes + HeaderBytes(plan.sizes, Call::kDispatch)),
      kLineBytes);
}

int64_t SlotsOf(const ExpertPlan& plan, const GpuShape& shape, const Hop& hop) {
  const int64_t share = Shares(hop.slots, shape.workers);
  if (plan.aim == Aim::kThroughput) return std::max<int64_t>(std::min(hop.slots, 2), share);
  const int64_t tokens = std::max(1, MostTokensOfLane(plan, hop.lane));
  return Shares(hop.slots, tokens) * Shares(tokens, shape.workers);
}

// combine has a row a slot. With Sums::kHome a home waits for all rows of a token at once, which one branch
// may bring.
int64_t BackSlotsOf(const ExpertPlan& plan, const GpuShape& shape, const Hop& hop) {
  const int64_t rows = SlotsOf(plan, shape, hop) * plan.rows_per_message;
  return plan.sums == Sums::kHome ? std::max<int64_t>(rows, std::min(plan.sizes.top_k, plan.sizes.ranks))
                                  : rows;
}

// Slots, and the line of the head before them.
int64_t RingBytes(int64_t slots, int64_t slot_bytes) { return kLineBytes + slots * slot_bytes; }

// The hops of a rank in the order of depth, then of the plan; and the first of each depth.
void Order(const ExpertPlan& plan, std::vector<int32_t>& hops, std::vector<int32_t>& begin) {
  const auto depth_of = [&](int32_t h) { return DepthOf(plan, plan.hops[h]); };
  std::ranges::stable_sort(hops, {}, depth_of);
  for (size_t depth = 0; depth <= plan.stage_of_depth.size(); ++depth)
    begin.push_back(static_cast<int32_t>(
        std::ranges::lower_bound(hops, static_cast<int32_t>(depth), {}, depth_of) - hops.begin()));
}

// Memory that is filled from its start on; parts are aligned to lines.
class Blob {
 public:
  template <class T>
  int64_t Append(std::span<const T> values) {
    bytes_.resize(static_cast<size_t>(RoundUp(static_cast<int64_t>(bytes_.size()), kLineBytes)));
    const size_t at = bytes_.size();
    bytes_.append(reinterpret_cast<const char*>(values.data()), values.size_bytes());
    return static_cast<int64_t>(at);
  }
  void Overwrite(const ExpertRank& first) { std::memcpy(bytes_.data(), &first, sizeof first); }
  std::string Take() { return std::move(bytes_); }

 private:
  std::string bytes_;
};

template <class T>
T* At(uint64_t address, int64_t offset) {
  return reinterpret_cast<T*>(address + static_cast<uint64_t>(offset));  // NOLINT(performance-no-int-to-ptr)
}

// Makes one rank's ends.
class Ends {
 public:
  Ends(const ExpertPlan& plan, const GpuShape& shape, const GpuLayouts& layouts, int32_t rank,
       std::span<const uint64_t> arenas)
      : plan_(plan), shape_(shape), layouts_(layouts), rank_(rank), arenas_(arenas) {}

  // `receives`: rows of the call come over the end. dispatch's rows go from a hop's `from`, combine's to it.
  std::vector<RingEnd> Of(Call call, bool receives) const {
    const GpuLayout& mine = layouts_.of_rank[rank_];
    const bool in = (call == Call::kDispatch) == receives;
    const std::vector<int32_t>& hops = in ? mine.in : mine.out;
    const int64_t first = call == Call::kDispatch ? (receives ? 0 : std::ssize(mine.in))
                          : receives              ? 2 * std::ssize(mine.in) + std::ssize(mine.out)
                                                  : std::ssize(mine.in) + std::ssize(mine.out);
    std::vector<RingEnd> ends;
    for (size_t place = 0; place < hops.size(); ++place)
      for (int32_t worker = 0; worker < shape_.workers; ++worker) {
        RingEnd end = Ring(call, hops[place], worker);
        end.peer = (in ? plan_.hops[hops[place]].from : plan_.hops[hops[place]].to).value;
        end.state = At<RingState>(
            arenas_[rank_], mine.states + ((first + static_cast<int64_t>(place)) * shape_.workers + worker) *
                                              static_cast<int64_t>(sizeof(RingState)));
        ends.push_back(end);
      }
    return ends;
  }

 private:
  RingEnd Ring(Call call, int32_t h, int32_t worker) const {
    const Hop& hop = plan_.hops[h];
    const bool out = call == Call::kDispatch;
    const int32_t from = (out ? hop.from : hop.to).value, to = (out ? hop.to : hop.from).value;
    const int64_t slots = out ? SlotsOf(plan_, shape_, hop) : BackSlotsOf(plan_, shape_, hop);
    const int64_t slot_bytes = out ? SlotBytes(plan_) : shape_.back_bytes;
    const GpuLayout &sender = layouts_.of_rank[from], &receiver = layouts_.of_rank[to];
    const int64_t ring =
        out ? receiver.in_rings[layouts_.in_place[h]] : receiver.down_rings[layouts_.out_place[h]];
    const int64_t tails = out ? sender.out_tails : sender.up_tails;
    const int32_t place = out ? layouts_.out_place[h] : layouts_.in_place[h];
    RingEnd end;
    end.head = At<uint64_t>(arenas_[to], ring + worker * RingBytes(slots, slot_bytes));
    end.slots = reinterpret_cast<char*>(end.head) + kLineBytes;
    end.tail = At<uint64_t>(arenas_[from], tails + (int64_t{place} * shape_.workers + worker) * kLineBytes);
    end.num_slots = static_cast<int32_t>(slots);
    return end;
  }

  const ExpertPlan& plan_;
  const GpuShape& shape_;
  const GpuLayouts& layouts_;
  const int32_t rank_;
  const std::span<const uint64_t> arenas_;
};

// BranchFinder's rule: the entry of each domain in each tree.
std::vector<int32_t> EntriesOf(const ExpertPlan& plan, int32_t domains) {
  const int32_t ranks = plan.sizes.ranks;
  std::vector<int32_t> entries(static_cast<size_t>(plan.lanes) * ranks * domains, -1);
  for (int32_t lane = 0; lane < plan.lanes; ++lane)
    for (int32_t home = 0; home < ranks; ++home) {
      const std::span<const int32_t> tree = plan.TreeOf(lane, home);
      for (int32_t rank = 0; rank < ranks; ++rank)
        if (plan.domains[tree[rank]] != plan.domains[rank])
          entries[(static_cast<size_t>(lane) * ranks + home) * domains + plan.domains[rank]] = rank;
    }
  return entries;
}

ExpertRank NumbersOf(const ExpertPlan& plan, const GpuShape& shape, int32_t rank) {
  const Sizes& sizes = plan.sizes;
  ExpertRank numbers;
  numbers.rank = rank;
  numbers.ranks = sizes.ranks;
  numbers.local_experts = sizes.local_experts();
  numbers.top_k = sizes.top_k;
  numbers.max_tokens = sizes.max_tokens;
  numbers.lanes = plan.lanes;
  numbers.depths = static_cast<int32_t>(plan.stage_of_depth.size());
  numbers.workers = shape.workers;
  numbers.rows_per_message = plan.rows_per_message;
  numbers.num_domains = *std::ranges::max_element(plan.domains) + 1;
  numbers.nested = plan.entry == Entry::kNested ? 1 : 0;
  numbers.adds_on_way = plan.sums == Sums::kOnWay ? 1 : 0;
  numbers.chunks = static_cast<int32_t>(Shares(PlacesOf(sizes), device::kPlacesOfChunk));
  numbers.row_bytes = sizes.row_bytes;
  numbers.header_bytes = HeaderBytes(sizes, Call::kDispatch);
  numbers.slot_bytes = SlotBytes(plan);
  numbers.back_bytes = shape.back_bytes;
  return numbers;
}

}  // namespace

int64_t PlacesOf(const Sizes& sizes) { return int64_t{sizes.ranks} * sizes.max_tokens; }
int64_t MostEntriesOf(const Sizes& sizes) {
  return PlacesOf(sizes) * std::min(sizes.top_k, sizes.local_experts());
}

int32_t ChooseWorkers(const ExpertPlan& plan) {
  // A thread has four loads of 16 bytes in flight (DispatchBlock::Copy).
  constexpr int64_t kInFlight = int64_t{device::kExpertThreads} * 4 * 16;
  // DeepEP's kernels take 20 to 24 of an H800's multiprocessors (its page on legacy kernels); two of these
  // blocks fit one, and two or three roles share them.
  constexpr int64_t kMost = 16;
  int64_t bytes = 0;
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) {
    int64_t of_rank = 0;
    for (const LinkId l : plan.topology.Out(plan.topology.NodeOf(Rank(rank))))
      of_rank += plan.topology.link(l).bandwidth_bytes_per_s;
    int64_t latency_ps = 0;
    for (const Hop& hop : plan.hops) {
      if (hop.from.value != rank) continue;
      int64_t there_and_back_ps = 0;
      for (const std::vector<LinkId>* way : {&hop.links, &hop.back})
        for (const LinkId l : *way) there_and_back_ps += plan.topology.link(l).latency_ps;
      latency_ps = std::max(latency_ps, there_and_back_ps);
    }
    bytes = std::max(
        bytes, static_cast<int64_t>(static_cast<double>(of_rank) * static_cast<double>(latency_ps) * 1e-12));
  }
  const int64_t groups = Shares(plan.sizes.max_tokens, plan.lanes);
  return static_cast<int32_t>(std::min(groups, std::clamp<int64_t>(Shares(bytes, kInFlight), 1, kMost)));
}

GpuLayouts LayOut(const ExpertPlan& plan, const GpuShape& shape) {
  GpuLayouts layouts;
  layouts.of_rank.resize(plan.sizes.ranks);
  for (size_t h = 0; h < plan.hops.size(); ++h) {
    layouts.of_rank[plan.hops[h].to.index()].in.push_back(static_cast<int32_t>(h));
    layouts.of_rank[plan.hops[h].from.index()].out.push_back(static_cast<int32_t>(h));
  }
  layouts.in_place.resize(plan.hops.size());
  layouts.out_place.resize(plan.hops.size());
  for (GpuLayout& layout : layouts.of_rank) {
    Order(plan, layout.in, layout.in_begin);
    Order(plan, layout.out, layout.out_begin);
    for (size_t place = 0; place < layout.in.size(); ++place)
      layouts.in_place[layout.in[place]] = static_cast<int32_t>(place);
    for (size_t place = 0; place < layout.out.size(); ++place)
      layouts.out_place[layout.out[place]] = static_cast<int32_t>(place);
    int64_t at = 0;
    const auto take = [&](int64_t bytes) {
      const int64_t begin = at;
      at += RoundUp(bytes, kLineBytes);
      return begin;
    };
    for (const int32_t h : layout.in)
      layout.in_rings.push_back(
          take(shape.workers * RingBytes(SlotsOf(plan, shape, plan.hops[h]), SlotBytes(plan))));
    for (const int32_t h : layout.out)
      layout.down_rings.push_back(
          take(shape.workers * RingBytes(BackSlotsOf(plan, shape, plan.hops[h]), shape.back_bytes)));
    layout.out_tails = take(std::ssize(layout.out) * shape.workers * kLineBytes);
    layout.up_tails = take(std::ssize(layout.in) * shape.workers * kLineBytes);
    layout.states = take(2 * (std::ssize(layout.in) + std::ssize(layout.out)) * shape.workers *
                         static_cast<int64_t>(sizeof(RingState)));
    const int64_t blocks = shape.workers * (std::ssize(plan.stage_of_depth) + 1);
    layout.arrived = take(blocks * static_cast<int64_t>(sizeof(uint64_t)));
    layout.stop = take(kLineBytes);
    layout.bytes = at;
  }
  return layouts;
}

std::string TablesOf(const ExpertPlan& plan, const GpuShape& shape, const GpuLayouts& layouts, int32_t rank,
                     std::span<const uint64_t> arenas, uint64_t at) {
  const GpuLayout& layout = layouts.of_rank[rank];
  ExpertRank numbers = NumbersOf(plan, shape, rank);
  Blob blob;
  blob.Append(std::span<const ExpertRank>(&numbers, 1));
  const auto put = [&]<class T>(const std::vector<T>& values) {
    return At<const T>(at, blob.Append(std::span<const T>(values)));
  };
  numbers.parents = put(std::vector<int16_t>(plan.parents.begin(), plan.parents.end()));
  numbers.domains = put(plan.domains);
  if (plan.entry != Entry::kFixed) numbers.entries = put(EntriesOf(plan, numbers.num_domains));
  const size_t keys = static_cast<size_t>(plan.lanes) * numbers.depths * plan.sizes.ranks;
  std::vector<int32_t> in_at(keys, -1), out_at(keys, -1);
  const auto key = [&](const Hop& hop, Rank peer) {
    return (static_cast<size_t>(hop.lane) * numbers.depths + DepthOf(plan, hop)) * plan.sizes.ranks +
           peer.index();
  };
  for (size_t place = 0; place < layout.in.size(); ++place)
    in_at[key(plan.hops[layout.in[place]], plan.hops[layout.in[place]].from)] = static_cast<int32_t>(place);
  for (size_t place = 0; place < layout.out.size(); ++place)
    out_at[key(plan.hops[layout.out[place]], plan.hops[layout.out[place]].to)] = static_cast<int32_t>(place);
  numbers.in_at = put(in_at);
  numbers.out_at = put(out_at);
  numbers.in_begin = put(layout.in_begin);
  numbers.out_begin = put(layout.out_begin);
  const Ends ends(plan, shape, layouts, rank, arenas);
  numbers.in = put(ends.Of(Call::kDispatch, true));
  numbers.out = put(ends.Of(Call::kDispatch, false));
  numbers.up = put(ends.Of(Call::kCombine, false));
  numbers.down = put(ends.Of(Call::kCombine, true));
  numbers.arrived = At<uint64_t>(arenas[rank], layout.arrived);
  blob.Overwrite(numbers);
  return blob.Take();
}

}  // namespace xccl::dispatch
