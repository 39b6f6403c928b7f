// Runs all passes or, if there are too many, extrapolates a steady state linearly.
#include "ir/simulate/simulate_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/analysis/program_index.h"
#include "ir/machine_model.h"
#include "ir/simulate/program_run.h"
#include "ir/sizes.h"

namespace xccl {
namespace {

constexpr int64_t kExactWork = 1 << 22;  // instructions × passes that are simulated to the last
constexpr int64_t kSteadyPasses = 16;    // passes, times instances, after which a steady state is looked for
constexpr double kSteady = 0.001;        // rates that differ by a smaller fraction count as equal

// Returns the number of passes as a real number, since the last pass may be shorter than a whole one.
double RealPasses(const ProgramSetting& setting) {
  double real_passes = 0;
  for (int32_t c = 0; c < setting.collective.num_chunks(); ++c) {
    const int64_t elements = setting.sizes.ChunkElements(ChunkId(c));
    const Slice slice = SliceOf(elements, setting.sizes.element_bytes(), setting.passes, 0);
    if (slice.end > 0)
      real_passes = std::max(real_passes, static_cast<double>(elements) / static_cast<double>(slice.end));
  }
  return real_passes;
}

}  // namespace

int64_t OnProgramLine(int64_t before, int64_t last, const ProgramRuns& runs) {
  if (!runs.extrapolated) return last;
  const int64_t passes = runs.longest / 2;
  const double rate = static_cast<double>(last - before) / static_cast<double>(passes);
  return last + std::llround(rate * (runs.real_passes - static_cast<double>(runs.longest)));
}

StatusOr<ProgramRuns> RunAllPasses(const ProgramSetting& setting) {
  ProgramRuns runs;
  const int32_t passes = setting.passes;
  const int64_t work = std::max<int64_t>(1, setting.index.size()) * passes;
  const int64_t warm = kSteadyPasses * setting.program.instances;
  if (work <= kExactWork || passes <= 4 * warm) {
    runs.longest = passes;
    XCCL_ASSIGN_OR_RETURN(runs.time_ps, RunProgram(setting, passes, false));
    return runs;
  }
  runs.extrapolated = true;
  runs.real_passes = RealPasses(setting);
  const auto time_of = [&](int64_t count) { return RunProgram(setting, static_cast<int32_t>(count), true); };
  XCCL_ASSIGN_OR_RETURN(int64_t before, time_of(warm));
  XCCL_ASSIGN_OR_RETURN(int64_t now, time_of(2 * warm));
  double rate = static_cast<double>(now - before) / static_cast<double>(warm);
  int64_t done = 2 * warm;
  while (now < kForeverPs && 2 * done < passes) {
    before = now;
    XCCL_ASSIGN_OR_RETURN(now, time_of(2 * done));
    const double last_rate = rate;
    rate = static_cast<double>(now - before) / static_cast<double>(done);
    done *= 2;
    if (std::abs(rate - last_rate) <= kSteady * rate) break;
  }
  runs.longest = static_cast<int32_t>(done);
  runs.time_ps = now < kForeverPs ? OnProgramLine(before, now, runs) : now;
  return runs;
}

Simulation SimulationOf(const ProgramSetting& setting, const ProgramRuns& runs) {
  Simulation simulation;
  simulation.size_bytes = setting.sizes.size_bytes();
  simulation.segment_bytes = setting.program.segment_bytes;
  const MachineModel* machine = setting.options.machine;
  simulation.time_ps = runs.time_ps + (machine != nullptr ? machine->launch_ps : 0);
  return simulation;
}

Status CheckPaths(const Program& program) {
  for (const Connection& connection : program.connections)
    if (connection.path.empty())
      return InvalidInput(fmt::format("the connection from rank {} to rank {} has no path; expected links",
                                      connection.src.value, connection.dst.value));
  return OkStatus();
}

StatusOr<Simulation> SimulateProgram(const Program& program, const Collective& collective,
                                     const Topology& topology, const SimulateOptions& options) {
  XCCL_RETURN_IF_ERROR(CheckPaths(program));
  const CollectiveSizes sizes(collective, options.size_bytes);
  const ProgramIndex index(program);
  const ProgramSetting setting{
      program, collective, sizes, index, topology, options, NumPasses(program, sizes)};
  XCCL_ASSIGN_OR_RETURN(const ProgramRuns runs, RunAllPasses(setting));
  return SimulationOf(setting, runs);
}

}  // namespace xccl
