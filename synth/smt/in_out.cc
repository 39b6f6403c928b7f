// Variables, all Boolean, of the first chunk of every run (c):
//
//   owns(c, r)      rank r owns the chunk; of ranks that images take to each other only the first may
//   up(c, e, s)     the tail's partial sum goes over e in step s and is added
//   down(c, e, s)   the whole sum goes over e in step s
//   gone(c, r, s)   rank r has sent its sum in a step before s; of the owner: the sum is whole before s
//   here(c, r, s)   rank r holds the whole sum when step s begins
//   longer(s, k)    step s has more than k rounds, k >= 1
//
// Families:
//
//   once up   every rank but the owner sends up once: sum of up(e,s) + owns(r) = 1, e out of r
//   gone      after that it has gone: gone(r,s+1) -> gone(r,s) or owns(r) or some up(e,s), and back
//   open      nothing is added to what has gone: up(e,s) -> not gone(h,s+1), of an owner not gone(h,s), h the
//             head of e
//   arrives   the sum is there, or came, or is whole: here(r,s+1) -> here(r,s) or some down(e,s) or owns(r)
//             and gone(r,s+1)
//
// Holds, once, load and rounds are as for copies (encoding.cc).
#include "synth/smt/in_out.h"

#include <z3++.h>

#include <algorithm>
#include <string>

#include "synth/smt/z3_check.h"

namespace xccl::smt {

class InOutQuestion::Encoding {
 public:
  Encoding(const Machine& machine, const std::vector<Image>& images, int32_t runs, int32_t steps,
           int32_t rounds)
      : machine_(machine),
        images_(images),
        steps_(steps),
        extra_(rounds - steps),
        solver_(context_, "QF_FD") {
    for (int32_t i = 0; i < runs; ++i) EncodeRun();
    EncodeLoads();
  }

  SumAnswer Ask(const SolveLimits& limits);

 private:
  using Table = std::vector<std::vector<z3::expr>>;
  struct Run {
    Table up, down;              // [step][edge]
    std::vector<z3::expr> owns;  // by rank
  };
  z3::expr NewBool() { return context_.bool_const(std::to_string(++variables_).c_str()); }
  Table NewTable(int32_t steps, size_t width) {
    Table table;
    for (int32_t s = 0; s < steps; ++s) {
      table.emplace_back();
      for (size_t i = 0; i < width; ++i) table.back().push_back(NewBool());
    }
    return table;
  }
  void EncodeRun();
  void EncodeUp(const Run& run, const Table& gone);
  void EncodeDown(const Run& run, const Table& gone);
  void EncodeLoads();
  std::vector<z3::expr_vector> Longer();

  const Machine& machine_;
  const std::vector<Image>& images_;
  const int32_t steps_, extra_;
  Context context_;
  z3::solver solver_;
  std::vector<Run> runs_;
  int64_t variables_ = 0;
};

void InOutQuestion::Encoding::EncodeRun() {
  const size_t ranks = static_cast<size_t>(machine_.ranks), edges = machine_.edges.size();
  Run run{NewTable(steps_, edges), NewTable(steps_, edges), NewTable(1, ranks)[0]};
  std::vector<char> seen(ranks, 0);
  z3::expr_vector owners(context_);
  for (int32_t r = 0; r < machine_.ranks; ++r) {
    if (seen[r] != 0) {
      solver_.add(!run.owns[r]);
      continue;
    }
    owners.push_back(run.owns[r]);
    // Runs are alike: owners do not decrease.
    if (!runs_.empty()) {
      z3::expr_vector before(context_);
      for (int32_t q = 0; q <= r; ++q) before.push_back(runs_.back().owns[q]);
      solver_.add(z3::implies(run.owns[r], z3::mk_or(before)));
    }
    for (const Image& image : images_) seen[image.rank[r]] = 1;
  }
  solver_.add(z3::mk_or(owners));
  solver_.add(z3::atmost(owners, 1));
  const Table gone = NewTable(steps_ + 1, ranks);
  EncodeUp(run, gone);
  EncodeDown(run, gone);
  runs_.push_back(std::move(run));
}

void InOutQuestion::Encoding::EncodeUp(const Run& run, const Table& gone) {
  for (int32_t r = 0; r < machine_.ranks; ++r) {
    const size_t rank = static_cast<size_t>(r);
    const z3::expr& owns = run.owns[rank];
    solver_.add(!gone[0][rank]);
    z3::expr_vector all(context_);
    for (int32_t s = 0; s < steps_; ++s) {
      z3::expr_vector now(context_);
      now.push_back(gone[s][rank]);
      now.push_back(owns);
      solver_.add(!gone[s][rank] || gone[s + 1][rank]);
      for (int32_t e : machine_.out[r]) {
        const z3::expr& up = run.up[s][e];
        solver_.add(!owns || !up);
        solver_.add(!up || gone[s + 1][rank]);
        now.push_back(up);
        all.push_back(up);
      }
      solver_.add(z3::implies(gone[s + 1][rank], z3::mk_or(now)));
      for (int32_t e : machine_.in[r]) {
        solver_.add(!run.up[s][e] || !gone[s][rank]);
        solver_.add(!run.up[s][e] || !gone[s + 1][rank] || owns);
      }
    }
    solver_.add(z3::atmost(all, 1));
    all.push_back(owns);
    solver_.add(z3::mk_or(all));
  }
}

void InOutQuestion::Encoding::EncodeDown(const Run& run, const Table& gone) {
  const Table here = NewTable(steps_ + 1, static_cast<size_t>(machine_.ranks));
  for (int32_t r = 0; r < machine_.ranks; ++r) {
    const size_t rank = static_cast<size_t>(r);
    solver_.add(!here[0][rank]);
    solver_.add(here[steps_][rank]);
    z3::expr_vector all(context_);
    for (int32_t s = 0; s < steps_; ++s) {
      for (int32_t e : machine_.out[r]) solver_.add(!run.down[s][e] || here[s][rank]);
      z3::expr_vector ways(context_);
      ways.push_back(here[s][rank]);
      ways.push_back(run.owns[rank] && gone[s + 1][rank]);
      for (int32_t e : machine_.in[r]) {
        solver_.add(!run.owns[rank] || !run.down[s][e]);
        ways.push_back(run.down[s][e]);
        all.push_back(run.down[s][e]);
      }
      solver_.add(z3::implies(here[s + 1][rank], z3::mk_or(ways)));
    }
    solver_.add(z3::atmost(all, 1));
  }
}

std::vector<z3::expr_vector> InOutQuestion::Encoding::Longer() {
  std::vector<z3::expr_vector> longer;
  z3::expr_vector all(context_);
  for (int32_t s = 0; s < steps_; ++s) {
    longer.emplace_back(context_);
    for (int32_t k = 0; k < extra_; ++k) {
      const z3::expr more = NewBool();
      if (k > 0) solver_.add(z3::implies(more, longer.back()[static_cast<unsigned>(k - 1)]));
      longer.back().push_back(more);
      all.push_back(more);
    }
  }
  if (!all.empty()) solver_.add(z3::atmost(all, static_cast<unsigned>(extra_)));
  return longer;
}

// Of capacities that are images of each other one: its load by all chunks of a run is that of the first chunk
// on all of them.
void InOutQuestion::Encoding::EncodeLoads() {
  const std::vector<z3::expr_vector> longer = Longer();
  std::vector<char> done(machine_.capacities.size(), 0);
  for (size_t capacity = 0; capacity < done.size(); ++capacity) {
    if (done[capacity] != 0) continue;
    std::vector<int32_t> edges;
    for (const Image& image : images_) {
      done[image.capacity[capacity]] = 1;
      const auto& users = machine_.users[image.capacity[capacity]];
      edges.insert(edges.end(), users.begin(), users.end());
    }
    const int per_round = machine_.capacities[capacity].per_round;
    for (int32_t s = 0; s < steps_; ++s) {
      z3::expr_vector terms(context_);
      for (const Run& run : runs_)
        for (int32_t e : edges) {
          terms.push_back(run.up[s][e]);
          terms.push_back(run.down[s][e]);
        }
      std::vector<int> weights(terms.size(), 1);
      const int64_t sends = static_cast<int64_t>(terms.size());
      const int64_t useful = std::min<int64_t>(extra_, (sends + per_round - 1) / per_round - 1);
      for (int64_t k = 0; k < useful; ++k) {
        terms.push_back(!longer[static_cast<size_t>(s)][static_cast<unsigned>(k)]);
        weights.push_back(per_round);
      }
      solver_.add(z3::pble(terms, weights.data(), static_cast<int>(per_round * (1 + useful))));
    }
  }
}

SumAnswer InOutQuestion::Encoding::Ask(const SolveLimits& limits) {
  solver_.set(ParametersOf(context_, limits));
  z3::expr_vector assumed(context_);
  SumAnswer answer;
  const z3::check_result result = Check(context_, solver_, assumed, limits, answer.work);
  if (result == z3::unsat) answer.verdict = Verdict::kInfeasible;
  if (result != z3::sat) return answer;
  answer.verdict = Verdict::kFeasible;
  const z3::model model = solver_.get_model();
  for (int32_t s = 0; s < steps_; ++s)
    for (size_t i = 0; i < runs_.size(); ++i)
      for (size_t e = 0; e < machine_.edges.size(); ++e)
        for (const bool adds : {true, false}) {
          if (!model.eval((adds ? runs_[i].up : runs_[i].down)[s][e], true).is_true()) continue;
          for (size_t g = 0; g < images_.size(); ++g)
            answer.sends.push_back(
                {{static_cast<int32_t>(i * images_.size() + g), images_[g].edge[e], s}, adds});
        }
  return answer;
}

int32_t LeastInOutSteps(const Machine& machine) {
  int32_t least = kFar;
  for (int32_t r = 0; r < machine.ranks; ++r) {
    const std::vector<int32_t> to = DistancesTo(machine, {r}), from = DistancesFrom(machine, {r});
    least = std::min(least,
                     *std::max_element(to.begin(), to.end()) + *std::max_element(from.begin(), from.end()));
  }
  return least;
}

InOutQuestion::InOutQuestion(const Machine& machine, const std::vector<Image>& images, int32_t runs,
                             int32_t steps, int32_t rounds)
    : encoding_(MakeEncoding<Encoding>(failure_, machine, images, runs, steps, rounds)) {}

InOutQuestion::~InOutQuestion() = default;

StatusOr<SumAnswer> InOutQuestion::Ask(const SolveLimits& limits) {
  return AskEncoding<SumAnswer>(encoding_.get(), failure_, limits,
                                [&](Encoding& encoding) { return encoding.Ask(limits); });
}

}  // namespace xccl::smt
