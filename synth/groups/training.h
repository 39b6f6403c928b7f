// Turns a training job into the collectives of one step. The input is a model, the degrees of parallelism,
// and a batch. The output is a list of lines: each line has groups that run at the same time, their bytes,
// and the number of calls. Formulas and their sources: docs/training.md.
//
// Ranks are numbered in Megatron-LM's default order (tp-cp-ep-dp-pp). The tensor parallel coordinate changes
// fastest; Ulysses' sequence parallel, data parallel and pipeline coordinates follow in this order. Expert
// parallel groups are consecutive data parallel ranks.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "synth/groups/groups.h"
#include "synth/groups/model.h"

namespace xccl {

enum class Parallelism : uint8_t {
  kDp,       // data parallel ranks add up their gradients
  kZero1,    // optimizer states in shards: gradients reduce-scattered, parameters gathered once a step
  kZero2,    // also gradients in shards: reduce-scattered after each micro-batch
  kZero3,    // also parameters in shards: gathered for each pass over a layer
  kTp,       // Megatron-LM: layers split over ranks, activations added up
  kSp,       // Megatron-LM's sequence parallelism: the same bytes, gathered and scattered
  kUlysses,  // DeepSpeed-Ulysses: attention by heads, the rest by tokens
  kPp,       // pipeline stages: each sends activations to the next, which sends gradients back
  kEp,       // experts on different ranks: tokens go to them and come back
};
std::string_view ToString(Parallelism parallelism);

struct TrainingJob {
  ModelConfig model;
  std::vector<Parallelism> of_interest;  // in the order in which the user wrote them
  std::optional<int64_t> tp, pp, dp, ep, ulysses;
  int64_t micro_batch = 1;               // sequences
  std::optional<int64_t> micro_batches;  // of one rank in a step; absent: pp
  int64_t bytes = 2;                     // size of an activation or a parameter
  int64_t grad_bytes = 2;                // size of a gradient
};

// Parses a list such as "tp,pp,zero1". Errors: kUsage for unknown names, and for names that are given twice
// or exclude each other.
StatusOr<std::vector<Parallelism>> ParseParallelisms(std::string_view text);

struct Layout {
  int64_t tp = 1, ulysses = 1, ep = 1, dp = 1, pp = 1;
  bool operator==(const Layout&) const = default;
};
// Returns the job's degrees of parallelism. At most one of tp, ulysses, pp and dp may be asked for but not
// given; zero1 to zero3 and ep ask for dp. It takes the ranks that the other degrees leave. If there is none,
// dp takes these ranks; if dp is given, no rank may be left. Errors: kUsage for a wrong model, and if degrees
// do not divide the ranks, layers, heads, tokens or experts.
StatusOr<Layout> LayoutOf(const TrainingJob& job, int64_t ranks);

// Groups that run one kind of collective at the same time.
struct TrainingLine {
  Parallelism parallelism = Parallelism::kDp;
  std::string what;  // "gradients", "activations"
  GroupRequest request;
  int64_t count = 1;  // times per step
};
// Returns the lines of one step. Leaves out lines of groups of one rank, because they move nothing. Errors:
// kUsage for sizes or counts out of range and for experts of a model without experts, and the errors of
// LayoutOf.
StatusOr<std::vector<TrainingLine>> TrainingLines(const TrainingJob& job, int64_t ranks);

}  // namespace xccl
