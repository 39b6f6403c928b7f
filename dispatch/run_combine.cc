// combine uses the hops the other way around. Each rank knows from its dispatch which rows will come, so
// nothing needs to say that it is the last. Rows below a token are kept until all are there, and added in
// their order.
#include <algorithm>
#include <cstring>
#include <deque>
#include <numeric>
#include <unordered_map>
#include <utility>

#include "dispatch/team.h"
#include "ir/numbers.h"

namespace xccl::dispatch {
namespace {

float ToFloat(DataType type, const std::byte* at) {
  if (type == DataType::kFloat) {
    float value;
    std::memcpy(&value, at, sizeof value);
    return value;
  }
  uint16_t bits;
  std::memcpy(&bits, at, sizeof bits);
  return type == DataType::kHalf ? HalfToFloat(bits) : Bfloat16ToFloat(bits);
}

void FromFloat(DataType type, float value, std::byte* at) {
  if (type == DataType::kFloat) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const uint16_t bits = type == DataType::kHalf ? FloatToHalf(value) : FloatToBfloat16(value);
  std::memcpy(at, &bits, sizeof bits);
}

// One rank's combine.
class Combiner {
 public:
  Combiner(Shared& shared, int32_t rank, const Received& received, int32_t tokens, DataType type,
           int64_t elements, std::span<const std::byte> outputs)
      : shared_(shared),
        plan_(shared.plan),
        rank_(rank),
        received_(received),
        type_(type),
        elements_(static_cast<size_t>(elements)),
        row_bytes_(elements_ * static_cast<size_t>(SizeOf(type))),
        outputs_(outputs),
        result_(static_cast<size_t>(tokens) * row_bytes_),
        at_(shared.hops[rank].out.size()) {
    for (const int32_t h : shared.hops[rank].in) {
      place_of_[h] = up_.size();
      up_.emplace_back(*shared.rings[h], plan_.rows_per_message);
    }
    FindTokens();
  }

  Rows Run() {
    Idler idler(shared_.watch, shared_.bells[rank_]);
    while (true) {
      bool moved = SendReady();
      for (size_t i = 0; i < at_.size(); ++i) moved |= Take(i);
      bool done = rows_to_come_ == 0 && ready_.empty();
      for (Filling& filling : up_) {
        if (!moved && !filling.message().empty()) moved |= filling.Flush();
        done &= filling.message().empty();
      }
      if (done || !idler.GoOn(moved)) break;
    }
    return std::move(result_);
  }

 private:
  // A token that this rank needs or passes on.
  struct OfToken {
    std::vector<int32_t> below;                // ranks whose rows are added here, ascending
    std::vector<std::vector<std::byte>> rows;  // of those; empty until it comes
    size_t missing = 0;
    size_t up = 0;  // place of the hop towards the home
    bool has_own = false, adds = false;
  };

  static int64_t Key(int32_t home, int32_t token) { return int64_t{home} << 32 | token; }

  // Finds, for every token seen, its hop up and the rows that will come.
  void FindTokens() {
    BranchFinder finder(plan_);
    std::vector<int32_t> needs;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    const Seen& seen = received_.seen;
    for (size_t i = 0; i < seen.size(); ++i) {
      OfToken& token = tokens_.emplace_back();
      index_[Key(seen.homes[i], seen.tokens[i])] = i;
      const int32_t lane = seen.tokens[i] % plan_.lanes;
      RanksOf(std::span(seen.experts).subspan(i * top_k, top_k), plan_.sizes, needs);
      token.has_own = std::ranges::binary_search(needs, rank_);
      const bool home = seen.homes[i] == rank_;
      token.adds = home || plan_.sums == Sums::kOnWay;
      std::unordered_map<int32_t, int32_t> below;  // needed ranks below each rank of the branches
      const std::span<const Branch> branches = finder.Find(lane, seen.homes[i], needs);
      for (const int32_t rank : needs) below[rank] = 1;
      for (size_t b = branches.size(); b-- > 0;) {
        const Branch& branch = branches[b];
        const int32_t rows = below[branch.to];
        below[branch.from] += rows;
        if (branch.to == rank_)
          token.up = place_of_.at(shared_.index.Find(lane, branch.depth, branch.from, branch.to));
        if (branch.from != rank_) continue;
        if (plan_.sums == Sums::kOnWay) token.below.push_back(branch.to);
        rows_to_come_ += plan_.sums == Sums::kOnWay ? 1 : rows;
      }
      if (plan_.sums == Sums::kHome && home)
        for (const int32_t rank : needs)
          if (rank != rank_) token.below.push_back(rank);
      std::ranges::sort(token.below);
      token.rows.resize(token.below.size());
      token.missing = token.below.size();
    }
    FindEntries();
    // Token by token, so that ranks send to all homes at once and not all to the first.
    std::vector<size_t> order(tokens_.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::stable_sort(order, {}, [&](size_t i) { return seen.tokens[i]; });
    for (const size_t i : order)
      if (tokens_[i].missing == 0) Add(i);
  }

  // By row received, the entries of its experts in the order of the token's positions.
  void FindEntries() {
    const int32_t local = plan_.sizes.local_experts(), first = rank_ * local;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    std::vector<int32_t> next(received_.first_of_expert.begin(), received_.first_of_expert.end() - 1);
    const Seen& seen = received_.seen;
    entries_.resize(seen.size());
    for (size_t i = 0; i < seen.size(); ++i)
      for (size_t k = i * top_k; k < (i + 1) * top_k; ++k) {
        const int32_t expert = seen.experts[k] - first;
        if (seen.experts[k] >= 0 && expert >= 0 && expert < local) entries_[i].push_back(next[expert]++);
      }
  }

  // Adds the rank's own experts' rows and those below, which are all there; keeps or sends the sum.
  void Add(size_t i) {
    OfToken& token = tokens_[i];
    const bool home = received_.seen.homes[i] == rank_;
    if (!token.adds && !token.has_own) return;
    std::vector<float> sum(elements_);
    for (const int32_t entry : entries_[i]) {
      const std::byte* row = outputs_.data() + static_cast<size_t>(entry) * row_bytes_;
      const float weight = received_.weight_of_entry[entry];
      for (size_t e = 0; e < elements_; ++e)
        sum[e] += weight * ToFloat(type_, row + e * row_bytes_ / elements_);
    }
    for (std::vector<std::byte>& row : token.rows) {
      for (size_t e = 0; e < elements_; ++e)
        sum[e] += ToFloat(type_, row.data() + e * row_bytes_ / elements_);
      row = {};
    }
    Ready ready{i, rank_, std::vector<std::byte>(row_bytes_)};
    for (size_t e = 0; e < elements_; ++e)
      FromFloat(type_, sum[e], ready.bytes.data() + e * row_bytes_ / elements_);
    if (home)
      std::ranges::copy(ready.bytes,
                        result_.begin() + static_cast<ptrdiff_t>(
                                              static_cast<size_t>(received_.seen.tokens[i]) * row_bytes_));
    else
      ready_.push_back(std::move(ready));
  }

  struct Ready {
    size_t token;  // index in tokens_
    int32_t from;
    std::vector<std::byte> bytes;
  };

  // Puts a row into the message towards its home. False: there is no room.
  bool SendUp(size_t token, int32_t from, std::span<const std::byte> bytes) {
    Filling& filling = up_[tokens_[token].up];
    if (!filling.HasRoom()) return false;
    Message& message = filling.message();
    message.heads.push_back({received_.seen.homes[token], received_.seen.tokens[token], from});
    message.bytes.insert(message.bytes.end(), bytes.begin(), bytes.end());
    return true;
  }

  bool SendReady() {
    bool moved = false;
    for (size_t left = ready_.size(); left > 0; --left) {
      if (SendUp(ready_.front().token, ready_.front().from, ready_.front().bytes))
        moved = true;
      else
        ready_.push_back(std::move(ready_.front()));
      ready_.pop_front();
    }
    return moved;
  }

  // Takes rows of one hop. A row that is only passed on keeps its slot until it is.
  bool Take(size_t i) {
    Ring& ring = *shared_.rings[shared_.hops[rank_].out[i]];
    const Message* message = ring.Front();
    if (message == nullptr) return false;
    const int32_t below = plan_.hops[shared_.hops[rank_].out[i]].to.value;
    for (size_t& row = at_[i]; row < message->heads.size(); ++row) {
      const Head& head = message->heads[row];
      const size_t t = index_.at(Key(head.home, head.token));
      OfToken& token = tokens_[t];
      const std::span<const std::byte> bytes =
          std::span(message->bytes).subspan(row * row_bytes_, row_bytes_);
      if (!token.adds) {
        if (!SendUp(t, head.from, bytes)) return row > 0;
      } else {
        const int32_t of = plan_.sums == Sums::kOnWay ? below : head.from;
        const auto place = std::ranges::lower_bound(token.below, of) - token.below.begin();
        token.rows[place].assign(bytes.begin(), bytes.end());
        if (--token.missing == 0) Add(t);
      }
      --rows_to_come_;
    }
    at_[i] = 0;
    ring.Pop();
    return true;
  }

  Shared& shared_;
  const ExpertPlan& plan_;
  const int32_t rank_;
  const Received& received_;
  const DataType type_;
  const size_t elements_, row_bytes_;
  const std::span<const std::byte> outputs_;
  Rows result_;
  std::vector<size_t> at_;   // by hop that rows come back over: the next row of its oldest message
  std::vector<Filling> up_;  // by hop towards homes
  std::unordered_map<int32_t, size_t> place_of_;
  std::unordered_map<int64_t, size_t> index_;  // of tokens seen
  std::vector<OfToken> tokens_;
  std::vector<std::vector<int32_t>> entries_;  // by token seen
  std::deque<Ready> ready_;
  int64_t rows_to_come_ = 0;
};

}  // namespace

Rows CombineOfRank(Shared& shared, int32_t rank, const Received& received, int32_t tokens, DataType type,
                   int64_t elements, std::span<const std::byte> outputs) {
  return Combiner(shared, rank, received, tokens, type, elements, outputs).Run();
}

}  // namespace xccl::dispatch
