// A transformer as its papers describe it: the figures that decide how many bytes a training step moves.
// Presets have their sources; any figure may be overridden. Formulas: docs/training.md.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"

namespace xccl {

struct ModelConfig {
  std::string name;
  int64_t layers = 0;
  int64_t hidden = 0;
  int64_t heads = 0;
  int64_t kv_heads = 0;  // fewer than heads: grouped queries
  int64_t ffn = 0;       // inner size of a feed-forward block, or of one expert
  int64_t vocab = 0;
  int64_t sequence = 0;    // tokens
  int64_t experts = 1;     // 1: dense
  int64_t top_k = 1;       // experts of a token
  bool gated = true;       // SwiGLU: three matrices in a feed-forward block, not two
  bool tied = false;       // one matrix for both embeddings
  bool positions = false;  // a table of positions
  int64_t params = 0;      // given instead of what the formula says; 0: the formula
  bool operator==(const ModelConfig&) const = default;
};

// All presets. ModelNamed: error kUsage with "did you mean".
std::span<const ModelConfig> KnownModels();
StatusOr<ModelConfig> ModelNamed(std::string_view name);

// Parameters that every rank of a data parallel group holds alike, and those of the experts; norms and router
// are dense, biases are left out.
struct ParameterCount {
  int64_t dense = 0;
  int64_t experts = 0;
  int64_t total() const { return dense + experts; }
};
ParameterCount CountParameters(const ModelConfig& model);

}  // namespace xccl
