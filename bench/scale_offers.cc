#include "bench/scale_offers.h"

#include <fmt/core.h>

#include <ctime>

#include "base/strings.h"
#include "base/units.h"
#include "bench/child.h"
#include "bench/markdown_table.h"
#include "bench/scale_machines.h"
#include "ir/bounds/bound.h"
#include "ir/collective.h"
#include "ir/simulate/simulate.h"
#include "synth/common/cost_model.h"
#include "synth/engines.h"

namespace xccl {
namespace {

constexpr ChildLimits kLimits = {.cpu_seconds = 60, .memory_mib = 8192};

double SecondsSince(std::clock_t began) { return static_cast<double>(std::clock() - began) / CLOCKS_PER_SEC; }

// What an engine offers, and what its plan takes: "promise ÷ bound", the estimated seconds, the seconds of
// the offer, of the plan and of its simulation, time ÷ bound, and the reason where there is no plan.
std::string OfferAndPlan(const Engine& engine, const SynthesisRequest& request) {
  const auto bound_ps = static_cast<double>(request.bound->bound_ps);
  std::clock_t began = std::clock();
  const StatusOr<Offer> offer = engine.Offered(request);
  const double offered_s = SecondsSince(began);
  if (!offer.ok()) return fmt::format("\t\t{:.2f}\t\t\t\t{}", offered_s, offer.status().message());
  std::string text = fmt::format("{:.3f}\t{:.2f}\t{:.2f}", offer->time_ps / bound_ps,
                                 kSecondsPerMove * static_cast<double>(offer->work), offered_s);
  if (kSecondsPerMove * static_cast<double>(offer->work) > kLimits.cpu_seconds)
    return text + "\t\t\t\ttoo long";
  began = std::clock();
  const StatusOr<Synthesis> made = offer->make ? offer->make(int64_t{1} << 22) : engine.Plan(request);
  text += fmt::format("\t{:.2f}", SecondsSince(began));
  if (!made.ok()) return fmt::format("{}\t\t\t{}", text, made.status().message());
  began = std::clock();
  const Simulation simulation =
      made->simulation ? *made->simulation
                       : Simulate(made->schedule, made->collective, *request.topology, TimingOf(request));
  return fmt::format("{}\t{:.2f}\t{:.3f}\t", text, SecondsSince(began),
                     static_cast<double>(simulation.time_ps) / bound_ps);
}

Status AddRows(const std::string& name, MarkdownTable& table) {
  constexpr int64_t kSizeBytes = int64_t{1} << 30;
  XCCL_ASSIGN_OR_RETURN(const Topology topology, ReadScaledMachine(name));
  for (const CollectiveKind kind : {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
                                    CollectiveKind::kAllreduce, CollectiveKind::kBroadcast}) {
    CollectiveSpec spec;
    spec.kind = kind;
    spec.ranks = AllRanks(topology.num_ranks());
    if (IsRooted(kind)) spec.root = Rank(0);
    XCCL_ASSIGN_OR_RETURN(const Collective collective, Collective::Create(std::move(spec)));
    XCCL_ASSIGN_OR_RETURN(const Bound bound, LowerBound(topology, collective, kSizeBytes,
                                                        TimeModel::kPipelined, BoundEffort::kFast));
    SynthesisRequest request;
    request.topology = &topology;
    request.collective = &collective;
    request.size_bytes = kSizeBytes;
    request.bound = &bound;
    for (const Engine& engine : AllEngines()) {
      if (engine.searches_long || engine.asks_others || engine.asks_pairs || !engine.MayServe(kind)) continue;
      const ChildResult child = RunInChild(kLimits, [&] { return OfferAndPlan(engine, request); });
      std::vector<std::string> cells = {name, std::string(ToString(kind)), std::string(engine.name)};
      std::vector<std::string> figures = Split(child.text, '\t');
      figures.resize(7);
      if (!child.problem.empty()) figures[6] = child.problem;
      figures[6] = Shortened(figures[6]);
      cells.insert(cells.end(), figures.begin(), figures.end());
      cells.insert(cells.end() - 1, fmt::format("{}", child.peak_mib));
      table.Add(cells);
    }
  }
  return OkStatus();
}

}  // namespace

Status PrintScaleOffers(const std::vector<std::string>& machines) {
  MarkdownTable table(
      {fmt::format("{:<18}", "machine"), fmt::format("{:<14}", "collective"), fmt::format("{:<14}", "engine"),
       "promise:", "estimated s:", "offer s:", "plan s:", "simulate s:", "ratio:", " MiB:", "no plan"});
  table.PrintAsAdded();
  for (const std::string& machine : machines) XCCL_RETURN_IF_ERROR(AddRows(machine, table));
  return OkStatus();
}

}  // namespace xccl
