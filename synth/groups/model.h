// The figures of a transformer model that decide how many bytes a training step moves. The source of each
// preset is named in model.cc; any figure may be overridden. Formulas: docs/training.md.
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
  int64_t kv_heads = 0;  // fewer than `heads` with grouped-query attention
  int64_t ffn = 0;       // inner size of a feed-forward block, or of one expert
  int64_t vocab = 0;
  int64_t sequence = 0;    // tokens
  int64_t experts = 1;     // 1: a dense model
  int64_t top_k = 1;       // number of experts that process each token
  bool gated = true;       // SwiGLU: three instead of two matrices in a feed-forward block
  bool tied = false;       // input and output embedding are one matrix
  bool positions = false;  // has a table of position embeddings
  int64_t params = 0;      // total number of parameters; 0: computed by the formula
  bool operator==(const ModelConfig&) const = default;
};

// KnownModels returns all presets. ModelNamed returns the preset of that name, or kUsage with "did you mean".
std::span<const ModelConfig> KnownModels();
StatusOr<ModelConfig> ModelNamed(std::string_view name);

// Numbers of parameters. `dense` counts the parameters that every rank of a data parallel group holds alike,
// with norms and the router. `experts` counts the parameters of the experts. Biases are left out.
struct ParameterCount {
  int64_t dense = 0;
  int64_t experts = 0;
  int64_t total() const { return dense + experts; }
};
ParameterCount CountParameters(const ModelConfig& model);

}  // namespace xccl
