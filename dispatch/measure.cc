// A row's bytes tell its home and token. An expert's output for a token is a small whole number and weights
// are 1/2 or 1, so sums of up to kMostTopK of them have no more bits than a half or a bfloat16 holds.
#include "dispatch/measure.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "base/random.h"
#include "dispatch/run.h"

namespace xccl::dispatch {
namespace {

std::byte ByteOf(int32_t home, int32_t token, int64_t at) {
  const auto mixed = static_cast<uint32_t>(home) * 2654435761U ^ static_cast<uint32_t>(token) * 40503U ^
                     static_cast<uint32_t>(at) * 97U;
  return static_cast<std::byte>(mixed >> 3 & 0xffU);
}

// 0 or 1: with weights of 1/2 and 1, 64 of them add up to at most 64 in halves, which 8 bits hold.
float OutputOf(int32_t home, int32_t token, int32_t expert, int64_t element) {
  return static_cast<float>((home + token * 3 + expert * 5 + element * 7) % 4 == 0);
}

void Store(DataType type, float value, std::byte* at) {
  if (type == DataType::kFloat) {
    std::memcpy(at, &value, sizeof value);
    return;
  }
  const uint16_t bits = type == DataType::kHalf ? FloatToHalf(value) : FloatToBfloat16(value);
  std::memcpy(at, &bits, sizeof bits);
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

class Checker {
 public:
  Checker(const ExpertPlan& plan, const Routing& routing, DataType type)
      : plan_(plan), routing_(routing), type_(type), elements_(plan.sizes.row_bytes / SizeOf(type)) {}

  int64_t elements() const { return elements_; }

  std::vector<Rows> Inputs() const {
    std::vector<Rows> rows(plan_.sizes.ranks);
    for (int32_t home = 0; home < plan_.sizes.ranks; ++home) {
      rows[home].reserve(routing_.TokensOf(home) * plan_.sizes.row_bytes);
      for (int32_t token = 0; token < routing_.TokensOf(home); ++token)
        for (int64_t i = 0; i < plan_.sizes.row_bytes; ++i) rows[home].push_back(ByteOf(home, token, i));
    }
    return rows;
  }

  // Bytes and counts that differ from what the routing says, at one rank.
  int64_t WrongReceived(const Received& received, int32_t rank) const {
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
        if (at + row_bytes > received.rows.size()) {
          wrong += plan_.sizes.row_bytes;
          continue;
        }
        for (size_t i = 0; i < row_bytes; ++i)
          wrong += received.rows[at + i] != ByteOf(home, token, static_cast<int64_t>(i));
      }
    wrong += std::max<int64_t>(
        0, static_cast<int64_t>(received.rows.size()) - static_cast<int64_t>(row * row_bytes));
    for (int32_t home = 0; home < plan_.sizes.ranks; ++home)
      wrong += received.rows_of_home[home] != of_home[home];
    for (int32_t e = 0; e < local; ++e) wrong += received.rows_of_expert[e] != of_expert[e];
    return wrong;
  }

  Rows OutputsOf(const Received& received, int32_t rank) const {
    std::vector<size_t> seen_of_row(received.rows.size() / static_cast<size_t>(plan_.sizes.row_bytes));
    for (size_t i = 0; i < received.seen.size(); ++i)
      if (received.seen.rows[i] >= 0) seen_of_row[received.seen.rows[i]] = i;
    const int32_t local = plan_.sizes.local_experts();
    const auto size = static_cast<size_t>(SizeOf(type_));
    Rows outputs(received.row_of_entry.size() * static_cast<size_t>(elements_) * size);
    std::byte* at = outputs.data();
    for (int32_t expert = 0; expert < local; ++expert)
      for (int32_t entry = received.first_of_expert[expert]; entry < received.first_of_expert[expert + 1];
           ++entry) {
        const size_t i = seen_of_row[received.row_of_entry[entry]];
        for (int64_t e = 0; e < elements_; ++e, at += size)
          Store(type_, OutputOf(received.seen.homes[i], received.seen.tokens[i], rank * local + expert, e),
                at);
      }
    return outputs;
  }

  int64_t WrongSums(const Rows& result, int32_t home) const {
    const auto size = static_cast<size_t>(SizeOf(type_));
    int64_t wrong = 0;
    size_t at = 0;
    std::byte expected[4];
    for (int32_t token = 0; token < routing_.TokensOf(home); ++token)
      for (int64_t e = 0; e < elements_; ++e, at += size) {
        const int64_t t = routing_.first_token[home] + token;
        float sum = 0;
        for (int32_t k = 0; k < routing_.top_k; ++k)
          if (const int32_t expert = routing_.ExpertsOf(t)[k]; expert >= 0)
            sum += routing_.WeightOf(t, k) * OutputOf(home, token, expert, e);
        Store(type_, sum, expected);
        wrong += at + size > result.size() || std::memcmp(result.data() + at, expected, size) != 0;
      }
    return wrong;
  }

 private:
  const ExpertPlan& plan_;
  const Routing& routing_;
  const DataType type_;
  const int64_t elements_;
};

// The bytes of one call, without its time.
Measured BytesOf(const ExpertPlan& plan, const HopIndex& index, const Routing& routing, Call call) {
  Measured bytes;
  std::vector<int32_t> needs;
  for (int64_t t = 0; t < routing.first_token.back(); ++t) {
    RanksOf(routing.ExpertsOf(t), plan.sizes, needs);
    bytes.logical_bytes += std::ssize(needs) * plan.sizes.row_bytes;
  }
  const std::vector<int64_t> rows = RowsOfHops(plan, index, routing, call);
  for (size_t h = 0; h < rows.size(); ++h) {
    const bool crosses = plan.domains[plan.hops[h].from.index()] != plan.domains[plan.hops[h].to.index()];
    (crosses ? bytes.fabric_bytes : bytes.inside_bytes) += rows[h] * plan.sizes.row_bytes;
  }
  return bytes;
}

}  // namespace

Status Measure(const ExpertPlan& plan, const MeasureOptions& options,
               const std::function<Status(const MeasuredCall&)>& show) {
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<ExpertTeam> team, ExpertTeam::Create(plan, options.patience));
  const HopIndex index(plan);
  Random random(options.seed);
  for (int32_t call = 0; call < options.calls; ++call) {
    const Routing routing = DrawCall(plan, options, random);
    const Checker checker(plan, routing, options.type);
    MeasuredCall measured{.dispatch = BytesOf(plan, index, routing, Call::kDispatch),
                          .combine = BytesOf(plan, index, routing, Call::kCombine)};
    const std::vector<Rows> inputs = checker.Inputs();
    const auto began = std::chrono::steady_clock::now();
    const auto since = [](auto then) {
      return std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - then).count();
    };
    XCCL_ASSIGN_OR_RETURN(const std::vector<Received> received, team->Dispatch(routing, inputs));
    measured.dispatch.time_us = since(began);
    std::vector<Rows> outputs;
    for (int32_t rank = 0; rank < plan.sizes.ranks; ++rank) {
      measured.dispatch.wrong += checker.WrongReceived(received[rank], rank);
      outputs.push_back(checker.OutputsOf(received[rank], rank));
    }
    const auto again = std::chrono::steady_clock::now();
    XCCL_ASSIGN_OR_RETURN(const std::vector<Rows> sums,
                          team->Combine(received, options.type, checker.elements(), outputs));
    measured.combine.time_us = since(again);
    for (int32_t home = 0; home < plan.sizes.ranks; ++home)
      measured.combine.wrong += checker.WrongSums(sums[home], home);
    XCCL_RETURN_IF_ERROR(show(measured));
  }
  return OkStatus();
}

int32_t TokensThatFit(const Sizes& sizes) {
  constexpr int64_t kRows = int64_t{1} << 29;
  const int64_t of_token = int64_t{sizes.ranks} * (std::min(sizes.top_k, sizes.ranks) + 1) * sizes.row_bytes;
  return static_cast<int32_t>(std::clamp<int64_t>(kRows / of_token, 1, sizes.max_tokens));
}

}  // namespace xccl::dispatch
