// Entrants in order: symmetric schedules alone where there are translations, then all schedules in two
// encodings. The first slice is the first entrant's alone, since most questions end there.
#include "synth/smt/decide.h"

#include <algorithm>
#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include "base/threads.h"
#include "synth/smt/copies.h"

namespace xccl::smt {
namespace {

constexpr int64_t kFirstSlice = 400'000;
constexpr int64_t kPerVariable = 25;          // what making an encoding costs
constexpr int64_t kLargestSlice = 6'400'000;  // a second or two: how long an interrupt waits

class CopyDecider {
 public:
  CopyDecider(const Machine& machine, const CopyProblem& problem, const std::vector<Image>& images,
              int32_t steps, int32_t rounds);
  StatusOr<Answer> Decide(const SolveLimits& limits);

 private:
  struct Entrant {
    Style style;
    std::optional<SolverQuestion> question;
    int64_t making = 0;    // what making it costs
    bool refuted = false;  // its own, narrower question
    StatusOr<Answer> answer = Answer{};
  };
  void RunSlice(int64_t work, const SolveLimits& limits, size_t entrants);

  const Machine& machine_;
  const CopyProblem& problem_;
  const std::vector<Image>& images_;
  const int32_t steps_, rounds_;
  std::vector<Entrant> entrants_;
};

CopyDecider::CopyDecider(const Machine& machine, const CopyProblem& problem, const std::vector<Image>& images,
                         int32_t steps, int32_t rounds)
    : machine_(machine), problem_(problem), images_(images), steps_(steps), rounds_(rounds) {
  const int64_t making = kPerVariable * EncodingSize(machine, problem, steps);
  if (images.size() > 1)
    entrants_.push_back({{.symmetric = true}, std::nullopt, making / static_cast<int64_t>(images.size())});
  entrants_.push_back({{}, std::nullopt, making});
  entrants_.push_back({{.ordered = true, .networks = true}, std::nullopt, making});
}

void CopyDecider::RunSlice(int64_t work, const SolveLimits& limits, size_t entrants) {
  const auto run = [&](size_t i) {
    Entrant& entrant = entrants_[i];
    entrant.answer = Answer{};
    if (entrant.refuted) return;
    if (!entrant.question)
      entrant.question.emplace(CopyQuestion(machine_, problem_, images_, steps_, rounds_, entrant.style));
    entrant.answer = entrant.question->Ask({work, limits.deadline, limits.stopped});
  };
  std::atomic<size_t> next = 0;
  const auto take = [&] {
    for (size_t i = next++; i < entrants; i = next++) run(i);
  };
  if (entrants == 1) {
    run(0);
    return;
  }
  StatusOr<std::thread> other = StartThread(take);
  take();  // all of them where the machine has no thread left
  if (other.ok()) other->join();
}

StatusOr<Answer> CopyDecider::Decide(const SolveLimits& limits) {
  Answer sum;
  size_t running = 1;
  for (int64_t slice = kFirstSlice; sum.work < limits.work;
       slice = std::min(running == 1 ? slice : 2 * slice, kLargestSlice), running = entrants_.size()) {
    if (limits.IsOver()) break;
    const int64_t work =
        std::max<int64_t>(1, std::min(slice, (limits.work - sum.work) / static_cast<int64_t>(running)));
    RunSlice(work, limits, running);
    for (size_t i = 0; i < running; ++i) {
      Entrant& entrant = entrants_[i];
      if (entrant.refuted) continue;
      XCCL_RETURN_IF_ERROR(entrant.answer.status());
      // What Z3 reports may be less than what it was given: then it did use it up.
      const Answer& answer = *entrant.answer;
      sum.work += std::exchange(entrant.making, 0);
      sum.work += answer.verdict == Verdict::kStopped ? std::max(work, answer.work) : answer.work;
    }
    for (size_t i = 0; i < running; ++i) {
      Entrant& entrant = entrants_[i];
      if (entrant.refuted || entrant.answer->verdict == Verdict::kStopped) continue;
      if (entrant.answer->verdict == Verdict::kInfeasible && entrant.style.symmetric) {
        entrant.refuted = true;
        continue;
      }
      sum.verdict = entrant.answer->verdict;
      sum.sends = std::move(entrant.answer->sends);
      return sum;
    }
  }
  return sum;
}

}  // namespace

StatusOr<Answer> DecideCopies(const Machine& machine, const CopyProblem& problem,
                              const std::vector<Image>& images, int32_t steps, int32_t rounds,
                              const SolveLimits& limits) {
  return CopyDecider(machine, problem, images, steps, rounds).Decide(limits);
}

}  // namespace xccl::smt
