// Encode, solve, decode. All variables are Boolean and all sums are of Booleans, for Z3's finite-domain
// solver.
//
//   sent(c, e, s)   chunk c goes over edge e in step s
//   here(c, r, s)   rank r holds chunk c when step s begins
//   longer(s, k)    step s has more than k rounds, k >= 1
//
// Variables that cannot be true are not made: a chunk reaches a rank at the earliest after as many steps as
// there are edges between, and is of use only where it can still reach a needer.
#include <z3++.h>

#include <algorithm>
#include <array>
#include <map>
#include <queue>

#include "synth/smt_instance.h"

namespace xccl::smt {
namespace {

enum class Family : uint8_t { kHolds, kArrives, kOnce, kNeeds, kLoad, kRounds, kLongerOrder };
constexpr size_t kFamilies = 7;

class Encoding {
 public:
  explicit Encoding(const Instance& instance)
      : instance_(instance),
        machine_(*instance.machine),
        problem_(*instance.problem),
        solver_(context_, "QF_FD") {}

  void Encode();
  Verdict Solve(const SolveLimits& limits, int64_t& work);
  std::vector<Send> Decode();
  int64_t variables() const { return variables_; }
  int64_t constraints() const { return constraints_[0]; }

 private:
  z3::expr NewBool() {
    ++variables_;
    return context_.bool_const(std::to_string(variables_).c_str());
  }
  void Add(Family family, const z3::expr& what) {
    XCCL_CHECK(what.is_bool());  // Z3 aborts on anything else
    ++constraints_[0];
    ++constraints_[static_cast<size_t>(family) + 1];
    solver_.add(what);
  }
  std::vector<int32_t> Distances(const std::vector<int32_t>& from, bool forwards) const;
  void EncodeChunk(int32_t chunk);
  void EncodeLoads();
  void EncodeRounds();

  const Instance& instance_;
  const Machine& machine_;
  const greedy::CopyProblem& problem_;
  z3::context context_;
  z3::solver solver_;
  struct SentVar {
    Send send;
    z3::expr var;
  };
  std::vector<SentVar> sent_;
  std::vector<std::vector<std::vector<size_t>>> sent_on_;  // [step][edge]: indices into sent_
  std::vector<z3::expr_vector> longer_;                    // of a step
  int64_t variables_ = 0;
  std::array<int64_t, kFamilies + 1> constraints_{};  // in all, then of each family
};

std::vector<int32_t> Encoding::Distances(const std::vector<int32_t>& from, bool forwards) const {
  std::vector<int32_t> distance(static_cast<size_t>(machine_.ranks), 1 << 20);
  std::queue<int32_t> queue;
  for (int32_t r : from) {
    distance[r] = 0;
    queue.push(r);
  }
  while (!queue.empty()) {
    const int32_t r = queue.front();
    queue.pop();
    for (int32_t e : forwards ? machine_.out[r] : machine_.in[r]) {
      const int32_t next = forwards ? machine_.edges[e].to : machine_.edges[e].from;
      if (distance[next] <= distance[r] + 1) continue;
      distance[next] = distance[r] + 1;
      queue.push(next);
    }
  }
  return distance;
}

void Encoding::Encode() {
  sent_on_.assign(static_cast<size_t>(instance_.steps),
                  std::vector<std::vector<size_t>>(machine_.edges.size()));
  for (int32_t c = 0; c < problem_.chunks; ++c)
    if (!problem_.needers[c].empty()) EncodeChunk(c);
  EncodeRounds();
  EncodeLoads();
}

void Encoding::EncodeChunk(int32_t chunk) {
  const int32_t steps = instance_.steps;
  const std::vector<int32_t> after = Distances(problem_.holders[chunk], true);
  const std::vector<int32_t> left = Distances(problem_.needers[chunk], false);
  // here[r][s] where r is reached within s steps and can still be of use; holders always hold.
  std::vector<std::vector<std::optional<z3::expr>>> here(
      static_cast<size_t>(machine_.ranks),
      std::vector<std::optional<z3::expr>>(static_cast<size_t>(steps) + 1));
  for (int32_t r = 0; r < machine_.ranks; ++r)
    for (int32_t s = after[r]; s <= steps; ++s)
      if (after[r] > 0) here[r][s] = NewBool();
  std::vector<z3::expr_vector> arrivals;
  for (int32_t r = 0; r < machine_.ranks; ++r) arrivals.emplace_back(context_);
  for (int32_t s = 0; s < steps; ++s) {
    std::vector<z3::expr_vector> now;
    for (int32_t r = 0; r < machine_.ranks; ++r) now.emplace_back(context_);
    for (size_t e = 0; e < machine_.edges.size(); ++e) {
      const Edge& edge = machine_.edges[e];
      if (after[edge.from] > s || after[edge.to] == 0 || left[edge.to] > steps - 1 - s) continue;
      const z3::expr sent = NewBool();
      sent_on_[s][e].push_back(sent_.size());
      sent_.push_back({{chunk, static_cast<int32_t>(e), s}, sent});
      // holds: who sends a chunk holds it when the step begins. sent(c,e,s) -> here(c,from(e),s)
      if (after[edge.from] > 0) Add(Family::kHolds, z3::implies(sent, *here[edge.from][s]));
      now[edge.to].push_back(sent);
      arrivals[edge.to].push_back(sent);
    }
    // arrives: who holds a chunk after a step held it before or was sent it in the step.
    // here(c,r,s+1) -> here(c,r,s) or some sent(c,e,s) with to(e) = r
    for (int32_t r = 0; r < machine_.ranks; ++r) {
      if (!here[r][s + 1]) continue;
      z3::expr_vector ways = now[r];
      if (here[r][s]) ways.push_back(*here[r][s]);
      Add(Family::kArrives, z3::implies(*here[r][s + 1], z3::mk_or(ways)));
    }
  }
  // once: a rank is sent a chunk at most once. sum over e into r and s of sent(c,e,s) <= 1
  for (int32_t r = 0; r < machine_.ranks; ++r)
    if (arrivals[r].size() > 1) Add(Family::kOnce, z3::atmost(arrivals[r], 1));
  // needs: at the end every needer holds the chunk. here(c,r,S)
  for (int32_t r : problem_.needers[chunk])
    Add(Family::kNeeds, here[r][steps] ? *here[r][steps] : context_.bool_val(false));
}

void Encoding::EncodeRounds() {
  const int32_t extra = instance_.rounds - instance_.steps;
  z3::expr_vector all(context_);
  for (int32_t s = 0; s < instance_.steps; ++s) {
    longer_.emplace_back(context_);
    for (int32_t k = 0; k < extra; ++k) {
      const z3::expr more = NewBool();
      // longer order: more than k+1 rounds are more than k. longer(s,k+1) -> longer(s,k)
      if (k > 0) Add(Family::kLongerOrder, z3::implies(more, longer_.back()[static_cast<unsigned>(k - 1)]));
      longer_.back().push_back(more);
      all.push_back(more);
    }
  }
  // rounds: beyond one round a step there are R - S in all. sum over s and k of longer(s,k) <= R - S
  if (!all.empty()) Add(Family::kRounds, z3::atmost(all, static_cast<unsigned>(extra)));
}

void Encoding::EncodeLoads() {
  // load: what goes over a link in a step fits its rounds.
  // sum over c and e over the link of sent(c,e,s) <= perRound * (1 + sum over k of longer(s,k)),
  // written with the negated longer(s,k) on the left.
  const int64_t extra = instance_.rounds - instance_.steps;
  for (int32_t s = 0; s < instance_.steps; ++s) {
    for (const Capacity& capacity : machine_.capacities) {
      z3::expr_vector terms(context_);
      for (int32_t e : capacity.edges)
        for (size_t i : sent_on_[s][static_cast<size_t>(e)]) terms.push_back(sent_[i].var);
      const int64_t most = capacity.chunks_per_round * (1 + extra);
      if (static_cast<int64_t>(terms.size()) <= capacity.chunks_per_round) continue;
      std::vector<int> weights(terms.size(), 1);
      const int64_t useful = std::min<int64_t>(extra, static_cast<int64_t>(terms.size()));
      for (int64_t k = 0; k < useful; ++k) {
        terms.push_back(!longer_[static_cast<size_t>(s)][static_cast<unsigned>(k)]);
        weights.push_back(static_cast<int>(capacity.chunks_per_round));
      }
      const int64_t limit = most - capacity.chunks_per_round * (extra - useful);
      Add(Family::kLoad, z3::pble(terms, weights.data(), static_cast<int>(limit)));
    }
  }
}

Verdict Encoding::Solve(const SolveLimits& limits, int64_t& work) {
  z3::params parameters(context_);
  parameters.set("rlimit",
                 static_cast<unsigned>(std::clamp<int64_t>(limits.work, 1, (int64_t{1} << 32) - 1)));
  if (limits.time_limit_s)
    parameters.set("timeout", static_cast<unsigned>(std::clamp(*limits.time_limit_s * 1000, 1.0, 4e9)));
  parameters.set("random_seed", 0u);
  solver_.set(parameters);
  const z3::check_result result = solver_.check();
  const z3::stats statistics = solver_.statistics();
  for (unsigned i = 0; i < statistics.size(); ++i)
    if (statistics.key(i) == "rlimit count")
      work += statistics.is_uint(i) ? static_cast<int64_t>(statistics.uint_value(i))
                                    : static_cast<int64_t>(statistics.double_value(i));
  switch (result) {
    case z3::sat:
      return Verdict::kFeasible;
    case z3::unsat:
      return Verdict::kInfeasible;
    case z3::unknown:
      break;
  }
  return Verdict::kStopped;
}

std::vector<Send> Encoding::Decode() {
  const z3::model model = solver_.get_model();
  std::vector<Send> sends;
  for (const SentVar& sent : sent_)
    if (model.eval(sent.var, true).is_true()) sends.push_back(sent.send);
  std::stable_sort(sends.begin(), sends.end(), [](const Send& a, const Send& b) { return a.step < b.step; });
  return sends;
}

}  // namespace

StatusOr<Answer> Solve(const Instance& instance, const SolveLimits& limits) {
  try {
    Encoding encoding(instance);
    encoding.Encode();
    Answer answer;
    answer.variables = encoding.variables();
    answer.constraints = encoding.constraints();
    answer.verdict = encoding.Solve(limits, answer.work);
    if (answer.verdict == Verdict::kFeasible) answer.sends = encoding.Decode();
    return answer;
  } catch (const z3::exception& error) {
    return BugError(std::string("smt: the solver failed: ") + error.msg());
  }
}

}  // namespace xccl::smt
