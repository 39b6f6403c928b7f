// For each collective:
// 1. Plan every size (pipeline/tune.h), without measurements.
// 2. For every size, compute the time of NCCL's choice by NCCL's own model. Keep a plan that gains enough.
// 3. Add an entry to the book for each run of kept sizes with one plan.
// 4. Simulate NCCL's rings and trees with each protocol. Add rows to the tuner's table for the sizes at which
//    the fastest of them gains enough over NCCL's choice.
#include "pipeline/nccl/book.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <span>
#include <utility>

#include "base/files.h"
#include "base/units.h"
#include "ir/simulate/simulate_program.h"
#include "pipeline/nccl/steer.h"
#include "pipeline/pipeline.h"

namespace xccl::nccl {
namespace {

// Adds one book entry for each run of neighbouring kept sizes that share a plan.
void Keep(const TuneRequest& request, const Tuned& tuned, std::span<const BookRow> rows, Book& book) {
  const std::vector<int64_t>& sizes = request.sizes_bytes;
  for (size_t s = 0; s < rows.size(); ++s) {
    if (!rows[s].kept) continue;
    const bool joined = s > 0 && rows[s - 1].kept;
    const bool same = joined && rows[s - 1].ours.file == rows[s].ours.file;
    if (!same) {
      const auto from = std::ranges::find(tuned.entries, rows[s].ours.file, &PlanBookEntry::file);
      PlanBookEntry entry = *from;
      entry.min_bytes = s == 0 ? 0 : sizes[s];
      if (joined) {
        book.entries.back().max_bytes = LastNearerTo(sizes[s - 1], sizes[s]);
        entry.min_bytes = *book.entries.back().max_bytes + 1;
      }
      if (std::ranges::find(book.entries, entry.file, &PlanBookEntry::file) == book.entries.end())
        book.plans.push_back(tuned.plans[static_cast<size_t>(from - tuned.entries.begin())]);
      book.entries.push_back(std::move(entry));
    }
    book.entries.back().max_bytes = sizes[s];
  }
}

// Simulates NCCL's rings and trees with plans of the engines of the same names.
class Simulated {
 public:
  Simulated(const Topology& topology, const Collective& collective, const Graphs& graphs,
            const PlanOptions& options)
      : topology_(topology), collective_(collective), graphs_(graphs), options_(options) {}

  // Returns the simulated microseconds of the algorithm with the protocol. Simulates only rings and, if every
  // host has one GPU, trees. Returns nullopt for other algorithms, or if the algorithm's engine has no plan.
  std::optional<double> Us(nccl_tuner::Algorithm algorithm, nccl_tuner::Protocol protocol,
                           int64_t size_bytes) {
    // Trees need one GPU per host: within a host NCCL's trees are chains, which no engine makes.
    const bool tree = algorithm == nccl_tuner::Algorithm::kTree && graphs_.nodes == graphs_.ranks;
    if (algorithm != nccl_tuner::Algorithm::kRing && !tree) return std::nullopt;
    const Plan* plan = PlanOf(algorithm, size_bytes);
    if (plan == nullptr) return std::nullopt;
    LoweredProgram lowered = *plan->program;
    lowered.program.protocol = protocol == nccl_tuner::Protocol::kLl      ? Protocol::kLl
                               : protocol == nccl_tuner::Protocol::kLl128 ? Protocol::kLl128
                                                                          : Protocol::kSimple;
    const StatusOr<Simulation> simulation = SimulateProgram(
        lowered.program, lowered.collective, topology_,
        {.size_bytes = size_bytes, .model = options_.request.model, .machine = &*options_.machine});
    if (!simulation.ok()) return std::nullopt;
    return PsToUs(simulation->time_ps);
  }

 private:
  const Plan* PlanOf(nccl_tuner::Algorithm algorithm, int64_t size_bytes) {
    const auto [at, added] = plans_.try_emplace({algorithm, size_bytes});
    if (added) {
      PlanOptions options = options_;
      options.engine = nccl_tuner::ToString(algorithm);
      options.request.size_bytes = size_bytes;
      options.lower = true;
      StatusOr<PlanResult> made = MakePlan(topology_, collective_, options);
      if (made.ok() && made->plan.program) at->second = std::move(made->plan);
    }
    return at->second ? &*at->second : nullptr;
  }

  const Topology& topology_;
  const Collective& collective_;
  const Graphs& graphs_;
  const PlanOptions& options_;
  std::map<std::pair<nccl_tuner::Algorithm, int64_t>, std::optional<Plan>> plans_;
};

// Returns the fastest algorithm and protocol, if they beat NCCL's own choice by the factor `least_gain`.
std::optional<Choosing> BetterThan(Simulated& simulated, const std::vector<Estimate>& offered,
                                   const Estimate& choice, int64_t size_bytes, double least_gain) {
  const std::optional<double> own = simulated.Us(choice.algorithm, choice.protocol, size_bytes);
  if (!own) return std::nullopt;
  double best_us = *own / least_gain;
  std::optional<Choosing> best;
  for (const Estimate& other : offered) {
    const std::optional<double> us = simulated.Us(other.algorithm, other.protocol, size_bytes);
    if (!us || *us >= best_us) continue;
    best_us = *us;
    best = Choosing{other.algorithm, other.protocol};
  }
  return best;
}

}  // namespace

void SteerBySimulation(const Topology& topology, const Collective& collective, const TuneRequest& request,
                       const Graphs& graphs, double least_gain, std::vector<nccl_tuner::Row>& steering) {
  Simulated simulated(topology, collective, graphs, request.pipeline);
  const nccl_tuner::Collective kind = *CollectiveOf(collective.kind());
  std::vector<Better> sizes;
  for (const int64_t size : request.sizes_bytes) {
    const std::vector<Estimate> offered = Estimates(graphs, kind, size);
    sizes.push_back({size, BetterThan(simulated, offered, Choice(graphs, kind, size), size, least_gain)});
  }
  AddRows(kind, graphs.nodes, graphs.ranks, sizes, steering);
}

StatusOr<Book> MakeBook(const Topology& topology, const TuneRequest& request, double least_gain) {
  XCCL_ASSIGN_OR_RETURN(const Graphs graphs, FindGraphs(topology, *request.pipeline.machine));
  for (const Collective& collective : request.collectives)
    if (!CollectiveOf(collective.kind()))
      return InvalidInput(
          fmt::format("{}: NCCL has no model of its time; expected broadcast, reduce, allgather, "
                      "reduce_scatter or allreduce",
                      collective.name()));
  Book book;
  size_t done = 0;
  for (const Collective& collective : request.collectives) {
    TuneRequest one = request;
    one.collectives = {collective};
    one.on_collective = {};
    XCCL_ASSIGN_OR_RETURN(const Tuned tuned, Tune(std::span(&topology, 1), one, {}));
    const size_t first = book.rows.size();
    for (const TunedRow& row : tuned.rows) {
      const Estimate nccl = Choice(graphs, *CollectiveOf(collective.kind()), row.size_bytes);
      book.rows.push_back({row, nccl, nccl.us >= least_gain * row.predicted_us});
    }
    Keep(request, tuned, std::span(book.rows).subspan(first), book);
    // The table has no column for the root, so only the collective's first root adds rows.
    const bool again = std::ranges::any_of(std::span(book.rows).first(first), [&](const BookRow& row) {
      return row.ours.collective == collective.name();
    });
    if (!again) SteerBySimulation(topology, collective, request, graphs, least_gain, book.steering);
    if (request.on_collective) request.on_collective(++done, request.collectives.size());
  }
  return book;
}

StatusOr<PlanOptions> OptionsOfBook(const Topology& topology, const PlanOptions& options) {
  PlanOptions on_machine = OnMachineOf(topology, options);
  XCCL_RETURN_IF_ERROR(GenerationOf(topology).status());
  if (!on_machine.machine)
    return InvalidInput(fmt::format("{}: no machine model of its GPUs, {}; hint: --machine=FILE",
                                    topology.name(), topology.gpu_arch()));
  return on_machine;
}

Status WriteBookAndTable(const Book& book, const MachineModel& machine, const std::string& directory) {
  XCCL_RETURN_IF_ERROR(
      WriteFileAtomically(directory + "/nccl-tuner.table", nccl_tuner::WriteTable(book.steering)));
  return WriteBook(book.entries, book.plans, machine, directory);
}

}  // namespace xccl::nccl
