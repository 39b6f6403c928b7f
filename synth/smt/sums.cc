// Encodes sums for Z3 as sets of contributions. Variables, in addition to the variables of ReductionsInRuns
// (step_encoding.h):
//
//   has(c, r, q, s)   the data of chunk c that rank r holds when step s begins contains contribution q
//
// Families of constraints. sent(e,s) is adds(e,s) or copies(e,s), t is the tail of e, and h is the head of e:
//
//   keeps     without a copy no contribution is lost: has(r,q,s) and no copies into r -> has(r,q,s+1)
//   moves     sent data arrives: sent(e,s) and has(t,q,s) -> has(h,q,s+1)
//   came      a contribution was there before or arrived:
//             has(r,q,s+1) -> has(r,q,s) or some sent(e,s) with has(t,q,s)
//   replaced  a copy removes the receiver's old data: copies(e,s) and not has(t,q,s) -> not has(h,q,s+1)
//   once      no contribution is added twice: adds(e,s) and has(t,q,s) -> not has(h,q,s), and of two adds in
//             a step only one has q
//   holds     a sender, and a receiver that adds, hold some contribution
//   alone     a copy is the only send to its rank in its step: copies(e,s) -> not sent(f,s), f ≠ e into h
//   needs     at the end ranks hold exactly what they need: has(r,q,S) = after(r,q)
//   waste     no send is useless: see EncodeWaste()
#include "synth/smt/sums.h"

#include <algorithm>
#include <utility>

#include "synth/smt/step_encoding.h"

namespace xccl::smt {

std::optional<SumProblem> SumsOf(const Collective& collective, int32_t ranks) {
  SumProblem problem;
  std::vector<Holding> before, after;
  for (int32_t c = 0; c < collective.num_chunks(); ++c) {
    collective.Before(ChunkId(c), before);
    collective.After(ChunkId(c), after);
    std::vector<Rank> contributions;
    for (const Holding& have : before)
      contributions.insert(contributions.end(), have.contributions.begin(), have.contributions.end());
    std::sort(contributions.begin(), contributions.end());
    contributions.erase(std::unique(contributions.begin(), contributions.end()), contributions.end());
    if (contributions.size() > 64) return std::nullopt;
    SumProblem::Chunk chunk;
    chunk.contributions = static_cast<int32_t>(contributions.size());
    chunk.before.assign(static_cast<size_t>(ranks), 0);
    chunk.after.assign(static_cast<size_t>(ranks), 0);
    const auto set = [&](const std::vector<Holding>& holdings, std::vector<uint64_t>& bits) {
      for (const Holding& have : holdings)
        for (Rank q : have.contributions)
          bits[have.rank.index()] |= uint64_t{1}
                                     << (std::lower_bound(contributions.begin(), contributions.end(), q) -
                                         contributions.begin());
    };
    set(before, chunk.before);
    set(after, chunk.after);
    problem.chunks.push_back(std::move(chunk));
  }
  return problem;
}

int64_t SumSize(const Machine& machine, const SumProblem& problem, int32_t steps) {
  int64_t size = 0;
  for (const SumProblem::Chunk& chunk : problem.chunks)
    size += static_cast<int64_t>(machine.edges.size()) * (2 + chunk.contributions) +
            int64_t{machine.ranks} * chunk.contributions;
  return size * steps;
}

namespace {

class ReductionEncoding final : public ReductionsInRuns {
 public:
  ReductionEncoding(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images,
                    int32_t steps, std::optional<int32_t> rounds)
      : ReductionsInRuns(machine, images, steps, {}), problem_(problem) {
    for (size_t c = 0; c * images.size() < problem.chunks.size(); ++c) EncodeChunk(c);
    if (rounds) AddRoundsAndLoads(*rounds, images, true);
  }

 private:
  void EncodeChunk(size_t chunk);
  void EncodeArrival(size_t chunk, int32_t rank, int32_t step);
  void EncodeWaste(size_t chunk);
  // Adds one term for both kinds of a send, because Z3 then proves prices of sums faster.
  void AddSent(int32_t edge, int32_t step, z3::expr_vector& sent) override {
    for (size_t c = 0; c < runs().size(); ++c) sent.push_back(Sent(c, edge, step));
  }
  // Returns has(c,r,q,s): a constant for step 0, a variable for later steps.
  z3::expr Has(size_t c, int32_t r, int32_t q, int32_t s) {
    if (s == 0) return Constant((problem_.chunks[c].before[r] >> q & 1) != 0);
    return Made(has_[s - 1][r * problem_.chunks[c].contributions + q]);
  }
  z3::expr Made(z3::expr& variable) {
    if (static_cast<Z3_ast>(variable) == nullptr) variable = NewBool();
    return variable;
  }
  z3::expr Adds(size_t c, int32_t e, int32_t s) { return Made(runs()[c].adds[s][e]); }
  z3::expr Copies(size_t c, int32_t e, int32_t s) { return Made(runs()[c].copies[s][e]); }
  z3::expr Sent(size_t c, int32_t e, int32_t s) { return Adds(c, e, s) || Copies(c, e, s); }

  const SumProblem& problem_;
  Table has_;  // of the chunk encoded last: [step - 1][rank × contributions + contribution]
};

void ReductionEncoding::EncodeChunk(size_t c) {
  const SumProblem::Chunk& chunk = problem_.chunks[c];
  runs().push_back(NewRun(true));
  has_ = NewTable(steps(), static_cast<size_t>(machine().ranks * chunk.contributions), true);
  for (int32_t s = 0; s < steps(); ++s)
    for (int32_t r = 0; r < machine().ranks; ++r) EncodeArrival(c, r, s);
  EncodeWaste(c);
  for (int32_t r = 0; r < machine().ranks; ++r) {
    if (chunk.after[r] == 0) continue;
    for (int32_t q = 0; q < chunk.contributions; ++q) {
      const z3::expr has = Has(c, r, q, steps());
      Add((chunk.after[r] >> q & 1) != 0 ? has : !has);
    }
  }
}

void ReductionEncoding::EncodeArrival(size_t c, int32_t r, int32_t s) {
  const std::vector<int32_t>& in = machine().in[r];
  z3::expr_vector copies = None();
  for (int32_t e : in) copies.push_back(Copies(c, e, s));
  const z3::expr copied = z3::mk_or(copies);
  // alone: a rank receives at most one copy in a step, and no sum in addition to a copy.
  for (size_t i = 0; i < in.size(); ++i)
    for (size_t j = 0; j < in.size(); ++j) {
      if (i < j) Add(!Copies(c, in[i], s) || !Copies(c, in[j], s));
      Add(!Copies(c, in[i], s) || !Adds(c, in[j], s));
    }
  const int32_t contributions = problem_.chunks[c].contributions;
  z3::expr_vector held = None();
  for (int32_t q = 0; q < contributions; ++q) held.push_back(Has(c, r, q, s));
  const z3::expr holds = z3::mk_or(held);
  for (int32_t e : in) {
    z3::expr_vector tail = None();
    for (int32_t q = 0; q < contributions; ++q) tail.push_back(Has(c, machine().edges[e].from, q, s));
    // A sender holds some contribution. A receiver that adds holds some contribution too.
    Add(z3::implies(Sent(c, e, s), z3::mk_or(tail)));
    Add(z3::implies(Adds(c, e, s), holds));
  }
  for (int32_t q = 0; q < contributions; ++q) {
    const z3::expr before = Has(c, r, q, s), after = Has(c, r, q, s + 1);
    Add(!before || copied || after);
    z3::expr_vector sources = None(), added = None();
    sources.push_back(before);
    for (int32_t e : in) {
      const z3::expr tail = Has(c, machine().edges[e].from, q, s);
      const z3::expr adds = Adds(c, e, s), copy = Copies(c, e, s);
      Add(!adds || !tail || after);
      Add(!copy || !tail || after);
      Add(!copy || tail || !after);
      Add(!adds || !tail || !before);
      sources.push_back((adds || copy) && tail);
      added.push_back(adds && tail);
    }
    Add(z3::implies(after, z3::mk_or(sources)));
    if (added.size() > 1) Add(z3::atmost(added, 1));
  }
}

// Adds the family `waste`, if every rank needs the whole sum. A rank that has the whole sum receives nothing.
// If also every rank has exactly one contribution, every rank sends and receives, with at least 2 × (ranks −
// 1) sends in all (docs/ir.md, Lower bounds). No answer is lost: a schedule with useless sends stays correct
// if they are left out, and if later adds from ranks with the whole sum become copies.
void ReductionEncoding::EncodeWaste(size_t c) {
  const SumProblem::Chunk& chunk = problem_.chunks[c];
  const uint64_t all = chunk.contributions == 64 ? ~uint64_t{0} : (uint64_t{1} << chunk.contributions) - 1;
  if (std::any_of(chunk.after.begin(), chunk.after.end(), [&](uint64_t after) { return after != all; }))
    return;
  for (int32_t r = 0; r < machine().ranks; ++r)
    for (int32_t s = 1; s < steps(); ++s) {
      z3::expr_vector lacks = None();
      for (int32_t q = 0; q < chunk.contributions; ++q) lacks.push_back(!Has(c, r, q, s));
      const z3::expr full = !z3::mk_or(lacks);
      for (int32_t e : machine().in[r]) Add(z3::implies(full, !Adds(c, e, s) && !Copies(c, e, s)));
    }
  if (chunk.contributions != machine().ranks || machine().ranks < 2 ||
      std::any_of(chunk.before.begin(), chunk.before.end(),
                  [](uint64_t before) { return before == 0 || (before & (before - 1)) != 0; }))
    return;
  z3::expr_vector sends = None();
  for (int32_t r = 0; r < machine().ranks; ++r) {
    z3::expr_vector in = None(), out = None();
    for (int32_t s = 0; s < steps(); ++s) {
      for (int32_t e : machine().in[r]) {
        in.push_back(Sent(c, e, s));
        sends.push_back(in.back());
      }
      for (int32_t e : machine().out[r]) out.push_back(Sent(c, e, s));
    }
    Add(z3::mk_or(in));
    Add(z3::mk_or(out));
  }
  Add(z3::atleast(sends, static_cast<unsigned>(2 * (machine().ranks - 1))));
}

}  // namespace

SolverQuestion ReductionQuestion(const Machine& machine, const SumProblem& problem,
                                 const std::vector<Image>& images, int32_t steps,
                                 std::optional<int32_t> rounds) {
  return SolverQuestion(
      [&] { return std::make_unique<ReductionEncoding>(machine, problem, images, steps, rounds); });
}

}  // namespace xccl::smt
