// A hop is a ring of messages between two threads. A rank's thread goes around its hops: it takes the oldest
// message of each hop that comes in, and for each of its rows looks up the branches that leave this rank
// (every row's header has its token's experts). A row joins the message that is being filled for each
// branch's hop; a full message goes into a free slot of the ring. Where none is free, that incoming hop waits
// and the others go on. The incoming message keeps its slot until all its rows have been passed on, as the
// proof of dispatch/verify.h assumes. The last message of a hop says so; a hop ends once the hops that feed
// it have.
//
// combine uses the hops the other way around. Each rank knows from its dispatch which rows will come, so
// nothing needs to say that it is the last. Rows below a token are kept until all are there, and added in
// their order.
#include "dispatch/run.h"

#include <fmt/core.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstring>
#include <deque>
#include <functional>
#include <mutex>
#include <numeric>
#include <thread>
#include <unordered_map>
#include <utility>

#include "base/threads.h"

namespace xccl::dispatch {
namespace {

// A row in a message: what it is of, and in dispatch its token's choices.
struct Head {
  int32_t home, token;
  int32_t from;  // combine without sums on the way: the rank whose row it is
};

struct Message {
  std::vector<Head> heads;
  std::vector<int32_t> experts;  // top_k for each row; dispatch
  std::vector<float> weights;    // likewise
  std::vector<std::byte> bytes;  // of all rows
  bool last = false;

  bool empty() const { return heads.empty(); }
};

// A thread's sleep: it waits until a hop of its rank has a new message or a free slot.
class Bell {
 public:
  void Ring() {
    {
      const std::lock_guard lock(mutex_);
      ++rung_;
    }
    awake_.notify_one();
  }
  uint64_t rung() {
    const std::lock_guard lock(mutex_);
    return rung_;
  }
  // Waits until it was rung more often than that, or for a short while.
  void WaitBeyond(uint64_t seen) {
    std::unique_lock lock(mutex_);
    awake_.wait_for(lock, std::chrono::milliseconds(20), [&] { return rung_ != seen; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable awake_;
  uint64_t rung_ = 0;
};

// Messages from one thread to another, at most `slots` at a time.
class Ring {
 public:
  explicit Ring(int32_t slots) : slots_(static_cast<uint64_t>(slots)) {}

  bool HasRoom() const { return written_ - read_.load(std::memory_order_acquire) < slots_; }
  // Requires: HasRoom().
  void Push(Message message) {
    {
      const std::lock_guard lock(mutex_);
      messages_.push_back(std::move(message));
    }
    ++written_;
    receiver_->Ring();
  }
  // The oldest message, or null. It stays until Pop().
  const Message* Front() {
    const std::lock_guard lock(mutex_);
    return messages_.empty() ? nullptr : &messages_.front();
  }
  void Pop() {
    {
      const std::lock_guard lock(mutex_);
      messages_.pop_front();
    }
    read_.fetch_add(1, std::memory_order_release);
    sender_->Ring();
  }
  // Before a call, with no thread at work.
  void Begin(Bell& sender, Bell& receiver) {
    sender_ = &sender;
    receiver_ = &receiver;
    messages_.clear();
    written_ = 0;
    read_ = 0;
  }

 private:
  const uint64_t slots_;
  Bell *sender_ = nullptr, *receiver_ = nullptr;
  uint64_t written_ = 0;  // by the sender
  std::atomic<uint64_t> read_{0};
  std::mutex mutex_;
  std::deque<Message> messages_;
};

// One sender's end of a hop: the message that is being filled.
class Filling {
 public:
  Filling(Ring& ring, int32_t rows_per_message) : ring_(&ring), most_(rows_per_message) {}

  // Room for one more row; a full message is sent for that where a slot is free.
  bool HasRoom() {
    if (static_cast<int32_t>(message_.heads.size()) < most_) return true;
    return Send();
  }
  Message& message() { return message_; }
  // Sends what there is. True: all is sent.
  bool Flush() { return message_.empty() || Send(); }
  // Ends the hop. True: that is sent.
  bool End() {
    if (ended_) return true;
    if (!ring_->HasRoom()) return false;
    message_.last = true;
    ended_ = true;
    return Send();
  }
  bool ended() const { return ended_; }

 private:
  bool Send() {
    if (!ring_->HasRoom()) return false;
    ring_->Push(std::exchange(message_, {}));
    return true;
  }

  Ring* ring_;
  int32_t most_;
  Message message_;
  bool ended_ = false;
};

// State that the threads of one call share.
struct Watch {
  std::atomic<uint64_t> progress{0};
  std::atomic<bool> stop{false};
};

// A thread that has nothing to do sleeps.
class Idler {
 public:
  Idler(Watch& watch, Bell& bell) : watch_(watch), bell_(bell), seen_(bell.rung()) {}
  // After one round over all hops. False: the call was given up.
  bool GoOn(bool moved) {
    if (moved)
      watch_.progress.fetch_add(1, std::memory_order_relaxed);
    else
      bell_.WaitBeyond(seen_);
    seen_ = bell_.rung();
    return !watch_.stop.load(std::memory_order_relaxed);
  }

 private:
  Watch& watch_;
  Bell& bell_;
  uint64_t seen_;  // before the round
};

struct RankHops {
  std::vector<int32_t> in, out;  // hops into and out of the rank, in dispatch's direction
};

std::vector<RankHops> HopsOfRanks(const ExpertPlan& plan) {
  std::vector<RankHops> of_ranks(plan.sizes.ranks);
  for (size_t h = 0; h < plan.hops.size(); ++h) {
    of_ranks[plan.hops[h].to.index()].in.push_back(static_cast<int32_t>(h));
    of_ranks[plan.hops[h].from.index()].out.push_back(static_cast<int32_t>(h));
  }
  return of_ranks;
}

// What the threads of a team see of it.
struct Shared {
  const ExpertPlan& plan;
  HopIndex index;
  std::vector<RankHops> hops;
  std::vector<std::unique_ptr<Ring>> rings;  // by hop
  std::vector<Bell> bells;                   // by rank
  Watch watch;
};

// One rank's dispatch.
class Dispatcher {
 public:
  Dispatcher(Shared& shared, int32_t rank, const Routing& routing, std::span<const std::byte> rows)
      : shared_(shared),
        plan_(shared.plan),
        rank_(rank),
        routing_(routing),
        rows_(rows),
        finder_(plan_),
        in_(shared.hops[rank].in.size()) {
    for (const int32_t h : shared.hops[rank].out) {
      place_of_[h] = out_.size();
      out_.emplace_back(*shared.rings[h], plan_.rows_per_message);
    }
  }

  Received Run() {
    Idler idler(shared_.watch, shared_.bells[rank_]);
    while (true) {
      bool moved = SendOwn();
      for (size_t i = 0; i < in_.size(); ++i) moved |= Take(i);
      const bool done = Finish(moved);
      if (done || !idler.GoOn(moved)) break;
    }
    return Sorted();
  }

 private:
  // Where the work on one source of rows stands: the next row, and the next of its branches.
  struct Cursor {
    size_t row = 0, branch = 0;
    bool started = false, ended = false;
    std::vector<std::pair<size_t, int32_t>> branches;  // hops that the row takes from here
  };

  size_t row_bytes() const { return static_cast<size_t>(plan_.sizes.row_bytes); }

  // Finds the row's branches here, and keeps its token and, if it is needed here, its bytes.
  void Start(Cursor& at, const Head& head, std::span<const int32_t> experts, std::span<const float> weights,
             const std::byte* bytes) {
    at.started = true;
    at.branch = 0;
    at.branches.clear();
    const int32_t lane = head.token % plan_.lanes;
    RanksOf(experts, plan_.sizes, needs_);
    for (const Branch& branch : finder_.Find(lane, head.home, needs_))
      if (branch.from == rank_)
        at.branches.emplace_back(place_of_.at(shared_.index.Find(lane, branch.depth, branch.from, branch.to)),
                                 branch.to);
    Seen& seen = received_.seen;
    const bool needed = std::ranges::binary_search(needs_, rank_);
    seen.homes.push_back(head.home);
    seen.tokens.push_back(head.token);
    seen.experts.insert(seen.experts.end(), experts.begin(), experts.end());
    seen.weights.insert(seen.weights.end(), weights.begin(), weights.end());
    seen.rows.push_back(needed ? static_cast<int32_t>(received_.rows.size() / row_bytes()) : -1);
    if (needed) received_.rows.insert(received_.rows.end(), bytes, bytes + row_bytes());
  }

  // Passes one row to its branches. False: a hop has no room, and the rest waits.
  bool Pass(Cursor& at, const Head& head, std::span<const int32_t> experts, std::span<const float> weights,
            const std::byte* bytes) {
    if (!at.started) Start(at, head, experts, weights, bytes);
    for (; at.branch < at.branches.size(); ++at.branch) {
      Filling& filling = out_[at.branches[at.branch].first];
      if (!filling.HasRoom()) return false;
      Message& message = filling.message();
      message.heads.push_back(head);
      message.experts.insert(message.experts.end(), experts.begin(), experts.end());
      message.weights.insert(message.weights.end(), weights.begin(), weights.end());
      message.bytes.insert(message.bytes.end(), bytes, bytes + row_bytes());
    }
    at.started = false;
    ++at.row;
    return true;
  }

  bool SendOwn() {
    if (own_.ended) return false;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    std::vector<float> weights(top_k);
    bool moved = false;
    while (own_.row < static_cast<size_t>(routing_.TokensOf(rank_))) {
      const int64_t token = routing_.first_token[rank_] + static_cast<int64_t>(own_.row);
      for (size_t k = 0; k < top_k; ++k) weights[k] = routing_.WeightOf(token, static_cast<int32_t>(k));
      const Head head{rank_, static_cast<int32_t>(own_.row), rank_};
      if (!Pass(own_, head, routing_.ExpertsOf(token), weights, rows_.data() + own_.row * row_bytes()))
        return moved;
      moved = true;
    }
    own_.ended = true;
    return true;
  }

  bool Take(size_t i) {
    Cursor& at = in_[i];
    if (at.ended) return false;
    Ring& ring = *shared_.rings[shared_.hops[rank_].in[i]];
    const Message* message = ring.Front();
    if (message == nullptr) return false;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    while (at.row < message->heads.size()) {
      const size_t row = at.row;
      if (!Pass(at, message->heads[row], std::span(message->experts).subspan(row * top_k, top_k),
                std::span(message->weights).subspan(row * top_k, top_k),
                message->bytes.data() + row * row_bytes()))
        return at.row > 0;
    }
    at.ended = message->last;
    at.row = 0;
    ring.Pop();
    return true;
  }

  // Sends what is being filled when nothing else moves, and ends hops whose feeders have ended. True: all is
  // done.
  bool Finish(bool& moved) {
    const RankHops& hops = shared_.hops[rank_];
    bool done = own_.ended;
    for (const Cursor& at : in_) done &= at.ended;
    for (size_t o = 0; o < out_.size(); ++o) {
      const Hop& hop = plan_.hops[hops.out[o]];
      bool fed = hop.stage != plan_.stage_of_depth[0] || own_.ended;
      for (size_t i = 0; i < in_.size(); ++i) {
        const Hop& feeder = plan_.hops[hops.in[i]];
        fed &= in_[i].ended || feeder.lane != hop.lane || feeder.stage >= hop.stage;
      }
      if (fed && !out_[o].ended())
        moved |= out_[o].End();
      else if (!moved && !out_[o].message().empty())
        moved |= out_[o].Flush();
      done &= out_[o].ended();
    }
    return done;
  }

  // What was kept, in the order of (home, token).
  Received Sorted() const {
    const Seen& seen = received_.seen;
    std::vector<size_t> order(seen.size());
    std::iota(order.begin(), order.end(), 0);
    std::ranges::sort(order, {}, [&](size_t i) { return std::pair(seen.homes[i], seen.tokens[i]); });
    Received sorted;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
    sorted.rows_of_home.resize(plan_.sizes.ranks);
    for (const size_t i : order) {
      sorted.seen.homes.push_back(seen.homes[i]);
      sorted.seen.tokens.push_back(seen.tokens[i]);
      for (size_t k = i * top_k; k < (i + 1) * top_k; ++k) {
        sorted.seen.experts.push_back(seen.experts[k]);
        sorted.seen.weights.push_back(seen.weights[k]);
      }
      if (seen.rows[i] < 0) {
        sorted.seen.rows.push_back(-1);
        continue;
      }
      sorted.seen.rows.push_back(static_cast<int32_t>(sorted.rows.size() / row_bytes()));
      const std::byte* row = received_.rows.data() + static_cast<size_t>(seen.rows[i]) * row_bytes();
      sorted.rows.insert(sorted.rows.end(), row, row + row_bytes());
      ++sorted.rows_of_home[seen.homes[i]];
    }
    CountExperts(sorted);
    return sorted;
  }

  void CountExperts(Received& received) const {
    const int32_t local = plan_.sizes.local_experts(), first = rank_ * local;
    const auto top_k = static_cast<size_t>(plan_.sizes.top_k);
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

  Shared& shared_;
  const ExpertPlan& plan_;
  const int32_t rank_;
  const Routing& routing_;
  const std::span<const std::byte> rows_;
  BranchFinder finder_;
  Cursor own_;
  std::vector<Cursor> in_;                        // by hop into the rank
  std::vector<Filling> out_;                      // by hop out of it
  std::unordered_map<int32_t, size_t> place_of_;  // of a hop among those
  std::vector<int32_t> needs_;
  Received received_;  // in the order of arrival
};

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
    for (size_t i = 0; i < tokens_.size(); ++i)
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

// A thread for each rank, which does one job at a time.
class Threads final : public ExpertTeam {
 public:
  Threads(const ExpertPlan& plan, std::chrono::nanoseconds patience)
      : shared_{.plan = plan, .index = HopIndex(plan), .hops = HopsOfRanks(plan), .rings = {}, .watch = {}},
        patience_(patience) {
    for (const Hop& hop : plan.hops) shared_.rings.push_back(std::make_unique<Ring>(hop.slots));
  }

  ~Threads() override {
    {
      const std::lock_guard lock(mutex_);
      ending_ = true;
      ++job_number_;
    }
    begin_.notify_all();
    for (std::thread& thread : threads_) thread.join();
  }

  Status Start() {
    for (int32_t rank = 0; rank < shared_.plan.sizes.ranks; ++rank) {
      XCCL_ASSIGN_OR_RETURN(std::thread thread, StartThread([this, rank] { Work(rank); }));
      threads_.push_back(std::move(thread));
    }
    return OkStatus();
  }

  StatusOr<std::vector<Received>> Dispatch(const Routing& routing, std::span<const Rows> rows) override {
    XCCL_RETURN_IF_ERROR(CheckRouting(routing, shared_.plan.sizes));
    const int32_t ranks = shared_.plan.sizes.ranks;
    if (static_cast<int32_t>(rows.size()) != ranks)
      return InvalidInput(fmt::format("dispatch: rows of {} ranks; expected {}", rows.size(), ranks));
    for (int32_t rank = 0; rank < ranks; ++rank) {
      const int64_t expected = routing.TokensOf(rank) * shared_.plan.sizes.row_bytes;
      if (static_cast<int64_t>(rows[rank].size()) != expected)
        return InvalidInput(
            fmt::format("dispatch: rank {}: {} bytes; expected {}", rank, rows[rank].size(), expected));
    }
    std::vector<Received> received(ranks);
    XCCL_RETURN_IF_ERROR(DoAll(Call::kDispatch, [&](int32_t rank) {
      received[rank] = Dispatcher(shared_, rank, routing, rows[rank]).Run();
    }));
    return received;
  }

  StatusOr<std::vector<Rows>> Combine(std::span<const Received> received, DataType type, int64_t elements,
                                      std::span<const Rows> outputs) override {
    const auto ranks = static_cast<size_t>(shared_.plan.sizes.ranks);
    if (type != DataType::kFloat && type != DataType::kHalf && type != DataType::kBfloat16)
      return InvalidInput(fmt::format("combine: {} rows; expected float, half or bfloat16", ToString(type)));
    if (received.size() != ranks || outputs.size() != ranks || elements < 1)
      return InvalidInput(fmt::format("combine: rows of {} ranks; expected {}", outputs.size(), ranks));
    for (size_t rank = 0; rank < ranks; ++rank) {
      const auto expected = received[rank].row_of_entry.size() * static_cast<size_t>(elements * SizeOf(type));
      if (outputs[rank].size() != expected)
        return InvalidInput(
            fmt::format("combine: rank {}: {} bytes; expected {}", rank, outputs[rank].size(), expected));
    }
    std::vector<Rows> results(ranks);
    XCCL_RETURN_IF_ERROR(DoAll(Call::kCombine, [&](int32_t rank) {
      const Seen& seen = received[rank].seen;
      const auto tokens = static_cast<int32_t>(std::ranges::count(seen.homes, rank));
      results[rank] = Combiner(shared_, rank, received[rank], tokens, type, elements, outputs[rank]).Run();
    }));
    return results;
  }

 private:
  void Work(int32_t rank) {
    uint64_t done = 0;
    while (true) {
      const std::function<void(int32_t)>* job;
      {
        std::unique_lock lock(mutex_);
        begin_.wait(lock, [&] { return job_number_ != done; });
        done = job_number_;
        if (ending_) return;
        job = job_;
      }
      (*job)(rank);
      const std::lock_guard lock(mutex_);
      if (--working_ == 0) end_.notify_all();
    }
  }

  // Runs the job on all ranks' threads. Errors: kSystem where none makes progress for too long.
  Status DoAll(Call call, const std::function<void(int32_t)>& job) {
    for (size_t h = 0; h < shared_.rings.size(); ++h) {
      Bell &from = shared_.bells[shared_.plan.hops[h].from.index()],
           &to = shared_.bells[shared_.plan.hops[h].to.index()];
      if (call == Call::kDispatch)
        shared_.rings[h]->Begin(from, to);
      else
        shared_.rings[h]->Begin(to, from);
    }
    shared_.watch.stop = false;
    std::unique_lock lock(mutex_);
    job_ = &job;
    working_ = shared_.plan.sizes.ranks;
    ++job_number_;
    begin_.notify_all();
    uint64_t seen = shared_.watch.progress;
    while (!end_.wait_for(lock, patience_, [&] { return working_ == 0; })) {
      const uint64_t now = shared_.watch.progress;
      if (now == seen) shared_.watch.stop = true;
      seen = now;
    }
    if (!shared_.watch.stop) return OkStatus();
    return SystemError(fmt::format("{}: no rank made progress for {} s; expected some; hint: --timeout",
                                   ToString(call), std::chrono::duration<double>(patience_).count()));
  }

  Shared shared_;
  const std::chrono::nanoseconds patience_;
  std::mutex mutex_;
  std::condition_variable begin_, end_;
  const std::function<void(int32_t)>* job_ = nullptr;
  uint64_t job_number_ = 0;
  int32_t working_ = 0;
  bool ending_ = false;
  std::vector<std::thread> threads_;
};

}  // namespace

StatusOr<std::unique_ptr<ExpertTeam>> ExpertTeam::Create(const ExpertPlan& plan,
                                                         std::chrono::nanoseconds patience) {
  for (size_t depth = 1; depth < plan.stage_of_depth.size(); ++depth)
    if (plan.stage_of_depth[depth] <= plan.stage_of_depth[depth - 1])
      return InvalidInput("stages: expected them to rise with the depth of the sender");
  auto team = std::make_unique<Threads>(plan, patience);
  XCCL_RETURN_IF_ERROR(team->Start());
  return std::unique_ptr<ExpertTeam>(std::move(team));
}

}  // namespace xccl::dispatch
