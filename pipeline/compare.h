// Engines side by side on one topology and collective, over sizes.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
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
  Compared on;
  std::vector<TimedPlan> times;       // by size, then by time
  std::vector<std::string> left_out;  // "ring: reason", engines that could not take part
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
// more than a limit, and that more than engines that do not serve the request.
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

// Told the comparison when a size has ended, with the rows of that size alone; an error ends it.
using OnSize = std::function<Status(const Comparison& of_size)>;

// Chooses engines as EnginesToCompare does. Other plans are timed as those of engines are: by their programs
// on a machine, else by their schedules. Sizes that the deadline cuts off are among what is left out. Errors:
// the engines' reasons where none has a plan for any size, kLimit where the deadline is the reason.
StatusOr<Comparison> Compare(const Topology& topology, const Collective& collective,
                             const std::vector<std::string>& engines, const std::vector<int64_t>& sizes,
                             const PlanOptions& options, const OnSize& on_size = {},
                             std::span<const OtherPlan> others = {});
// Why a comparison has no row. kLimit where the deadline has passed.
Status NothingToCompare(const Compared& on, const LeftOut& left_out, const Deadline& deadline);

}  // namespace xccl
