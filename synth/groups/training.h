// A training job's layout as the collectives of one step: which groups, how many bytes, how often. In: a
// model, degrees of parallelism, a batch; out: lines of groups that run at the same time. Formulas, with
// their sources: docs/training.md.
//
// Ranks are numbered as Megatron-LM's default order (tp-cp-ep-dp-pp): tensor parallel neighbours first, then
// Ulysses' sequence parallel ones, then data parallel ones (expert parallel groups are consecutive data
// parallel ranks), pipeline stages last.
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
  kDp,       // gradients are added up
  kZero1,    // optimizer states in shards: gradients scattered, parameters gathered, once a step
  kZero2,    // gradients in shards too: scattered after each micro-batch
  kZero3,    // parameters in shards too: gathered for each pass over a layer
  kTp,       // Megatron-LM: layers split over ranks, activations added up
  kSp,       // Megatron-LM's sequence parallelism: the same bytes, gathered and scattered
  kUlysses,  // DeepSpeed-Ulysses: attention by heads, the rest by tokens
  kPp,       // stages send activations on
  kEp,       // experts on other ranks: tokens go there and come back
};
std::string_view ToString(Parallelism parallelism);

struct TrainingJob {
  ModelConfig model;
  std::vector<Parallelism> of_interest;  // in the order written
  std::optional<int64_t> tp, pp, dp, ep, ulysses;
  int64_t micro_batch = 1;               // sequences
  std::optional<int64_t> micro_batches;  // one rank's in a step; absent: pp
  int64_t bytes = 2;                     // size of an activation or a parameter
  int64_t grad_bytes = 2;                // size of a gradient
};

// "tp,pp,zero1". Errors: kUsage for names that are none, given twice, or that exclude each other.
StatusOr<std::vector<Parallelism>> ParseParallelisms(std::string_view text);

struct Layout {
  int64_t tp = 1, ulysses = 1, ep = 1, dp = 1, pp = 1;
  bool operator==(const Layout&) const = default;
};
// Fills in the open degrees. Data parallelism takes the ranks that the others leave. Where everything else is
// given, or no data parallelism is asked for, the one degree that is asked for and not given takes them.
// Errors: kUsage where degrees and ranks, layers, heads or experts do not divide.
StatusOr<Layout> LayoutOf(const TrainingJob& job, int64_t ranks);

// Groups of one kind of collective, all at the same time.
struct TrainingLine {
  Parallelism parallelism = Parallelism::kDp;
  std::string what;  // "gradients", "activations"
  GroupRequest request;
  int64_t count = 1;  // times per step
};
// Lines of groups of one rank, which move nothing, are left out. Errors: kUsage, those of LayoutOf, and sizes
// out of range.
StatusOr<std::vector<TrainingLine>> TrainingLines(const TrainingJob& job, int64_t ranks);

}  // namespace xccl
