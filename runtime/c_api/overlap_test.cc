// Calls whose memory overlaps, drawn at random, against a reference: messages of a group have what their
// ranges held when the group began, collectives follow in their order, and what has no such meaning is
// refused before anything runs. Ranks are threads, processes, and processes of two hosts. XCCL_LONG=1 draws
// 100,000 groups.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <cstdlib>
#include <functional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "base/random.h"
#include "base/status.h"
#include "ir/collective.h"
#include "runtime/c_api/testing/books.h"
#include "runtime/c_api/testing/processes.h"
#include "runtime/rdma/ofi/transport.h"
#include "runtime/xccl.h"

namespace xccl {
namespace {

constexpr int kRanks = 4;
constexpr int kRoot = kRanks / 2;  // the books'
constexpr int kMostSets = 2;       // communicators of a rank
constexpr int32_t kScalar = 3;     // the scalar of the third operator, a sum
constexpr size_t kMostMessages = 8;

using Numbers = std::vector<int32_t>;
template <typename T>
using ByRank = std::array<T, kRanks>;

// Places are indices in the one memory that all ranks have a window of.
struct Message {
  int set, src, dst;
  size_t from, to, count;
};
struct Exchange {  // alltoallv, by source and destination
  int set;
  ByRank<ByRank<size_t>> from, to, count;
};
struct Collect {
  int set;
  CollectiveKind kind;
  int op;
  size_t count;
  ByRank<size_t> from, to;
};
struct Round {
  bool grouped = true;
  std::vector<Message> messages;
  std::vector<Exchange> exchanges;
  std::vector<Collect> collectives;
};

const std::array<CollectiveKind, 8> kKinds = {CollectiveKind::kAllreduce,     CollectiveKind::kAllgather,
                                              CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                              CollectiveKind::kReduce,        CollectiveKind::kGather,
                                              CollectiveKind::kScatter,       CollectiveKind::kAlltoall};

// Shares that the call reads and writes on a rank.
size_t Reads(CollectiveKind kind, int rank) {
  const KindTraits& traits = TraitsOf(kind);
  if (traits.before == KindTraits::Holders::kRoot && rank != kRoot) return 0;
  return kind == CollectiveKind::kReduceScatter || kind == CollectiveKind::kScatter ||
                 kind == CollectiveKind::kAlltoall
             ? kRanks
             : 1;
}
size_t Writes(CollectiveKind kind, int rank) {
  const KindTraits& traits = TraitsOf(kind);
  if (traits.after == KindTraits::Holders::kRoot && rank != kRoot) return 0;
  return kind == CollectiveKind::kAllgather || kind == CollectiveKind::kGather ||
                 kind == CollectiveKind::kAlltoall
             ? kRanks
             : 1;
}

// Draws rounds. Ranks have windows of `length` elements: each its own, or all the whole memory.
class Draw {
 public:
  Draw(Random& random, size_t length, bool shared, int sets)
      : random_(random), length_(length), shared_(shared), sets_(static_cast<uint64_t>(sets)) {}

  size_t Window(int rank) const { return shared_ ? 0 : static_cast<size_t>(rank) * length_; }
  size_t Memory() const { return shared_ ? length_ : kRanks * length_; }

  // `apart`: no two messages are received into one place.
  Round Next(bool apart) {
    Round round;
    const uint64_t what = random_.Below(8);
    round.grouped = what > 1 || shared_;
    if (what != 0)
      for (uint64_t n = what == 1 ? 1 : random_.Below(3); n > 0; --n)
        round.collectives.push_back(OneCollect());
    if (what == 0 || (what > 1 && random_.Below(3) == 0)) round.exchanges.push_back(OneExchange());
    if (what > 1)
      for (uint64_t n = random_.Below(kMostMessages + 1); n > 0; --n) round.messages.push_back(OneMessage());
    if (apart || !round.grouped) SetApart(round);
    return round;
  }

 private:
  int Set() { return static_cast<int>(random_.Below(sets_)); }
  size_t Below(size_t bound) { return static_cast<size_t>(random_.Below(bound)); }
  size_t Place(int rank, size_t count) { return Window(rank) + Below(length_ - count + 1); }

  Message OneMessage() {
    Message message{
        Set(), static_cast<int>(Below(kRanks)), static_cast<int>(Below(kRanks)), 0, 0, Below(length_ / 10)};
    message.from = Place(message.src, message.count);
    message.to = Place(message.dst, message.count);
    // In one buffer, as where two ranks swap their data.
    if (!shared_ && Below(3) == 0) message.to = message.from - Window(message.src) + Window(message.dst);
    return message;
  }
  Exchange OneExchange() {
    Exchange exchange{Set(), {}, {}, {}};
    for (int s = 0; s < kRanks; ++s)
      for (int d = 0; d < kRanks; ++d) {
        const size_t count = Below(length_ / 32);
        exchange.count[s][d] = count;
        exchange.from[s][d] = Place(s, count);
        exchange.to[s][d] = Place(d, count);
      }
    return exchange;
  }
  Collect OneCollect() {
    Collect call{Set(), kKinds[Below(kKinds.size())], static_cast<int>(Below(3)), Below(length_ / 16), {},
                 {}};
    const bool in_place = Below(3) == 0;
    for (int r = 0; r < kRanks; ++r) {
      const size_t in = Reads(call.kind, r) * call.count, out = Writes(call.kind, r) * call.count;
      call.from[r] = Place(r, in);
      call.to[r] = Place(r, out);
      if (!in_place) continue;
      const size_t place = Place(r, std::max(in, out)), own = static_cast<size_t>(r) * call.count;
      call.from[r] = place + (out > in ? std::min(own, out - in) : 0);
      call.to[r] = place + (in > out ? std::min(own, in - out) : 0);
    }
    return call;
  }
  void SetApart(Round& round) {
    for (int r = 0; r < kRanks; ++r) {
      std::vector<std::pair<size_t*, size_t>> places;  // and the count there
      size_t total = 0;
      for (Message& message : round.messages)
        if (message.dst == r) places.emplace_back(&message.to, message.count);
      for (Exchange& exchange : round.exchanges)
        for (int s = 0; s < kRanks; ++s) places.emplace_back(&exchange.to[s][r], exchange.count[s][r]);
      for (const auto& [place, count] : places) total += count;
      random_.Shuffle(std::span(places));
      size_t at = Window(r), free = length_ - total;
      for (const auto& [place, count] : places) {
        const size_t gap = Below(free / places.size() * 2 + 1);
        at += std::min(gap, free);
        free -= std::min(gap, free);
        *place = at;
        at += count;
      }
    }
  }

  Random& random_;
  const size_t length_;
  const bool shared_;
  const uint64_t sets_;
};

// One read or write of memory by a communicator's rank.
struct Use {
  int set, rank;
  bool writes, message;
  size_t at, count;
};

std::vector<Use> UsesOf(const Round& round) {
  std::vector<Use> uses;
  const auto add = [&](int set, int src, int dst, size_t from, size_t to, size_t count) {
    uses.push_back({set, src, false, true, from, count});
    uses.push_back({set, dst, true, true, to, count});
  };
  for (const Message& m : round.messages) add(m.set, m.src, m.dst, m.from, m.to, m.count);
  for (const Exchange& e : round.exchanges)
    for (int s = 0; s < kRanks; ++s)
      for (int d = 0; d < kRanks; ++d) add(e.set, s, d, e.from[s][d], e.to[s][d], e.count[s][d]);
  for (const Collect& c : round.collectives)
    for (int r = 0; r < kRanks; ++r) {
      uses.push_back({c.set, r, false, false, c.from[r], Reads(c.kind, r) * c.count});
      uses.push_back({c.set, r, true, false, c.to[r], Writes(c.kind, r) * c.count});
    }
  return uses;
}

// Two receives of one communicator, or two communicators of which one writes.
bool IsRefused(const Round& round) {
  const std::vector<Use> uses = UsesOf(round);
  for (size_t i = 0; i < uses.size(); ++i)
    for (size_t j = 0; j < i; ++j) {
      const Use &a = uses[i], &b = uses[j];
      if (a.count == 0 || b.count == 0 || a.at >= b.at + b.count || b.at >= a.at + a.count) continue;
      const bool one = a.set == b.set && a.rank == b.rank;
      if (one ? a.message && b.message && a.writes && b.writes : a.writes || b.writes) return true;
    }
  return false;
}

void Reduce(int op, int32_t value, bool first, int32_t& into) {
  if (op == 2) value *= kScalar;
  into = first ? value : op == 1 ? std::max(into, value) : into + value;
}

void Apply(const Collect& call, Numbers& memory) {
  ByRank<Numbers> in;
  for (int r = 0; r < kRanks; ++r) {
    const auto from = memory.begin() + static_cast<int64_t>(call.from[r]);
    in[r].assign(from, from + static_cast<int64_t>(Reads(call.kind, r) * call.count));
  }
  for (int r = 0; r < kRanks; ++r)
    for (size_t i = 0; i < Writes(call.kind, r) * call.count; ++i) {
      int32_t& out = memory[call.to[r] + i];
      const size_t share = i / std::max<size_t>(call.count, 1), j = i % std::max<size_t>(call.count, 1);
      const size_t own = static_cast<size_t>(r) * call.count + j;
      switch (call.kind) {
        case CollectiveKind::kAllreduce:
        case CollectiveKind::kReduce:
        case CollectiveKind::kReduceScatter:
          for (int p = 0; p < kRanks; ++p)
            Reduce(call.op, in[p][call.kind == CollectiveKind::kReduceScatter ? own : j], p == 0, out);
          break;
        case CollectiveKind::kBroadcast:
          out = in[kRoot][j];
          break;
        case CollectiveKind::kScatter:
          out = in[kRoot][own];
          break;
        case CollectiveKind::kAlltoall:
          out = in[share][own];
          break;
        default:
          out = in[share][j];
      }
    }
}

void Apply(const Round& round, Numbers& memory) {
  const Numbers before = memory;
  const auto move = [&](size_t from, size_t to, size_t count) {
    std::copy_n(before.begin() + static_cast<int64_t>(from), count,
                memory.begin() + static_cast<int64_t>(to));
  };
  for (const Message& message : round.messages) move(message.from, message.to, message.count);
  for (const Exchange& e : round.exchanges)
    for (int s = 0; s < kRanks; ++s)
      for (int d = 0; d < kRanks; ++d) move(e.from[s][d], e.to[s][d], e.count[s][d]);
  for (const Collect& call : round.collectives) Apply(call, memory);
}

// The communicators of this process: of all ranks, or of one.
struct Comms {
  std::vector<ByRank<xcclComm_t>> sets;  // null: of another process
  std::vector<ByRank<xcclRedOp_t>> scaled = {};

  void MakeOps() {
    for (const ByRank<xcclComm_t>& set : sets) {
      scaled.emplace_back();
      for (int r = 0; r < kRanks; ++r)
        if (set[r] != nullptr) {
          EXPECT_EQ(xcclRedOpCreatePreMulSum(&scaled.back()[r], &kScalar, xcclInt32, xcclScalarHostImmediate,
                                             set[r]),
                    xcclSuccess);
        }
    }
  }
};

xcclResult_t Issue(const Collect& call, int r, xcclComm_t comm, xcclRedOp_t scaled, int32_t* memory) {
  const int32_t* const in = memory + call.from[r];
  int32_t* const out = memory + call.to[r];
  const xcclRedOp_t op = call.op == 2 ? scaled : call.op == 1 ? xcclMax : xcclSum;
  switch (call.kind) {
    case CollectiveKind::kAllreduce:
      return xcclAllReduce(in, out, call.count, xcclInt32, op, comm, nullptr);
    case CollectiveKind::kAllgather:
      return xcclAllGather(in, out, call.count, xcclInt32, comm, nullptr);
    case CollectiveKind::kReduceScatter:
      return xcclReduceScatter(in, out, call.count, xcclInt32, op, comm, nullptr);
    case CollectiveKind::kBroadcast:
      return xcclBroadcast(in, out, call.count, xcclInt32, kRoot, comm, nullptr);
    case CollectiveKind::kReduce:
      return xcclReduce(in, out, call.count, xcclInt32, op, kRoot, comm, nullptr);
    case CollectiveKind::kGather:
      return xcclGather(in, out, call.count, xcclInt32, kRoot, comm, nullptr);
    case CollectiveKind::kScatter:
      return xcclScatter(in, out, call.count, xcclInt32, kRoot, comm, nullptr);
    default:
      return xcclAlltoAll(in, out, call.count, xcclInt32, comm, nullptr);
  }
}

xcclResult_t Issue(const Exchange& exchange, int r, xcclComm_t comm, int32_t* memory) {
  ByRank<size_t> receives = {}, to = {};
  for (int s = 0; s < kRanks; ++s) {
    receives[s] = exchange.count[s][r];
    to[s] = exchange.to[s][r];
  }
  return xcclAlltoAllv(memory, exchange.count[r].data(), exchange.from[r].data(), memory, receives.data(),
                       to.data(), xcclInt32, comm, nullptr);
}

// The first result that is none of success, of all calls in this process and of the group.
xcclResult_t Issue(const Round& round, const Comms& comms, int32_t* memory) {
  xcclResult_t first = xcclSuccess;
  const auto note = [&](xcclResult_t result) {
    if (first == xcclSuccess) first = result;
  };
  const auto each = [&](int set, const std::function<xcclResult_t(int, xcclComm_t)>& call) {
    for (int r = 0; r < kRanks; ++r)
      if (const xcclComm_t comm = comms.sets[static_cast<size_t>(set)][r]; comm != nullptr)
        note(call(r, comm));
  };
  if (round.grouped) note(xcclGroupStart());
  for (const Collect& call : round.collectives)
    each(call.set, [&](int r, xcclComm_t comm) {
      return Issue(call, r, comm, comms.scaled[static_cast<size_t>(call.set)][r], memory);
    });
  for (const Message& m : round.messages)
    each(m.set, [&](int r, xcclComm_t comm) {
      xcclResult_t result = xcclSuccess;
      if (r == m.src) result = xcclSend(memory + m.from, m.count, xcclInt32, m.dst, comm, nullptr);
      if (r == m.dst && result == xcclSuccess)
        result = xcclRecv(memory + m.to, m.count, xcclInt32, m.src, comm, nullptr);
      return result;
    });
  for (const Exchange& exchange : round.exchanges)
    each(exchange.set, [&](int r, xcclComm_t comm) { return Issue(exchange, r, comm, memory); });
  if (round.grouped) note(xcclGroupEnd());
  for (const ByRank<xcclComm_t>& set : comms.sets)
    for (const xcclComm_t comm : set)
      if (comm != nullptr) note(xcclCommSynchronize(comm));
  return first;
}

Numbers Filled(Random& random, size_t count) {
  Numbers numbers(count);
  for (int32_t& number : numbers) number = static_cast<int32_t>(random.Next() % 100'000);
  return numbers;
}

constexpr size_t kSmall = 600, kLarge = 800'000;  // more than the slots of a connection hold

std::string Book(const std::string& name) {
  return MakeBook(name, kRanks,
                  {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                   CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kGather,
                   CollectiveKind::kScatter, CollectiveKind::kAlltoall});
}

int Rounds(int few, int many) { return std::getenv("XCCL_LONG") != nullptr ? many : few; }

TEST(Overlap, OfThreadsIsRightOrRefused) {
  const std::string book = Book("overlap_threads");
  Comms comms{std::vector<ByRank<xcclComm_t>>(kMostSets)};
  for (ByRank<xcclComm_t>& set : comms.sets) {
    ASSERT_EQ(xcclCommInitAll(set.data(), kRanks, nullptr), xcclSuccess);
    ASSERT_EQ(xcclGroupStart(), xcclSuccess);
    for (const xcclComm_t comm : set) {
      EXPECT_EQ(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess);
      EXPECT_EQ(xcclCommConnect(comm), xcclSuccess);
    }
    ASSERT_EQ(xcclGroupEnd(), xcclSuccess) << xcclGetLastError(nullptr);
  }
  comms.MakeOps();
  Random random(2);
  const int rounds = Rounds(1'500, 100'000);
  int refused = 0;
  for (int i = 0; i < rounds; ++i) {
    const uint64_t kind = random.Below(8);
    Draw draw(random, i % 500 == 0 ? kLarge : kSmall, /*shared=*/kind == 0, kind == 1 ? 2 : 1);
    const Round round = draw.Next(/*apart=*/kind > 2);
    Numbers memory = Filled(random, draw.Memory()), expected = memory;
    const bool refuse = IsRefused(round);
    if (!refuse) Apply(round, expected);
    refused += refuse;
    ASSERT_EQ(Issue(round, comms, memory.data()), refuse ? xcclInvalidArgument : xcclSuccess)
        << i << ": " << xcclGetLastError(nullptr);
    ASSERT_TRUE(memory == expected) << i;
  }
  EXPECT_GT(refused, rounds / 20);
  EXPECT_LT(refused, rounds / 2);
  for (const ByRank<xcclComm_t>& set : comms.sets)
    for (const xcclComm_t comm : set) EXPECT_EQ(xcclCommDestroy(comm), xcclSuccess);
}

// Rank `rank`, whose communicator is made, of processes that all draw the same.
bool RunProcess(xcclComm_t comm, int rank, const std::string& book, int rounds) {
  if (!Is(xcclCommLoadPlanBook(comm, book.c_str()), xcclSuccess) || !Is(xcclCommConnect(comm), xcclSuccess))
    return false;
  Comms comms{std::vector<ByRank<xcclComm_t>>(1)};
  comms.sets[0][rank] = comm;
  comms.MakeOps();
  Random random(3);
  for (int i = 0; i < rounds; ++i) {
    const size_t length = i % 50 == 0 ? kLarge : kSmall;
    Draw draw(random, length, /*shared=*/false, /*sets=*/1);
    const Round round = draw.Next(/*apart=*/true);
    Numbers memory = Filled(random, draw.Memory()), expected = memory;
    Apply(round, expected);
    if (!Is(Issue(round, comms, memory.data()), xcclSuccess)) return false;
    const auto first = static_cast<int64_t>(draw.Window(rank)), last = first + static_cast<int64_t>(length);
    if (!std::equal(memory.begin() + first, memory.begin() + last, expected.begin() + first))
      return Is("round " + std::to_string(i) + " is wrong", "");
  }
  return Is(xcclCommDestroy(comm), xcclSuccess);
}

constexpr unsigned kSecondsEach = 600;

TEST(Overlap, OfProcessesIsRight) {
  const std::string book = Book("overlap_processes");
  InProcesses(
      kRanks,
      [&](int rank, Shared& all) {
        xcclComm_t comm = nullptr;
        return Is(xcclCommInitRank(&comm, kRanks, all.id, rank), xcclSuccess) &&
               RunProcess(comm, rank, book, Rounds(150, 10'000));
      },
      kSecondsEach);
}

TEST(Overlap, OfHostsIsRight) {
  if (const Status found = ofi::Available(); !found.ok()) GTEST_SKIP() << found.message();
  const std::string book = Book("overlap_hosts");
  const std::string job = "overlap-" + std::to_string(getpid());
  InProcesses(
      kRanks,
      [&](int rank, Shared& /*all*/) {
        setenv("XCCL_RANK", std::to_string(rank).c_str(), 1);
        setenv("XCCL_SIZE", std::to_string(kRanks).c_str(), 1);
        setenv("XCCL_JOB", job.c_str(), 1);
        setenv("XCCL_HOST_ID", rank < kRanks / 2 ? "first" : "second", 1);
        xcclComm_t comm = nullptr;
        return Is(xcclCommInitFromLauncher(&comm), xcclSuccess) &&
               RunProcess(comm, rank, book, Rounds(60, 2'000));
      },
      kSecondsEach);
}

}  // namespace
}  // namespace xccl
