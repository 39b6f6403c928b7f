#include "synth/groups/model.h"

#include <vector>

#include "base/strings.h"

namespace xccl {

// Sources: Brown et al. 2020, Table 2.1; Llama Team 2024, The Llama 3 Herd of Models, Table 3; Jiang et al.
// 2024, Mixtral of Experts, Table 1.
std::span<const ModelConfig> KnownModels() {
  // name, layers, hidden, heads, kv_heads, ffn, vocab, sequence, experts, top_k, gated, tied, positions
  static const ModelConfig models[] = {
      {"gpt-3-175b", 96, 12288, 96, 96, 4 * 12288, 50257, 2048, 1, 1, false, true, true},
      {"llama-3-8b", 32, 4096, 32, 8, 14336, 128256, 8192},
      {"llama-3-70b", 80, 8192, 64, 8, 28672, 128256, 8192},
      {"llama-3-405b", 126, 16384, 128, 8, 53248, 128256, 8192},
      {"mixtral-8x7b", 32, 4096, 32, 8, 14336, 32000, 32768, 8, 2},
  };
  return models;
}

StatusOr<ModelConfig> ModelNamed(std::string_view name) {
  std::vector<std::string_view> known;
  for (const ModelConfig& model : KnownModels()) {
    if (model.name == name) return model;
    known.push_back(model.name);
  }
  return UsageError(IndexOfName("model", name, known).status().message());
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
    // The given total is split in the proportion that the formula gives for dense and expert parameters.
    const auto share = static_cast<double>(count.experts) / static_cast<double>(count.total());
    count.experts = static_cast<int64_t>(share * static_cast<double>(model.params));
    count.dense = model.params - count.experts;
  }
  return count;
}

}  // namespace xccl
