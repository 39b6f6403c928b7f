// Expert dispatch on machines of several kinds: predicted time ÷ the bound of the realised counts, and beside
// it DeepEP's routes, pairwise alltoallv and padded alltoall on the same draws. One row a machine, routing
// and number of tokens. Usage: dispatch_bars DRAWS [dispatch|combine] [TOKENS|MACHINE ...]
#include <fmt/core.h>

#include <chrono>
#include <cstdlib>
#include <string>
#include <vector>

#include "bench/markdown_table.h"
#include "dispatch/make_plan.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

using dispatch::DrawTimes;

double Share(const std::vector<DrawTimes>& draws, double share, auto value) {
  std::vector<double> values;
  for (const DrawTimes& draw : draws) values.push_back(value(draw));
  return dispatch::Quantile(values, share);
}

Status Row(MarkdownTable& table, const std::string& machine, dispatch::Call call, const std::string& routing,
           int32_t tokens, int32_t draws) {
  LoadOptions options;
  if (machine == "mi300x") options.hosts = 4;
  XCCL_ASSIGN_OR_RETURN(const Topology topology, LoadTopology(machine, options));
  const int32_t ranks = topology.num_ranks();
  // 256 experts, or the next multiple of the ranks.
  dispatch::PlanRequest request{.call = call,
                                .sizes = {.ranks = ranks,
                                          .experts = (256 + ranks - 1) / ranks * ranks,
                                          .top_k = 8,
                                          .max_tokens = tokens,
                                          .row_bytes = call == dispatch::Call::kDispatch ? 7392 : 14336},
                                .aim = tokens > 1024 ? dispatch::Aim::kThroughput : dispatch::Aim::kLatency,
                                .routing = {},
                                .seed = 0};
  XCCL_ASSIGN_OR_RETURN(request.routing, dispatch::ReadRoutingSource(routing, request.sizes));
  const auto began = std::chrono::steady_clock::now();
  const auto seconds = [&] {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  };
  XCCL_ASSIGN_OR_RETURN(const dispatch::Groundwork ground, dispatch::Prepare(topology, request));
  XCCL_ASSIGN_OR_RETURN(const dispatch::ExpertPlan plan, dispatch::MakeExpertPlan(ground));
  const double planning_s = seconds();
  XCCL_ASSIGN_OR_RETURN(const dispatch::Evaluation evaluation, dispatch::Evaluate(plan, ground, draws));
  const auto median_us = [&](int64_t DrawTimes::*time) {
    return fmt::format("{:.1f}", Share(evaluation.draws, 0.5, [&](const DrawTimes& draw) {
                         return static_cast<double>(draw.*time) / 1e6;
                       }));
  };
  const auto ratio = [](const DrawTimes& draw) { return draw.ratio(); };
  const double faster = Share(evaluation.draws, 0.5, [](const DrawTimes& draw) {
    return static_cast<double>(draw.deepep_ps) / static_cast<double>(draw.plan_ps);
  });
  table.Add({topology.name(), routing, fmt::format("{}", tokens), plan.route,
             fmt::format("{}", dispatch::ToString(plan.sums)), median_us(&DrawTimes::plan_ps),
             median_us(&DrawTimes::bound_ps), fmt::format("{:.3f}", Share(evaluation.draws, 0.5, ratio)),
             fmt::format("{:.3f}", Share(evaluation.draws, 0.99, ratio)), median_us(&DrawTimes::deepep_ps),
             fmt::format("{:.2f}", faster), median_us(&DrawTimes::pairwise_ps),
             median_us(&DrawTimes::padded_ps), fmt::format("{:.2f}", planning_s),
             fmt::format("{:.2f}", (seconds() - planning_s) / static_cast<double>(evaluation.draws.size()))});
  return OkStatus();
}

Status Main(int argc, char** argv) {
  const int32_t draws = argc > 1 ? std::atoi(argv[1]) : 100;
  const auto call =
      argc > 2 && std::string(argv[2]) == "combine" ? dispatch::Call::kCombine : dispatch::Call::kDispatch;
  std::vector<std::string> machines;
  std::vector<int32_t> sizes;
  for (int i = 3; i < argc; ++i)
    if (const int32_t tokens = std::atoi(argv[i]); tokens > 0)
      sizes.push_back(tokens);
    else
      machines.emplace_back(argv[i]);
  if (sizes.empty()) sizes = {4096, 128};
  if (machines.empty())
    machines = {"rail-2", "rail-4", "rail-8", "dgx-h100", "gb200-nvl72", "mi300x", "examples/pcie_boxes.xml"};
  MarkdownTable table({"machine", "routing", "tokens:", "route", "sums",
                       "time us:", "bound us:", "ratio:", "ratio 99 %:", "DeepEP us:", "DeepEP ÷ time:",
                       "pairwise us:", "padded us:", "planning s:", "a draw s:"});
  for (const int32_t tokens : sizes)
    for (const std::string& machine : machines)
      for (const char* routing : {"uniform", "zipf:0.8", "zipf:1.0"})
        XCCL_RETURN_IF_ERROR(Row(table, machine, call, routing, tokens, draws));
  table.Print();
  return OkStatus();
}

}  // namespace
}  // namespace xccl

int main(int argc, char** argv) {
  const xccl::Status status = xccl::Main(argc, argv);
  if (!status.ok()) fmt::print(stderr, "{}\n", status.message());
  return xccl::ExitCode(status.code());
}
