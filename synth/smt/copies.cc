// Encodes copies for Z3. Variables, in addition to the variables of step_encoding.h:
//
//   sent(c, e, s)   chunk c goes over edge e in step s
//   here(c, r, s)   rank r holds chunk c when step s begins
//
// EncodeChunk() adds the constraints, each with its family's name: holds, arrives, once, needs. EncodeEmpty()
// adds further constraints for copies that run backwards as sums. A variable that cannot be true is not made:
// a chunk reaches a rank no sooner than the distance allows, and must still reach a needer in the steps that
// remain. Questions about symmetric schedules have one variable for all images of a send. All variables are
// Boolean and all sums are sums of Booleans, for Z3's finite-domain solver.
#include "synth/smt/copies.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
#include <utility>

#include "synth/smt/step_encoding.h"

namespace xccl::smt {
namespace {

class CopyEncoding final : public StepEncoding {
 public:
  CopyEncoding(const Machine& machine, const CopyProblem& problem, const std::vector<Image>& images,
               int32_t steps, int32_t rounds, bool symmetric, bool named)
      : StepEncoding(machine, steps, {.named = named}), problem_(problem) {
    used_.assign(images.begin(), symmetric ? images.end() : images.begin() + 1);
    NumberOrbits();
    sent_.assign(static_cast<size_t>(steps), std::vector<std::optional<z3::expr>>(sent_orbit_.size()));
    here_.assign(static_cast<size_t>(steps) + 1, std::vector<std::optional<z3::expr>>(here_orbit_.size()));
    std::vector<char> done(static_cast<size_t>(problem.chunks), 0);
    for (int32_t c = 0; c < problem_.chunks; ++c) {
      if (problem_.needers[c].empty() || done[c] != 0) continue;
      for (const std::vector<int32_t>& image : chunk_images_) done[image[c]] = 1;
      EncodeChunk(c);
      if (!problem_.contributing_holders.empty()) EncodeEmpty(c);
    }
    AddRoundsAndLoads(rounds, used_, false);
  }

 private:
  void NumberOrbits();
  // Returns the least image of (chunk, edge) or (chunk, rank), as the number chunk × width + (edge or rank).
  template <typename ThingOf>
  size_t FirstImage(size_t chunk, size_t width, ThingOf thing_of) const {
    size_t first = ~size_t{0};
    for (size_t g = 0; g < used_.size(); ++g)
      first = std::min(first, static_cast<size_t>(chunk_images_[g][chunk]) * width +
                                  static_cast<size_t>(thing_of(used_[g])));
    return first;
  }
  void EncodeChunk(int32_t chunk);
  void EncodeEmpty(int32_t chunk);
  std::vector<Send> Decode() const override;
  void AddSent(int32_t edge, int32_t step, z3::expr_vector& sent) override {
    for (int32_t c = 0; c < problem_.chunks; ++c)
      if (Sent(c, edge, step)) sent.push_back(*Sent(c, edge, step));
  }
  size_t OrbitOf(int32_t c, int32_t e) const {
    return sent_orbit_[static_cast<size_t>(c) * machine().edges.size() + static_cast<size_t>(e)];
  }
  std::optional<z3::expr>& Sent(int32_t c, int32_t e, int32_t s) { return sent_[s][OrbitOf(c, e)]; }
  std::optional<z3::expr>& Here(int32_t c, int32_t r, int32_t s) {
    return here_[s][here_orbit_[static_cast<size_t>(c) * static_cast<size_t>(machine().ranks) +
                                static_cast<size_t>(r)]];
  }

  const CopyProblem& problem_;
  std::vector<Image> used_;                         // only the identity if not symmetric
  std::vector<std::vector<int32_t>> chunk_images_;  // [image][chunk]
  // By (chunk, edge) and by (chunk, rank): the least image. Its variable stands for all images.
  std::vector<size_t> sent_orbit_, here_orbit_;
  std::vector<std::vector<std::optional<z3::expr>>> sent_, here_;  // [step][orbit]
};

// Numbers the orbits of (chunk, edge) and of (chunk, rank). An image maps the i-th chunk of a class to the
// i-th chunk of the class's image.
void CopyEncoding::NumberOrbits() {
  const size_t edges = machine().edges.size(), ranks = static_cast<size_t>(machine().ranks);
  const size_t chunks = static_cast<size_t>(problem_.chunks);
  const std::map<Ends, std::vector<int32_t>> classes = ClassesOf(problem_);
  for (const Image& image : used_) {
    std::vector<int32_t> of(chunks);
    for (size_t c = 0; c < chunks; ++c) of[c] = static_cast<int32_t>(c);
    for (const auto& [ends, from] : classes) {
      const std::vector<int32_t>& to = classes.at(Moved(image, ends));
      for (size_t i = 0; i < from.size(); ++i) of[from[i]] = to[i];
    }
    chunk_images_.push_back(std::move(of));
  }
  for (size_t c = 0; c < chunks; ++c) {
    for (size_t e = 0; e < edges; ++e)
      sent_orbit_.push_back(FirstImage(c, edges, [&](const Image& image) { return image.edge[e]; }));
    for (size_t r = 0; r < ranks; ++r)
      here_orbit_.push_back(FirstImage(c, ranks, [&](const Image& image) { return image.rank[r]; }));
  }
}

void CopyEncoding::EncodeChunk(int32_t chunk) {
  const std::vector<int32_t> after = DistancesFrom(machine(), problem_.holders[chunk]);
  const std::vector<int32_t> left = DistancesTo(machine(), problem_.needers[chunk]);
  // Makes here(c,r,s) if r is reached within s steps. Holders always hold the chunk.
  for (int32_t r = 0; r < machine().ranks; ++r)
    for (int32_t s = after[r]; s <= steps(); ++s)
      if (after[r] > 0 && !Here(chunk, r, s)) Here(chunk, r, s) = NewBool();
  std::vector<z3::expr_vector> arrivals;
  for (int32_t r = 0; r < machine().ranks; ++r) arrivals.push_back(None());
  for (int32_t s = 0; s < steps(); ++s) {
    std::vector<z3::expr_vector> now;
    for (int32_t r = 0; r < machine().ranks; ++r) now.push_back(None());
    for (size_t e = 0; e < machine().edges.size(); ++e) {
      const Edge& edge = machine().edges[e];
      if (after[edge.from] > s || after[edge.to] == 0 || left[edge.to] > steps() - 1 - s) continue;
      std::optional<z3::expr>& sent = Sent(chunk, static_cast<int32_t>(e), s);
      if (!sent) sent = NewBool();
      // holds: a rank that sends a chunk holds it when the step begins. sent(c,e,s) -> here(c,from(e),s)
      if (after[edge.from] > 0) Add(z3::implies(*sent, *Here(chunk, edge.from, s)));
      now[edge.to].push_back(*sent);
      arrivals[edge.to].push_back(*sent);
    }
    // arrives: a rank that holds a chunk after a step held it before or received it in the step.
    // here(c,r,s+1) -> here(c,r,s) or some sent(c,e,s) with to(e) = r
    for (int32_t r = 0; r < machine().ranks; ++r) {
      if (after[r] == 0 || after[r] > s + 1) continue;
      z3::expr_vector sources = now[r];
      if (after[r] <= s) sources.push_back(*Here(chunk, r, s));
      Add(z3::implies(*Here(chunk, r, s + 1), z3::mk_or(sources)));
    }
  }
  // once: a rank receives a chunk at most once. sum over e into r and s of sent(c,e,s) <= 1
  for (int32_t r = 0; r < machine().ranks; ++r)
    if (arrivals[r].size() > 1) Add(z3::atmost(arrivals[r], 1));
  // needs: at the end every needer holds the chunk. here(c,r,S)
  const std::string_view family = problem_.contributing_holders.empty() ? "needs" : "sends";  // for sums
  for (int32_t r : problem_.needers[chunk])
    Add(after[r] <= steps() ? *Here(chunk, r, steps()) : Constant(false),
        fmt::format("{} of rank {}", family, r));
}

// Adds constraints for copies that will run backwards as sums. In the sum, a rank without a contribution is
// empty until its first data arrives. That data is copied to the rank, so it must arrive alone. In the
// copies, which run the other way, it is the rank's last send.
void CopyEncoding::EncodeEmpty(int32_t chunk) {
  std::vector<char> is_empty(static_cast<size_t>(machine().ranks), 1);
  for (int32_t r : problem_.needers[chunk]) is_empty[r] = 0;
  for (int32_t r : problem_.contributing_holders[chunk]) is_empty[r] = 0;
  for (int32_t r = 0; r < machine().ranks; ++r) {
    if (is_empty[r] == 0) continue;
    z3::expr_vector later = None();
    for (int32_t s = steps() - 1; s >= 0; --s) {
      std::vector<z3::expr> now;
      for (int32_t e : machine().out[r])
        if (Sent(chunk, e, s)) now.push_back(*Sent(chunk, e, s));
      // last alone: a rank that sends twice in a step sends again later.
      // sent(c,e,s) and sent(c,f,s) -> some sent(c,g,t), t > s
      for (size_t i = 0; i < now.size(); ++i)
        for (size_t j = 0; j < i; ++j) Add(z3::implies(now[i] && now[j], z3::mk_or(later)));
      // of use: a rank that receives the chunk sends it on. sent(c,e,s), e into r -> some sent(c,g,t), t > s
      for (int32_t e : machine().in[r])
        if (Sent(chunk, e, s)) Add(z3::implies(*Sent(chunk, e, s), z3::mk_or(later)));
      for (const z3::expr& sent : now) later.push_back(sent);
    }
  }
}

std::vector<Send> CopyEncoding::Decode() const {
  std::vector<Send> sends;
  for (int32_t s = 0; s < steps(); ++s) {
    std::vector<char> is_sent;
    for (const std::optional<z3::expr>& sent : sent_[s]) is_sent.push_back(sent && IsTrue(*sent) ? 1 : 0);
    for (int32_t c = 0; c < problem_.chunks; ++c)
      for (int32_t e = 0; e < static_cast<int32_t>(machine().edges.size()); ++e)
        if (is_sent[OrbitOf(c, e)] != 0) sends.push_back({.chunk = c, .edge = e, .step = s});
  }
  return sends;
}

}  // namespace

SolverQuestion CopyQuestion(const Machine& machine, const CopyProblem& problem,
                            const std::vector<Image>& images, int32_t steps, int32_t rounds, bool symmetric,
                            bool named) {
  return SolverQuestion([&] {
    return std::make_unique<CopyEncoding>(machine, problem, images, steps, rounds, symmetric, named);
  });
}

int64_t EncodingSize(const Machine& machine, const CopyProblem& problem, int32_t steps) {
  int64_t chunks = 0;
  for (const std::vector<int32_t>& needers : problem.needers) chunks += needers.empty() ? 0 : 1;
  return chunks * static_cast<int64_t>(machine.edges.size() + static_cast<size_t>(machine.ranks)) * steps;
}

StatusOr<Answer> DecideCopies(const Machine& machine, const CopyProblem& problem,
                              const std::vector<Image>& images, int32_t steps, int32_t rounds,
                              const SolveLimits& limits) {
  const int64_t making = kWorkPerVariable * EncodingSize(machine, problem, steps);
  std::optional<SolverQuestion> narrow, whole;
  bool is_narrow_open = images.size() > 1;
  Answer sum;
  for (int64_t slice = kShortWork; sum.work < limits.work; slice *= 2)
    for (const bool symmetric : {true, false}) {
      if (limits.deadline()) return sum;
      if (symmetric && !is_narrow_open) continue;
      std::optional<SolverQuestion>& question = symmetric ? narrow : whole;
      if (!question) {
        question.emplace(CopyQuestion(machine, problem, images, steps, rounds, symmetric));
        sum.work += making / static_cast<int64_t>(symmetric ? images.size() : 1);
      }
      const int64_t work = std::clamp<int64_t>(limits.work - sum.work, 1, slice);
      XCCL_ASSIGN_OR_RETURN(Answer answer, question->Ask({work, limits.deadline}));
      sum.work += answer.work;
      if (answer.verdict == Verdict::kFeasible || (answer.verdict == Verdict::kInfeasible && !symmetric)) {
        answer.work = sum.work;
        return answer;
      }
      is_narrow_open = is_narrow_open && answer.verdict == Verdict::kStopped;
    }
  return sum;
}

}  // namespace xccl::smt
