// Encodes an allreduce by owner trees. Only the first chunk c of every run has variables. adds(c,e,s) sends a
// partial sum up, and copies(c,e,s) sends the whole sum down (step_encoding.h). The other variables are:
//
//   owns(c, r)      rank r owns the chunk; of ranks that images map to each other only the first may own it
//   gone(c, r, s)   rank r has sent its sum in a step before s; for the owner: its sum is whole before step s
//   here(c, r, s)   rank r holds the whole sum when step s begins
//
// Families of constraints:
//
//   once up   every rank except the owner sends up once: sum of adds(e,s) + owns(r) = 1, e out of r
//   gone      a sum has gone after the step that sends it: gone(r,s+1) -> gone(r,s) or owns(r) or some
//             adds(e,s). Back: gone(r,s) -> gone(r,s+1), and adds(e,s) -> gone(r,s+1)
//   open      nothing is added to a sum that has gone, h being the head of e: adds(e,s) -> not gone(h,s+1),
//             for an owner not gone(h,s)
//   arrives   a rank that holds the whole sum held it before, received it, or owns it and it is whole:
//             here(r,s+1) -> here(r,s) or some copies(e,s) or owns(r) and gone(r,s+1)
//   needs     at the end every rank holds the whole sum: here(r,S)
//
// The families `holds` and `once` are as for copies (copies.cc).
#include "synth/smt/owner_trees.h"

#include <algorithm>
#include <utility>

#include "synth/smt/step_encoding.h"

namespace xccl::smt {

namespace {

class OwnerTreesEncoding final : public ReductionsInRuns {
 public:
  OwnerTreesEncoding(const Machine& machine, const std::vector<Image>& images, int32_t runs, int32_t steps,
                     int32_t rounds)
      : ReductionsInRuns(machine, images, steps, {.assume_rounds = false}) {
    for (int32_t i = 0; i < runs; ++i) EncodeRun();
    AddRoundsAndLoads(rounds, images, true);
  }

 private:
  void EncodeRun();
  void EncodeUp(const Run& run, const Table& gone);
  void EncodeDown(const Run& run, const Table& gone);

  Table owns_;  // [run][rank]
};

void OwnerTreesEncoding::EncodeRun() {
  const size_t ranks = static_cast<size_t>(machine().ranks);
  const Run& run = runs().emplace_back(NewRun());
  const std::vector<z3::expr>& owns = owns_.emplace_back(NewTable(1, ranks)[0]);
  std::vector<char> seen(ranks, 0);
  z3::expr_vector owners = None();
  for (int32_t r = 0; r < machine().ranks; ++r) {
    if (seen[r] != 0) {
      Add(!owns[r]);
      continue;
    }
    owners.push_back(owns[r]);
    // Requires that owners do not decrease from run to run, because runs are interchangeable.
    if (owns_.size() > 1) {
      z3::expr_vector before = None();
      for (int32_t q = 0; q <= r; ++q) before.push_back(owns_.end()[-2][q]);
      Add(z3::implies(owns[r], z3::mk_or(before)));
    }
    for (const Image& image : images()) seen[image.rank[r]] = 1;
  }
  Add(z3::mk_or(owners));
  Add(z3::atmost(owners, 1));
  const Table gone = NewTable(steps() + 1, ranks);
  EncodeUp(run, gone);
  EncodeDown(run, gone);
}

void OwnerTreesEncoding::EncodeUp(const Run& run, const Table& gone) {
  for (int32_t r = 0; r < machine().ranks; ++r) {
    const size_t rank = static_cast<size_t>(r);
    const z3::expr& owns = owns_.back()[rank];
    Add(!gone[0][rank]);
    z3::expr_vector all = None();
    for (int32_t s = 0; s < steps(); ++s) {
      z3::expr_vector now = None();
      now.push_back(gone[s][rank]);
      now.push_back(owns);
      Add(!gone[s][rank] || gone[s + 1][rank]);
      for (int32_t e : machine().out[r]) {
        const z3::expr& up = run.adds[s][e];
        Add(!owns || !up);
        Add(!up || gone[s + 1][rank]);
        now.push_back(up);
        all.push_back(up);
      }
      Add(z3::implies(gone[s + 1][rank], z3::mk_or(now)));
      for (int32_t e : machine().in[r]) {
        Add(!run.adds[s][e] || !gone[s][rank]);
        Add(!run.adds[s][e] || !gone[s + 1][rank] || owns);
      }
    }
    Add(z3::atmost(all, 1));
    all.push_back(owns);
    Add(z3::mk_or(all));
  }
}

void OwnerTreesEncoding::EncodeDown(const Run& run, const Table& gone) {
  const Table here = NewTable(steps() + 1, static_cast<size_t>(machine().ranks));
  for (int32_t r = 0; r < machine().ranks; ++r) {
    const size_t rank = static_cast<size_t>(r);
    Add(!here[0][rank]);
    Add(here[steps()][rank]);
    z3::expr_vector all = None();
    for (int32_t s = 0; s < steps(); ++s) {
      for (int32_t e : machine().out[r]) Add(!run.copies[s][e] || here[s][rank]);
      z3::expr_vector sources = None();
      sources.push_back(here[s][rank]);
      sources.push_back(owns_.back()[rank] && gone[s + 1][rank]);
      for (int32_t e : machine().in[r]) {
        Add(!owns_.back()[rank] || !run.copies[s][e]);
        sources.push_back(run.copies[s][e]);
        all.push_back(run.copies[s][e]);
      }
      Add(z3::implies(here[s + 1][rank], z3::mk_or(sources)));
    }
    Add(z3::atmost(all, 1));
  }
}

}  // namespace

int32_t LeastOwnerTreesSteps(const Machine& machine) {
  int32_t least = kFar;
  for (int32_t r = 0; r < machine.ranks; ++r) {
    const std::vector<int32_t> to = DistancesTo(machine, {r}), from = DistancesFrom(machine, {r});
    least = std::min(least,
                     *std::max_element(to.begin(), to.end()) + *std::max_element(from.begin(), from.end()));
  }
  return least;
}

SolverQuestion OwnerTreesQuestion(const Machine& machine, const std::vector<Image>& images, int32_t runs,
                                  int32_t steps, int32_t rounds) {
  return SolverQuestion(
      [&] { return std::make_unique<OwnerTreesEncoding>(machine, images, runs, steps, rounds); });
}

}  // namespace xccl::smt
