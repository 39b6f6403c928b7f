// combine uses the hops the other way around. Each rank knows from its dispatch which rows will come, so
// nothing needs to say that it is the last. Rows below a token are kept until all are there, and added in
// their order. Rows that no slot holds are cut into columns, each of which is a call of its own.
#include <algorithm>
#include <deque>
#include <numeric>
#include <span>
#include <unordered_map>
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
        missing_of_(rank.out_.size()) {
    Open(rank.out_, rank.in_, rank.wires_.back, rank.wires_.there);
    FindTokens();
    FindEntries();
    // Token by token, so that ranks send to all homes at once and not all to the first.
    std::vector<size_t> order(tokens_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](size_t i) { return ways_.seen.tokens[i]; });
    for (const size_t i : order)
      if (tokens_[i].missing == 0) Add(i);
  }

  bool Round() {
    bool moved = SendReady();
    for (size_t i = 0; i < at_.size(); ++i) moved |= Take(i);
    done_ = rows_to_come_ == 0 && ready_.empty();
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
    std::vector<int32_t> below;                // ranks whose rows are added here, ascending
    std::vector<std::vector<std::byte>> rows;  // of those; empty until it comes
    size_t missing = 0;
    int32_t up = 0;  // outlet towards the home
    bool has_own = false, adds = false;
  };
  // A row that waits for room.
  struct Ready {
    size_t token;  // place among the tokens seen
    int32_t from;
    std::vector<std::byte> bytes;
  };

  // Finds, for every token seen, its connection up and the rows that will come.
  void FindTokens() {
    std::vector<int32_t> needs;
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
      std::unordered_map<int32_t, int32_t> below;  // needed ranks below each rank of the branches
      const std::span<const Branch> branches = rank_.finder_.Find(lane, seen.homes[i], needs);
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
        if (plan_.sums == Sums::kOnWay) token.below.push_back(branch.to);
        const int64_t come = plan_.sums == Sums::kOnWay ? 1 : rows;
        rows_to_come_ += come;
        missing_of_[place()] += come;
      }
      if (plan_.sums == Sums::kHome && home)
        for (const int32_t rank : needs)
          if (rank != self) token.below.push_back(rank);
      std::ranges::sort(token.below);
      token.rows.resize(token.below.size());
      token.missing = token.below.size();
    }
  }

  // By token seen, the rows of this rank's experts among its outputs, in the order of the token's positions.
  void FindEntries() {
    const int32_t local = plan_.sizes.local_experts(), first = rank_.rank() * local;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    std::vector<int32_t> next(ways_.first_of_expert.begin(), ways_.first_of_expert.end() - 1);
    const Seen& seen = ways_.seen;
    entries_.resize(seen.size());
    for (size_t i = 0; i < seen.size(); ++i) {
      if (of_ == Outputs::kOfRows && seen.rows[i] >= 0) entries_[i].push_back(seen.rows[i]);
      for (size_t k = i * top_k; k < (i + 1) * top_k && of_ != Outputs::kOfRows; ++k) {
        const int32_t expert = seen.experts[k] - first;
        if (seen.experts[k] >= 0 && expert >= 0 && expert < local) entries_[i].push_back(next[expert]++);
      }
    }
  }

  // Adds the rank's own experts' rows and those below, which are all there; keeps or sends the sum.
  void Add(size_t i) {
    OfToken& token = tokens_[i];
    if (!token.adds && !token.has_own) return;
    std::ranges::fill(sum_, 0.0F);
    for (const int32_t entry : entries_[i]) {
      const float weight = of_ == Outputs::kWeighted ? ways_.weight_of_entry[entry] : 1.0F;
      arithmetic_.add(sum_, weight, outputs_ + entry * call.row_bytes + from_);
    }
    for (std::vector<std::byte>& row : token.rows) {
      arithmetic_.add(sum_, 1, row.data());
      row = {};
    }
    if (ways_.seen.homes[i] == rank_.rank()) {
      arithmetic_.round(sum_, sums_ + ways_.seen.tokens[i] * call.row_bytes + from_);
      return;
    }
    Ready& ready = ready_.emplace_back(i, rank_.rank(), std::vector<std::byte>(layout.bytes));
    arithmetic_.round(sum_, ready.bytes.data());
  }

  // Puts a row into the message towards its home. False: there is no room.
  bool SendUp(size_t token, int32_t from, const std::byte* bytes) {
    Outlet& outlet = outlets[tokens_[token].up];
    if (!outlet.HasRoom()) return false;
    std::byte* const row = outlet.Add();
    const RowHead head{ways_.seen.homes[token], ways_.seen.tokens[token], from};
    std::memcpy(row, &head, sizeof head);
    std::memcpy(row + layout.header_bytes, bytes, static_cast<size_t>(layout.bytes));
    return true;
  }

  bool SendReady() {
    bool moved = false;
    for (size_t left = ready_.size(); left > 0; --left) {
      if (SendUp(ready_.front().token, ready_.front().from, ready_.front().bytes.data()))
        moved = true;
      else
        ready_.push_back(std::move(ready_.front()));
      ready_.pop_front();
    }
    return moved;
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
        if (!SendUp(t, head.from, bytes)) return row > begin;
      } else {
        const int32_t of = plan_.sums == Sums::kOnWay ? below : head.from;
        const auto place = std::ranges::lower_bound(token.below, of) - token.below.begin();
        token.rows[place].assign(bytes, bytes + layout.bytes);
        if (--token.missing == 0) Add(t);
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
  std::vector<std::vector<int32_t>> entries_;  // by token seen
  std::deque<Ready> ready_;
  int64_t rows_to_come_ = 0;
  bool done_ = false;
};

Status ExpertRank::Combine(const Received& ways, DataType type, int64_t elements, Outputs of,
                           const std::byte* outputs, std::byte* sums, std::chrono::nanoseconds limit) {
  if (const Status adds = CheckCombineType(type); !adds.ok()) {
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
