// The part that all encodings share: Z3's solver, the number of rounds of each step, and the load of links.
// Only for files that include Z3.
//
// Variables:
//
//   longer(s, k)   step s has more than k rounds, k >= 1
//
// Families, with their names in a Core, where sent(e,s) stands for every chunk that edge e may carry in step
// s:
//
//   longer order   more than k+1 rounds are more than k: longer(s,k+1) -> longer(s,k)
//   rounds         beyond one round a step there are R - S: sum over s and k of longer(s,k) <= R - S
//   load of LINK   a link's chunks fit the rounds: sum over e over it of sent(e,s) <= perRound * (1 + sum
//                  over k of longer(s,k))
#pragma once

#include <z3++.h>

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/status.h"
#include "synth/smt/instance.h"
#include "synth/smt/question.h"

namespace xccl::smt {

// A context that remembers what this thread's last failed call to Z3 was. Z3 itself forgets it before an
// exception is caught, since the destructors on the way call Z3 again.
class Context : public z3::context {
 public:
  Context();
};

// An abstract class, since each encoding has variables of its own behind the same solver.
class StepEncoding {
 public:
  struct Options {
    bool named = false;  // every constraint that has a name can be told in a Core; slower
    // The number of rounds is assumed even where nothing is named. Z3 finds
    // copies sooner that way, and owner trees later.
    bool assume_rounds = true;
  };
  StepEncoding(const Machine& machine, int32_t steps, Options options);
  virtual ~StepEncoding() = default;
  StepEncoding(const StepEncoding&) = delete;
  StepEncoding& operator=(const StepEncoding&) = delete;

  Answer Ask(const SolveLimits& limits, const std::optional<Budget>& budget);

 protected:
  // All sends, steps in order. Requires: the last answer is feasible.
  virtual std::vector<Send> Decode() const = 0;
  // Adds sent(e,s) of all chunks that have it, one as often as it stands for a chunk.
  virtual void AddSent(int32_t edge, int32_t step, z3::expr_vector& sent) = 0;

  const Machine& machine() const { return machine_; }
  int32_t steps() const { return steps_; }
  z3::expr_vector None() { return z3::expr_vector(context_); }
  z3::expr Constant(bool value) { return context_.bool_val(value); }
  z3::expr Unmade() { return z3::expr(context_); }  // a variable that is made later, if at all
  z3::expr NewBool() { return context_.bool_const(std::to_string(++variables_).c_str()); }
  void Add(const z3::expr& what, const std::string& name = "");
  // Adds the families above. `alike`: images under which the sends stay the same; one constraint serves all
  // capacities that they take to each other. `translated`: sent(e,s) stands for its images too, other chunks
  // over other edges.
  void AddRoundsAndLoads(int32_t rounds, const std::vector<Image>& alike, bool translated);
  // Requires: the last answer is feasible.
  bool IsTrue(const z3::expr& variable) const { return model_->eval(variable, true).is_true(); }

 private:
  void Assume(const z3::expr& what, const std::string& name);
  void AddLoad(size_t capacity, const std::vector<int32_t>& edges, int32_t step);
  z3::expr Within(const Budget& budget);

  const Machine& machine_;
  const int32_t steps_;
  const Options options_;
  Context context_;
  z3::solver solver_;
  std::optional<z3::model> model_;
  std::vector<z3::expr_vector> longer_;                   // of a step
  std::vector<std::pair<std::string, z3::expr>> guards_;  // with their names
  int64_t variables_ = 0;
};

// Sums. Chunks come in runs of one for each image, each the image of the first, which alone has variables:
//
//   adds(c, e, s)     what the tail of e holds of chunk c is added to what its head holds, in step s
//   copies(c, e, s)   it takes the place of what its head holds
class ReductionsInRuns : public StepEncoding {
 public:
  ReductionsInRuns(const Machine& machine, const std::vector<Image>& images, int32_t steps, Options options)
      : StepEncoding(machine, steps, options), images_(images) {}

 protected:
  using Table = std::vector<std::vector<z3::expr>>;
  struct Run {
    Table adds, copies;  // [step][edge]
  };
  // unmade: variables are made when they are first used, in which order Z3 has them too.
  Table NewTable(int32_t steps, size_t width, bool unmade = false);
  Run NewRun(bool unmade = false);
  const std::vector<Image>& images() const { return images_; }
  std::vector<Run>& runs() { return runs_; }
  void AddSent(int32_t edge, int32_t step, z3::expr_vector& sent) override;

 private:
  std::vector<Send> Decode() const override;

  const std::vector<Image>& images_;
  std::vector<Run> runs_;
};

}  // namespace xccl::smt
