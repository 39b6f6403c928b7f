// Compares the plans of several engines over sizes, on one topology or on several topologies.
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
#include "pipeline/job_calls.h"
#include "pipeline/plan_result.h"
#include "pipeline/predict.h"

namespace xccl {

// The problem for which engines are compared.
struct Compared {
  std::string collective, topology, model;
  std::string machine = {};  // source of the machine model; empty: schedules are timed, not programs
};

struct Comparison {
  std::string title;
  Compared on;                       // with several topologies: only the fields that all of them share
  std::vector<PlanTime> times;       // by size, then by time
  std::vector<std::string> skipped;  // what has no row, and wrong plans: "ring: reason"
  // Remarks about measured rows, and about machines that are timed on ideal links because one has no model.
  std::vector<std::string> notes = {};
  std::vector<Compared> machines = {};  // one per topology that is compared; empty: one topology
  // Lengths that are known before the first row: the longest name that a row may have, such as
  // "auto (recursive-doubling, reordered)", and the longest text of a size.
  size_t longest_name = 0, longest_size = 0;
};

// Returns the name of a row: "ring", "auto (ring)", or "auto (ring, finer)" for a variation of ring's plan.
std::string NameOfRow(const PlanTime& timed);

// The engines to compare, and lines about engines that cannot serve the collective.
struct ComparedEngines {
  std::vector<std::string> names;
  std::vector<std::string> skipped;  // "ring, tree: not for alltoall"
};

// Returns the engines that `wanted` names. If `wanted` is empty, returns all engines for the collective
// except those that may search for long (smt). If `wanted` contains "all", returns all engines for the
// collective. Errors: kUsage with "did you mean".
StatusOr<ComparedEngines> EnginesToCompare(const std::vector<std::string>& wanted,
                                           const Collective& collective);

// The engines, sizes and machines that get no row, each with its reason, and the wrong plans of engines.
// `code` is the error code if no row is left. A proof that there is no plan outranks a limit; a limit
// outranks an engine's bug; a bug outranks an engine that does not serve the request.
struct Skipped {
  std::vector<std::string> lines;
  StatusCode code = StatusCode::kInvalidInput;
};
// Adds the line "NAME: why", unless `skipped` has this line, and raises the code to that of `why`.
void Skip(std::string_view name, const Status& why, Skipped& skipped);

// A plan for the same collective and topology that is compared with the plans of the engines at all sizes.
struct OtherPlan {
  std::string name;
  Plan plan;  // with a program
};

// Measured times of the collective that is compared. `time_ps` maps the size that ran to a time.
struct MeasuredTimes {
  std::string name;     // "measured: FILE"
  std::string made_by;  // "nccl-tests", "rccl-tests" or "a job"
  std::string note;     // tells the user what was measured
  std::map<int64_t, int64_t> time_ps;
  std::map<int64_t, int64_t> calls = {};  // by size: how often a job called it; empty: a benchmark
};
// Returns the measured times of those runs of an nccl-tests file that can be compared. A run gets the name
// "measured: NAME". If several runs can be compared, the run's line in the file follows. The fastest of
// several rows of one size counts. Rows with wrong elements are ignored. Leaves out runs of another number of
// ranks, runs for which the file tells another collective or root, and runs without any of the sizes; a note
// says so. Errors: kInvalidInput with the first reason if no run is left. Requires: at least one run.
StatusOr<std::vector<MeasuredTimes>> MeasuredBeside(const std::vector<NcclTestsRun>& runs,
                                                    const std::string& name, const std::string& file,
                                                    const Collective& collective,
                                                    const std::vector<int64_t>& sizes);

// Returns at most `most` sizes at which a job calls the collective, ascending. Chooses the sizes whose calls
// take the most time. If one of the sizes has no times, chooses the sizes whose calls have the most bytes.
std::vector<int64_t> SizesOfJob(const JobCalls& job, const Collective& collective, size_t most);
// Returns the mean times of a job's calls of the collective, at the sizes that are compared. The note lists
// the sizes whose calls have no times. Errors: kInvalidInput if the job has no call of the collective with
// this root and number of ranks, or no such call at any of the sizes.
StatusOr<MeasuredTimes> MeasuredByJob(const JobCalls& job, const std::string& name, const std::string& file,
                                      const Collective& collective, const std::vector<int64_t>& sizes);

// Returns the length of the longest name that a row of these engines may have.
size_t LongestNameOf(const std::vector<std::string>& engines, CollectiveKind kind);
// Returns the length of the longest SizeText.
size_t LongestSizeOf(const std::vector<int64_t>& sizes);

// Called after each size that has rows, with the rows of this size only. An error ends the comparison.
using OnSize = std::function<Status(const Comparison& of_size)>;

// Plans every size by MakePlan with each engine that EnginesToCompare chooses. With a machine model
// (OnMachineOf), the plans and `others` are timed as programs; otherwise as schedules, on ideal links. Leaves
// out sizes after the deadline. Errors: those of EnginesToCompare, CheckReachable, LowerBound and `on_size`;
// if there are no rows, that of NothingToCompare.
StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PlanOptions& options, const OnSize& on_size = {},
                             std::span<const OtherPlan> others = {},
                             std::span<const MeasuredTimes> measured = {});
// One of several machines, and the collective on its ranks. Both outlive the comparison.
struct ComparedMachine {
  std::string name;  // distinct from the names of the other machines
  const Topology* topology;
  const Collective* collective;
};
// Compares auto and the engines on each machine; if `engines` is empty, auto alone. If the options ask for
// each machine's own model and a machine has none, all machines are timed on ideal links, and a note says so.
// `on_size` receives the rows of all machines for one size. Errors: that of NothingToCompare if no machine
// has a row; those of `on_size`; kUsage, kBug and kSystem of Compare on any machine.
StatusOr<Comparison> CompareMachines(std::span<const ComparedMachine> machines,
                                     const std::vector<std::string>& engines,
                                     const std::vector<int64_t>& sizes, const PlanOptions& options,
                                     const OnSize& on_size = {});

// Returns one line for each machine that has a machine model. The line names the model: "dgx-h100: times of
// programs on a machine: NCCL ...". Returns no lines if the machines are timed on ideal links.
std::vector<std::string> TimesOfMachines(const Comparison& comparison);

// Returns whether the deadline has passed or the user interrupted the search. If so, adds the line that this
// and all later sizes are left out.
bool IsTooLate(const Deadline& deadline, int64_t size_bytes, Skipped& skipped);
// Returns whether the user interrupted the searches of this size and earlier sizes have rows. If so, adds the
// line of IsTooLate. The size is left out because a search that was interrupted makes worse plans.
bool IsCutShort(const Deadline& deadline, bool has_rows, int64_t size_bytes, Skipped& skipped);
// Returns the error of a comparison without rows: kLimit if the deadline is over, otherwise skipped.code.
Status NothingToCompare(const Compared& on, const Skipped& skipped, const Deadline& deadline);

}  // namespace xccl
