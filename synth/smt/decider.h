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

// Ranks of a machine that is served; the group of translations has no more elements.
inline constexpr int32_t kMostRanks = 64;
// Chunks a part of which all sums are searched for, not only symmetric ones; and chunks a part, or a part and
// rank for sums, that are tried where the request leaves them open.
inline constexpr int32_t kFewChunks = 8;
// One question of several may use one part in kShare of the work that is left.
inline constexpr int32_t kShare = 16;

struct Question {
  int32_t chunks = 0, steps = 0;
  int64_t rounds = 0;
};

// Why there is no schedule, and the least steps or rounds that the reason does not forbid.
struct Refusal {
  ProvedBy by = ProvedBy::kNothing;
  std::string text = {};  // "rank 4 is 4 links from rank 0"
  std::optional<int32_t> steps = {};
  std::optional<int64_t> rounds = {};
};

struct Outcome {
  Verdict verdict = Verdict::kStopped;
  std::optional<Synthesis> made = {};   // where feasible
  std::string how = {};                 // the witness's engine, or "z3"
  std::optional<Refusal> refusal = {};  // where infeasible
  bool divergent = false;  // stopped, because all that was found gives ranks different roundings of a sum
};

// How the collective is asked for.
enum class Form : uint8_t {
  kNothing,  // every rank holds from the start what it needs: no question
  kSpread,   // copies
  kGather,   // sums that one rank each needs: copies on the reversed machine, backwards
  kSums,     // sums that several ranks need, user-defined tables: sets of contributions
};

class Decider {
 public:
  // The request and the engines outlive it; the engines' plans are witnesses. Limits of work and time count
  // from here on.
  static StatusOr<std::unique_ptr<Decider>> Create(const SynthesisRequest& request,
                                                   std::span<const Engine> engines);

  Form form() const { return form_; }
  // The machine as the copies see it: reversed for kGather.
  const Machine& machine() const { return machine_; }
  // The machine's translations that keep the copies; for kSums those that keep an allreduce of all ranks, and
  // for other sums none.
  const std::vector<Image>& images() const { return images_; }

  int32_t LeastSteps() const { return farthest_.steps; }
  // Where a search that does not look for divergent sums had best begin: at least LeastSteps.
  int32_t FirstSteps() const;
  // No arithmetic forbids so many rounds in so many steps (at least LeastSteps).
  int64_t LeastRounds(int32_t steps, int32_t chunks);
  // More rounds help no schedule of so many steps.
  int64_t MostRounds(int32_t steps, int32_t chunks) const;
  // For one chunk a part, by cuts or prices alone; for any number of steps where `steps` is absent.
  std::pair<RoundsBound, ProvedBy> BoundOf(std::optional<int32_t> steps);
  // BoundOf, raised for an allreduce of few ranks by prices that Z3 helps to find, in seconds. Absent: it is
  // proved that no number of rounds is enough in so few steps.
  std::optional<std::pair<RoundsBound, ProvedBy>> BestBoundOf(int32_t steps);
  std::optional<Refusal> Forbidden(const Question& question);
  // Uses up at most `work` of the work that is left. A schedule takes no more steps and rounds than the
  // question.
  StatusOr<Outcome> Ask(const Question& question, int64_t work);
  const std::vector<Witness>& WitnessesOf(int32_t chunks);
  // The parts of a refuted question that cannot be had together: "load of 0->4, needs of rank 4 and rounds".
  // Empty where that was not found out.
  std::string Conflict(const Question& question);

  // A decider that is not thorough searches sums of many chunks among symmetric schedules alone, and refutes
  // them by bounds alone.
  void SetThorough(bool thorough) { thorough_ = thorough; }

  // Variables of the solver's smallest question with so many chunks and steps; more than kMostVariables are
  // not put to it.
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
  int64_t too_large() const { return too_large_; }  // least size of a question that was not put; 0: none
  const SynthesisRequest& request() const { return request_; }

 private:
  Decider(const SynthesisRequest& request, std::span<const Engine> engines, Topology reversed, Form form,
          bool same_sum);
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
  const bool same_sum_;       // do several ranks need the same sum?
  const Topology& topology_;  // as the copies see it, as the machine is
  const Machine machine_;
  const Deadline deadline_;
  const int64_t work_;  // in all
  int64_t left_, too_large_ = 0;
  const Farthest farthest_;
  bool thorough_ = true;
  std::vector<Image> images_;
  std::map<int32_t, CopyProblem> problems_;            // by chunks
  std::map<int32_t, std::vector<Witness>> witnesses_;  // by chunks
  std::map<int32_t, RoundsBound> prices_;              // by steps, 0: any
};

}  // namespace xccl::smt
