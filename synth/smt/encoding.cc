// Encode, solve, decode. All variables are Boolean and all sums are of Booleans, for Z3's finite-domain
// solver.
//
//   sent(c, e, s)   chunk c goes over edge e in step s
//   here(c, r, s)   rank r holds chunk c when step s begins
//   longer(s, k)    step s has more than k rounds, k >= 1
//
// Variables that cannot be true are not made: a chunk reaches a rank at the earliest after as many steps as
// there are edges between, and is of use only where it can still reach a needer. Where only symmetric
// schedules are asked for, all images of a variable are one.
#include "synth/smt/encoding.h"

#include <fmt/format.h>
#include <z3++.h>

#include <algorithm>
#include <array>
#include <map>

#include "synth/smt/z3_check.h"

namespace xccl::smt {

class CopyQuestion::Encoding {
 public:
  Encoding(const Machine& machine, const greedy::CopyProblem& problem, const std::vector<Image>& images,
           int32_t steps, int32_t most_rounds, Style style, bool named)
      : machine_(machine),
        problem_(problem),
        images_(images),
        steps_(steps),
        extra_(most_rounds - steps),
        style_(style),
        named_(named),
        solver_(context_, "QF_FD") {
    NumberOrbits();
    sent_.assign(static_cast<size_t>(steps), std::vector<std::optional<z3::expr>>(num_sent_));
    here_.assign(static_cast<size_t>(steps) + 1, std::vector<std::optional<z3::expr>>(num_here_));
    std::vector<char> done(static_cast<size_t>(problem.chunks), 0);
    for (int32_t c = 0; c < problem_.chunks; ++c) {
      if (problem_.needers[c].empty() || done[c] != 0) continue;
      for (const std::vector<int32_t>& image : chunk_images_) done[image[c]] = 1;
      EncodeChunk(c);
      if (!problem_.contributing_holders.empty()) EncodeEmpty(c);
    }
    EncodeRounds();
    EncodeLoads();
    if (style_.ordered && !style_.symmetric) EncodeOrder();
  }

  Answer Ask(int32_t rounds, const SolveLimits& limits);
  Core LastCore() const;

 private:
  z3::expr NewBool() { return context_.bool_const(std::to_string(++variables_).c_str()); }
  // `about` names the link, rank or the like; the constraint may be left out if its name is not assumed.
  void Add(const z3::expr& what, const std::string& about = "") {
    XCCL_CHECK(what.is_bool());  // Z3 aborts on anything else
    if (!named_ || about.empty()) {
      solver_.add(what);
      return;
    }
    auto at = names_.find(about);
    if (at == names_.end()) {
      at = names_.emplace(about, names_.size()).first;
      guards_.push_back(NewBool());
    }
    solver_.add(z3::implies(guards_[at->second], what));
  }
  void NumberOrbits();
  void EncodeChunk(int32_t chunk);
  void EncodeEmpty(int32_t chunk);
  void EncodeLoads();
  void EncodeRounds();
  void EncodeOrder();
  z3::expr RoundsGuard(int32_t rounds);
  std::vector<Send> Decode();
  std::optional<z3::expr>& Sent(int32_t c, int32_t e, int32_t s) {
    return sent_[s][sent_orbit_[static_cast<size_t>(c) * machine_.edges.size() + static_cast<size_t>(e)]];
  }
  std::optional<z3::expr>& Here(int32_t c, int32_t r, int32_t s) {
    return here_[s][here_orbit_[static_cast<size_t>(c) * static_cast<size_t>(machine_.ranks) +
                                static_cast<size_t>(r)]];
  }

  const Machine& machine_;
  const greedy::CopyProblem& problem_;
  const std::vector<Image>& images_;
  const int32_t steps_, extra_;
  const Style style_;
  const bool named_;
  std::vector<std::vector<int32_t>>
      chunk_images_;                             // by group element; the identity alone where not symmetric
  std::vector<size_t> sent_orbit_, here_orbit_;  // of (chunk, edge), (chunk, rank)
  size_t num_sent_ = 0, num_here_ = 0;
  Context context_;
  z3::solver solver_;
  std::vector<std::vector<std::optional<z3::expr>>> sent_, here_;  // [step][orbit]
  std::vector<z3::expr_vector> longer_;                            // of a step
  std::map<int32_t, z3::expr> rounds_guards_;
  std::map<std::string, size_t> names_;
  std::vector<z3::expr> guards_;  // by name
  std::vector<std::string> core_;
  int64_t variables_ = 0;
};

// Images of chunks: the i-th of a class goes to the i-th of the class's image.
void CopyQuestion::Encoding::NumberOrbits() {
  const size_t edges = machine_.edges.size(), ranks = static_cast<size_t>(machine_.ranks);
  const size_t chunks = static_cast<size_t>(problem_.chunks);
  const ChunkClasses classes = ClassesOf(problem_);
  std::map<std::pair<std::vector<int32_t>, std::vector<int32_t>>, size_t> number;
  for (size_t k = 0; k < classes.chunks.size(); ++k)
    number[{problem_.holders[classes.chunks[k][0]], problem_.needers[classes.chunks[k][0]]}] = k;
  std::vector<const Image*> used;
  for (const Image& image : images_) {
    if (!style_.symmetric && !used.empty()) break;
    used.push_back(&image);
    std::vector<int32_t> of(chunks);
    for (size_t c = 0; c < chunks; ++c) of[c] = static_cast<int32_t>(c);
    for (const std::vector<int32_t>& from : classes.chunks) {
      const auto moved =
          number.find({Moved(image, problem_.holders[from[0]]), Moved(image, problem_.needers[from[0]])});
      XCCL_CHECK(moved != number.end());
      const auto& to = classes.chunks[moved->second];
      for (size_t i = 0; i < from.size(); ++i) of[from[i]] = to[i];
    }
    chunk_images_.push_back(std::move(of));
  }
  constexpr size_t kNone = ~size_t{0};
  sent_orbit_.assign(chunks * edges, kNone);
  here_orbit_.assign(chunks * ranks, kNone);
  for (size_t c = 0; c < chunks; ++c) {
    for (size_t e = 0; e < edges; ++e) {
      if (sent_orbit_[c * edges + e] != kNone) continue;
      for (size_t g = 0; g < used.size(); ++g)
        sent_orbit_[static_cast<size_t>(chunk_images_[g][c]) * edges +
                    static_cast<size_t>(used[g]->edge[e])] = num_sent_;
      ++num_sent_;
    }
    for (size_t r = 0; r < ranks; ++r) {
      if (here_orbit_[c * ranks + r] != kNone) continue;
      for (size_t g = 0; g < used.size(); ++g)
        here_orbit_[static_cast<size_t>(chunk_images_[g][c]) * ranks +
                    static_cast<size_t>(used[g]->rank[r])] = num_here_;
      ++num_here_;
    }
  }
}

void CopyQuestion::Encoding::EncodeChunk(int32_t chunk) {
  const std::vector<int32_t> after = DistancesFrom(machine_, problem_.holders[chunk]);
  const std::vector<int32_t> left = DistancesTo(machine_, problem_.needers[chunk]);
  // here where r is reached within s steps; holders always hold.
  for (int32_t r = 0; r < machine_.ranks; ++r)
    for (int32_t s = after[r]; s <= steps_; ++s)
      if (after[r] > 0 && !Here(chunk, r, s)) Here(chunk, r, s) = NewBool();
  std::vector<z3::expr_vector> arrivals;
  for (int32_t r = 0; r < machine_.ranks; ++r) arrivals.emplace_back(context_);
  for (int32_t s = 0; s < steps_; ++s) {
    std::vector<z3::expr_vector> now;
    for (int32_t r = 0; r < machine_.ranks; ++r) now.emplace_back(context_);
    for (size_t e = 0; e < machine_.edges.size(); ++e) {
      const Edge& edge = machine_.edges[e];
      if (after[edge.from] > s || after[edge.to] == 0 || left[edge.to] > steps_ - 1 - s) continue;
      std::optional<z3::expr>& sent = Sent(chunk, static_cast<int32_t>(e), s);
      if (!sent) sent = NewBool();
      // holds: who sends a chunk holds it when the step begins. sent(c,e,s) -> here(c,from(e),s)
      if (after[edge.from] > 0) Add(z3::implies(*sent, *Here(chunk, edge.from, s)));
      now[edge.to].push_back(*sent);
      arrivals[edge.to].push_back(*sent);
    }
    // arrives: who holds a chunk after a step held it before or was sent it in the step.
    // here(c,r,s+1) -> here(c,r,s) or some sent(c,e,s) with to(e) = r
    for (int32_t r = 0; r < machine_.ranks; ++r) {
      if (after[r] == 0 || after[r] > s + 1) continue;
      z3::expr_vector ways = now[r];
      if (after[r] <= s) ways.push_back(*Here(chunk, r, s));
      Add(z3::implies(*Here(chunk, r, s + 1), z3::mk_or(ways)));
    }
  }
  // once: a rank is sent a chunk at most once. sum over e into r and s of sent(c,e,s) <= 1
  for (int32_t r = 0; r < machine_.ranks; ++r)
    if (arrivals[r].size() > 1) Add(z3::atmost(arrivals[r], 1));
  // needs: at the end every needer holds the chunk. here(c,r,S)
  for (int32_t r : problem_.needers[chunk])
    Add(after[r] <= steps_ ? *Here(chunk, r, steps_) : context_.bool_val(false),
        fmt::format("needs of rank {}", r));
}

// Where the copies will run backwards as sums, a rank without a contribution is empty until the first comes,
// which is copied there and must come alone; here that is the last that it sends.
void CopyQuestion::Encoding::EncodeEmpty(int32_t chunk) {
  std::vector<char> is_empty(static_cast<size_t>(machine_.ranks), 1);
  for (int32_t r : problem_.needers[chunk]) is_empty[r] = 0;
  for (int32_t r : problem_.contributing_holders[chunk]) is_empty[r] = 0;
  for (int32_t r = 0; r < machine_.ranks; ++r) {
    if (is_empty[r] == 0) continue;
    z3::expr_vector later(context_);
    for (int32_t s = steps_ - 1; s >= 0; --s) {
      std::vector<z3::expr> now;
      for (int32_t e : machine_.out[r])
        if (Sent(chunk, e, s)) now.push_back(*Sent(chunk, e, s));
      // last alone: who sends two in a step sends again. sent(c,e,s) and sent(c,f,s) -> some sent(c,g,t), t >
      // s
      for (size_t i = 0; i < now.size(); ++i)
        for (size_t j = 0; j < i; ++j) Add(z3::implies(now[i] && now[j], z3::mk_or(later)));
      // of use: who is sent the chunk sends it on. sent(c,e,s), e into r -> some sent(c,g,t), t > s
      for (int32_t e : machine_.in[r])
        if (Sent(chunk, e, s)) Add(z3::implies(*Sent(chunk, e, s), z3::mk_or(later)));
      for (const z3::expr& sent : now) later.push_back(sent);
    }
  }
}

void CopyQuestion::Encoding::EncodeRounds() {
  for (int32_t s = 0; s < steps_; ++s) {
    longer_.emplace_back(context_);
    for (int32_t k = 0; k < extra_; ++k) {
      const z3::expr more = NewBool();
      // longer order: more than k+1 rounds are more than k. longer(s,k+1) -> longer(s,k)
      if (k > 0) Add(z3::implies(more, longer_.back()[static_cast<unsigned>(k - 1)]));
      longer_.back().push_back(more);
    }
  }
}

// rounds: beyond one round a step there are R - S in all. sum over s and k of longer(s,k) <= R - S
z3::expr CopyQuestion::Encoding::RoundsGuard(int32_t rounds) {
  const auto at = rounds_guards_.find(rounds);
  if (at != rounds_guards_.end()) return at->second;
  z3::expr guard = NewBool();
  z3::expr_vector all(context_);
  for (const z3::expr_vector& of_step : longer_)
    for (unsigned k = 0; k < of_step.size(); ++k) all.push_back(of_step[k]);
  if (!all.empty()) solver_.add(z3::implies(guard, z3::atmost(all, static_cast<unsigned>(rounds - steps_))));
  rounds_guards_.emplace(rounds, guard);
  return guard;
}

// load: what goes over a link in a step fits its rounds.
// sum over c and e over the link of sent(c,e,s) <= perRound * (1 + sum over k of longer(s,k)),
// written with the negated longer(s,k) on the left.
void CopyQuestion::Encoding::EncodeLoads() {
  std::vector<char> done(machine_.capacities.size(), 0);
  for (size_t capacity = 0; capacity < machine_.capacities.size(); ++capacity) {
    if (done[capacity] != 0) continue;
    for (const Image& image : images_) {
      if (style_.symmetric) done[image.capacity[capacity]] = 1;
    }
    const int64_t per_round = machine_.capacities[capacity].per_round;
    const std::string about = "load of " + machine_.capacities[capacity].name;
    for (int32_t s = 0; s < steps_; ++s) {
      std::map<size_t, int> times;  // of each orbit
      int64_t sends = 0;
      for (int32_t e : machine_.users[capacity])
        for (int32_t c = 0; c < problem_.chunks; ++c)
          if (Sent(c, e, s)) {
            ++times[sent_orbit_[static_cast<size_t>(c) * machine_.edges.size() + static_cast<size_t>(e)]];
            ++sends;
          }
      if (sends <= per_round) continue;
      z3::expr_vector terms(context_);
      std::vector<int> weights;
      for (const auto& [orbit, count] : times) {
        terms.push_back(*sent_[s][orbit]);
        weights.push_back(count);
      }
      const int64_t useful = std::min<int64_t>(extra_, (sends + per_round - 1) / per_round - 1);
      for (int64_t k = 0; k < useful; ++k) {
        terms.push_back(!longer_[static_cast<size_t>(s)][static_cast<unsigned>(k)]);
        weights.push_back(static_cast<int>(per_round));
      }
      const int limit = static_cast<int>(per_round * (1 + useful));
      const bool plain = std::all_of(weights.begin(), weights.end(), [](int w) { return w == 1; });
      Add(plain ? z3::atmost(terms, static_cast<unsigned>(limit)) : z3::pble(terms, weights.data(), limit),
          about);
    }
  }
}

// chunk order: of two interchangeable chunks the first leaves the holder no later than the second.
// sent(c+1,e,s), e out of the holder -> some sent(c,f,t), f out of the holder, t <= s
void CopyQuestion::Encoding::EncodeOrder() {
  for (const std::vector<int32_t>& chunks : ClassesOf(problem_).chunks) {
    if (problem_.holders[chunks[0]].size() != 1) continue;
    const std::vector<int32_t>& out = machine_.out[problem_.holders[chunks[0]][0]];
    for (size_t i = 0; i + 1 < chunks.size(); ++i) {
      z3::expr_vector before(context_);
      for (int32_t s = 0; s + 1 < steps_; ++s) {
        for (int32_t e : out)
          if (Sent(chunks[i], e, s)) before.push_back(*Sent(chunks[i], e, s));
        for (int32_t e : out)
          if (Sent(chunks[i + 1], e, s)) Add(z3::implies(*Sent(chunks[i + 1], e, s), z3::mk_or(before)));
      }
    }
  }
}

Answer CopyQuestion::Encoding::Ask(int32_t rounds, const SolveLimits& limits) {
  z3::params parameters = ParametersOf(context_, limits);
  if (style_.networks) {
    parameters.set("cardinality.solver", false);
    parameters.set("pb.solver", "totalizer");
  }
  solver_.set(parameters);
  z3::expr_vector assumed(context_);
  assumed.push_back(RoundsGuard(rounds));
  for (const z3::expr& guard : guards_) assumed.push_back(guard);
  Answer answer;
  const z3::check_result result = Check(context_, solver_, assumed, limits, answer.work);
  switch (result) {
    case z3::sat:
      answer.verdict = Verdict::kFeasible;
      answer.sends = Decode();
      break;
    case z3::unsat: {
      answer.verdict = Verdict::kInfeasible;
      if (!named_) break;
      core_.clear();
      const z3::expr_vector core = solver_.unsat_core();
      for (unsigned i = 0; i < core.size(); ++i) {
        if (z3::eq(core[i], assumed[0])) core_.push_back("rounds");
        for (const auto& [name, index] : names_)
          if (z3::eq(core[i], guards_[index])) core_.push_back(name);
      }
      std::sort(core_.begin(), core_.end());
      break;
    }
    case z3::unknown:
      break;
  }
  return answer;
}

Core CopyQuestion::Encoding::LastCore() const { return {core_}; }

std::vector<Send> CopyQuestion::Encoding::Decode() {
  const z3::model model = solver_.get_model();
  std::vector<Send> sends;
  for (int32_t s = 0; s < steps_; ++s) {
    std::vector<char> is_sent(num_sent_, 0);
    for (size_t orbit = 0; orbit < num_sent_; ++orbit)
      is_sent[orbit] = sent_[s][orbit] && model.eval(*sent_[s][orbit], true).is_true() ? 1 : 0;
    for (int32_t c = 0; c < problem_.chunks; ++c)
      for (size_t e = 0; e < machine_.edges.size(); ++e)
        if (is_sent[sent_orbit_[static_cast<size_t>(c) * machine_.edges.size() + e]] != 0)
          sends.push_back({c, static_cast<int32_t>(e), s});
  }
  return sends;
}

std::string Summary(const Core& core) {
  constexpr size_t kShown = 4;
  std::map<std::string, std::vector<std::string>> things;  // by "load of", "needs of rank"
  bool rounds = false;
  for (const std::string& name : core.names) {
    const size_t space = name.rfind(' ');
    if (space == std::string::npos) {
      rounds = true;
    } else {
      things[name.substr(0, space)].push_back(name.substr(space + 1));
    }
  }
  std::vector<std::string> parts;
  for (const auto& [family, of] : things) {
    const size_t shown = std::min(kShown, of.size());
    std::string part = fmt::format(
        "{} {}", family, fmt::join(of.begin(), of.begin() + static_cast<std::ptrdiff_t>(shown), ", "));
    if (of.size() > shown) part += fmt::format(" and {} more", of.size() - shown);
    parts.push_back(std::move(part));
  }
  if (rounds) parts.emplace_back("rounds");
  return fmt::format("{}", fmt::join(parts, "; "));
}

CopyQuestion::CopyQuestion(const Machine& machine, const greedy::CopyProblem& problem,
                           const std::vector<Image>& images, int32_t steps, int32_t most_rounds, Style style,
                           bool named)
    : encoding_(
          MakeEncoding<Encoding>(failure_, machine, problem, images, steps, most_rounds, style, named)) {}

CopyQuestion::~CopyQuestion() = default;

StatusOr<Answer> CopyQuestion::Ask(int32_t rounds, const SolveLimits& limits) {
  return AskEncoding<Answer>(encoding_.get(), failure_, limits,
                             [&](Encoding& encoding) { return encoding.Ask(rounds, limits); });
}

Core CopyQuestion::LastCore() const { return encoding_->LastCore(); }

int64_t EncodingSize(const Machine& machine, const greedy::CopyProblem& problem, int32_t steps) {
  int64_t chunks = 0;
  for (const std::vector<int32_t>& needers : problem.needers) chunks += needers.empty() ? 0 : 1;
  return chunks * static_cast<int64_t>(machine.edges.size() + static_cast<size_t>(machine.ranks)) * steps;
}

}  // namespace xccl::smt
