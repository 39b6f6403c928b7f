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
#include "pipeline/pipeline.h"
#include "pipeline/predict.h"

namespace xccl {

// What engines are compared on.
struct Compared {
  std::string collective, topology, model;
  std::string machine = {};  // source of the model of the machine that programs run on; empty: schedules
};

struct Comparison {
  std::string title;
  Compared on;                        // of several topologies: what they share, the others empty
  std::vector<TimedPlan> times;       // by size, then by time
  std::vector<std::string> left_out;  // "ring: reason", engines that could not take part
  std::vector<std::string> notes =
      {};  // what a reader has to know of measured rows and of machines that differ
  std::vector<Compared> machines = {};  // several topologies, by the names that times have; empty: one
};

// The engines to compare, and lines about the others.
struct ComparedEngines {
  std::vector<std::string> names;
  std::vector<std::string> left_out;  // "ring, tree: not for alltoall"
};

// Empty: the engines for this collective without smt, which may search for long; "all": with smt. Error:
// kUsage with "did you mean".
StatusOr<ComparedEngines> EnginesToCompare(const std::vector<std::string>& wanted,
                                           const Collective& collective);

// What is left out and, where nothing is left, the code to exit with: a proof that there is no plan counts
// more than a limit, that more than an engine's bug, and that more than engines that do not serve the
// request.
struct LeftOut {
  std::vector<std::string> lines;
  StatusCode code = StatusCode::kInvalidInput;
};
// Adds "NAME: why", once.
void LeaveOut(std::string_view name, const Status& why, LeftOut& left_out);

// A plan beside those of the engines, for the same collective and topology, at all sizes.
struct OtherPlan {
  std::string name;
  Plan plan;  // with a program
};

// What was measured of the same collective, by real size.
struct MeasuredTimes {
  std::string name;     // "measured: FILE"
  std::string made_by;  // "nccl-tests" or "rccl-tests"
  std::string note;     // what was measured, for people
  std::map<int64_t, int64_t> time_ps;
};
// The runs of a file of nccl-tests beside what is compared, each by itself; `name` is that of its rows,
// without "measured: ", followed by the line of the run where several are compared. The fastest of several
// rows of one size counts, and none with a wrong element. Runs of another collective, root or number of
// ranks, or of none of the sizes, are left out. Notes tell of all that is. Errors: kInvalidInput, with the
// place and the first reason, where no run is left. Requires: at least one run.
StatusOr<std::vector<MeasuredTimes>> MeasuredBeside(const std::vector<NcclTestsRun>& runs,
                                                    const std::string& name, const std::string& file,
                                                    const Collective& collective,
                                                    const std::vector<int64_t>& sizes);

// Told the comparison when a size has ended, with the rows of that size alone; an error ends it.
using OnSize = std::function<Status(const Comparison& of_size)>;

// Chooses engines as EnginesToCompare does. Other plans are timed as those of engines are: by their programs
// on a machine, else by their schedules. Sizes that the deadline cuts off are among what is left out. Errors:
// the engines' reasons where none has a plan for any size, kLimit where the deadline is the reason.
StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PlanOptions& options, const OnSize& on_size = {},
                             std::span<const OtherPlan> others = {},
                             std::span<const MeasuredTimes> measured = {});
// One of several machines, and the collective on its ranks. Both outlive the comparison.
struct ComparedMachine {
  std::string name;  // of its own
  const Topology* topology;
  const Collective* collective;
};
// auto's plan, and those of the engines, on each machine. `on_size` has the rows of all machines at a size.
// Errors: those of Compare where no machine has a row.
StatusOr<Comparison> CompareMachines(std::span<const ComparedMachine> machines,
                                     const std::vector<std::string>& engines,
                                     const std::vector<int64_t>& sizes, const PlanOptions& options,
                                     const OnSize& on_size = {});

// "dgx1: times on ideal links", where the times of several machines are not all of links alone.
std::vector<std::string> TimesOfMachines(const Comparison& comparison);

// Is there no time for this size? Adds a line that it and what follows is left out. Sizes are as asked for.
bool IsTooLate(const Deadline& deadline, int64_t size_bytes, LeftOut& left_out);
// The same of a size that has just ended, where others have rows: an interrupt has cut its searches short,
// and they do not stand beside whole ones.
bool IsCutShort(const Deadline& deadline, bool has_rows, int64_t size_bytes, LeftOut& left_out);
// Why a comparison has no row. kLimit where the deadline has passed.
Status NothingToCompare(const Compared& on, const LeftOut& left_out, const Deadline& deadline);

}  // namespace xccl
