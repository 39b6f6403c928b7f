#include "pipeline/tune.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <system_error>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "ir/lower/lower.h"
#include "ir/simulate/simulate_program.h"
#include "pipeline/pipeline.h"
#include "topologies/symmetry.h"

namespace xccl {
namespace {

// With a machine model, a plan runs if its predicted time is at most this times the best prediction. A
// prediction errs by a factor of up to 1.5 (bench/truth_gpu.py in docs/benchmarks.md), the ratio of two by up
// to 2.3.
constexpr double kMaxPredictedRatio = 4;

// A plan that may be chosen. `size` and `topology` are the indices of the size and topology that it is for.
struct Proposal {
  Plan plan;
  int32_t threadblocks = 0;
  size_t topology = 0, size = 0;
};

bool SameWork(const Plan& a, const Plan& b) {
  return a.topology == b.topology && a.schedule == b.schedule && a.program == b.program;
}

StatusOr<Proposal> Propose(std::span<const Topology> topologies, const Collective& collective,
                           const PlanOptions& pipeline, int64_t size_bytes, size_t topology, size_t size) {
  PlanOptions options = pipeline;
  options.request.size_bytes = size_bytes;
  options.lower = true;
  XCCL_ASSIGN_OR_RETURN(PlanResult made, MakePlan(topologies[topology], collective, options));
  if (!made.plan.program)
    return LimitReached(collective.name() + " on " + topologies[topology].name() +
                        ": the schedule is too long to be lowered");
  const int32_t threadblocks = made.program_stats->threadblocks;
  return Proposal{std::move(made.plan), threadblocks, topology, size};
}

// Returns the plans for all sizes and topologies, without duplicates.
StatusOr<std::vector<Proposal>> ProposeAll(std::span<const Topology> topologies, const Collective& collective,
                                           const TuneRequest& request) {
  std::vector<Proposal> proposals;
  for (size_t t = 0; t < topologies.size(); ++t)
    for (size_t s = 0; s < request.sizes_bytes.size(); ++s) {
      XCCL_ASSIGN_OR_RETURN(Proposal made,
                            Propose(topologies, collective, request.pipeline, request.sizes_bytes[s], t, s));
      if (std::ranges::none_of(proposals, [&](const Proposal& p) { return SameWork(p.plan, made.plan); }))
        proposals.push_back(std::move(made));
    }
  return proposals;
}

// Returns plans for a root of the same kind as the root of `models`. Each has the size and the topology of
// its model. It also has the model's engine, unless that engine makes no such plan itself.
StatusOr<std::vector<Proposal>> ProposeAlike(std::span<const Topology> topologies,
                                             const Collective& collective, const TuneRequest& request,
                                             std::span<const Proposal> models) {
  std::vector<Proposal> proposals;
  for (const Proposal& model : models) {
    const int64_t size_bytes = request.sizes_bytes[model.size];
    XCCL_ASSIGN_OR_RETURN(Proposal made, Propose(topologies, collective, request.pipeline, size_bytes,
                                                 model.topology, model.size));
    if (made.plan.made_by.engine != model.plan.made_by.engine) {
      PlanOptions options = request.pipeline;
      options.engine = model.plan.made_by.engine;
      StatusOr<Proposal> same =
          Propose(topologies, collective, options, size_bytes, model.topology, model.size);
      if (same.ok()) made = *std::move(same);  // else only auto makes such a plan
    }
    proposals.push_back(std::move(made));
  }
  return proposals;
}

// Returns the simulated time on the plan's topology; infinity if the program cannot be simulated.
double PredictedUs(const Plan& plan, int64_t size_bytes, const PlanOptions& options) {
  const StatusOr<Simulation> simulation =
      SimulateProgram(plan.program->program, plan.program->collective, plan.topology,
                      {.size_bytes = size_bytes,
                       .model = options.request.model,
                       .machine = options.machine ? &*options.machine : nullptr});
  return simulation.ok() ? PsToUs(simulation->time_ps) : std::numeric_limits<double>::infinity();
}

// Collectives that differ only in their roots, and whose roots are alike. proposals[i] are those of the i-th
// collective. Proposals with the same index in all lists are by one engine, except as ProposeAlike says.
struct Alike {
  std::vector<size_t> collectives;  // indices into the request's collectives
  std::vector<std::vector<Proposal>> proposals;
};

// The proposal that is chosen for a size, and its times for each of the alike collectives.
struct Choice {
  size_t proposal = 0;
  std::vector<Measured> measured;
  std::vector<double> predicted_us;
};

// Chooses the proposal whose times have the least sum over the collectives.
StatusOr<Choice> Choose(const Alike& alike, int64_t size_bytes, const PlanOptions& options,
                        const Measure& measure) {
  const size_t count = alike.proposals[0].size();
  std::vector<std::vector<double>> predicted(count);
  std::vector<double> sums(count, 0);
  for (size_t i = 0; i < count; ++i)
    for (const std::vector<Proposal>& of_one : alike.proposals) {
      predicted[i].push_back(PredictedUs(of_one[i].plan, size_bytes, options));
      sums[i] += predicted[i].back();
    }
  const double best = *std::ranges::min_element(sums);
  Choice choice;
  double least_us = std::numeric_limits<double>::infinity();
  for (size_t i = 0; i < count; ++i) {
    const bool is_predicted = !measure || options.machine.has_value();
    if (is_predicted && sums[i] > kMaxPredictedRatio * best) continue;
    std::vector<Measured> measured;
    double sum_us = 0;
    for (size_t m = 0; m < alike.proposals.size(); ++m) {
      measured.push_back({predicted[i][m]});
      if (measure) {
        XCCL_ASSIGN_OR_RETURN(measured[m], measure(*alike.proposals[m][i].plan.program, size_bytes));
      }
      sum_us += measured[m].us;
    }
    if (sum_us >= least_us) continue;
    least_us = sum_us;
    choice = {i, std::move(measured), std::move(predicted[i])};
  }
  return choice;
}

// Returns the collectives in groups. Collectives of one group differ only in their roots, and a symmetry of
// each topology maps these roots to each other.
std::vector<std::vector<size_t>> GroupsOfAlike(std::span<const Topology> topologies,
                                               std::span<const Collective> collectives) {
  std::vector<SymmetryGroup> symmetries;
  const bool has_roots =
      std::ranges::any_of(collectives, [](const Collective& c) { return c.spec().root.has_value(); });
  for (const Topology& topology : topologies)
    if (has_roots) symmetries.push_back(FindTranslations(topology));
  const auto are_alike = [&](const CollectiveSpec& a, CollectiveSpec b) {
    const std::optional<Rank> root = std::exchange(b.root, a.root);
    return root && a == b && std::ranges::all_of(symmetries, [&](const SymmetryGroup& group) {
             return group.OrbitOf(*a.root) == group.OrbitOf(*root);
           });
  };
  std::vector<std::vector<size_t>> groups;
  for (size_t c = 0; c < collectives.size(); ++c) {
    const CollectiveSpec& spec = collectives[c].spec();
    const bool all_ranks = std::ssize(spec.ranks) == topologies[0].num_ranks();
    const auto same = std::ranges::find_if(groups, [&](const std::vector<size_t>& group) {
      return all_ranks && are_alike(collectives[group[0]].spec(), spec);
    });
    if (same == groups.end())
      groups.push_back({c});
    else
      same->push_back(c);
  }
  return groups;
}

PlanBookEntry EntryOf(const Plan& plan, int64_t size_bytes) {
  std::string size = FormatSize(size_bytes);
  PlanBookEntry entry;
  entry.collective = plan.collective.kind();
  entry.ranks = plan.topology.num_ranks();
  entry.root = plan.collective.spec().root;
  const std::string root = entry.root ? "-root" + std::to_string(entry.root->value) : "";
  entry.file = plan.collective.name() + root + "-" + size + ".plan.json";
  entry.in_place = plan.program->program.in_place ? InPlaceMode::kBoth : InPlaceMode::kNever;
  return entry;
}

}  // namespace

int64_t LastNearerTo(int64_t size_bytes, int64_t next_bytes) {
  return static_cast<int64_t>(std::sqrt(static_cast<double>(size_bytes) * static_cast<double>(next_bytes)));
}

Status WriteBook(const std::vector<PlanBookEntry>& entries, std::span<const Plan> plans,
                 const std::optional<MachineModel>& machine, const std::string& directory) {
  for (size_t i = 0; i < plans.size(); ++i)
    XCCL_RETURN_IF_ERROR(WritePlan(plans[i], directory + "/" + entries[i].file));
  const std::string model = directory + "/machine.json";
  std::error_code ignored;
  if (machine)
    XCCL_RETURN_IF_ERROR(WriteMachineModel(*machine, model));
  else
    std::filesystem::remove(model, ignored);  // no error if there is none
  return WritePlanBook({directory, entries});
}

namespace {

// The tuned plans of one collective.
struct TunedCollective {
  std::vector<PlanBookEntry> entries;
  std::vector<Plan> plans;
  std::vector<TunedRow> rows;
};

// Adds the row of the next size. Also adds an entry for the chosen plan, unless the size before has the same
// plan (`is_another` is false).
void AddSize(const TuneRequest& request, const Collective& collective, size_t size, const Proposal& chosen,
             const TunedRow& times, bool is_another, TunedCollective& tuned) {
  const int64_t size_bytes = request.sizes_bytes[size];
  if (is_another) {
    PlanBookEntry entry = EntryOf(chosen.plan, size_bytes);
    if (size > 0) {
      tuned.entries.back().max_bytes = LastNearerTo(request.sizes_bytes[size - 1], size_bytes);
      entry.min_bytes = *tuned.entries.back().max_bytes + 1;
    }
    tuned.entries.push_back(std::move(entry));
    tuned.plans.push_back(chosen.plan);
  }
  TunedRow row = times;
  row.collective = collective.name();
  row.engine = chosen.plan.made_by.engine;
  row.file = tuned.entries.back().file;
  row.topology = chosen.plan.topology.name();
  row.root = collective.spec().root;
  row.size_bytes = size_bytes;
  row.threadblocks = chosen.threadblocks;
  tuned.rows.push_back(std::move(row));
}

// Tunes collectives whose roots are alike.
Status TuneAlike(std::span<const Topology> topologies, const TuneRequest& request, const Measure& measure,
                 Alike alike, std::vector<TunedCollective>& tuned) {
  for (const size_t c : alike.collectives) {
    const Collective& collective = request.collectives[c];
    XCCL_ASSIGN_OR_RETURN(std::vector<Proposal> proposals,
                          alike.proposals.empty()
                              ? ProposeAll(topologies, collective, request)
                              : ProposeAlike(topologies, collective, request, alike.proposals[0]));
    alike.proposals.push_back(std::move(proposals));
  }
  std::optional<size_t> last;
  for (size_t s = 0; s < request.sizes_bytes.size(); ++s) {
    XCCL_ASSIGN_OR_RETURN(const Choice choice,
                          Choose(alike, request.sizes_bytes[s], request.pipeline, measure));
    for (size_t m = 0; m < alike.collectives.size(); ++m) {
      const size_t c = alike.collectives[m];
      TunedRow times;
      times.measured_us = choice.measured[m].us;
      times.spread = choice.measured[m].spread;
      times.samples = choice.measured[m].samples;
      times.predicted_us = choice.predicted_us[m];
      AddSize(request, request.collectives[c], s, alike.proposals[m][choice.proposal], times,
              last != choice.proposal, tuned[c]);
    }
    last = choice.proposal;
  }
  return OkStatus();
}

}  // namespace

StatusOr<Tuned> Tune(std::span<const Topology> topologies, const TuneRequest& request,
                     const Measure& measure) {
  std::vector<TunedCollective> by_collective(request.collectives.size());
  size_t done = 0;
  for (const std::vector<size_t>& group : GroupsOfAlike(topologies, request.collectives)) {
    XCCL_RETURN_IF_ERROR(TuneAlike(topologies, request, measure, {group, {}}, by_collective));
    for (size_t c = 0; c < group.size() && request.on_collective; ++c)
      request.on_collective(++done, request.collectives.size());
  }
  Tuned tuned;
  for (TunedCollective& one : by_collective) {
    std::ranges::move(one.entries, std::back_inserter(tuned.entries));
    std::ranges::move(one.plans, std::back_inserter(tuned.plans));
    std::ranges::move(one.rows, std::back_inserter(tuned.rows));
  }
  return tuned;
}

}  // namespace xccl
