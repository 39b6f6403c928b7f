// Rows are words that tell their home, token and place. An expert's output for a token is 0 or 1 and weights
// are 1/2 or 1, so sums of up to kMostTopK of them have no more bits than a half or a bfloat16 holds. Outputs
// repeat after four elements, so rows of them are copied, and sums are compared, four elements at a time: the
// check then takes less time than the calls.
#include "runtime/experts/measure.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "dispatch/received.h"
#include "runtime/cpu/launch.h"
#include "runtime/experts/rank.h"
#include "runtime/experts/wires.h"
#include "runtime/host/host_memory.h"
#include "runtime/transport/shared_region.h"

namespace xccl::dispatch {
namespace {

// Word i of a token's row is the token's number XOR i times an odd number: two tokens' rows differ in every
// word, and so do the words of a row, and the rows of two calls.
uint64_t NumberOf(uint64_t call, int32_t home, int32_t token) {
  return Mix(Mix(call) + (static_cast<uint64_t>(home) << 32U | static_cast<uint32_t>(token)));
}
void WriteRow(uint64_t number, std::span<std::byte> row) {
  for (size_t i = 0; i < row.size() / sizeof number; ++i) {
    const uint64_t word = number ^ i * kGolden;
    std::memcpy(row.data() + i * sizeof word, &word, sizeof word);
  }
}
int64_t WrongBytes(uint64_t number, std::span<const std::byte> row) {
  int64_t wrong = 0;
  for (size_t i = 0; i < row.size() / sizeof number; ++i) {
    uint64_t word = 0;
    std::memcpy(&word, row.data() + i * sizeof word, sizeof word);
    for (uint64_t differs = word ^ number ^ i * kGolden; differs != 0; differs >>= 8U)
      wrong += (differs & 0xffU) != 0;
  }
  return wrong;
}

// Outputs are 1 at every fourth element, from this one on, and 0 elsewhere: with weights of 1/2 and 1, 64 of
// them add up to at most 64 in halves, which 8 bits hold.
constexpr int64_t kPeriod = 4;
int64_t FirstOne(int32_t home, int32_t token, int32_t expert) {
  return (int64_t{home} + int64_t{token} * 3 + int64_t{expert} * 5) % kPeriod;
}

// The drawn choices of one call with weights, cut down to the tokens that are asked for.
Routing DrawCall(const ExpertPlan& plan, const MeasureOptions& options, Random& random) {
  Sizes sizes = plan.sizes;
  sizes.max_tokens = options.tokens;
  Routing routing = DrawRouting(options.routing, sizes, random);
  routing.weights.resize(routing.experts.size());
  for (float& weight : routing.weights) weight = random.Below(2) == 0 ? 0.5F : 1.0F;
  return routing;
}

// Memory that lasts from call to call, as a program's does, in huge pages where the system has them.
class Buffer {
 public:
  // Its first bytes; what they were is lost where it grows.
  StatusOr<std::span<std::byte>> Of(size_t bytes) {
    if (bytes > size_) {
      size_ = bytes + bytes / 4;
      XCCL_ASSIGN_OR_RETURN(memory_, HostMemory::Create(static_cast<int64_t>(size_)));
    }
    return std::span(memory_.data(), bytes);
  }

 private:
  HostMemory memory_;
  size_t size_ = 0;
};

class Checker {
 public:
  // `number`: of the call.
  Checker(const ExpertPlan& plan, const Routing& routing, DataType type, uint64_t number)
      : plan_(plan),
        routing_(routing),
        type_(type),
        elements_(plan.sizes.row_bytes / SizeOf(type)),
        number_(number) {}

  int64_t elements() const { return elements_; }

  void WriteInput(int32_t home, std::span<std::byte> rows) const {
    const auto row_bytes = static_cast<size_t>(plan_.sizes.row_bytes);
    for (int32_t token = 0; token < routing_.TokensOf(home); ++token)
      WriteRow(NumberOf(number_, home, token),
               rows.subspan(static_cast<size_t>(token) * row_bytes, row_bytes));
  }

  // Bytes and counts that differ from what the routing says, at one rank.
  int64_t WrongReceived(const Received& received, std::span<const std::byte> rows, int32_t rank) const {
    const int32_t local = plan_.sizes.local_experts();
    std::vector<int32_t> of_home(plan_.sizes.ranks), of_expert(local);
    int64_t wrong = 0;
    size_t row = 0;
    const auto row_bytes = static_cast<size_t>(plan_.sizes.row_bytes);
    for (int32_t home = 0; home < plan_.sizes.ranks; ++home)
      for (int32_t token = 0; token < routing_.TokensOf(home); ++token) {
        bool needed = false;
        for (const int32_t expert : routing_.ExpertsOf(routing_.first_token[home] + token)) {
          if (expert < 0 || expert / local != rank) continue;
          needed = true;
          ++of_expert[expert % local];
        }
        if (!needed) continue;
        ++of_home[home];
        const size_t at = row++ * row_bytes;
        if (at + row_bytes > rows.size()) {
          wrong += plan_.sizes.row_bytes;
          continue;
        }
        wrong += WrongBytes(NumberOf(number_, home, token), rows.subspan(at, row_bytes));
      }
    wrong += std::max<int64_t>(0, static_cast<int64_t>(rows.size()) - static_cast<int64_t>(row * row_bytes));
    for (int32_t home = 0; home < plan_.sizes.ranks; ++home)
      wrong += received.rows_of_home[home] != of_home[home];
    for (int32_t e = 0; e < local; ++e) wrong += received.rows_of_expert[e] != of_expert[e];
    return wrong;
  }

  void WriteOutputs(const Received& received, int32_t rank, std::span<std::byte> outputs) const {
    std::vector<size_t> seen_of_row(static_cast<size_t>(received.num_rows));
    for (size_t i = 0; i < received.seen.size(); ++i)
      if (received.seen.rows[i] >= 0) seen_of_row[received.seen.rows[i]] = i;
    const int32_t local = plan_.sizes.local_experts();
    const auto row_bytes = static_cast<size_t>(plan_.sizes.row_bytes);
    std::array<Rows, kPeriod> starting;  // a row whose first one is at this element
    for (int64_t first = 0; first < kPeriod; ++first)
      for (int64_t e = 0; e < elements_; ++e)
        Append(static_cast<float>(e % kPeriod == first), starting[static_cast<size_t>(first)]);
    for (int32_t expert = 0; expert < local; ++expert)
      for (int32_t entry = received.first_of_expert[expert]; entry < received.first_of_expert[expert + 1];
           ++entry) {
        const size_t i = seen_of_row[received.row_of_entry[entry]];
        const int64_t first =
            FirstOne(received.seen.homes[i], received.seen.tokens[i], rank * local + expert);
        std::ranges::copy(starting[static_cast<size_t>(first)],
                          outputs.subspan(static_cast<size_t>(entry) * row_bytes).begin());
      }
  }

  int64_t WrongSums(std::span<const std::byte> result, int32_t home) const {
    const auto size = static_cast<size_t>(SizeOf(type_));
    int64_t wrong = 0;
    size_t at = 0;
    for (int32_t token = 0; token < routing_.TokensOf(home); ++token) {
      const int64_t t = routing_.first_token[home] + token;
      std::array<float, kPeriod> sums = {};
      for (int32_t k = 0; k < routing_.top_k; ++k)
        if (const int32_t expert = routing_.ExpertsOf(t)[k]; expert >= 0)
          sums[static_cast<size_t>(FirstOne(home, token, expert))] += routing_.WeightOf(t, k);
      Rows expected;
      for (const float sum : sums) Append(sum, expected);
      for (int64_t e = 0; e < elements_; e += kPeriod, at += expected.size()) {
        const bool there = at + expected.size() <= result.size();
        if (there && std::memcmp(result.data() + at, expected.data(), expected.size()) == 0) continue;
        for (size_t i = 0; i < expected.size(); i += size)
          wrong += !there || std::memcmp(result.data() + at + i, expected.data() + i, size) != 0;
      }
    }
    return wrong;
  }

 private:
  void Append(float value, Rows& to) const {
    const uint16_t bits = type_ == DataType::kHalf ? FloatToHalf(value) : FloatToBfloat16(value);
    const auto* from = type_ == DataType::kFloat ? reinterpret_cast<const std::byte*>(&value)
                                                 : reinterpret_cast<const std::byte*>(&bits);
    to.insert(to.end(), from, from + SizeOf(type_));
  }

  const ExpertPlan& plan_;
  const Routing& routing_;
  const DataType type_;
  const int64_t elements_;  // of a row, a multiple of kPeriod
  const uint64_t number_;
};

// The bytes of one call, without its time.
Measured BytesOf(const ExpertPlan& plan, const HopIndex& index, const Needs& needs, Call call) {
  Measured bytes;
  bytes.logical_bytes = std::ssize(needs.ranks) * plan.sizes.row_bytes;
  const std::vector<int64_t> rows = RowsOfHops(plan, index, needs, call);
  for (size_t h = 0; h < rows.size(); ++h) {
    const bool crosses = plan.domains[plan.hops[h].from.index()] != plan.domains[plan.hops[h].to.index()];
    (crosses ? bytes.fabric_bytes : bytes.inside_bytes) += rows[h] * plan.sizes.row_bytes;
  }
  return bytes;
}

// A call as one rank sees it.
struct OfRank {
  double dispatch_us = 0, combine_us = 0;
  int64_t dispatch_wrong = 0, combine_wrong = 0;
};

// One rank's calls; all ranks draw the same routings. A barrier stands before each timing.
Status RunRank(const ExpertWires& wires, const MeasureOptions& options, Endpoint& endpoint,
               std::span<OfRank> calls) {
  const ExpertPlan& plan = *wires.plan;
  ExpertRank rank(wires, endpoint);
  const int32_t self = rank.rank();
  // This is longer than a call may stand still, so a rank that is stuck in one reports first.
  const auto barrier = [&] {
    endpoint.NoteProgress();
    return endpoint.Barrier(3 * options.patience);
  };
  const auto row_bytes = static_cast<size_t>(plan.sizes.row_bytes);
  Buffer inputs, arrived, entries, results;
  std::span<std::byte> rows;
  const auto place = [&](const Received& ways) -> StatusOr<RowPlace> {
    XCCL_ASSIGN_OR_RETURN(rows, arrived.Of(static_cast<size_t>(ways.num_rows) * row_bytes));
    return RowPlace{.rows = rows.data(), .row_bytes = plan.sizes.row_bytes};
  };
  Random random(options.seed);
  uint64_t number = 0;
  for (OfRank& call : calls) {
    const Routing routing = DrawCall(plan, options, random);
    const Checker checker(plan, routing, options.type, ++number);
    const OwnTokens own{routing.TokensOf(self), routing.ExpertsOfRank(self), routing.WeightsOfRank(self)};
    const size_t own_bytes = static_cast<size_t>(own.count) * row_bytes;
    XCCL_ASSIGN_OR_RETURN(const std::span<std::byte> input, inputs.Of(own_bytes));
    checker.WriteInput(self, input);
    const auto since = [](auto then) {
      return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - then).count();
    };
    XCCL_RETURN_IF_ERROR(barrier());
    const auto began = std::chrono::steady_clock::now();
    XCCL_ASSIGN_OR_RETURN(Received received,
                          rank.Dispatch(own, {.rows = input.data(), .row_bytes = plan.sizes.row_bytes}, place,
                                        options.patience));
    call.dispatch_us = since(began);
    call.dispatch_wrong = checker.WrongReceived(received, rows, self);
    XCCL_ASSIGN_OR_RETURN(const std::span<std::byte> outputs,
                          entries.Of(received.row_of_entry.size() * row_bytes));
    checker.WriteOutputs(received, self, outputs);
    XCCL_ASSIGN_OR_RETURN(const std::span<std::byte> sums, results.Of(own_bytes));
    std::ranges::fill(sums, std::byte{0xff});
    XCCL_RETURN_IF_ERROR(barrier());
    const auto again = std::chrono::steady_clock::now();
    XCCL_RETURN_IF_ERROR(rank.Combine(received, options.type, checker.elements(), Outputs::kWeighted,
                                      outputs.data(), sums.data(), options.patience));
    call.combine_us = since(again);
    call.combine_wrong = checker.WrongSums(sums, self);
  }
  return barrier();  // no rank leaves while others may wait for it
}

// This process's rank, in a group; `all`: by rank and call.
Status RunInGroup(const ExpertWires& wires, const MeasureOptions& options, std::span<OfRank> all) {
  const auto calls = static_cast<size_t>(options.calls);
  Bootstrap& bootstrap = options.group->bootstrap();
  XCCL_ASSIGN_OR_RETURN(Endpoint* const endpoint, options.group->EndpointOf(wires.wiring));
  const std::span<OfRank> mine = all.subspan(bootstrap.rank().index() * calls, calls);
  if (const Status status = RunRank(wires, options, *endpoint, mine); !status.ok()) {
    endpoint->Fail(status);
    return *endpoint->Failure();
  }
  const std::string_view bytes(reinterpret_cast<const char*>(mine.data()), mine.size_bytes());
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> of_ranks,
                        bootstrap.AllGather(bytes, 3 * options.patience));
  for (size_t r = 0; r < of_ranks.size(); ++r)
    std::memcpy(&all[r * calls], of_ranks[r].data(), std::min(of_ranks[r].size(), mine.size_bytes()));
  return OkStatus();
}

// All ranks, as threads or children of this process.
Status RunHere(const ExpertWires& wires, const MeasureOptions& options, std::span<OfRank> all) {
  const auto calls = static_cast<size_t>(options.calls);
  XCCL_ASSIGN_OR_RETURN(
      const SharedRegion region,
      SharedRegion::Create(wires.wiring, options.processes ? Sharing::kChildren : Sharing::kThreads));
  std::vector<Rank> ranks;
  for (int32_t rank = 0; rank < wires.plan->sizes.ranks; ++rank) ranks.emplace_back(rank);
  return RunRanks(region, ranks, options.patience, [&](Endpoint& endpoint) {
    return RunRank(wires, options, endpoint, all.subspan(endpoint.rank().index() * calls, calls));
  });
}

}  // namespace

StatusOr<std::vector<MeasuredCall>> Measure(const ExpertPlan& plan, const MeasureOptions& options) {
  XCCL_RETURN_IF_ERROR(CheckCombineType(options.type));
  XCCL_ASSIGN_OR_RETURN(const ExpertWires wires, WireExperts(plan));
  const auto calls = static_cast<size_t>(options.calls), ranks = static_cast<size_t>(plan.sizes.ranks);
  XCCL_ASSIGN_OR_RETURN(const HostMemory memory,
                        HostMemory::CreateShared(static_cast<int64_t>(ranks * calls * sizeof(OfRank))));
  const std::span<OfRank> all = memory.As<OfRank>(ranks * calls);
  XCCL_RETURN_IF_ERROR(options.group != nullptr ? RunInGroup(wires, options, all)
                                                : RunHere(wires, options, all));
  std::vector<MeasuredCall> measured;
  Random random(options.seed);
  for (size_t call = 0; call < calls; ++call) {
    const Needs needs = NeedsOf(DrawCall(plan, options, random), plan.sizes);
    MeasuredCall& one =
        measured.emplace_back(MeasuredCall{.dispatch = BytesOf(plan, wires.index, needs, Call::kDispatch),
                                           .combine = BytesOf(plan, wires.index, needs, Call::kCombine)});
    for (size_t rank = 0; rank < ranks; ++rank) {
      const OfRank& of = all[rank * calls + call];
      one.dispatch.time_us = std::max(one.dispatch.time_us, of.dispatch_us);
      one.combine.time_us = std::max(one.combine.time_us, of.combine_us);
      one.dispatch.wrong += of.dispatch_wrong;
      one.combine.wrong += of.combine_wrong;
    }
  }
  return measured;
}

std::vector<Facts> FactsOf(const std::vector<MeasuredCall>& calls, int32_t ranks) {
  std::vector<Facts> rows;
  const auto add = [&](Call call, const Measured& measured) {
    const auto rate = [&](int64_t bytes) {
      return static_cast<double>(bytes) / ranks / measured.time_us / 1e3;
    };
    rows.push_back({{"call", std::string(ToString(call))},
                    {"time_us", measured.time_us},
                    {"logical_gb_per_s", rate(measured.logical_bytes)},
                    {"fabric_gb_per_s", rate(measured.fabric_bytes)},
                    {"host_gb_per_s", rate(measured.inside_bytes)},
                    {"wrong", measured.wrong}});
  };
  for (const MeasuredCall& measured : calls) {
    add(Call::kDispatch, measured.dispatch);
    add(Call::kCombine, measured.combine);
  }
  return rows;
}

int32_t TokensThatFit(const Sizes& sizes) {
  constexpr int64_t kRows = int64_t{1} << 29;
  const int64_t of_token = int64_t{sizes.ranks} * (std::min(sizes.top_k, sizes.ranks) + 1) * sizes.row_bytes;
  return static_cast<int32_t>(std::clamp<int64_t>(kRows / of_token, 1, sizes.max_tokens));
}

}  // namespace xccl::dispatch
