// The buffers of a rank's calls of expert dispatch and combine, on the CPU or a GPU, for tests of the C API.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "runtime/xccl.h"

namespace xccl::c_api {

inline constexpr int kRanks = 4, kLocal = 2, kTopK = 2, kTokens = 8;  // of MakeMoePlan
inline constexpr int kPlaces = kRanks * kTokens, kEntries = kPlaces * kTopK;
inline constexpr size_t kRowBytes = 48, kScaleBytes = 16, kWidth = 16;  // bytes, bytes, elements of combine

// A rank's buffers.
struct Buffers {
  std::span<int64_t> choices;
  std::span<int32_t> narrow;  // the same choices
  std::span<float> weights;
  std::span<char> rows, scales, received, received_scales;
  std::span<int32_t> num_rows, rows_of_rank, experts, homes, tokens, rows_of_expert, first_of_expert,
      row_of_entry;
  std::span<float> told_weights, weight_of_entry, outputs, sums;
};

// allocate<T>(count) gives memory that is zeroed.
template <typename Allocate>
Buffers MakeBuffers(const Allocate& allocate) {
  Buffers made;
  allocate(made.choices, kTokens * kTopK);
  allocate(made.narrow, kTokens * kTopK);
  allocate(made.weights, kTokens * kTopK);
  allocate(made.rows, kTokens * kRowBytes);
  allocate(made.scales, kTokens * kScaleBytes);
  allocate(made.received, kPlaces * kRowBytes);
  allocate(made.received_scales, kPlaces * kScaleBytes);
  allocate(made.num_rows, 1);
  allocate(made.rows_of_rank, kRanks);
  allocate(made.experts, kPlaces * kTopK);
  allocate(made.homes, kPlaces);
  allocate(made.tokens, kPlaces);
  allocate(made.rows_of_expert, kLocal);
  allocate(made.first_of_expert, kLocal + 1);
  allocate(made.row_of_entry, kEntries);
  allocate(made.told_weights, kPlaces * kTopK);
  allocate(made.weight_of_entry, kEntries);
  allocate(made.outputs, kEntries * kWidth);
  allocate(made.sums, kTokens * kWidth);
  return made;
}

inline xcclDispatchIn_t InOf(const Buffers& of, size_t tokens) {
  xcclDispatchIn_t in = XCCL_DISPATCH_IN_INITIALIZER;
  in.rows = of.rows.data();
  in.rowBytes = kRowBytes;
  in.scales = of.scales.data();
  in.scaleBytes = kScaleBytes;
  in.tokens = tokens;
  in.choices = of.choices.data();
  in.weights = of.weights.data();
  return in;
}
inline xcclDispatchOut_t OutOf(const Buffers& of) {
  xcclDispatchOut_t out = XCCL_DISPATCH_OUT_INITIALIZER;
  out.rows = of.received.data();
  out.scales = of.received_scales.data();
  out.maxRows = kPlaces;
  out.numRows = of.num_rows.data();
  out.rowsOfRank = of.rows_of_rank.data();
  out.experts = of.experts.data();
  out.weights = of.told_weights.data();
  out.homes = of.homes.data();
  out.tokens = of.tokens.data();
  out.rowsOfExpert = of.rows_of_expert.data();
  out.firstOfExpert = of.first_of_expert.data();
  out.maxEntries = kEntries;
  out.rowOfEntry = of.row_of_entry.data();
  out.weightOfEntry = of.weight_of_entry.data();
  return out;
}

}  // namespace xccl::c_api
