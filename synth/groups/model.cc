#include "synth/groups/model.h"

#include <fmt/format.h>

#include <array>
#include <vector>

#include "base/strings.h"

namespace xccl {

std::span<const ModelConfig> KnownModels() {
  static const std::array<ModelConfig, 5> models = {
      ModelConfig{.name = "gpt-3-175b",
                  .source = "Brown et al. 2020, Table 2.1",
                  .layers = 96,
                  .hidden = 12288,
                  .heads = 96,
                  .kv_heads = 96,
                  .ffn = 4 * 12288,
                  .vocab = 50257,
                  .sequence = 2048,
                  .gated = false,
                  .tied = true,
                  .positions = true},
      ModelConfig{.name = "llama-3-8b",
                  .source = "Llama Team 2024, The Llama 3 Herd of Models, Table 3",
                  .layers = 32,
                  .hidden = 4096,
                  .heads = 32,
                  .kv_heads = 8,
                  .ffn = 14336,
                  .vocab = 128256,
                  .sequence = 8192},
      ModelConfig{.name = "llama-3-70b",
                  .source = "Llama Team 2024, The Llama 3 Herd of Models, Table 3",
                  .layers = 80,
                  .hidden = 8192,
                  .heads = 64,
                  .kv_heads = 8,
                  .ffn = 28672,
                  .vocab = 128256,
                  .sequence = 8192},
      ModelConfig{.name = "llama-3-405b",
                  .source = "Llama Team 2024, The Llama 3 Herd of Models, Table 3",
                  .layers = 126,
                  .hidden = 16384,
                  .heads = 128,
                  .kv_heads = 8,
                  .ffn = 53248,
                  .vocab = 128256,
                  .sequence = 8192},
      ModelConfig{.name = "mixtral-8x7b",
                  .source = "Jiang et al. 2024, Mixtral of Experts, Table 1",
                  .layers = 32,
                  .hidden = 4096,
                  .heads = 32,
                  .kv_heads = 8,
                  .ffn = 14336,
                  .vocab = 32000,
                  .sequence = 32768,
                  .experts = 8,
                  .top_k = 2},
  };
  return models;
}

StatusOr<ModelConfig> ModelNamed(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ModelConfig& model : KnownModels()) {
    if (model.name == name) return model;
    known.push_back(model.name);
  }
  return UsageError(fmt::format("no model '{}'{}", name, DidYouMean(name, known)));
}

ParameterCount CountParameters(const ModelConfig& model) {
  const int64_t h = model.hidden;
  const int64_t keys = model.heads > 0 ? h / model.heads * model.kv_heads : h;
  const int64_t attention = 2 * h * h + 2 * h * keys;
  const int64_t block = (model.gated ? 3 : 2) * h * model.ffn;
  const int64_t norms = 2 * h;
  ParameterCount count;
  count.dense = model.layers * (attention + norms) + h + (model.tied ? 1 : 2) * model.vocab * h;
  if (model.positions) count.dense += model.sequence * h;
  if (model.experts > 1) {
    count.dense += model.layers * h * model.experts;  // the router
    count.experts = model.layers * model.experts * block;
  } else {
    count.dense += model.layers * block;
  }
  if (model.params > 0) {
    // Expert parameters keep their proportion.
    const auto share = static_cast<double>(count.experts) / static_cast<double>(count.total());
    count.experts = static_cast<int64_t>(share * static_cast<double>(model.params));
    count.dense = model.params - count.experts;
  }
  return count;
}

}  // namespace xccl
