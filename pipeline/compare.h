// Engines side by side on one topology and collective, over sizes; and topologies side by side.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "interchange/traces/nccl_tests.h"
#include "ir/plan.h"
#include "pipeline/plan_result.h"
#include "pipeline/predict.h"

namespace xccl {

// The problem that engines are compared on.
struct Compared {
  std::string collective, topology, model;
  std::string machine = {};  // source of the model of the machine that programs run on; empty: schedules
};

struct Comparison {
  std::string title;
  Compared on;                       // with several topologies only the fields that they share are set
  std::vector<PlanTime> times;       // by size, then by time
  std::vector<std::string> skipped;  // engines that could not take part: "ring: reason"
  // Remarks about measured rows, and about machines whose times are of different kinds.
  std::vector<std::string> notes = {};
  std::vector<Compared> machines = {};  // by the topology names of `times`; empty: there is one topology
};

// The engines to compare, and lines about the engines that are not compared.
struct ComparedEngines {
  std::vector<std::string> names;
  std::vector<std::string> skipped;  // "ring, tree: not for alltoall"
};

// Empty: the engines for this collective without smt, which may search for long; "all": with smt. Error:
// kUsage with "did you mean".
StatusOr<ComparedEngines> EnginesToCompare(const std::vector<std::string>& wanted,
                                           const Collective& collective);

// The engines, sizes and machines that get no row, each with its reason, and the code to exit with where no
// row is left. A proof that there is no plan outranks a limit; a limit outranks an engine's bug; a bug
// outranks an engine that does not serve the request.
struct Skipped {
  std::vector<std::string> lines;
  StatusCode code = StatusCode::kInvalidInput;
};
// Adds "NAME: why", once.
void Skip(std::string_view name, const Status& why, Skipped& skipped);

// A plan that is compared with the engines' plans, for their collective and topology, at all sizes.
struct OtherPlan {
  std::string name;
  Plan plan;  // with a program
};

// Measured times of the collective that is compared, by real size.
struct MeasuredTimes {
  std::string name;     // "measured: FILE"
  std::string made_by;  // "nccl-tests" or "rccl-tests"
  std::string note;     // says to people what was measured
  std::map<int64_t, int64_t> time_ps;
};
// The runs of a file of nccl-tests that can be compared, each by itself. Rows of a run are called
// "measured: NAME", followed by the line of the run where several are compared. The fastest of several rows
// of one size counts; rows with a wrong element do not. Runs of another collective, root or number of ranks,
// or without any of the sizes, are left out, and notes say so. Errors: kInvalidInput, with the place and the
// first reason, where no run is left. Requires: at least one run.
StatusOr<std::vector<MeasuredTimes>> MeasuredBeside(const std::vector<NcclTestsRun>& runs,
                                                    const std::string& name, const std::string& file,
                                                    const Collective& collective,
                                                    const std::vector<int64_t>& sizes);

// Told the comparison when a size has ended, with the rows of that size alone; an error ends it.
using OnSize = std::function<Status(const Comparison& of_size)>;

// Makes every plan by MakePlan, with the engines that EnginesToCompare chooses. All plans, also `others`, are
// timed by their programs where the options have a machine, or else by their schedules on ideal links. Sizes
// that the deadline cuts off are left out. Errors: the engines' reasons where none has a plan for any size,
// kLimit where the deadline is the reason.
StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PlanOptions& options, const OnSize& on_size = {},
                             std::span<const OtherPlan> others = {},
                             std::span<const MeasuredTimes> measured = {});
// One of several machines, and the collective on its ranks. Both outlive the comparison.
struct ComparedMachine {
  std::string name;  // unlike the names of the other machines
  const Topology* topology;
  const Collective* collective;
};
// Compares auto and the engines on each machine. `on_size` is told the rows of all machines at a size.
// Errors: those of Compare where no machine has a row.
StatusOr<Comparison> CompareMachines(std::span<const ComparedMachine> machines,
                                     const std::vector<std::string>& engines,
                                     const std::vector<int64_t>& sizes, const PlanOptions& options,
                                     const OnSize& on_size = {});

// "dgx1: times on ideal links", where the times of several machines are not all of links alone.
std::vector<std::string> TimesOfMachines(const Comparison& comparison);

// Is there no time for this size, as it was asked for? Then adds the line that this size and all that follow
// are left out.
bool IsTooLate(const Deadline& deadline, int64_t size_bytes, Skipped& skipped);
// Has an interrupt cut the searches of this size short, where earlier sizes have rows? Then adds the line
// that IsTooLate adds: plans of searches that were cut short are not compared with plans of whole ones.
bool IsCutShort(const Deadline& deadline, bool has_rows, int64_t size_bytes, Skipped& skipped);
// The error of a comparison without a row. kLimit where the deadline has passed.
Status NothingToCompare(const Compared& on, const Skipped& skipped, const Deadline& deadline);

}  // namespace xccl
