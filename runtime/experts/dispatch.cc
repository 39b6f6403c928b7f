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
//
// Ranks of one host need no slots for such rows. The choices come with loans (loan.h), each rank copies the
// rows that it needs from their homes, and a call without rows says that all have: a hop ends once the hops
// that feed it have and its sender has copied, and every rank reaches every other over hops, so a rank whose
// hops have ended knows that no rank reads its rows any more. The last messages also say whether some rank
// could not read; all ranks then learn it, and send rows through slots from there on.
#include <unistd.h>

#include <algorithm>
#include <exception>
#include <functional>
#include <numeric>
#include <utility>

#include "base/exceptions.h"
#include "runtime/experts/parts.h"

namespace xccl::dispatch {

class DispatchPart : public CallPart {
 public:
  // Moves bytes from .. from + layout.bytes of all rows. `ways`: the choices are known, and rows go to `to`.
  DispatchPart(ExpertRank& rank, const CallHead& head, const RowLayout& rows, int64_t from,
               const OwnTokens& own, const RowSource& source, const Received* ways, const RowPlace& to,
               std::chrono::nanoseconds limit, std::function<bool()> take_lent = nullptr)
      : CallPart(rank.endpoint_, head, rows),
        rank_(rank),
        plan_(*rank.wires_.plan),
        from_(from),
        own_(own),
        source_(source),
        ways_(ways),
        to_(to),
        limit_(limit),
        take_lent_(std::move(take_lent)),
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
  // Some rank could not read rows that were lent to it.
  bool unreadable() const { return unreadable_; }
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
  void Start(Cursor& at, const std::byte* header, const std::byte* bytes) {
    RowHead head;
    std::memcpy(&head.home, header, sizeof head.home);
    std::memcpy(&head.token, header + sizeof head.home, sizeof head.token);
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
    const std::byte* const weights = header + kChoicesAt;
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
  bool Pass(Cursor& at, const std::byte* header, const std::byte* bytes) {
    if (!at.started) Start(at, header, bytes);
    for (; at.branch < at.branches.size(); ++at.branch) {
      Outlet& outlet = outlets[at.branches[at.branch]];
      if (!outlet.HasRoom()) return false;
      std::byte* const row = outlet.Add();
      std::memcpy(row, header, static_cast<size_t>(layout.header_bytes));
      std::memcpy(row + layout.header_bytes, bytes, static_cast<size_t>(layout.bytes));
    }
    at.started = false;
    ++at.row;
    return true;
  }

  // The header, and the place of the bytes, which lie together at the source or are put together here.
  void ReadOwnRow(int32_t token) {
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
    own_bytes_ = row + layout.header_bytes;
    ForParts(source_, token, from_, layout.bytes, [&](const std::byte* bytes, int64_t offset, int64_t count) {
      if (count == layout.bytes)
        own_bytes_ = bytes;
      else
        std::memcpy(row + layout.header_bytes + offset, bytes, static_cast<size_t>(count));
    });
  }

  bool SendOwn() {
    bool moved = false;
    while (own_at_.row < own_.count) {
      if (!own_at_.started) ReadOwnRow(own_at_.row);
      if (!Pass(own_at_, own_row_.data(), own_bytes_)) return moved;
      moved = true;
    }
    if (own_at_.ended) return moved;
    if (take_lent_) unreadable_ |= !take_lent_();
    return own_at_.ended = true;
  }

  bool Take(size_t i) {
    Cursor& at = in_[i];
    Inlet& inlet = inlets[i];
    if (at.ended || !inlet.HasMessage()) return false;
    const int32_t begin = at.row;
    while (at.row < inlet.head().rows) {
      const std::byte* const row = inlet.Row(at.row);
      if (!Pass(at, row, row + layout.header_bytes)) return at.row > begin;
    }
    at.ended = inlet.head().last;
    unreadable_ |= inlet.head().unreadable;
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
        moved |= outlets[o].End(unreadable_);
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
  const std::function<bool()> take_lent_;  // copies lent rows, before this rank's hops end
  std::vector<std::byte> own_row_;         // the own row that is being sent, as it lies in messages
  const std::byte* own_bytes_ = nullptr;
  Cursor own_at_;
  std::vector<Cursor> in_;  // by inlet
  std::vector<int32_t> needs_;
  Seen seen_;  // in the order of arrival, with rows in that order too
  int32_t num_rows_ = 0;
  bool done_ = false, unreadable_ = false;
};

namespace {

RowSource SourceOf(const std::vector<Loan>& loans) {
  return {.rows = reinterpret_cast<const std::byte*>(loans.data()), .row_bytes = sizeof(Loan)};
}
RowPlace PlaceOf(std::vector<Loan>& loans) {
  return {.rows = reinterpret_cast<std::byte*>(loans.data()), .row_bytes = sizeof(Loan)};
}

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
  // By home, and then by token, which the rows of one way come in.
  std::vector<size_t> next(static_cast<size_t>(plan_.sizes.ranks) + 1), by_token(seen_.size());
  for (const int32_t home : seen_.homes) ++next[static_cast<size_t>(home) + 1];
  std::partial_sum(next.begin(), next.end(), next.begin());
  for (size_t i = 0; i < seen_.size(); ++i) by_token[next[static_cast<size_t>(seen_.homes[i])]++] = i;
  const auto token_of = [&](size_t i) { return seen_.tokens[i]; };
  size_t first = 0;
  for (int32_t home = 0; home < plan_.sizes.ranks; ++home) {
    const auto of_home = std::span(by_token).subspan(first, next[static_cast<size_t>(home)] - first);
    if (!std::ranges::is_sorted(of_home, {}, token_of)) std::ranges::sort(of_home, {}, token_of);
    first += of_home.size();
  }
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

bool ExpertRank::FitSlots(int64_t row_bytes) const {
  return sizes().max_tokens * row_bytes <= wires_.wiring.slots * wires_.wiring.slot_bytes;
}

std::vector<Loan> ExpertRank::Lend(const RowSource& rows, int32_t count) {
  lender_.rows = rows;
  return std::vector<Loan>(static_cast<size_t>(count), {&lender_, getpid(), lender_.number});
}

Status ExpertRank::Take(const Received& ways, const RowSource& rows, const std::vector<Loan>& loans,
                        const RowPlace& place, std::chrono::nanoseconds limit) {
  const CallHead head{
      .number = ++calls_, .ways = ways.number, .row_bytes = rows.bytes(), .kind = CallHead::Kind::kAgain};
  const RowLayout layout{HeaderBytes(sizes(), Call::kCombine), 0};
  DispatchPart part(*this, head, layout, 0, {}, {}, &ways, {}, limit,
                    [&] { return TakeLent(ways, loans, rank(), lender_, with_threads_, place); });
  XCCL_RETURN_IF_ERROR(DrivePart(part, endpoint_, limit));
  lends_ = !part.unreadable();
  return OkStatus();
}

// Bytes from `from` on of all rows through slots, in as many calls as that takes.
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

StatusOr<Received> ExpertRank::SendNew(const OwnTokens& own, const RowSource& rows, const Placer& place,
                                       std::chrono::nanoseconds limit) {
  XCCL_RETURN_IF_ERROR(CheckChoices(own.experts, own.count, sizes(), rank()));
  const bool fit = FitSlots(rows.bytes()), lend = lends_ && !fit;
  std::vector<Loan> loans;
  if (lend) loans = Lend(rows, own.count);
  const int64_t header = HeaderBytes(sizes(), Call::kDispatch);
  const CallHead head{.number = ++calls_, .row_bytes = rows.bytes(), .kind = CallHead::Kind::kDispatch};
  RowLayout layout{header, lend ? int64_t{sizeof(Loan)} : 0};
  if (fit) layout.bytes = std::min(rows.bytes(), BytesThatFit(header));
  DispatchPart part(*this, head, layout, 0, own, lend ? SourceOf(loans) : rows, nullptr, {}, limit);
  XCCL_RETURN_IF_ERROR(DrivePart(part, endpoint_, limit));
  std::vector<int32_t> order;
  Received received = part.Sorted(order);
  const StatusOr<RowPlace> to = place(received);
  if (!to.ok()) return Annotate(to.status(), fmt::format("rank {}", rank()));
  loans.resize(static_cast<size_t>(received.num_rows));
  for (int32_t row = 0; row < received.num_rows; ++row)
    ForParts(lend ? PlaceOf(loans) : *to, row, 0, layout.bytes,
             [&](std::byte* into, int64_t offset, int64_t count) {
               std::memcpy(into, part.Arrived(order[row]) + offset, static_cast<size_t>(count));
             });
  if (lend) {
    XCCL_RETURN_IF_ERROR(Take(received, rows, loans, *to, limit));
    if (lends_) return received;
  }
  XCCL_RETURN_IF_ERROR(SendBytes(received, rows, *to, fit ? layout.bytes : 0, limit));
  return received;
}

Status ExpertRank::SendAgain(const Received& ways, const RowSource& rows, const RowPlace& place,
                             std::chrono::nanoseconds limit) {
  if (lends_ && !FitSlots(rows.bytes())) {
    const std::vector<Loan> own = Lend(rows, ways.own_tokens);
    std::vector<Loan> loans(static_cast<size_t>(ways.num_rows));
    XCCL_RETURN_IF_ERROR(SendBytes(ways, SourceOf(own), PlaceOf(loans), 0, limit));
    XCCL_RETURN_IF_ERROR(Take(ways, rows, loans, place, limit));
    if (lends_) return OkStatus();
  }
  return SendBytes(ways, rows, place, 0, limit);
}

Status ExpertRank::End(const std::function<Status()>& call) {
  Status status;
  try {
    status = call();
  } catch (const std::exception& error) {
    status = Annotate(StatusOf(error), fmt::format("rank {}", rank()));
  }
  if (status.ok()) return status;
  endpoint_.Fail(status);
  endpoint_.Leave();
  return *endpoint_.Failure();
}

StatusOr<Received> ExpertRank::Dispatch(const OwnTokens& own, const RowSource& rows, const Placer& place,
                                        std::chrono::nanoseconds limit) {
  Received received;
  XCCL_RETURN_IF_ERROR(End([&]() -> Status {
    XCCL_ASSIGN_OR_RETURN(received, SendNew(own, rows, place, limit));
    return OkStatus();
  }));
  return received;
}

Status ExpertRank::DispatchAgain(const Received& ways, const RowSource& rows, const RowPlace& place,
                                 std::chrono::nanoseconds limit) {
  return End([&] { return SendAgain(ways, rows, place, limit); });
}

}  // namespace xccl::dispatch
