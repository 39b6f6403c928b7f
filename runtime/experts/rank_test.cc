// One executor, over threads and over processes: the bytes are equal, and those that one process expects.
#include "runtime/experts/rank.h"

#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <functional>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.h"
#include "base/strings.h"
#include "dispatch/machines_for_tests.h"
#include "dispatch/make_plan.h"
#include "runtime/cpu/launch.h"
#include "runtime/host/host_memory.h"

namespace xccl::dispatch {
namespace {

constexpr std::chrono::seconds kPatience(60);
constexpr DataType kTypes[] = {DataType::kFloat, DataType::kHalf, DataType::kBfloat16};

ExpertPlan PlanFor(const TestMachine& machine, Aim aim, int32_t top_k, int32_t tokens) {
  const Topology topology = Read(machine);
  PlanRequest request = RequestOf(topology, tokens, top_k);
  request.sizes.experts = 4 * topology.num_ranks();
  request.aim = aim;
  StatusOr<ExpertPlan> plan = MakeExpertPlan(topology, request);
  EXPECT_TRUE(plan.ok()) << plan.status().message();
  return *std::move(plan);
}

// A rank's rows do not fit that.
void UseOneSlotOfOneRow(ExpertPlan& plan) {
  plan.rows_per_message = 1;
  for (Hop& hop : plan.hops) hop.slots = 1;
}

TestMachine MachineOf(std::string_view name) {
  for (const TestMachine& machine : TestMachines())
    if (machine.name == name) return machine;
  ADD_FAILURE() << name;
  return {};
}

// One call that all ranks draw alike.
struct Drawn {
  Routing routing;
  DataType type = DataType::kFloat;
  Outputs of = Outputs::kWeighted;
  int64_t row_bytes = 16, beside_bytes = 0, elements = 1;
};

Drawn Draw(const Sizes& sizes, uint64_t seed) {
  Random random(seed);
  Drawn call;
  const int64_t kind = random.Below(5);  // uniform, Zipf, all to one expert, none, no tokens on some ranks
  const Routing whole =
      DrawRouting({.kind = kind == 1 ? RoutingSource::Kind::kZipf : RoutingSource::Kind::kUniform,
                   .exponent = 2 * random.Unit()},
                  sizes, random);
  const auto hot = static_cast<int32_t>(random.Below(sizes.experts));
  call.routing.top_k = sizes.top_k;
  for (int32_t rank = 0; rank < sizes.ranks; ++rank) {
    const auto tokens =
        static_cast<int32_t>(kind == 4 && random.Below(2) == 0 ? 0 : random.Below(sizes.max_tokens + 1));
    for (int32_t token = 0; token < tokens; ++token)
      for (int32_t k = 0; k < sizes.top_k; ++k) {
        const int32_t chosen = whole.ExpertsOf(whole.first_token[rank] + token)[k];
        const int32_t expert = kind == 2 ? (k == 0 ? hot : -1) : kind == 3 ? -1 : chosen;
        call.routing.experts.push_back(random.Below(6) == 0 ? -1 : expert);
        call.routing.weights.push_back(random.Below(2) == 0 ? 0.5F : 1.0F);
      }
    call.routing.first_token.push_back(call.routing.first_token.back() + tokens);
  }
  call.type = kTypes[random.Below(3)];
  call.of = static_cast<Outputs>(random.Below(3));
  call.row_bytes = 16 * (1 + random.Below(3)) + (random.Below(32) == 0 ? 1024 : 0);  // some are cut
  call.beside_bytes = 16 * random.Below(2);
  call.elements = 1 + random.Below(9) + (random.Below(32) == 0 ? 300 : 0);
  return call;
}

std::byte ByteOf(int32_t home, int32_t token, int64_t at) {
  return static_cast<std::byte>((home * 40503 + token * 9973 + at * 31) >> 2 & 0xff);
}

Rows RowsOf(const Drawn& call, int32_t home, int64_t first, int64_t bytes) {
  Rows rows;
  for (int32_t token = 0; token < call.routing.TokensOf(home); ++token)
    for (int64_t i = 0; i < bytes; ++i) rows.push_back(ByteOf(home, token, first + i));
  return rows;
}

void Append(DataType type, float value, Rows& to) {
  const uint16_t bits = type == DataType::kHalf ? FloatToHalf(value) : FloatToBfloat16(value);
  const auto* from = type == DataType::kFloat ? reinterpret_cast<const std::byte*>(&value)
                                              : reinterpret_cast<const std::byte*>(&bits);
  to.insert(to.end(), from, from + SizeOf(type));
}

// A small whole number, so that sums are exact in every type and order; or one that rounds.
float OutputOf(bool exact, int32_t home, int32_t token, int32_t expert, int64_t element) {
  const auto number = home * 7 + token * 3 + expert * 5 + element;
  return exact ? static_cast<float>(number % 4) : 1.0F / static_cast<float>(1 + number % 97);
}

// Returns the rows that the experts of a rank give to combine.
Rows OutputsOf(const Drawn& call, const Sizes& sizes, const Received& ways, int32_t rank, bool exact) {
  const Seen& seen = ways.seen;
  const int32_t local = sizes.local_experts();
  std::vector<size_t> seen_of_row(ways.num_rows);
  for (size_t i = 0; i < seen.size(); ++i)
    if (seen.rows[i] >= 0) seen_of_row[seen.rows[i]] = i;
  Rows outputs;
  for (int32_t row = 0; row < ways.num_rows && call.of == Outputs::kOfRows; ++row)
    for (int64_t e = 0; e < call.elements; ++e) {
      const size_t i = seen_of_row[row];
      float sum = 0;
      for (int32_t k = 0; k < sizes.top_k; ++k) {
        const int32_t expert = seen.experts[i * sizes.top_k + k];
        if (expert >= 0 && expert / local == rank)
          sum += OutputOf(exact, seen.homes[i], seen.tokens[i], expert, e);
      }
      Append(call.type, sum, outputs);
    }
  for (int32_t expert = 0; expert < local && call.of != Outputs::kOfRows; ++expert)
    for (int32_t entry = ways.first_of_expert[expert]; entry < ways.first_of_expert[expert + 1]; ++entry)
      for (int64_t e = 0; e < call.elements; ++e) {
        const size_t i = seen_of_row[ways.row_of_entry[entry]];
        Append(call.type, OutputOf(exact, seen.homes[i], seen.tokens[i], rank * local + expert, e), outputs);
      }
  return outputs;
}

Rows SumsOf(const Drawn& call, int32_t home) {
  Rows sums;
  for (int32_t token = 0; token < call.routing.TokensOf(home); ++token)
    for (int64_t e = 0; e < call.elements; ++e) {
      const int64_t t = call.routing.first_token[home] + token;
      float sum = 0;
      for (int32_t k = 0; k < call.routing.top_k; ++k)
        if (const int32_t expert = call.routing.ExpertsOf(t)[k]; expert >= 0)
          sum += (call.of == Outputs::kWeighted ? call.routing.WeightOf(t, k) : 1.0F) *
                 OutputOf(true, home, token, expert, e);
      Append(call.type, sum, sums);
    }
  return sums;
}

// The rows that a rank needs, bytes first .. first + bytes of each.
Rows Needed(const Drawn& call, const Sizes& sizes, int32_t rank, int64_t first, int64_t bytes) {
  Rows rows;
  for (int32_t home = 0; home < sizes.ranks; ++home)
    for (int32_t token = 0; token < call.routing.TokensOf(home); ++token) {
      const auto experts = call.routing.ExpertsOf(call.routing.first_token[home] + token);
      if (std::ranges::none_of(experts, [&](int32_t e) { return e >= 0 && sizes.RankOfExpert(e) == rank; }))
        continue;
      for (int64_t i = 0; i < bytes; ++i) rows.push_back(ByteOf(home, token, first + i));
    }
  return rows;
}

uint64_t HashOfBytes(const Rows& rows) {
  return HashOf({reinterpret_cast<const char*>(rows.data()), rows.size()});
}

Status Differ(const char* what) { return BugError(std::string(what) + " differ"); }

// One rank's call with both directions, twice; a hash of all that it got.
StatusOr<uint64_t> RunCall(ExpertRank& rank, const Drawn& call) {
  const int32_t self = rank.rank();
  const Rows rows = RowsOf(call, self, 0, call.row_bytes),
             beside = RowsOf(call, self, call.row_bytes, call.beside_bytes);
  const RowSource source{rows.data(), call.row_bytes, beside.data(), call.beside_bytes};
  Rows got_rows, got_beside;
  const auto place = [&](Received& ways) -> StatusOr<RowPlace> {
    got_rows.assign(ways.num_rows * call.row_bytes, std::byte{0});
    got_beside.assign(ways.num_rows * call.beside_bytes, std::byte{0});
    return RowPlace{got_rows.data(), call.row_bytes, got_beside.data(), call.beside_bytes};
  };
  const OwnTokens own{call.routing.TokensOf(self), call.routing.ExpertsOfRank(self),
                      call.routing.WeightsOfRank(self)};
  XCCL_ASSIGN_OR_RETURN(Received ways, rank.Dispatch(own, source, place, kPatience));
  const Rows needed = Needed(call, rank.sizes(), self, 0, call.row_bytes),
             needed_beside = Needed(call, rank.sizes(), self, call.row_bytes, call.beside_bytes);
  if (got_rows != needed || got_beside != needed_beside) return Differ("rows");
  uint64_t hash = HashOfBytes(got_rows) ^ HashOfBytes(got_beside);
  for (const bool exact : {true, false}) {
    const Rows outputs = OutputsOf(call, rank.sizes(), ways, self, exact);
    Rows sums(static_cast<size_t>(own.count * call.elements * SizeOf(call.type)), std::byte{0x55});
    XCCL_RETURN_IF_ERROR(
        rank.Combine(ways, call.type, call.elements, call.of, outputs.data(), sums.data(), kPatience));
    if (exact && sums != SumsOf(call, self)) return Differ("sums");
    hash = hash * 31 + HashOfBytes(sums);
  }
  const RowPlace again = *place(ways);
  XCCL_RETURN_IF_ERROR(rank.DispatchAgain(ways, source, again, kPatience));
  if (got_rows != needed || got_beside != needed_beside) return Differ("rows of the second dispatch");
  return hash;
}

std::vector<Rank> AllRanks(const ExpertPlan& plan) {
  std::vector<Rank> ranks;
  for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) ranks.emplace_back(rank);
  return ranks;
}

// Runs `body` on all ranks.
Status OnAll(const ExpertPlan& plan, Sharing sharing, const std::function<Status(ExpertRank&)>& body,
             WireOptions options = {}) {
  options.connection_bytes = 0;  // ranks wait for slots
  XCCL_ASSIGN_OR_RETURN(const ExpertWires wires, WireExperts(plan, options));
  XCCL_ASSIGN_OR_RETURN(const SharedRegion region, SharedRegion::Create(wires.wiring, sharing));
  return RunRanks(region, AllRanks(plan), kPatience, [&](Endpoint& endpoint) {
    ExpertRank rank(wires, endpoint);
    return body(rank);
  });
}

TEST(ExpertRank, ThreadsAndProcessesGetTheSameRightBytes) {
  struct Case {
    const char* machine;
    size_t calls;
  };
  // 16 plans of each machine: 10,240 calls.
  for (const auto& [machine, calls] :
       {Case{"one-host", 280}, Case{"one-nic", 280}, Case{"pcie", 40}, Case{"ring-of-hosts", 40}})
    for (int32_t top_k = 1; top_k <= 16; ++top_k) {
      const Aim aim = top_k % 2 == 0 ? Aim::kLatency : Aim::kThroughput;
      ExpertPlan plan = PlanFor(MachineOf(machine), aim, top_k, 5);
      if (aim == Aim::kThroughput) plan.rows_per_message = 1 + top_k % 3;
      if (top_k % 4 == 3) UseOneSlotOfOneRow(plan);
      if (top_k % 4 < 2) plan.sums = plan.sums == Sums::kHome ? Sums::kOnWay : Sums::kHome;
      const auto ranks = static_cast<size_t>(plan.sizes.ranks);
      std::vector<std::vector<uint64_t>> hashes;
      for (const Sharing sharing : {Sharing::kThreads, Sharing::kChildren}) {
        const StatusOr<HostMemory> memory =
            HostMemory::CreateShared(static_cast<int64_t>(ranks * calls * sizeof(uint64_t)));
        ASSERT_TRUE(memory.ok());
        const auto all = memory->As<uint64_t>(ranks * calls);
        const Status status = OnAll(
            plan, sharing,
            [&, calls = calls](ExpertRank& rank) {
              for (size_t i = 0; i < calls; ++i) {
                const Drawn call = Draw(plan.sizes, static_cast<uint64_t>(top_k) * calls + i);
                XCCL_ASSIGN_OR_RETURN(all[static_cast<size_t>(rank.rank()) * calls + i], RunCall(rank, call));
              }
              return OkStatus();
            },
            {.lend = top_k % 3 != 0});
        ASSERT_TRUE(status.ok()) << machine << " " << top_k << ": " << status.message();
        hashes.emplace_back(all.begin(), all.end());
      }
      EXPECT_EQ(hashes[0], hashes[1]) << machine << " " << top_k;
    }
}

// The kernel refuses process_vm_readv to this process from here on.
void RefuseReading() {
  sock_filter steps[] = {
      BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
      BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_process_vm_readv, 0, 1),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
      BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  const sock_fprog program{static_cast<unsigned short>(std::size(steps)), steps};
  ASSERT_EQ(prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0), 0);
  ASSERT_EQ(prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program), 0);
}

TEST(ExpertRank, WhereOneRankMayNotReadOthersAllSendThroughSlots) {
  ExpertPlan plan = PlanFor(MachineOf("one-nic"), Aim::kThroughput, 4, 40);
  UseOneSlotOfOneRow(plan);
  const Status status = OnAll(plan, Sharing::kChildren, [&](ExpertRank& rank) -> Status {
    if (rank.rank() == 2) RefuseReading();
    for (uint64_t i = 0; i < 20; ++i) XCCL_RETURN_IF_ERROR(RunCall(rank, Draw(plan.sizes, i)).status());
    return OkStatus();
  });
  EXPECT_TRUE(status.ok()) << status.message();
}

// A rank that cannot place its rows returns, and its tokens' rows are freed, while others may still read.
TEST(ExpertRank, ARankThatFailsWaitsForReadersOfItsRows) {
  ExpertPlan plan = PlanFor(MachineOf("one-host"), Aim::kThroughput, 4, 400);
  UseOneSlotOfOneRow(plan);
  for (int i = 0; i < 20; ++i) {
    const Status status = OnAll(plan, Sharing::kThreads, [&](ExpertRank& rank) {
      Random random(1);
      const Routing routing = DrawRouting({}, plan.sizes, random);
      const OwnTokens own{routing.TokensOf(rank.rank()), routing.ExpertsOfRank(rank.rank()), {}};
      const Rows rows(400 * 4096);
      return rank
          .Dispatch(
              own, {.rows = rows.data(), .row_bytes = 4096},
              [&](Received& ways) -> StatusOr<RowPlace> {
                if (rank.rank() == 1) return InvalidInput("no place");
                return KeepRowsOf(4096)(ways);
              },
              kPatience)
          .status();
    });
    EXPECT_EQ(status.message(), "rank 1: no place");
  }
}

TEST(ExpertRank, RowsThatNoSlotHoldsAreCut) {
  ExpertPlan plan = PlanFor(MachineOf("one-nic"), Aim::kThroughput, 2, 2);
  plan.sizes.row_bytes = 1 << 20;
  for (const bool lend : {false, true}) {
    const Status status = OnAll(plan, Sharing::kThreads,
                                [&](ExpertRank& rank) -> Status {
                                  Drawn call = Draw(plan.sizes, 5);
                                  call.row_bytes = plan.sizes.row_bytes;
                                  call.elements = 100'000;
                                  return RunCall(rank, call).status();
                                },
                                {.memory_limit = 1 << 20, .lend = lend});
    EXPECT_TRUE(status.ok()) << status.message();
  }
}

TEST(ExpertRank, AKilledRankEndsTheOthersWithAnError) {
  const ExpertPlan plan = PlanFor(MachineOf("one-nic"), Aim::kThroughput, 4, 5);
  const StatusOr<HostMemory> memory = HostMemory::CreateShared(64);
  ASSERT_TRUE(memory.ok());
  auto* const ended = new (memory->data()) std::atomic<int>(0);
  const Status status = OnAll(plan, Sharing::kChildren, [&](ExpertRank& rank) -> Status {
    for (uint64_t i = 0;; ++i) {
      if (rank.rank() == 2 && i == 20) kill(getpid(), SIGKILL);
      const StatusOr<uint64_t> ran = RunCall(rank, Draw(plan.sizes, i));
      if (ran.ok()) continue;
      ++*ended;
      return ran.status();
    }
  });
  EXPECT_EQ(status.code(), StatusCode::kLimit);
  EXPECT_EQ(status.message().rfind("rank 2: its process ", 0), 0U) << status.message();
  EXPECT_NE(status.message().find("was ended by signal 9 (Killed)"), std::string::npos) << status.message();
  EXPECT_EQ(*ended, 3);
}

TEST(ExpertRank, ARankThatLeavesIsMissed) {
  const ExpertPlan plan = PlanFor(MachineOf("one-host"), Aim::kThroughput, 4, 5);
  const Status status = OnAll(plan, Sharing::kThreads, [&](ExpertRank& rank) -> Status {
    if (rank.rank() == 1) return OkStatus();
    return RunCall(rank, Draw(plan.sizes, 1)).status();
  });
  EXPECT_EQ(status.code(), StatusCode::kPeerEnded);
  EXPECT_EQ(status.message().rfind("rank 1: has left; expected it in call 1, dispatch of ", 0), 0U)
      << status.message();
}

TEST(ExpertRank, RanksInDifferentCallsAreToldBoth) {
  const ExpertPlan plan = PlanFor(MachineOf("one-nic"), Aim::kThroughput, 2, 5);
  const std::vector<int32_t> experts = {0, 15};
  const auto dispatch = [&](ExpertRank& rank, int64_t bytes) {
    const Rows rows(static_cast<size_t>(bytes));
    return rank.Dispatch({1, experts, {}}, {.rows = rows.data(), .row_bytes = bytes}, KeepRowsOf(bytes),
                         kPatience);
  };
  const Status sizes = OnAll(plan, Sharing::kThreads, [&](ExpertRank& rank) {
    return dispatch(rank, rank.rank() == 3 ? 32 : 16).status();
  });
  EXPECT_EQ(sizes.code(), StatusCode::kInvalidInput);
  for (const char* part : {"call 1, dispatch of 16B rows", "call 1, dispatch of 32B rows", "; expected "})
    EXPECT_NE(sizes.message().find(part), std::string::npos) << sizes.message();

  const Status calls = OnAll(plan, Sharing::kThreads, [&](ExpertRank& rank) -> Status {
    XCCL_ASSIGN_OR_RETURN(const Received ways, dispatch(rank, 16));
    if (rank.rank() != 0) return dispatch(rank, 16).status();
    const Rows outputs(ways.row_of_entry.size() * 16);
    Rows sums(16);
    return rank.Combine(ways, DataType::kFloat, 4, Outputs::kPlain, outputs.data(), sums.data(), kPatience);
  });
  EXPECT_EQ(calls.code(), StatusCode::kInvalidInput);
  for (const char* part :
       {"call 2, dispatch of 16B rows", "call 2, combine of 16B rows of float by the ways of call 1"})
    EXPECT_NE(calls.message().find(part), std::string::npos) << calls.message();
}

TEST(ExpertRank, ChoicesThatDoNotFitEndTheCallOnAllRanks) {
  const ExpertPlan plan = PlanFor(MachineOf("one-host"), Aim::kThroughput, 2, 1);
  const Status status = OnAll(plan, Sharing::kThreads, [&](ExpertRank& rank) {
    const std::vector<int32_t> experts = {0, rank.rank() == 1 ? 16 : 1};
    return rank.Dispatch({1, experts, {}}, {}, KeepRowsOf(0), kPatience).status();
  });
  EXPECT_EQ(status.message(), "rank 1, token 0: expert 16; expected -1 to 15");
}

TEST(Wires, SlotsFitTheMemory) {
  ExpertPlan plan = PlanFor(MachineOf("one-host"), Aim::kLatency, 2, 500);
  const StatusOr<ExpertWires> whole = WireExperts(plan);
  ASSERT_TRUE(whole.ok());
  EXPECT_EQ(whole->wiring.slots, std::ranges::max(plan.hops, {}, &Hop::slots).slots);
  const StatusOr<ExpertWires> part = WireExperts(plan, {.memory_limit = 1 << 20});
  ASSERT_TRUE(part.ok());
  EXPECT_GE(part->wiring.slots, 1);
  EXPECT_LE(part->wiring.SlotMemory(), 1 << 20);
  EXPECT_EQ(WireExperts(plan, {.memory_limit = 1024}).status().message(),
            "24 connections with a slot of 128 bytes each need 3072 bytes; expected at most 1024; "
            "hint: plan for fewer ranks");
  ExpertPlan wide = plan;
  wide.sizes.row_bytes = 1 << 20;
  const StatusOr<ExpertWires> cut = WireExperts(wide, {.memory_limit = 1 << 20});
  ASSERT_TRUE(cut.ok());
  EXPECT_EQ(cut->wiring.slots, 1);
  EXPECT_EQ(cut->wiring.slot_bytes, (1 << 20) / 24 / 64 * 64);
  plan = PlanFor(MachineOf("one-host"), Aim::kThroughput, 2, 500);
  const StatusOr<ExpertWires> few = WireExperts(plan, {.connection_bytes = 0});
  ASSERT_TRUE(few.ok());
  EXPECT_EQ(few->wiring.slots, std::ranges::max(plan.hops, {}, &Hop::slots).slots);
  plan.rows_per_message = 100;
  for (const int64_t bytes : {20'000, 1 << 20}) {
    const StatusOr<ExpertWires> wires = WireExperts(plan, {.connection_bytes = bytes});
    ASSERT_TRUE(wires.ok());
    // All rows of 4 ranks with 500 tokens each, for two ranks each, 100 or a quarter of the bytes in a slot.
    const int64_t rows = std::max<int64_t>(100, (bytes / 4 - 64) / (32 + 64));
    EXPECT_EQ(wires->wiring.slot_bytes, 64 + (rows * (32 + 64) + 63) / 64 * 64);
    EXPECT_EQ(wires->wiring.slots,
              std::min(bytes / wires->wiring.slot_bytes, (4 * 500 * 2 + rows - 1) / rows));
  }
  plan.stage_of_depth = {1, 0};
  EXPECT_EQ(WireExperts(plan).status().message(),
            "stages: expected them to rise with the depth of the sender");
}

}  // namespace
}  // namespace xccl::dispatch
