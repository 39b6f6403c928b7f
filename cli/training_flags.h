// --for and the flags that describe a training job.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "base/status.h"
#include "cli/command_line.h"
#include "synth/groups/training.h"

namespace xccl {

struct TrainingFlags {
  std::string of_interest;  // --for; empty: no training job
  std::string llm;
  std::optional<int64_t> layers, hidden, heads, kv_heads, ffn, vocab, sequence, experts, top_k, params;
  std::optional<int64_t> tp, pp, dp, ep, ulysses;
  std::optional<int64_t> micro_batch, micro_batches, bytes, grad_bytes;
};
void AddTrainingFlags(Command& command, TrainingFlags& flags);
// Requires: --for. Errors: kUsage.
StatusOr<TrainingJob> MakeTrainingJob(const TrainingFlags& flags);
// The name of a given flag that needs --for, else empty.
std::string FlagWithoutJob(const TrainingFlags& flags);

}  // namespace xccl
