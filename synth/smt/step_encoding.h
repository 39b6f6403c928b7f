// The part that all encodings share: Z3's solver, the number of rounds of each step, and the load of links.
// Only files that use Z3 include this header.
//
// Variables:
//
//   longer(s, k)   step s has more than k rounds, k >= 1
//
// Families of constraints. "rounds" and "load of LINK" are also names in a Core. sent(e,s) stands for every
// chunk that edge e may carry in step s:
//
//   longer order   a step of more than k+1 rounds has more than k rounds: longer(s,k+1) -> longer(s,k)
//   rounds         R - S rounds are left after one round per step: sum over s and k of longer(s,k) <= R - S
//   load of LINK   the chunks on a link fit into the step's rounds: sum of sent(e,s) over e that use the link
//                  <= perRound * (1 + sum over k of longer(s,k))
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

// A Z3 context that records the code of this thread's last failed call. Z3 forgets the code before an
// exception is caught, because destructors call Z3 again.
class Context : public z3::context {
 public:
  Context();
};

// The base class of all encodings. Each encoding adds variables of its own to the solver.
class StepEncoding {
 public:
  struct Options {
    bool named = false;  // a Core can hold every constraint that has a name; slower
    // Each question assumes the number of rounds, even if `named` is false. Z3 then finds copies sooner, and
    // owner trees later.
    bool assume_rounds = true;
  };
  StepEncoding(const Machine& machine, int32_t steps, Options options);
  virtual ~StepEncoding() = default;
  StepEncoding(const StepEncoding&) = delete;
  StepEncoding& operator=(const StepEncoding&) = delete;

  Answer Ask(const SolveLimits& limits, const std::optional<Budget>& budget);

 protected:
  // Returns all sends, in order of steps. Requires that the last answer is feasible.
  virtual std::vector<Send> Decode() const = 0;
  // Appends sent(e,s) of all chunks to `sent`. Appends a variable once for each chunk that it stands for.
  virtual void AddSent(int32_t edge, int32_t step, z3::expr_vector& sent) = 0;

  const Machine& machine() const { return machine_; }
  int32_t steps() const { return steps_; }
  z3::expr_vector None() { return z3::expr_vector(context_); }
  z3::expr Constant(bool value) { return context_.bool_val(value); }
  z3::expr Unmade() { return z3::expr(context_); }  // a variable that is made later, if at all
  z3::expr NewBool() { return context_.bool_const(std::to_string(++variables_).c_str()); }
  void Add(const z3::expr& what, const std::string& name = "");
  // Adds the families of this header. `alike` are images that map the sends to themselves; one constraint
  // serves all capacities that they map to each other. With `translated`, the variable of a send also stands
  // for the send's images, which move other chunks over other edges.
  void AddRoundsAndLoads(int32_t rounds, const std::vector<Image>& alike, bool translated);
  // Returns the variable's value. Requires that the last answer is feasible.
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
  std::vector<z3::expr_vector> longer_;                   // [step][k - 1]
  std::vector<std::pair<std::string, z3::expr>> guards_;  // names and their variables
  int64_t variables_ = 0;
};

// The base class of encodings of sums. Chunks come in runs. A run has one chunk for each image; every chunk
// is the image of the run's first chunk, and only the first has variables:
//
//   adds(c, e, s)     step s adds the data of chunk c at the tail of e to the data at the head of e
//   copies(c, e, s)   step s replaces the data of chunk c at the head of e by the data at the tail of e
class ReductionsInRuns : public StepEncoding {
 public:
  ReductionsInRuns(const Machine& machine, const std::vector<Image>& images, int32_t steps, Options options)
      : StepEncoding(machine, steps, options), images_(images) {}

 protected:
  using Table = std::vector<std::vector<z3::expr>>;
  struct Run {
    Table adds, copies;  // [step][edge]
  };
  // Makes a table of variables. With `unmade`, the entries are empty, and the caller makes each variable on
  // its first use. Z3 then has the variables in order of use.
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
