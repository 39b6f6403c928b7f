// A rank goes around its hops: it takes the oldest message of each connection that comes in, and for each of
// its rows looks up the branches that leave this rank (every row's header has its token's experts, or names a
// token that the rank knows). A row joins the message that is being filled for each branch's connection; a
// full message is sent. Where no slot is free, that incoming connection waits and the others go on. The
// incoming message keeps its slot until all its rows have been passed on, as the proof of dispatch/verify.h
// assumes. The last message of a hop says so; a hop ends once the hops that feed it have.
//
// Where a connection's slots cannot hold a rank's rows, the first call moves the choices alone, and another
// one the rows, each straight from its slot to its place, which the choices say: together, rows would be
// copied once more. Rows that no slot holds are cut: calls for the other bytes follow on the same ways.
#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/experts/parts.h"

namespace xccl::dispatch {

class DispatchPart : public CallPart {
 public:
  // Moves bytes from .. from + layout.bytes of all rows. `ways`: the choices are known, and rows go to `to`.
  DispatchPart(ExpertRank& rank, const CallHead& head, const RowLayout& rows, int64_t from,
               const OwnTokens& own, const RowSource& source, const Received* ways, const RowPlace& to,
               std::chrono::nanoseconds limit)
      : CallPart(rank.endpoint_, head, rows),
        rank_(rank),
        plan_(*rank.wires_.plan),
        from_(from),
        own_(own),
        source_(source),
        ways_(ways),
        to_(to),
        limit_(limit),
        own_row_(static_cast<size_t>(layout.stride())),
        in_(rank.in_.size()) {
    Open(rank.in_, rank.out_, rank.wires_.there, rank.wires_.back);
    rank_.arrived_.clear();
  }

  bool Round() {
    bool moved = SendOwn();
    for (size_t i = 0; i < in_.size(); ++i) moved |= Take(i);
    done_ = Finish(moved);
    return moved;
  }
  bool MovedAll() const { return done_; }
  void LookAround() {
    CallPart::LookAround([this](size_t i) { return !in_[i].ended; });
  }
  Status Stuck() const {
    return CallPart::Stuck(limit_, [this](size_t i) { return !in_[i].ended; });
  }

  // The tokens that were kept, in the order of (home, token), without the rows; `order`: by row received, its
  // number in the order of arrival.
  Received Sorted(std::vector<int32_t>& order) const;
  // The bytes of a row, by its number in the order of arrival.
  const std::byte* Arrived(int32_t row) const { return rank_.arrived_.data() + row * layout.bytes; }

 private:
  // Where the work on one source of rows stands: the next row, and the next of its branches.
  struct Cursor {
    int32_t row = 0;
    size_t branch = 0;
    bool started = false, ended = false;
    std::vector<int32_t> branches;  // outlets that the row takes from here
  };

  size_t top_k() const { return static_cast<size_t>(plan_.sizes.top_k); }

  void FindBranches(Cursor& at, const RowHead& head, std::span<const int32_t> experts) {
    at.started = true;
    at.branch = 0;
    at.branches.clear();
    const int32_t lane = head.token % plan_.lanes;
    RanksOf(experts, plan_.sizes, needs_);
    for (const Branch& branch : rank_.finder_.Find(lane, head.home, needs_))
      if (branch.from == rank_.rank())
        at.branches.push_back(
            rank_.place_[rank_.wires_.index.Find(lane, branch.depth, branch.from, branch.to)]);
  }

  // Finds the row's branches here, and keeps its token's choices and, if it is needed here, its bytes.
  void Start(Cursor& at, const std::byte* row) {
    RowHead head;
    std::memcpy(&head.home, row, sizeof head.home);
    std::memcpy(&head.token, row + sizeof head.home, sizeof head.token);
    const std::byte* const bytes = row + layout.header_bytes;
    if (ways_ != nullptr) {
      const int64_t known = ways_->seen.Find(head.home, head.token);
      if (known < 0)
        return endpoint.Fail(BugError(fmt::format("rank {}: a row of rank {}'s token {}, which it never saw",
                                                  rank_.rank(), head.home, head.token)));
      FindBranches(at, head, std::span(ways_->seen.experts).subspan(known * top_k(), top_k()));
      if (const int32_t place = ways_->seen.rows[known]; place >= 0)
        ForParts(to_, place, from_, layout.bytes, [&](std::byte* to, int64_t offset, int64_t count) {
          std::memcpy(to, bytes + offset, static_cast<size_t>(count));
        });
      return;
    }
    Seen& seen = seen_;
    seen.homes.push_back(head.home);
    seen.tokens.push_back(head.token);
    const std::byte* const weights = row + kChoicesAt;
    for (size_t k = 0; k < top_k(); ++k) {
      float weight = 0;
      uint16_t expert = 0;
      std::memcpy(&weight, weights + k * sizeof weight, sizeof weight);
      std::memcpy(&expert, weights + top_k() * sizeof weight + k * sizeof expert, sizeof expert);
      seen.weights.push_back(weight);
      seen.experts.push_back(expert == kNoExpert ? -1 : expert);
    }
    FindBranches(at, head, std::span(seen.experts).last(top_k()));
    const bool needed = std::ranges::binary_search(needs_, rank_.rank());
    seen.rows.push_back(needed ? num_rows_ : -1);
    if (!needed) return;
    ++num_rows_;
    rank_.arrived_.insert(rank_.arrived_.end(), bytes, bytes + layout.bytes);
  }

  // Passes one row to its branches. False: a connection has no room, and the rest waits.
  bool Pass(Cursor& at, const std::byte* row) {
    if (!at.started) Start(at, row);
    for (; at.branch < at.branches.size(); ++at.branch) {
      Outlet& outlet = outlets[at.branches[at.branch]];
      if (!outlet.HasRoom()) return false;
      std::memcpy(outlet.Add(), row, static_cast<size_t>(layout.stride()));
    }
    at.started = false;
    ++at.row;
    return true;
  }

  void WriteOwnRow(int32_t token) {
    std::byte* const row = own_row_.data();
    const RowHead head{rank_.rank(), token, rank_.rank()};
    std::memcpy(row, &head, ways_ == nullptr ? kChoicesAt : sizeof head);
    for (size_t k = 0; k < top_k() && ways_ == nullptr; ++k) {
      const size_t at = static_cast<size_t>(token) * top_k() + k;
      const float weight = own_.weights.empty() ? 1.0F : own_.weights[at];
      const auto expert = static_cast<uint16_t>(own_.experts[at] < 0 ? kNoExpert : own_.experts[at]);
      std::memcpy(row + kChoicesAt + k * sizeof weight, &weight, sizeof weight);
      std::memcpy(row + kChoicesAt + top_k() * sizeof weight + k * sizeof expert, &expert, sizeof expert);
    }
    ForParts(source_, token, from_, layout.bytes, [&](const std::byte* bytes, int64_t offset, int64_t count) {
      std::memcpy(row + layout.header_bytes + offset, bytes, static_cast<size_t>(count));
    });
  }

  bool SendOwn() {
    bool moved = false;
    while (own_at_.row < own_.count) {
      if (!own_at_.started) WriteOwnRow(own_at_.row);
      if (!Pass(own_at_, own_row_.data())) return moved;
      moved = true;
    }
    return !std::exchange(own_at_.ended, true) || moved;
  }

  bool Take(size_t i) {
    Cursor& at = in_[i];
    Inlet& inlet = inlets[i];
    if (at.ended || !inlet.HasMessage()) return false;
    const int32_t begin = at.row;
    while (at.row < inlet.head().rows)
      if (!Pass(at, inlet.Row(at.row))) return at.row > begin;
    at.ended = inlet.head().last;
    at.row = 0;
    inlet.Pop();
    return true;
  }

  // Sends what is being filled when nothing else moves, and ends hops whose feeders have ended. True: all is
  // done.
  bool Finish(bool& moved) {
    bool done = own_at_.ended;
    for (const Cursor& at : in_) done &= at.ended;
    for (size_t o = 0; o < outlets.size(); ++o) {
      const Hop& hop = plan_.hops[rank_.out_[o]];
      bool fed = hop.stage != plan_.stage_of_depth[0] || own_at_.ended;
      for (size_t i = 0; i < in_.size(); ++i) {
        const Hop& feeder = plan_.hops[rank_.in_[i]];
        fed &= in_[i].ended || feeder.lane != hop.lane || feeder.stage >= hop.stage;
      }
      if (fed && !outlets[o].ended())
        moved |= outlets[o].End();
      else if (!moved)
        moved |= outlets[o].Flush();
      done &= outlets[o].ended();
    }
    return done;
  }

  ExpertRank& rank_;
  const ExpertPlan& plan_;
  const int64_t from_;
  const OwnTokens own_;
  const RowSource source_;
  const Received* const ways_;
  const RowPlace to_;
  const std::chrono::nanoseconds limit_;
  std::vector<std::byte> own_row_;  // the own row that is being sent, as it lies in messages
  Cursor own_at_;
  std::vector<Cursor> in_;  // by inlet
  std::vector<int32_t> needs_;
  Seen seen_;  // in the order of arrival, with rows in that order too
  int32_t num_rows_ = 0;
  bool done_ = false;
};

namespace {

// Counts entries by local expert. Requires: seen.
void CountExperts(const Sizes& sizes, int32_t rank, Received& received) {
  const int32_t local = sizes.local_experts(), first = rank * local;
  const auto top_k = static_cast<size_t>(sizes.top_k);
  const auto for_each = [&](auto visit) {
    for (size_t i = 0; i < received.seen.size(); ++i)
      for (size_t k = i * top_k; k < (i + 1) * top_k; ++k)
        if (const int32_t expert = received.seen.experts[k] - first;
            received.seen.experts[k] >= 0 && expert >= 0 && expert < local)
          visit(expert, received.seen.rows[i], received.seen.weights[k]);
  };
  received.rows_of_expert.assign(local, 0);
  for_each([&](int32_t expert, int32_t, float) { ++received.rows_of_expert[expert]; });
  received.first_of_expert.assign(1, 0);
  for (const int32_t count : received.rows_of_expert)
    received.first_of_expert.push_back(received.first_of_expert.back() + count);
  received.row_of_entry.resize(received.first_of_expert.back());
  received.weight_of_entry.resize(received.row_of_entry.size());
  std::vector<int32_t> next(received.first_of_expert.begin(), received.first_of_expert.end() - 1);
  for_each([&](int32_t expert, int32_t row, float weight) {
    received.row_of_entry[next[expert]] = row;
    received.weight_of_entry[next[expert]++] = weight;
  });
}

}  // namespace

Received DispatchPart::Sorted(std::vector<int32_t>& order) const {
  std::vector<size_t> by_token(seen_.size());
  std::iota(by_token.begin(), by_token.end(), 0);
  std::ranges::sort(by_token, {}, [&](size_t i) { return std::pair(seen_.homes[i], seen_.tokens[i]); });
  Received sorted;
  sorted.number = call.number;
  sorted.own_tokens = own_.count;
  sorted.rows_of_home.resize(plan_.sizes.ranks);
  for (const size_t i : by_token) {
    Seen& seen = sorted.seen;
    seen.homes.push_back(seen_.homes[i]);
    seen.tokens.push_back(seen_.tokens[i]);
    for (size_t k = i * top_k(); k < (i + 1) * top_k(); ++k) {
      seen.experts.push_back(seen_.experts[k]);
      seen.weights.push_back(seen_.weights[k]);
    }
    seen.rows.push_back(seen_.rows[i] < 0 ? -1 : sorted.num_rows);
    if (seen_.rows[i] < 0) continue;
    ++sorted.num_rows;
    ++sorted.rows_of_home[seen_.homes[i]];
    order.push_back(seen_.rows[i]);
  }
  CountExperts(plan_.sizes, rank_.rank(), sorted);
  return sorted;
}

StatusOr<Received> ExpertRank::Dispatch(const OwnTokens& own, const RowSource& rows, const Placer& place,
                                        std::chrono::nanoseconds limit) {
  if (const Status fits = CheckChoices(own.experts, own.count, sizes(), rank()); !fits.ok()) {
    endpoint_.Fail(fits);
    return fits;
  }
  const int64_t header = HeaderBytes(sizes(), Call::kDispatch);
  const CallHead head{.number = ++calls_, .row_bytes = rows.bytes(), .kind = CallHead::Kind::kDispatch};
  const Wiring& wiring = wires_.wiring;
  const bool together = sizes().max_tokens * rows.bytes() <= wiring.slots * wiring.slot_bytes;
  const RowLayout layout{header, together ? std::min(rows.bytes(), BytesThatFit(header)) : 0};
  DispatchPart part(*this, head, layout, 0, own, rows, nullptr, {}, limit);
  XCCL_RETURN_IF_ERROR(DrivePart(part, endpoint_, limit));
  std::vector<int32_t> order;
  Received received = part.Sorted(order);
  const StatusOr<RowPlace> to = place(received);
  if (!to.ok()) {
    endpoint_.Fail(Annotate(to.status(), fmt::format("rank {}", rank())));
    return *endpoint_.Failure();
  }
  for (int32_t row = 0; row < received.num_rows; ++row)
    ForParts(*to, row, 0, layout.bytes, [&](std::byte* into, int64_t offset, int64_t count) {
      std::memcpy(into, part.Arrived(order[row]) + offset, static_cast<size_t>(count));
    });
  XCCL_RETURN_IF_ERROR(SendBytes(received, rows, *to, layout.bytes, limit));
  return received;
}

// Bytes from `from` on of all rows, in as many calls as that takes.
Status ExpertRank::SendBytes(const Received& ways, const RowSource& rows, const RowPlace& place, int64_t from,
                             std::chrono::nanoseconds limit) {
  const int64_t header = HeaderBytes(sizes(), Call::kCombine);
  for (; from < rows.bytes(); from += BytesThatFit(header)) {
    const CallHead head{
        .number = ++calls_, .ways = ways.number, .row_bytes = rows.bytes(), .kind = CallHead::Kind::kAgain};
    const RowLayout layout{header, std::min(rows.bytes() - from, BytesThatFit(header))};
    const OwnTokens own{ways.own_tokens, {}, {}};
    DispatchPart part(*this, head, layout, from, own, rows, &ways, place, limit);
    XCCL_RETURN_IF_ERROR(DrivePart(part, endpoint_, limit));
  }
  return OkStatus();
}

Status ExpertRank::DispatchAgain(const Received& ways, const RowSource& rows, const RowPlace& place,
                                 std::chrono::nanoseconds limit) {
  return SendBytes(ways, rows, place, 0, limit);
}

}  // namespace xccl::dispatch
