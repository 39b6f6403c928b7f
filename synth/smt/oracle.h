// Questions (chunks, steps, rounds) about one request: refuted by arithmetic, answered by a witness, or
// decided by the solver. Feasible means: with at most so many steps and rounds.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "base/status.h"
#include "synth/common/phases.h"
#include "synth/common/synthesizer.h"
#include "synth/smt/bounds.h"
#include "synth/smt/prices.h"
#include "synth/smt/question.h"
#include "synth/smt/schedule.h"
#include "synth/smt/sums.h"

namespace xccl::smt {

struct Question {
  int32_t chunks = 0, steps = 0;
  int64_t rounds = 0;
};

// Why there is no schedule, and the least steps or rounds that are not forbidden by that.
struct Refusal {
  ProvedBy by = ProvedBy::kNothing;
  std::string text;  // "rank 4 is 4 links from rank 0"
  std::optional<int32_t> steps;
  std::optional<int64_t> rounds;
};

struct Outcome {
  Verdict verdict = Verdict::kStopped;
  std::optional<Synthesis> made;   // where feasible
  std::string how;                 // the witness's engine, or "z3"
  std::optional<Refusal> refusal;  // where infeasible
  bool divergent = false;  // stopped, because all that was found gives ranks different roundings of a sum
};

// How the collective is asked for.
enum class Form : uint8_t {
  kNothing,  // nobody needs what he has not
  kSpread,   // copies
  kGather,   // sums that one rank each needs: copies on the reversed machine, backwards
  kSums,     // sums that several ranks need, user-defined tables: sets of contributions
};

class Oracle {
 public:
  // The request and the engines outlive it; the engines' plans are witnesses. Limits of work and time count
  // from here on.
  static StatusOr<std::unique_ptr<Oracle>> Create(const SynthesisRequest& request,
                                                  std::span<const Engine> engines);

  Form form() const { return form_; }
  // The machine as the copies see it: reversed for kGather.
  const Machine& machine() const { return form_ == Form::kGather ? backwards_ : forwards_; }
  // The machine's translations, where they keep an allreduce; else none.
  std::vector<Image> SumImages() const;

  int32_t LeastSteps();
  // Where a search that does not look for divergent sums had best begin: at least LeastSteps.
  int32_t FirstSteps();
  // No arithmetic forbids so many rounds in so many steps (at least LeastSteps).
  int64_t LeastRounds(int32_t steps, int32_t chunks);
  // More rounds help no schedule of so many steps.
  int64_t MostRounds(int32_t steps, int32_t chunks);
  // For one chunk a part, by cuts or prices alone; for any number of steps where `steps` is absent.
  std::pair<RoundsBound, ProvedBy> BoundOf(std::optional<int32_t> steps);
  // An allreduce of all ranks in so many steps, by Z3's help: seconds. Nothing more than BoundOf({}) where
  // that is not affordable.
  struct SumBound {
    RoundsBound bound;
    ProvedBy by = ProvedBy::kNothing;
    bool infeasible = false;  // proved: not in so few steps, whatever the rounds
  };
  SumBound SumBoundOf(int32_t steps);
  std::optional<Refusal> Forbidden(const Question& question);
  // Uses up at most `work` of what is left. What is found takes no more steps and rounds than asked for.
  StatusOr<Outcome> Ask(const Question& question, int64_t work);
  // The first plan of another engine that takes no more; null: none does.
  const Witness* WitnessFor(const Question& question);
  const std::vector<Witness>& WitnessesOf(int32_t chunks);
  // The parts of a refuted question that cannot be had together: "load of 0->4, needs of rank 4 and rounds".
  // Empty where that was not found out.
  std::string Conflict(const Question& question);

  // Questions with many chunks of sums are only searched among symmetric schedules, and refuted by bounds
  // alone.
  void SkipLongSearches() { thorough_ = false; }
  void SearchLong() { thorough_ = true; }

  // Variables of the solver's smallest question with so many chunks and steps; more than kMostVariables are
  // not put to it.
  int64_t SizeOf(int32_t chunks, int32_t steps);
  static constexpr int64_t kMostVariables = 400'000;

  int64_t work_left() const { return left_; }
  int64_t work_limit() const { return work_; }
  bool TimeIsUp() const { return deadline_(); }
  bool IsInterrupted() const { return request_.stopped && request_.stopped(); }
  bool IsOver() const { return left_ <= 0 || TimeIsUp() || IsInterrupted(); }
  void Say(const std::string& what) const {
    if (request_.progress) request_.progress(what);
  }
  int64_t too_large() const { return too_large_; }  // least size of a question that was not put; 0: none
  const SynthesisRequest& request() const { return request_; }

 private:
  Oracle(const SynthesisRequest& request, std::span<const Engine> engines);
  Status Prepare();
  // Requires: the collective is at most two copy problems, as is told when the Oracle is made.
  const Phases& PhasesOf(int32_t chunks);
  StatusOr<Phases> MakePhasesOf(int32_t chunks) const;
  // Requires: kSpread or kGather.
  const CopyProblem& ProblemOf(int32_t chunks);
  // The machine's translations that keep the problem of so many chunks a part.
  const std::vector<Image>& ImagesOf(bool gather, int32_t chunks);
  SolveLimits LimitsOf(int64_t work) const;
  StatusOr<Answer> AskCopies(bool gather, int32_t chunks, int32_t steps, int64_t rounds, int64_t work);
  int64_t LeastRoundsOf(bool gather, int32_t steps, int32_t chunks);
  RoundsBound PricesOf(bool gather, std::optional<int32_t> steps);
  StatusOr<Outcome> Answered(const Question& question, int64_t work);
  StatusOr<Outcome> AskComposed(const Question& question, int64_t work);
  StatusOr<Outcome> AskSums(const Question& question, int64_t work);
  Status AskSumsInFewer(const Question& question, int32_t steps, int64_t work, Outcome& outcome);
  bool Accept(int32_t chunks, const Answer& answer, Outcome& outcome) const;
  // Copies of one phase, or sums, as the request's schedule.
  Synthesis FromSends(int32_t chunks, const std::vector<Send>& sends);
  Synthesis FromSums(int32_t chunks, const std::vector<Send>& sends) const;
  Synthesis Wrap(int32_t chunks, Schedule schedule) const;

  const SynthesisRequest& request_;
  const std::span<const Engine> engines_;
  const Topology& topology_;
  const Topology reversed_;
  const Machine forwards_, backwards_;
  const std::vector<Image> forward_images_, backward_images_;
  const Deadline deadline_;
  const int64_t work_;  // in all
  int64_t left_, too_large_ = 0;
  Form form_ = Form::kNothing;
  bool has_phases_ = false;   // is it at most two copy problems?
  bool can_compose_ = false;  // kSums that may be a gather and then a spread
  bool thorough_ = true;
  std::map<std::pair<bool, int32_t>, std::vector<Image>> images_;  // by phase and chunks
  std::map<int32_t, Phases> phases_;                               // by chunks
  std::map<int32_t, std::vector<Witness>> witnesses_;              // by chunks
  std::map<int32_t, SumProblem> sums_;                             // by chunks
  std::map<std::pair<bool, int32_t>, RoundsBound> prices_;         // by phase and steps, 0: any
};

}  // namespace xccl::smt
