// Decides questions (chunks, steps, rounds) about one request: by arithmetic, by a witness (another engine's
// plan), or by the solver. A question is feasible if a schedule takes at most its steps and rounds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "synth/common/synthesizer.h"
#include "synth/smt/bounds.h"
#include "synth/smt/prices.h"
#include "synth/smt/question.h"
#include "synth/smt/schedule.h"

namespace xccl::smt {

// The most ranks of a machine that is served, and the most elements of its group of translations.
inline constexpr int32_t kMostRanks = 64;
// The most chunks per part for which a decider that is not thorough may search all schedules of sums. Also
// the most chunks per part that the engine tries if the request sets no number. For an allreduce the engine
// tries up to this number × the number of ranks.
inline constexpr int32_t kFewChunks = 8;
// If a request leads to several questions, each search for a question may use 1/kShare of the work left.
inline constexpr int32_t kShare = 16;

struct Question {
  int32_t chunks = 0, steps = 0;
  int64_t rounds = 0;
};

// The reason why a question has no schedule, and the fewest steps or rounds that the reason does not forbid.
struct Refusal {
  ProvedBy by = ProvedBy::kNothing;
  std::string text = {};  // "rank 4 is 4 links from rank 0"
  std::optional<int32_t> steps = {};
  std::optional<int64_t> rounds = {};
};

struct Outcome {
  Verdict verdict = Verdict::kStopped;
  std::optional<Synthesis> made = {};   // if feasible
  std::string how = {};                 // found by: a witness's engine, or "z3"
  std::optional<Refusal> refusal = {};  // if infeasible
  bool divergent = false;  // kStopped because a schedule was found that gives ranks different roundings
};

// How the collective is put to the solver.
enum class Form : uint8_t {
  kNothing,  // every rank holds at the start what it needs: no question
  kSpread,   // copies
  kGather,   // sums, each for one rank: copies on the reversed machine, run backwards
  kSums,     // all other sums, as sets of contributions: allreduce, some user-defined tables
};

class Decider {
 public:
  // Makes a decider. The request and the engines must outlive it. Plans of the engines with is_witness are
  // the witnesses. The limit of work counts from this call on; the deadline is an absolute time. Errors:
  // kInvalidInput if a sum of kSums has more than 64 contributions.
  static StatusOr<std::unique_ptr<Decider>> Create(const SynthesisRequest& request,
                                                   std::span<const Engine> engines);

  Form form() const { return form_; }
  // The machine that the solver sees. Its links are reversed for kGather.
  const Machine& machine() const { return machine_; }
  // The translations that map the copy problem to itself. For kSums: all translations if the collective is an
  // allreduce of all ranks, otherwise none.
  const std::vector<Image>& images() const { return images_; }

  int32_t LeastSteps() const { return farthest_.steps; }
  // Returns the number of steps, at least LeastSteps(), at which a search should begin. It may be larger for
  // an allreduce whose sums must be rounded equally on all ranks.
  int32_t FirstSteps() const;
  // Returns the fewest rounds that arithmetic allows in `steps` steps. Requires steps >= LeastSteps().
  int64_t LeastRounds(int32_t steps, int32_t chunks);
  // Returns a number of rounds that is enough for every schedule of `steps` steps.
  int64_t MostRounds(int32_t steps, int32_t chunks) const;
  // Returns a bound on the rounds for one chunk per part, from cuts and prices alone. Without `steps` the
  // bound holds for any number of steps.
  std::pair<RoundsBound, ProvedBy> BoundOf(std::optional<int32_t> steps);
  // Returns BoundOf(steps), or a higher bound for an allreduce of few ranks. Z3 helps to find the prices that
  // prove the higher bound. That takes seconds, and up to half of the work that is left. Returns nullopt if
  // it is proved that no number of rounds is enough in `steps` steps.
  std::optional<std::pair<RoundsBound, ProvedBy>> BestBoundOf(int32_t steps);
  // Returns the reason if arithmetic refutes the question; otherwise nullopt.
  std::optional<Refusal> Forbidden(const Question& question);
  // Decides the question. Copies use about `work` of the work that is left; for sums, each search uses at
  // most `work`. A schedule in the outcome takes at most the steps and rounds of the question.
  StatusOr<Outcome> Ask(const Question& question, int64_t work);
  const std::vector<Witness>& WitnessesOf(int32_t chunks);
  // Returns constraints of a refuted question that no schedule meets together, such as "load of 0->4; needs
  // of rank 4; rounds". Returns "" if none were found.
  std::string Conflict(const Question& question);

  // A decider that is not thorough never searches all schedules of sums with more than kFewChunks chunks per
  // part. For an allreduce of all ranks with equal roundings it searches only owner trees. In both cases,
  // only bounds refute a question.
  void SetThorough(bool thorough) { thorough_ = thorough; }

  // Returns about the number of variables of a question with these chunks and steps: for copies without
  // symmetry, for an allreduce of all ranks by owner trees, for other sums with one chunk per part. A
  // question of more than kMostVariables variables is not asked.
  int64_t SizeOf(int32_t chunks, int32_t steps);
  static constexpr int64_t kMostVariables = 400'000;

  int64_t work_left() const { return left_; }
  int64_t work_limit() const { return work_; }
  bool TimeIsUp() const { return deadline_(); }
  bool IsInterrupted() const { return deadline_.IsInterrupted(); }
  bool IsOver() const { return left_ <= 0 || TimeIsUp(); }
  void Say(const std::string& what) const {
    if (request_.progress) request_.progress(what);
  }
  int64_t too_large() const { return too_large_; }  // fewest variables of a too large question; 0: none
  const SynthesisRequest& request() const { return request_; }

 private:
  Decider(const SynthesisRequest& request, std::span<const Engine> engines, Topology reversed, Form form);
  bool IsCopies() const { return form_ == Form::kSpread || form_ == Form::kGather; }
  // Requires: IsCopies().
  const CopyProblem& ProblemOf(int32_t chunks);
  RoundsBound PricesOf(std::optional<int32_t> steps);
  SolveLimits LimitsOf(int64_t work) const;
  bool IsTooLarge(int64_t size);
  StatusOr<Outcome> Answered(const Question& question, int64_t work);
  StatusOr<Outcome> AskCopies(const Question& question, int64_t work);
  StatusOr<Outcome> AskSums(const Question& question, int64_t work);
  StatusOr<Verdict> AskForSums(SolverQuestion question, int32_t chunks, int64_t work, Outcome& outcome);
  Synthesis Wrap(int32_t chunks, Schedule schedule) const;

  const SynthesisRequest& request_;
  const std::span<const Engine> engines_;
  const Topology reversed_;
  const Form form_;
  const Topology& topology_;  // of machine_: reversed for kGather
  const Machine machine_;
  const Deadline deadline_;
  const int64_t work_;  // limit of all questions together
  int64_t left_, too_large_ = 0;
  const Farthest farthest_;
  bool thorough_ = true;
  std::vector<Image> images_;
  std::map<int32_t, CopyProblem> problems_;            // by chunks
  std::map<int32_t, std::vector<Witness>> witnesses_;  // by chunks
  std::map<int32_t, RoundsBound> prices_;              // by steps; 0: any number of steps
};

}  // namespace xccl::smt
