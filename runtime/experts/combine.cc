// combine uses the hops the other way around. Each rank knows from its dispatch which rows will come, so
// nothing needs to say that it is the last. Rows below a token are kept until all are there, and added in
// their order, once there is room for the sum in the message that takes it on. Rows that no slot holds are
// cut into columns, each of which is a call of its own.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <numeric>
#include <span>
#include <utility>

#include "device/numbers.h"
#include "ir/numbers.h"
#include "runtime/experts/parts.h"

namespace xccl::dispatch {
namespace {

// The loops over the elements of a row, which compilers vectorise. Rows may begin at any byte.
template <typename T>
void AddRow(std::span<float> sums, float weight, const std::byte* row) {
  for (size_t e = 0; e < sums.size(); ++e) {
    T value;
    std::memcpy(&value, row + e * sizeof value, sizeof value);
    sums[e] += weight * device::Widen(value);
  }
}
template <typename T>
void RoundRow(std::span<const float> sums, std::byte* to) {
  for (size_t e = 0; e < sums.size(); ++e) {
    T value;
    device::Narrow(sums[e], value);
    std::memcpy(to + e * sizeof value, &value, sizeof value);
  }
}
struct Arithmetic {
  void (*add)(std::span<float> sums, float weight, const std::byte* row);
  void (*round)(std::span<const float> sums, std::byte* to);
};
// Requires: CheckCombineType.
Arithmetic ArithmeticOf(DataType type) {
  if (type == DataType::kHalf) return {AddRow<device::Half>, RoundRow<device::Half>};
  if (type == DataType::kBfloat16) return {AddRow<device::Bfloat16>, RoundRow<device::Bfloat16>};
  return {AddRow<float>, RoundRow<float>};
}

}  // namespace

class CombinePart : public CallPart {
 public:
  // Adds bytes from .. from + layout.bytes of all rows.
  CombinePart(ExpertRank& rank, const CallHead& head, const RowLayout& rows, int64_t from,
              const Received& ways, Outputs of, const std::byte* outputs, std::byte* sums,
              std::chrono::nanoseconds limit)
      : CallPart(rank.endpoint_, head, rows),
        rank_(rank),
        plan_(*rank.wires_.plan),
        ways_(ways),
        arithmetic_(ArithmeticOf(static_cast<DataType>(head.type))),
        from_(from),
        of_(of),
        outputs_(outputs),
        sums_(sums),
        limit_(limit),
        sum_(static_cast<size_t>(layout.bytes / SizeOf(static_cast<DataType>(head.type)))),
        at_(rank.out_.size()),
        missing_of_(rank.out_.size()),
        due_(rank.in_.size()) {
    Open(rank.out_, rank.in_, rank.wires_.back, rank.wires_.there);
    rank_.arrived_.clear();
    FindTokens();
    FindEntries();
    // Token by token, so that ranks send to all homes at once and not all to the first.
    std::vector<size_t> order(tokens_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](size_t i) { return ways_.seen.tokens[i]; });
    for (const size_t i : order) {
      const OfToken& token = tokens_[i];
      if (token.missing > 0 || (!token.adds && !token.has_own)) continue;
      if (ways_.seen.homes[i] == rank_.rank())
        Sum(i, SumAt(i));
      else
        due_[static_cast<size_t>(token.up)].push_back(i);
    }
  }

  bool Round() {
    bool moved = SendDue();
    for (size_t i = 0; i < at_.size(); ++i) moved |= Take(i);
    done_ = rows_to_come_ == 0 && std::ranges::all_of(due_, &std::deque<size_t>::empty);
    for (Outlet& outlet : outlets) {
      if (!moved) moved |= outlet.Flush();
      done_ &= outlet.empty();
    }
    return moved;
  }
  bool MovedAll() const { return done_; }
  void LookAround() {
    CallPart::LookAround([this](size_t i) { return missing_of_[i] > 0; });
  }
  Status Stuck() const {
    return CallPart::Stuck(limit_, [this](size_t i) { return missing_of_[i] > 0; });
  }

 private:
  // A token that this rank needs or passes on.
  struct OfToken {
    size_t below = 0, num_below = 0;  // its range in below_ and rows_
    size_t missing = 0;
    int32_t up = 0;  // outlet towards the home
    bool has_own = false, adds = false;
  };

  // Finds, for every token seen, its connection up and the rows that will come.
  void FindTokens() {
    std::vector<int32_t> needs, below(plan_.sizes.ranks);  // needed ranks below each rank of the branches
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    const Seen& seen = ways_.seen;
    const int32_t self = rank_.rank();
    for (size_t i = 0; i < seen.size(); ++i) {
      OfToken& token = tokens_.emplace_back();
      const int32_t lane = seen.tokens[i] % plan_.lanes;
      RanksOf(std::span(seen.experts).subspan(i * top_k, top_k), plan_.sizes, needs);
      token.has_own = std::ranges::binary_search(needs, self);
      const bool home = seen.homes[i] == self;
      token.adds = home || plan_.sums == Sums::kOnWay;
      token.below = below_.size();
      const std::span<const Branch> branches = rank_.finder_.Find(lane, seen.homes[i], needs);
      below[seen.homes[i]] = 0;
      for (const Branch& branch : branches) below[branch.to] = 0;
      for (const int32_t rank : needs) below[rank] = 1;
      for (size_t b = branches.size(); b-- > 0;) {
        const Branch& branch = branches[b];
        const int32_t rows = below[branch.to];
        below[branch.from] += rows;
        const auto place = [&] {
          return rank_.place_[rank_.wires_.index.Find(lane, branch.depth, branch.from, branch.to)];
        };
        if (branch.to == self) token.up = place();
        if (branch.from != self) continue;
        if (plan_.sums == Sums::kOnWay) below_.push_back(branch.to);
        const int64_t come = plan_.sums == Sums::kOnWay ? 1 : rows;
        rows_to_come_ += come;
        missing_of_[place()] += come;
      }
      if (plan_.sums == Sums::kHome && home)
        for (const int32_t rank : needs)
          if (rank != self) below_.push_back(rank);
      std::ranges::sort(below_.begin() + static_cast<ptrdiff_t>(token.below), below_.end());
      token.missing = token.num_below = below_.size() - token.below;
    }
    rows_.resize(below_.size());
  }

  // By token seen, the rows of this rank's experts among its outputs, in the order of the token's positions.
  void FindEntries() {
    const int32_t local = plan_.sizes.local_experts(), first = rank_.rank() * local;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    std::vector<int32_t> next(ways_.first_of_expert.begin(), ways_.first_of_expert.end() - 1);
    const Seen& seen = ways_.seen;
    for (size_t i = 0; i < seen.size(); ++i) {
      first_entry_.push_back(entries_.size());
      if (of_ == Outputs::kOfRows && seen.rows[i] >= 0) entries_.push_back(seen.rows[i]);
      for (size_t k = i * top_k; k < (i + 1) * top_k && of_ != Outputs::kOfRows; ++k) {
        const int32_t expert = seen.experts[k] - first;
        if (seen.experts[k] >= 0 && expert >= 0 && expert < local) entries_.push_back(next[expert]++);
      }
    }
    first_entry_.push_back(entries_.size());
  }

  // Adds the rank's own experts' rows and those below, which are all there; one of them may lie in its slot.
  void Sum(size_t i, std::byte* to, size_t in_slot = SIZE_MAX, const std::byte* slot = nullptr) {
    const OfToken& token = tokens_[i];
    std::ranges::fill(sum_, 0.0F);
    for (size_t e = first_entry_[i]; e < first_entry_[i + 1]; ++e) {
      const int32_t entry = entries_[e];
      const float weight = of_ == Outputs::kWeighted ? ways_.weight_of_entry[entry] : 1.0F;
      arithmetic_.add(sum_, weight, outputs_ + entry * call.row_bytes + from_);
    }
    for (size_t row = token.below; row < token.below + token.num_below; ++row) {
      if (row == in_slot) {
        arithmetic_.add(sum_, 1, slot);
      } else {
        arithmetic_.add(sum_, 1, rank_.arrived_.data() + rows_[row] * layout.bytes);
        free_.push_back(rows_[row]);
      }
    }
    arithmetic_.round(sum_, to);
  }
  std::byte* SumAt(size_t token) { return sums_ + ways_.seen.tokens[token] * call.row_bytes + from_; }

  // The place of a row's bytes in the message towards its home. Null: there is no room.
  std::byte* AddUp(size_t token, int32_t from) {
    Outlet& outlet = outlets[tokens_[token].up];
    if (!outlet.HasRoom()) return nullptr;
    std::byte* const row = outlet.Add();
    const RowHead head{ways_.seen.homes[token], ways_.seen.tokens[token], from};
    std::memcpy(row, &head, sizeof head);
    return row + layout.header_bytes;
  }

  // Sums what is due into messages with room: a row for each outlet in turn, so that all homes get theirs at
  // once.
  bool SendDue() {
    bool moved = false, any = true;
    while (std::exchange(any, false))
      for (std::deque<size_t>& due : due_) {
        std::byte* const to = due.empty() ? nullptr : AddUp(due.front(), rank_.rank());
        if (to == nullptr) continue;
        Sum(due.front(), to);
        due.pop_front();
        moved = any = true;
      }
    return moved;
  }

  // Keeps a row until its token's sum is made.
  void Keep(size_t place, const std::byte* bytes) {
    std::vector<std::byte>& kept = rank_.arrived_;
    rows_[place] = std::ssize(kept) / layout.bytes;
    if (free_.empty()) {
      kept.insert(kept.end(), bytes, bytes + layout.bytes);
      return;
    }
    rows_[place] = free_.back();
    free_.pop_back();
    std::memcpy(kept.data() + rows_[place] * layout.bytes, bytes, static_cast<size_t>(layout.bytes));
  }

  // Takes the last row below a token.
  void Complete(size_t i, size_t place, const std::byte* bytes) {
    std::byte* const to = ways_.seen.homes[i] == rank_.rank() ? SumAt(i) : AddUp(i, rank_.rank());
    if (to != nullptr) return Sum(i, to, place, bytes);
    Keep(place, bytes);
    due_[static_cast<size_t>(tokens_[i].up)].push_back(i);
  }

  // Takes rows of one connection. A row that is only passed on keeps its slot until it is.
  bool Take(size_t i) {
    Inlet& inlet = inlets[i];
    if (missing_of_[i] == 0 || !inlet.HasMessage()) return false;
    const int32_t begin = at_[i], below = plan_.hops[rank_.out_[i]].to.value;
    for (int32_t& row = at_[i]; row < inlet.head().rows; ++row) {
      RowHead head;
      std::memcpy(&head, inlet.Row(row), sizeof head);
      const std::byte* const bytes = inlet.Row(row) + layout.header_bytes;
      const int64_t t = ways_.seen.Find(head.home, head.token);
      if (t < 0) {
        endpoint.Fail(BugError(fmt::format("rank {}: a row of rank {}'s token {}, which it never saw",
                                           rank_.rank(), head.home, head.token)));
        return false;
      }
      OfToken& token = tokens_[t];
      if (!token.adds) {
        std::byte* const to = AddUp(static_cast<size_t>(t), head.from);
        if (to == nullptr) return row > begin;
        std::memcpy(to, bytes, static_cast<size_t>(layout.bytes));
      } else {
        const int32_t of = plan_.sums == Sums::kOnWay ? below : head.from;
        const auto first = below_.begin() + static_cast<ptrdiff_t>(token.below);
        const auto at = std::lower_bound(first, first + static_cast<ptrdiff_t>(token.num_below), of);
        const auto place = static_cast<size_t>(at - below_.begin());
        if (--token.missing == 0)
          Complete(static_cast<size_t>(t), place, bytes);
        else
          Keep(place, bytes);
      }
      --rows_to_come_;
      --missing_of_[i];
    }
    at_[i] = 0;
    inlet.Pop();
    return true;
  }

  ExpertRank& rank_;
  const ExpertPlan& plan_;
  const Received& ways_;
  const Arithmetic arithmetic_;
  const int64_t from_;
  const Outputs of_;
  const std::byte* const outputs_;
  std::byte* const sums_;
  const std::chrono::nanoseconds limit_;
  std::vector<float> sum_;
  std::vector<int32_t> at_;          // by inlet: the next row of its oldest message
  std::vector<int64_t> missing_of_;  // by inlet: rows to come
  std::vector<OfToken> tokens_;
  std::vector<int32_t> below_;       // ranks whose rows are added here, by token, ascending
  std::vector<int64_t> rows_;        // of those that have come: the place among the rank's arrived_
  std::vector<int64_t> free_;        // places of rows that have been added
  std::vector<size_t> first_entry_;  // by token seen; one more at the end
  std::vector<int32_t> entries_;
  std::vector<std::deque<size_t>> due_;  // by outlet: tokens whose sums wait for room
  int64_t rows_to_come_ = 0;
  bool done_ = false;
};

Status ExpertRank::Combine(const Received& ways, DataType type, int64_t elements, Outputs of,
                           const std::byte* outputs, std::byte* sums, std::chrono::nanoseconds limit) {
  if (Status adds = CheckCombineType(type); !adds.ok()) {
    endpoint_.Fail(adds);
    return adds;
  }
  const int64_t header = HeaderBytes(sizes(), Call::kCombine), bytes = elements * SizeOf(type);
  for (int64_t from = 0; from < bytes; from += BytesThatFit(header)) {
    const CallHead head{.number = ++calls_,
                        .ways = ways.number,
                        .row_bytes = bytes,
                        .kind = CallHead::Kind::kCombine,
                        .type = static_cast<uint8_t>(type)};
    const RowLayout layout{header, std::min(bytes - from, BytesThatFit(header))};
    CombinePart part(*this, head, layout, from, ways, of, outputs, sums, limit);
    XCCL_RETURN_IF_ERROR(DrivePart(part, endpoint_, limit));
  }
  return OkStatus();
}

}  // namespace xccl::dispatch
