// Variables, all Boolean:
//
//   adds(c, e, s)     what the tail of e holds of chunk c is added to what its head holds, in step s
//   copies(c, e, s)   it takes the place of what its head holds
//   has(c, r, q, s)   what rank r holds of chunk c when step s begins contains contribution q
//   longer(s, k)      step s has more than k rounds, k >= 1
//
// Families, where sent(e,s) is adds or copies, t the tail of e and h its head:
//
//   keeps     without a copy nothing is lost: has(r,q,s) and no copies into r -> has(r,q,s+1)
//   moves     what is sent arrives: sent(e,s) and has(t,q,s) -> has(h,q,s+1)
//   came      what is there was there or came: has(r,q,s+1) -> has(r,q,s) or some sent(e,s) with has(t,q,s)
//   replaced  a copy leaves nothing of what was there: copies(e,s) and not has(t,q,s) -> not has(h,q,s+1)
//   once      nothing is added twice: adds(e,s) and has(t,q,s) -> not has(h,q,s), and of two adds only one
//             has q
//   alone     a copy is the only send to its rank in its step: copies(e,s) -> not sent(f,s), f into h
//   needs     in the end ranks hold what they need and no more: has(r,q,S) = after(r,q)
//
// Load and rounds are as for copies (encoding.cc).
#include "synth/smt/sums.h"

#include <z3++.h>

#include <algorithm>
#include <map>

#include "synth/smt/z3_check.h"

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

class SumQuestion::Encoding {
 public:
  Encoding(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images, Shape shape,
           int32_t steps, std::optional<int32_t> most_rounds)
      : machine_(machine),
        problem_(problem),
        images_(images),
        shape_(shape),
        run_(shape == Shape::kTranslated ? images.size() : 1),
        steps_(steps),
        extra_(most_rounds.value_or(steps) - steps),
        solver_(context_, "QF_FD") {
    NumberOrbits();
    for (size_t c = 0; c * run_ < problem.chunks.size(); ++c) EncodeChunk(c);
    if (most_rounds) {
      EncodeRounds();
      EncodeLoads();
      EncodeOrder();
    }
  }

  SumAnswer Ask(const z3::expr& guard, const SolveLimits& limits);
  z3::expr RoundsGuard(int32_t rounds);
  z3::expr BudgetGuard(const EdgePrices& prices, int64_t most);

 private:
  struct ChunkVars {
    std::vector<std::vector<std::optional<z3::expr>>> adds, copies;  // [step][orbit of edges]
    std::vector<std::vector<std::optional<z3::expr>>> has;           // [step][orbit of (rank, contribution)]
  };

  z3::expr NewBool() { return context_.bool_const(std::to_string(++variables_).c_str()); }
  z3::expr False() { return context_.bool_val(false); }
  void NumberOrbits();
  void EncodeChunk(size_t chunk);
  void EncodeArrival(size_t chunk, int32_t rank, int32_t step);
  void EncodeWaste(size_t chunk);
  void EncodeRounds();
  void EncodeLoads();
  std::vector<int32_t> Loading(size_t capacity) const;
  void EncodeOrder();
  // Held before any step: known; later a variable.
  z3::expr Has(size_t c, int32_t r, int32_t q, int32_t s) {
    if (s == 0) return context_.bool_val((problem_.chunks[c].before[r] >> q & 1) != 0);
    std::optional<z3::expr>& var =
        vars_[c].has[s][has_orbit_[static_cast<size_t>(r) * 64 + static_cast<size_t>(q)]];
    if (!var) var = NewBool();
    return *var;
  }
  z3::expr Adds(size_t c, int32_t e, int32_t s) {
    std::optional<z3::expr>& var = vars_[c].adds[s][edge_orbit_[e]];
    if (!var) var = NewBool();
    return *var;
  }
  z3::expr Copies(size_t c, int32_t e, int32_t s) {
    std::optional<z3::expr>& var = vars_[c].copies[s][edge_orbit_[e]];
    if (!var) var = NewBool();
    return *var;
  }

  const Machine& machine_;
  const SumProblem& problem_;
  const std::vector<Image>& images_;
  const Shape shape_;
  const size_t run_;  // chunks that are images of one
  const int32_t steps_, extra_;
  std::vector<size_t> edge_orbit_, has_orbit_;
  size_t num_edges_ = 0, num_has_ = 0;
  Context context_;
  z3::solver solver_;
  std::vector<ChunkVars> vars_;
  std::vector<z3::expr_vector> longer_;
  std::map<int64_t, z3::expr> guards_;
  int64_t variables_ = 0;
};

void SumQuestion::Encoding::NumberOrbits() {
  constexpr size_t kNone = ~size_t{0};
  edge_orbit_.assign(machine_.edges.size(), kNone);
  has_orbit_.assign(static_cast<size_t>(machine_.ranks) * 64, kNone);
  for (size_t e = 0; e < machine_.edges.size(); ++e) {
    if (edge_orbit_[e] != kNone) continue;
    edge_orbit_[e] = num_edges_;
    if (shape_ == Shape::kSymmetric)
      for (const Image& image : images_) edge_orbit_[image.edge[e]] = num_edges_;
    ++num_edges_;
  }
  for (size_t r = 0; r < static_cast<size_t>(machine_.ranks); ++r)
    for (size_t q = 0; q < 64; ++q) {
      if (has_orbit_[r * 64 + q] != kNone) continue;
      has_orbit_[r * 64 + q] = num_has_;
      for (const Image& image : images_)
        if (shape_ == Shape::kSymmetric && q < image.rank.size())
          has_orbit_[static_cast<size_t>(image.rank[r]) * 64 + static_cast<size_t>(image.rank[q])] = num_has_;
      ++num_has_;
    }
}

void SumQuestion::Encoding::EncodeChunk(size_t c) {
  ChunkVars& vars = vars_.emplace_back();
  vars.adds.assign(static_cast<size_t>(steps_), std::vector<std::optional<z3::expr>>(num_edges_));
  vars.copies = vars.adds;
  vars.has.assign(static_cast<size_t>(steps_) + 1, std::vector<std::optional<z3::expr>>(num_has_));
  const SumProblem::Chunk& chunk = problem_.chunks[c];
  for (int32_t s = 0; s < steps_; ++s)
    for (int32_t r = 0; r < machine_.ranks; ++r) EncodeArrival(c, r, s);
  EncodeWaste(c);
  for (int32_t r = 0; r < machine_.ranks; ++r) {
    if (chunk.after[r] == 0) continue;
    for (int32_t q = 0; q < chunk.contributions; ++q) {
      const z3::expr has = Has(c, r, q, steps_);
      solver_.add((chunk.after[r] >> q & 1) != 0 ? has : !has);
    }
  }
}

void SumQuestion::Encoding::EncodeArrival(size_t c, int32_t r, int32_t s) {
  const std::vector<int32_t>& in = machine_.in[r];
  z3::expr_vector copies(context_);
  for (int32_t e : in) copies.push_back(Copies(c, e, s));
  const z3::expr copied = z3::mk_or(copies);
  // alone: at most one copy, and no sum beside it.
  for (size_t i = 0; i < in.size(); ++i)
    for (size_t j = 0; j < in.size(); ++j) {
      if (i < j) solver_.add(!Copies(c, in[i], s) || !Copies(c, in[j], s));
      solver_.add(!Copies(c, in[i], s) || !Adds(c, in[j], s));
    }
  const int32_t contributions = problem_.chunks[c].contributions;
  z3::expr_vector held(context_);
  for (int32_t q = 0; q < contributions; ++q) held.push_back(Has(c, r, q, s));
  const z3::expr holds = z3::mk_or(held);
  for (int32_t e : in) {
    z3::expr_vector tail(context_);
    for (int32_t q = 0; q < contributions; ++q) tail.push_back(Has(c, machine_.edges[e].from, q, s));
    // Nobody sends nothing, or adds to nothing.
    solver_.add(z3::implies(Adds(c, e, s) || Copies(c, e, s), z3::mk_or(tail)));
    solver_.add(z3::implies(Adds(c, e, s), holds));
  }
  for (int32_t q = 0; q < contributions; ++q) {
    const z3::expr before = Has(c, r, q, s), after = Has(c, r, q, s + 1);
    solver_.add(!before || copied || after);
    z3::expr_vector ways(context_), added(context_);
    ways.push_back(before);
    for (int32_t e : in) {
      const z3::expr tail = Has(c, machine_.edges[e].from, q, s);
      const z3::expr adds = Adds(c, e, s), copy = Copies(c, e, s);
      solver_.add(!adds || !tail || after);
      solver_.add(!copy || !tail || after);
      solver_.add(!copy || tail || !after);
      solver_.add(!adds || !tail || !before);
      ways.push_back((adds || copy) && tail);
      added.push_back(adds && tail);
    }
    solver_.add(z3::implies(after, z3::mk_or(ways)));
    if (added.size() > 1) solver_.add(z3::atmost(added, 1));
  }
}

// waste: whoever has the whole sum is sent nothing; and where every rank has one contribution of its own and
// needs all, each sends and is sent to, 2 × (ranks − 1) sends in all (docs/ir.md, lower bounds). A schedule
// that wastes stays right when such sends are left out and others from full ranks become copies.
void SumQuestion::Encoding::EncodeWaste(size_t c) {
  const SumProblem::Chunk& chunk = problem_.chunks[c];
  const uint64_t all = chunk.contributions == 64 ? ~uint64_t{0} : (uint64_t{1} << chunk.contributions) - 1;
  if (std::any_of(chunk.after.begin(), chunk.after.end(), [&](uint64_t after) { return after != all; }))
    return;
  for (int32_t r = 0; r < machine_.ranks; ++r)
    for (int32_t s = 1; s < steps_; ++s) {
      z3::expr_vector lacks(context_);
      for (int32_t q = 0; q < chunk.contributions; ++q) lacks.push_back(!Has(c, r, q, s));
      const z3::expr full = !z3::mk_or(lacks);
      for (int32_t e : machine_.in[r]) solver_.add(z3::implies(full, !Adds(c, e, s) && !Copies(c, e, s)));
    }
  if (chunk.contributions != machine_.ranks || machine_.ranks < 2 ||
      std::any_of(chunk.before.begin(), chunk.before.end(),
                  [](uint64_t before) { return before == 0 || (before & (before - 1)) != 0; }))
    return;
  z3::expr_vector sends(context_);
  for (int32_t r = 0; r < machine_.ranks; ++r) {
    z3::expr_vector in(context_), out(context_);
    for (int32_t s = 0; s < steps_; ++s) {
      for (int32_t e : machine_.in[r]) {
        in.push_back(Adds(c, e, s) || Copies(c, e, s));
        sends.push_back(in.back());
      }
      for (int32_t e : machine_.out[r]) out.push_back(Adds(c, e, s) || Copies(c, e, s));
    }
    solver_.add(z3::mk_or(in));
    solver_.add(z3::mk_or(out));
  }
  solver_.add(z3::atleast(sends, static_cast<unsigned>(2 * (machine_.ranks - 1))));
}

void SumQuestion::Encoding::EncodeRounds() {
  for (int32_t s = 0; s < steps_; ++s) {
    longer_.emplace_back(context_);
    for (int32_t k = 0; k < extra_; ++k) {
      const z3::expr more = NewBool();
      if (k > 0) solver_.add(z3::implies(more, longer_.back()[static_cast<unsigned>(k - 1)]));
      longer_.back().push_back(more);
    }
  }
}

void SumQuestion::Encoding::EncodeLoads() {
  for (size_t capacity = 0; capacity < machine_.capacities.size(); ++capacity) {
    const int per_round = machine_.capacities[capacity].per_round;
    for (int32_t s = 0; s < steps_; ++s) {
      z3::expr_vector terms(context_);
      std::vector<int> weights;
      for (int32_t e : Loading(capacity))
        for (size_t c = 0; c < vars_.size(); ++c) {
          terms.push_back(Adds(c, e, s) || Copies(c, e, s));
          weights.push_back(1);
        }
      const int64_t sends = static_cast<int64_t>(terms.size());
      if (sends <= per_round) continue;
      const int64_t useful = std::min<int64_t>(extra_, (sends + per_round - 1) / per_round - 1);
      for (int64_t k = 0; k < useful; ++k) {
        terms.push_back(!longer_[static_cast<size_t>(s)][static_cast<unsigned>(k)]);
        weights.push_back(per_round);
      }
      solver_.add(z3::pble(terms, weights.data(), static_cast<int>(per_round * (1 + useful))));
    }
  }
}

// Edges of the first chunk of a run that, or whose images for the others, are over the capacity.
std::vector<int32_t> SumQuestion::Encoding::Loading(size_t capacity) const {
  if (shape_ != Shape::kTranslated) return machine_.users[capacity];
  std::vector<int32_t> edges;
  for (const Image& image : images_)
    for (size_t e = 0; e < machine_.edges.size(); ++e)
      for (int32_t c : machine_.edges[image.edge[e]].over)
        if (c == static_cast<int32_t>(capacity)) edges.push_back(static_cast<int32_t>(e));
  return edges;
}

// Chunks that are alike: their sends over the first edges of the first step do not increase.
void SumQuestion::Encoding::EncodeOrder() {
  if (machine_.edges.empty()) return;
  for (size_t c = 0; c + 1 < vars_.size(); ++c)
    if (problem_.chunks[c] == problem_.chunks[c + 1])
      solver_.add(z3::implies(Adds(c + 1, 0, 0) || Copies(c + 1, 0, 0), Adds(c, 0, 0) || Copies(c, 0, 0)));
}

z3::expr SumQuestion::Encoding::RoundsGuard(int32_t rounds) {
  const auto at = guards_.find(rounds);
  if (at != guards_.end()) return at->second;
  z3::expr guard = NewBool();
  z3::expr_vector all(context_);
  for (const z3::expr_vector& of_step : longer_)
    for (unsigned k = 0; k < of_step.size(); ++k) all.push_back(of_step[k]);
  if (!all.empty()) solver_.add(z3::implies(guard, z3::atmost(all, static_cast<unsigned>(rounds - steps_))));
  guards_.emplace(rounds, guard);
  return guard;
}

z3::expr SumQuestion::Encoding::BudgetGuard(const EdgePrices& prices, int64_t most) {
  z3::expr guard = NewBool();
  z3::expr_vector terms(context_);
  std::vector<int> weights;
  for (int32_t s = 0; s < steps_; ++s)
    for (size_t e = 0; e < machine_.edges.size(); ++e) {
      if (prices[s][e] == 0) continue;
      terms.push_back(Adds(0, static_cast<int32_t>(e), s) || Copies(0, static_cast<int32_t>(e), s));
      weights.push_back(static_cast<int>(prices[s][e]));
    }
  if (terms.empty() || most < 0) {
    if (most < 0) solver_.add(!guard);
    return guard;
  }
  solver_.add(z3::implies(guard, z3::pble(terms, weights.data(), static_cast<int>(most))));
  return guard;
}

SumAnswer SumQuestion::Encoding::Ask(const z3::expr& guard, const SolveLimits& limits) {
  solver_.set(ParametersOf(context_, limits));
  z3::expr_vector assumed(context_);
  assumed.push_back(guard);
  SumAnswer answer;
  const z3::check_result result = Check(context_, solver_, assumed, limits, answer.work);
  if (result == z3::unsat) answer.verdict = Verdict::kInfeasible;
  if (result != z3::sat) return answer;
  answer.verdict = Verdict::kFeasible;
  const z3::model model = solver_.get_model();
  for (int32_t s = 0; s < steps_; ++s)
    for (size_t c = 0; c < vars_.size(); ++c)
      for (size_t e = 0; e < machine_.edges.size(); ++e)
        for (const bool adds : {true, false}) {
          const std::optional<z3::expr>& var = (adds ? vars_[c].adds : vars_[c].copies)[s][edge_orbit_[e]];
          if (!var || !model.eval(*var, true).is_true()) continue;
          for (size_t g = 0; g < run_; ++g)
            answer.sends.push_back({{static_cast<int32_t>(c * run_ + g),
                                     run_ == 1 ? static_cast<int32_t>(e) : images_[g].edge[e], s},
                                    adds});
        }
  return answer;
}

SumQuestion::SumQuestion(const Machine& machine, const SumProblem& problem, const std::vector<Image>& images,
                         Shape shape, int32_t steps, std::optional<int32_t> most_rounds)
    : encoding_(MakeEncoding<Encoding>(failure_, machine, problem, images, shape, steps, most_rounds)) {}

SumQuestion::~SumQuestion() = default;

StatusOr<SumAnswer> SumQuestion::Ask(int32_t rounds, const SolveLimits& limits) {
  return AskEncoding<SumAnswer>(encoding_.get(), failure_, limits, [&](Encoding& encoding) {
    return encoding.Ask(encoding.RoundsGuard(rounds), limits);
  });
}

StatusOr<SumAnswer> SumQuestion::AskBelow(const EdgePrices& prices, int64_t most, const SolveLimits& limits) {
  return AskEncoding<SumAnswer>(encoding_.get(), failure_, limits, [&](Encoding& encoding) {
    return encoding.Ask(encoding.BudgetGuard(prices, most), limits);
  });
}

}  // namespace xccl::smt
