// 1. An encoding adds its constraints to a Z3 solver for finite domains. A load constraint has the negated
//    longer(s,k) on its left side, so that one weighted sum has a constant bound.
// 2. A constraint that a Core may name gets a guard, a variable that implies the constraint. Every question
//    assumes all guards. A budget gets a guard that only its own question assumes.
// 3. Ask() runs Z3 within the limits of work and time. Another thread interrupts Z3 at the deadline.
// 4. A feasible question gives the sends. An infeasible question gives the Core: the guards in Z3's own core.
#include "synth/smt/step_encoding.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "base/exceptions.h"
#include "base/strings.h"
#include "base/threads.h"

namespace xccl::smt {
namespace {

thread_local Z3_error_code last_failure = Z3_OK;  // of Z3; see Context

// Interrupts Z3 when the deadline passes, and checks the deadline twenty times a second. If no thread can be
// started, Z3 runs to its own limits.
class Watch {
 public:
  Watch(z3::context& context, const Deadline& deadline) {
    if (!deadline.can_pass()) return;
    if (auto thread = StartThread([this, &context, deadline] { Run(context, deadline); }); thread.ok())
      thread_ = *std::move(thread);
  }
  ~Watch() {
    {
      const std::lock_guard lock(mutex_);
      done_ = true;
    }
    wake_.notify_all();
    if (thread_.joinable()) thread_.join();
  }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

 private:
  void Run(z3::context& context, const Deadline& deadline) {
    std::unique_lock lock(mutex_);
    while (!wake_.wait_for(lock, std::chrono::milliseconds(50), [this] { return done_; }))
      if (deadline()) context.interrupt();
  }
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::thread thread_;
};

z3::params ParametersOf(z3::context& context, const SolveLimits& limits) {
  z3::params parameters(context);
  parameters.set("rlimit",
                 static_cast<unsigned>(std::clamp<int64_t>(limits.work, 1, (int64_t{1} << 32) - 1)));
  if (limits.deadline.has_limit())
    parameters.set("timeout",
                   static_cast<unsigned>(std::clamp(limits.deadline.SecondsLeft() * 1000, 1.0, 4e9)));
  parameters.set("random_seed", 0u);
  parameters.set("ctrl_c", false);  // the program has a handler of its own
  return parameters;
}

// Returns the resource units that Z3 has used since the solver was made.
int64_t Spent(const z3::solver& solver) {
  const z3::stats statistics = solver.statistics();
  int64_t work = 0;
  for (unsigned i = 0; i < statistics.size(); ++i)
    if (statistics.key(i) == "rlimit count")
      work += statistics.is_uint(i) ? static_cast<int64_t>(statistics.uint_value(i))
                                    : static_cast<int64_t>(statistics.double_value(i));
  return work;
}

// Converts an exception of Z3 or of its caller to a Status: kSystem if memory or threads ran out, else kBug.
Status FailureOf(const std::exception& error) {
  if (dynamic_cast<const z3::exception*>(&error) == nullptr) return StatusOf(error);
  if (last_failure == Z3_MEMOUT_FAIL) return SystemError("smt: the solver is out of memory");
  return BugError(std::string("smt: the solver failed: ") + error.what());
}

}  // namespace

Context::Context() {
  Z3_set_error_handler(*this, [](Z3_context, Z3_error_code code) { last_failure = code; });
}

StepEncoding::StepEncoding(const Machine& machine, int32_t steps, Options options)
    : machine_(machine), steps_(steps), options_(options), solver_(context_, "QF_FD") {}

void StepEncoding::Add(const z3::expr& what, const std::string& name) {
  XCCL_CHECK(what.is_bool());  // Z3 aborts on anything else
  options_.named && !name.empty() ? Assume(what, name) : solver_.add(what);
}

// Adds a constraint that holds if the guard of its name is assumed. Every question assumes all guards.
void StepEncoding::Assume(const z3::expr& what, const std::string& name) {
  size_t known = 0;
  while (known < guards_.size() && guards_[known].first != name) ++known;
  if (known == guards_.size()) guards_.emplace_back(name, NewBool());
  solver_.add(z3::implies(guards_[known].second, what));
}

void StepEncoding::AddRoundsAndLoads(int32_t rounds, const std::vector<Image>& alike, bool translated) {
  z3::expr_vector all = None();
  for (int32_t s = 0; s < steps_; ++s) {
    longer_.push_back(None());
    for (int32_t k = 0; k < rounds - steps_; ++k) {
      const z3::expr more = NewBool();
      if (k > 0) Add(z3::implies(more, longer_.back()[static_cast<unsigned>(k - 1)]));
      longer_.back().push_back(more);
      all.push_back(more);
    }
  }
  if (!all.empty()) {
    const z3::expr few = z3::atmost(all, static_cast<unsigned>(rounds - steps_));
    options_.assume_rounds ? Assume(few, "rounds") : Add(few, "rounds");
  }
  std::vector<char> done(machine_.capacities.size(), 0);
  for (size_t capacity = 0; capacity < done.size(); ++capacity) {
    if (done[capacity] != 0) continue;
    done[capacity] = 1;
    std::vector<int32_t> edges;
    if (!translated) edges = machine_.users[capacity];
    for (const Image& image : alike) {
      done[image.capacity[capacity]] = 1;
      const std::vector<int32_t>& users = machine_.users[image.capacity[capacity]];
      if (translated) edges.insert(edges.end(), users.begin(), users.end());
    }
    for (int32_t s = 0; s < steps_; ++s) AddLoad(capacity, edges, s);
  }
}

void StepEncoding::AddLoad(size_t capacity, const std::vector<int32_t>& edges, int32_t step) {
  z3::expr_vector sent = None(), terms = None();
  for (int32_t e : edges) AddSent(e, step, sent);
  const int64_t per_round = machine_.capacities[capacity].per_round, sends = sent.size();
  if (sends <= per_round) return;
  std::map<unsigned, std::pair<z3::expr, int>> times;  // by Z3's id of the term; the int counts the term
  for (const z3::expr& one : sent) ++times.try_emplace(one.id(), one, 0).first->second.second;
  std::vector<int> weights;
  for (const auto& [id, term] : times) {
    terms.push_back(term.first);
    weights.push_back(term.second);
  }
  const z3::expr_vector& longer = longer_[static_cast<size_t>(step)];
  const int64_t useful = std::min<int64_t>(longer.size(), (sends + per_round - 1) / per_round - 1);
  for (int64_t k = 0; k < useful; ++k) {
    terms.push_back(!longer[static_cast<unsigned>(k)]);
    weights.push_back(static_cast<int>(per_round));
  }
  const int limit = static_cast<int>(per_round * (1 + useful));
  const bool plain = std::all_of(weights.begin(), weights.end(), [](int w) { return w == 1; });
  Add(plain ? z3::atmost(terms, static_cast<unsigned>(limit)) : z3::pble(terms, weights.data(), limit),
      "load of " + machine_.capacities[capacity].name);
}

// Returns a new variable that, if true, keeps the prices of all sends together within the budget.
z3::expr StepEncoding::Within(const Budget& budget) {
  z3::expr_vector terms = None();
  std::vector<int> weights;
  for (int32_t s = 0; s < steps_; ++s)
    for (size_t e = 0; e < machine_.edges.size(); ++e) {
      if (budget.prices[s][e] == 0) continue;
      AddSent(static_cast<int32_t>(e), s, terms);
      weights.resize(terms.size(), static_cast<int>(budget.prices[s][e]));
    }
  z3::expr guard = NewBool();
  if (!terms.empty())
    solver_.add(z3::implies(guard, z3::pble(terms, weights.data(), static_cast<int>(budget.most))));
  return guard;
}

// If Z3 gives up without a deadline, the whole limit counts as used, because Z3 may report less work than its
// limit.
Answer StepEncoding::Ask(const SolveLimits& limits, const std::optional<Budget>& budget) {
  if (budget && budget->most < 0) return {.verdict = Verdict::kInfeasible, .sends = {}, .work = 1};
  z3::expr_vector assumed = None();
  for (const auto& [name, guard] : guards_) assumed.push_back(guard);
  if (budget) assumed.push_back(Within(*budget));
  solver_.set(ParametersOf(context_, limits));
  const int64_t before = Spent(solver_);
  z3::check_result result = z3::unknown;
  {
    const Watch watch(context_, limits.deadline);
    result = solver_.check(assumed);
  }
  const int64_t used = std::max<int64_t>(1, Spent(solver_) - before);
  Answer answer;
  answer.work = result == z3::unknown && !limits.deadline.has_limit() && !limits.deadline.IsInterrupted()
                    ? std::max(used, limits.work)
                    : used;
  if (result == z3::sat) {
    model_ = solver_.get_model();
    answer.verdict = Verdict::kFeasible;
    answer.sends = Decode();
  } else if (result == z3::unsat) {
    answer.verdict = Verdict::kInfeasible;
    for (const z3::expr& one : solver_.unsat_core())
      for (const auto& [name, guard] : guards_)
        if (z3::eq(one, guard)) answer.core.push_back(name);
    std::sort(answer.core.begin(), answer.core.end());
  }
  return answer;
}

ReductionsInRuns::Table ReductionsInRuns::NewTable(int32_t steps, size_t width, bool unmade) {
  Table table(static_cast<size_t>(steps));
  for (std::vector<z3::expr>& row : table)
    while (row.size() < width) row.push_back(unmade ? Unmade() : NewBool());
  return table;
}

ReductionsInRuns::Run ReductionsInRuns::NewRun(bool unmade) {
  const size_t edges = machine().edges.size();
  return {NewTable(steps(), edges, unmade), NewTable(steps(), edges, unmade)};
}

void ReductionsInRuns::AddSent(int32_t edge, int32_t step, z3::expr_vector& sent) {
  for (const Run& run : runs_) {
    sent.push_back(run.adds[step][edge]);
    sent.push_back(run.copies[step][edge]);
  }
}

std::vector<Send> ReductionsInRuns::Decode() const {
  std::vector<Send> sends;
  for (int32_t s = 0; s < steps(); ++s)
    for (size_t i = 0; i < runs_.size(); ++i)
      for (size_t e = 0; e < machine().edges.size(); ++e)
        for (const bool adds : {true, false}) {
          if (!IsTrue((adds ? runs_[i].adds : runs_[i].copies)[s][e])) continue;
          for (size_t g = 0; g < images_.size(); ++g)
            sends.push_back({.chunk = static_cast<int32_t>(i * images_.size() + g),
                             .edge = images_[g].edge[e],
                             .step = s,
                             .adds = adds});
        }
  return sends;
}

SolverQuestion::SolverQuestion(const std::function<std::unique_ptr<StepEncoding>()>& make) {
  last_failure = Z3_OK;
  try {
    encoding_ = make();
  } catch (const std::exception& error) {
    failure_ = FailureOf(error);
  }
}

SolverQuestion::SolverQuestion(SolverQuestion&&) noexcept = default;
SolverQuestion::~SolverQuestion() = default;

StatusOr<Answer> SolverQuestion::Ask(const SolveLimits& limits, const std::optional<Budget>& budget) {
  Status failure = failure_;
  last_failure = Z3_OK;
  try {
    if (encoding_ != nullptr) return encoding_->Ask(limits, budget);
  } catch (const std::exception& error) {
    failure = FailureOf(error);
  }
  if (failure.code() != StatusCode::kSystem) return failure;
  return Answer{.verdict = Verdict::kStopped, .sends = {}, .work = limits.work};
}

std::string Summary(const Core& core) {
  std::map<std::string, std::vector<std::string>> things;  // by family: "load of", "needs of rank"
  bool rounds = false;
  for (const std::string& name : core) {
    const size_t space = name.rfind(' ');
    if (space == std::string::npos) {
      rounds = true;
    } else {
      things[name.substr(0, space)].push_back(name.substr(space + 1));
    }
  }
  std::vector<std::string> parts;
  for (const auto& [family, of] : things) parts.push_back(family + " " + SomeOf(of));
  if (rounds) parts.emplace_back("rounds");
  return Join(parts, "; ");
}

}  // namespace xccl::smt
