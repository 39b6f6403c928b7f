// One mixture-of-experts layer, forward and backward, on sixteen ranks that are threads, compared with the
// layer computed by one process. Experts are small matrices; the exchange is a plan for two hosts of eight
// GPUs.
//   bazel run //examples:moe_layer
// Prints the largest difference of the outputs and of both gradients, and ends with 1 where one is too large.
#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "dispatch/make_plan.h"
#include "runtime/experts/team.h"
#include "topologies/load/load.h"

namespace xccl::dispatch {
namespace {

constexpr int32_t kHidden = 32, kTokens = 48, kTopK = 4, kLocalExperts = 2;
using Vector = std::vector<float>;  // kHidden values, or as many for each row

Rows Bytes(const Vector& values) {
  Rows bytes(values.size() * sizeof(float));
  std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

Vector Floats(const Rows& bytes) {
  Vector values(bytes.size() / sizeof(float));
  std::memcpy(values.data(), bytes.data(), bytes.size());
  return values;
}

Vector Draw(size_t count, Random& random) {
  Vector values(count);
  for (float& value : values) value = static_cast<float>(random.Unit() * 2 - 1);
  return values;
}

// to += scale × (W row), or (W transposed row).
void AddProduct(const Vector& w, const float* row, bool transposed, float scale, float* to) {
  for (int32_t i = 0; i < kHidden; ++i)
    for (int32_t j = 0; j < kHidden; ++j)
      to[i] += scale * w[transposed ? j * kHidden + i : i * kHidden + j] * row[j];
}

struct Gradients {
  std::vector<Vector> outputs, inputs, experts;  // by rank, by rank, by expert
};

struct Layer {
  ExpertPlan plan;
  std::vector<Vector> experts;                      // W of each expert
  Routing routing;                                  // with weights
  std::vector<Vector> tokens, gradient_of_outputs;  // by rank
};

// y = sum of weight × W x over a token's experts; dx = sum of weight × W' dy; dW = sum of weight × dy x'.
Gradients OnOne(const Layer& layer) {
  Gradients result{layer.tokens, layer.tokens, layer.experts};
  for (std::vector<Vector>* all : {&result.outputs, &result.inputs, &result.experts})
    for (Vector& values : *all) std::ranges::fill(values, 0.0F);
  for (int32_t home = 0; home < layer.plan.sizes.ranks; ++home)
    for (int32_t token = 0; token < kTokens; ++token)
      for (int32_t k = 0; k < kTopK; ++k) {
        const int64_t t = layer.routing.first_token[home] + token;
        const int32_t expert = layer.routing.ExpertsOf(t)[k];
        const float weight = layer.routing.WeightOf(t, k);
        const float *x = &layer.tokens[home][token * kHidden],
                    *dy = &layer.gradient_of_outputs[home][token * kHidden];
        AddProduct(layer.experts[expert], x, false, weight, &result.outputs[home][token * kHidden]);
        AddProduct(layer.experts[expert], dy, true, weight, &result.inputs[home][token * kHidden]);
        for (int32_t i = 0; i < kHidden; ++i)
          for (int32_t j = 0; j < kHidden; ++j)
            result.experts[expert][i * kHidden + j] += weight * dy[i] * x[j];
      }
  return result;
}

// Returns the output of a rank's experts for the rows that it received.
Rows Apply(const Layer& layer, const Received& received, int32_t rank, bool transposed) {
  const Vector rows = Floats(received.rows);
  Vector outputs(received.row_of_entry.size() * kHidden);
  for (int32_t local = 0; local < kLocalExperts; ++local)
    for (int32_t entry = received.first_of_expert[local]; entry < received.first_of_expert[local + 1];
         ++entry)
      AddProduct(layer.experts[rank * kLocalExperts + local], &rows[received.row_of_entry[entry] * kHidden],
                 transposed, 1, &outputs[entry * kHidden]);
  return Bytes(outputs);
}

StatusOr<std::vector<Received>> DispatchAll(ExpertTeam& team, const Layer& layer,
                                            const std::vector<Vector>& of_ranks) {
  std::vector<Rows> rows;
  for (const Vector& values : of_ranks) rows.push_back(Bytes(values));
  return team.Dispatch(layer.routing, rows);
}

StatusOr<std::vector<Vector>> CombineAll(ExpertTeam& team, const Layer& layer,
                                         const std::vector<Received>& received, bool transposed) {
  std::vector<Rows> outputs;
  for (int32_t rank = 0; rank < layer.plan.sizes.ranks; ++rank)
    outputs.push_back(Apply(layer, received[rank], rank, transposed));
  XCCL_ASSIGN_OR_RETURN(const std::vector<Rows> sums,
                        team.Combine(received, DataType::kFloat, kHidden, outputs));
  std::vector<Vector> values;
  for (const Rows& of_rank : sums) values.push_back(Floats(of_rank));
  return values;
}

// combine's backward pass is dispatch of the outputs' gradients, and dispatch's is combine of the inputs'. A
// token takes the same experts and weights both ways, so its rows meet in the same entries.
StatusOr<Gradients> OnRanks(const Layer& layer) {
  XCCL_ASSIGN_OR_RETURN(const std::unique_ptr<ExpertTeam> team,
                        ExpertTeam::Create(layer.plan, std::chrono::seconds(60)));
  Gradients result;
  XCCL_ASSIGN_OR_RETURN(const std::vector<Received> forward, DispatchAll(*team, layer, layer.tokens));
  XCCL_ASSIGN_OR_RETURN(result.outputs, CombineAll(*team, layer, forward, false));
  XCCL_ASSIGN_OR_RETURN(const std::vector<Received> backward,
                        DispatchAll(*team, layer, layer.gradient_of_outputs));
  XCCL_ASSIGN_OR_RETURN(result.inputs, CombineAll(*team, layer, backward, true));
  for (int32_t rank = 0; rank < layer.plan.sizes.ranks; ++rank) {
    const Vector x = Floats(forward[rank].rows), dy = Floats(backward[rank].rows);
    for (int32_t local = 0; local < kLocalExperts; ++local) {
      Vector& of_expert = result.experts.emplace_back(kHidden * kHidden);
      const Received& at = forward[rank];
      for (int32_t entry = at.first_of_expert[local]; entry < at.first_of_expert[local + 1]; ++entry)
        for (int32_t i = 0; i < kHidden; ++i)
          for (int32_t j = 0; j < kHidden; ++j)
            of_expert[i * kHidden + j] += at.weight_of_entry[entry] *
                                          dy[at.row_of_entry[entry] * kHidden + i] *
                                          x[at.row_of_entry[entry] * kHidden + j];
    }
  }
  return result;
}

StatusOr<Layer> MakeLayer() {
  LoadOptions options;
  options.hosts = 2;
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadTopology("dgx-a100", options));
  PlanRequest request;
  request.sizes = {.ranks = topology.num_ranks(),
                   .experts = kLocalExperts * topology.num_ranks(),
                   .top_k = kTopK,
                   .max_tokens = kTokens,
                   .row_bytes = kHidden * static_cast<int64_t>(sizeof(float))};
  XCCL_ASSIGN_OR_RETURN(ExpertPlan plan, MakeExpertPlan(topology, request));
  Random random(1);
  Layer layer{.plan = std::move(plan), .experts = {}, .routing = {}, .tokens = {}, .gradient_of_outputs = {}};
  layer.routing = DrawRouting(request.routing, request.sizes, random);
  layer.routing.weights = Draw(layer.routing.experts.size(), random);
  for (int32_t expert = 0; expert < request.sizes.experts; ++expert)
    layer.experts.push_back(Draw(kHidden * kHidden, random));
  for (int32_t rank = 0; rank < request.sizes.ranks; ++rank) {
    layer.tokens.push_back(Draw(kTokens * kHidden, random));
    layer.gradient_of_outputs.push_back(Draw(kTokens * kHidden, random));
  }
  return layer;
}

float LargestDifference(const std::vector<Vector>& one, const std::vector<Vector>& other) {
  float largest = one.size() == other.size() ? 0 : INFINITY;
  for (size_t r = 0; r < std::min(one.size(), other.size()); ++r)
    for (size_t i = 0; i < one[r].size(); ++i)
      largest = std::max(largest, std::abs(one[r][i] - other[r].at(i)));
  return largest;
}

Status Main() {
  XCCL_ASSIGN_OR_RETURN(const Layer layer, MakeLayer());
  XCCL_ASSIGN_OR_RETURN(const Gradients ranks, OnRanks(layer));
  const Gradients one = OnOne(layer);
  const float differences[] = {LargestDifference(ranks.outputs, one.outputs),
                               LargestDifference(ranks.inputs, one.inputs),
                               LargestDifference(ranks.experts, one.experts)};
  fmt::print(
      "{} ranks, {} experts, route {}: largest differences: outputs {:.1e}, gradients of tokens {:.1e}, of "
      "experts {:.1e}\n",
      layer.plan.sizes.ranks, layer.plan.sizes.experts, layer.plan.route, differences[0], differences[1],
      differences[2]);
  // Sums of hundreds of products below 1, in float.
  if (std::ranges::max(differences) > 1e-3F)
    return BugError("the layer on ranks differs from the layer on one");
  return OkStatus();
}

}  // namespace
}  // namespace xccl::dispatch

int main() {
  const xccl::Status status = xccl::dispatch::Main();
  if (!status.ok()) fmt::print(stderr, "{}\n", status.message());
  return xccl::ExitCode(status.code());
}
