// Compares what smt proves and finds with an exhaustive search: every strongly connected digraph on up to
// four GPUs, and small machines with switches, parallel and unequal links, relays and one-way links.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>
#include <utility>

#include "base/random.h"
#include "ir/verify/verify_schedule.h"
#include "synth/engines.h"
#include "tests/testing/collectives.h"
#include "tests/testing/topologies.h"
#include "topologies/xml/native_xml.h"

namespace xccl::testing {
namespace {

// Tries every k-synchronous schedule of a collective, up to a limit on states. A state is the set of
// contributions that each rank holds of each chunk, as bits. Slow and obviously right.
class BruteForce {
 public:
  enum class Answer : uint8_t { kNo, kYes, kTooLong };

  BruteForce(const Topology& topology, const Collective& collective)
      : topology_(topology), ranks_(topology.num_ranks()), chunks_(collective.num_chunks()) {
    for (int32_t l = 0; l < topology.num_links(); ++l)
      unit_ = std::gcd(unit_, topology.link(LinkId(l)).bandwidth_bytes_per_s);
    for (int32_t r = 0; r < ranks_; ++r) {
      std::vector<LinkId> path;
      std::set<int32_t> seen = {topology.NodeOf(Rank(r)).value};
      FindPaths(r, topology.NodeOf(Rank(r)), seen, path);
    }
    start_.assign(static_cast<size_t>(ranks_ * chunks_), 0);
    goal_ = start_;
    std::vector<Holding> holdings;
    for (int32_t c = 0; c < chunks_; ++c) {
      collective.Before(ChunkId(c), holdings);
      Set(c, holdings, start_);
      collective.After(ChunkId(c), holdings);
      Set(c, holdings, goal_);
    }
    sums_ = collective.Reduces() || collective.kind() == CollectiveKind::kCustom;
  }

  Answer Solve(int32_t steps, int32_t rounds) {
    nodes_ = 0;
    const bool found = Reach(start_, steps, rounds);
    return found ? Answer::kYes : nodes_ > kMostNodes ? Answer::kTooLong : Answer::kNo;
  }

  // The rounds of a schedule, from the loads of its links.
  int64_t RoundsOf(const Schedule& schedule) const {
    std::map<std::pair<int32_t, LinkId>, int64_t> load;
    for (int64_t t = 0; t < schedule.size(); ++t)
      for (LinkId l : schedule.paths[schedule.path[t]]) load[{schedule.step[t], l}] += schedule.count[t];
    std::map<int32_t, int64_t> of_step;
    for (const auto& [at, chunks] : load) {
      const int64_t units = topology_.link(at.second).bandwidth_bytes_per_s / unit_;
      of_step[at.first] = std::max(of_step[at.first], (chunks + units - 1) / units);
    }
    int64_t rounds = 0;
    for (const auto& [step, of] : of_step) rounds += of;
    return rounds;
  }

 private:
  using State = std::vector<uint16_t>;  // [rank × chunk]
  struct Path {
    int32_t from = 0;
    std::vector<LinkId> links;
  };
  static constexpr int64_t kMostNodes = 100'000;

  void FindPaths(int32_t from, NodeId at, std::set<int32_t>& seen, std::vector<LinkId>& path) {
    for (LinkId l : topology_.Out(at)) {
      const NodeId to = topology_.link(l).to;
      if (seen.contains(to.value)) continue;
      path.push_back(l);
      if (const auto rank = topology_.RankOf(to)) {
        into_[rank->value].push_back({from, path});
      } else {
        seen.insert(to.value);
        FindPaths(from, to, seen, path);
        seen.erase(to.value);
      }
      path.pop_back();
    }
  }

  void Set(int32_t chunk, const std::vector<Holding>& holdings, State& state) const {
    for (const Holding& holding : holdings)
      for (Rank q : holding.contributions)
        At(state, holding.rank.value, chunk) |= static_cast<uint16_t>(1u << q.value);
  }
  uint16_t& At(State& state, int32_t rank, int32_t chunk) const {
    return state[static_cast<size_t>(rank * chunks_ + chunk)];
  }

  bool IsGoal(const State& state) const {
    for (size_t i = 0; i < state.size(); ++i)
      if (goal_[i] != 0 && state[i] != goal_[i]) return false;
    return true;
  }

  bool Reach(const State& state, int32_t steps, int32_t rounds) {
    if (IsGoal(state)) return true;
    if (steps == 0 || rounds == 0) return false;
    const auto [at, added] = known_.try_emplace({state, {steps, rounds}}, false);
    if (!added) return at->second;
    for (int32_t r = steps == 1 ? rounds : 1; r <= rounds && nodes_ <= kMostNodes; ++r)
      for (const State& next : Next(state, r))
        if (Reach(next, steps - 1, rounds - r)) return at->second = true;
    if (nodes_ > kMostNodes) known_.erase(at);
    return false;
  }

  // All states that one step of `rounds` rounds leads to; for copies, only states that no other state
  // includes.
  std::vector<State> Next(const State& state, int32_t rounds) {
    std::set<State> all;
    State next = state;
    std::vector<int64_t> load(static_cast<size_t>(topology_.num_links()), 0);
    Extend(state, rounds, 0, next, load, all);
    if (sums_) return {all.begin(), all.end()};
    nodes_ += static_cast<int64_t>(all.size() * all.size() / 20);  // cost of finding the largest ones
    if (nodes_ > kMostNodes) return {};
    std::vector<State> most;
    for (const State& one : all)
      if (std::none_of(all.begin(), all.end(), [&](const State& other) {
            return other != one && std::equal(one.begin(), one.end(), other.begin(),
                                              [](uint16_t a, uint16_t b) { return (a & ~b) == 0; });
          }))
        most.push_back(one);
    return most;
  }

  bool Take(const Path& path, int32_t rounds, std::vector<int64_t>& load) const {
    for (LinkId l : path.links)
      if (load[l.index()] >= rounds * (topology_.link(l).bandwidth_bytes_per_s / unit_)) return false;
    for (LinkId l : path.links) ++load[l.index()];
    return true;
  }
  static void Give(const Path& path, std::vector<int64_t>& load) {
    for (LinkId l : path.links) --load[l.index()];
  }

  // Chooses the data that is sent to position i (one rank and chunk) and to all positions after it.
  void Extend(const State& state, int32_t rounds, size_t i, State& next, std::vector<int64_t>& load,
              std::set<State>& all) {
    if (++nodes_ > kMostNodes) return;
    if (i == state.size()) {
      all.insert(next);
      return;
    }
    const int32_t rank = static_cast<int32_t>(i) / chunks_, chunk = static_cast<int32_t>(i) % chunks_;
    const std::vector<Path>& paths = into_[rank];
    for (const Path& path : paths) {
      const uint16_t sent = state[static_cast<size_t>(path.from * chunks_ + chunk)];
      if (sent == 0 || sent == state[i] || (!sums_ && state[i] != 0) || !Take(path, rounds, load)) continue;
      next[i] = sent;
      Extend(state, rounds, i + 1, next, load, all);
      Give(path, load);
    }
    next[i] = state[i];
    if (sums_ && state[i] != 0) Add(state, rounds, i, 0, next, load, all);
    next[i] = state[i];
    Extend(state, rounds, i + 1, next, load, all);
  }

  // Adds sums at position i, from path k on.
  void Add(const State& state, int32_t rounds, size_t i, size_t k, State& next, std::vector<int64_t>& load,
           std::set<State>& all) {
    const std::vector<Path>& paths = into_[static_cast<int32_t>(i) / chunks_];
    const uint16_t before = next[i];
    for (size_t p = k; p < paths.size(); ++p) {
      const uint16_t sent =
          state[static_cast<size_t>(paths[p].from * chunks_ + static_cast<int32_t>(i) % chunks_)];
      if (sent == 0 || (sent & before) != 0 || !Take(paths[p], rounds, load)) continue;
      next[i] = static_cast<uint16_t>(before | sent);
      Extend(state, rounds, i + 1, next, load, all);
      next[i] = static_cast<uint16_t>(before | sent);
      Add(state, rounds, i, p + 1, next, load, all);
      Give(paths[p], load);
      next[i] = before;
    }
  }

  const Topology& topology_;
  const int32_t ranks_, chunks_;
  int64_t unit_ = 0, nodes_ = 0;
  bool sums_ = false;
  std::map<int32_t, std::vector<Path>> into_;
  State start_, goal_;
  std::map<std::pair<State, std::pair<int32_t, int32_t>>, bool> known_;
};

// The number of questions that brute force answered, and the number that it or smt gave up on.
struct Count {
  int yes = 0, no = 0, too_long = 0, stopped = 0;
};

void Compare(const Topology& topology, const Collective& whole, int32_t chunks, const std::string& what,
             Count& count) {
  constexpr int32_t kMostSteps = 3, kMostRounds = 4;
  SynthesisRequest request;
  request.topology = &topology;
  request.collective = &whole;
  request.allow_divergent = true;
  request.limits.chunks = chunks;
  if (!FindEngine("smt").value()->Serves(request).ok()) return;
  const Collective collective = whole.WithChunks(chunks);
  BruteForce brute(topology, collective);
  for (int32_t steps = 1; steps <= kMostSteps; ++steps)
    for (int32_t rounds = 1; rounds <= kMostRounds; ++rounds) {
      const BruteForce::Answer expected = brute.Solve(steps, rounds);
      if (expected == BruteForce::Answer::kTooLong) {
        ++count.too_long;
        return;
      }
      const bool yes = expected == BruteForce::Answer::kYes;
      ++(yes ? count.yes : count.no);
      request.limits.steps = steps;
      request.limits.rounds = rounds;
      const StatusOr<Synthesis> made = FindEngine("smt").value()->Synthesize(request);
      if (made.status().code() == StatusCode::kLimit) {
        ++count.stopped;
        continue;
      }
      const std::string asked = fmt::format("{}: {}, {} chunks, {} steps, {} rounds: {}", what,
                                            Describe(whole), chunks, steps, rounds, made.status().message());
      EXPECT_EQ(made.status().code(), yes ? StatusCode::kOk : StatusCode::kInfeasible) << asked;
      if (!made.ok()) continue;
      EXPECT_EQ(ToStatus(VerifySchedule(made->schedule, made->collective, topology)), OkStatus()) << asked;
      EXPECT_LE(made->schedule.num_steps(), steps) << asked;
      EXPECT_LE(brute.RoundsOf(made->schedule), rounds) << asked;
    }
}

void CompareDigraphs(int32_t ranks, size_t part, size_t parts) {
  Count count;
  const std::vector<Topology> digraphs = StronglyConnectedDigraphs(ranks);
  for (size_t i = part; i < digraphs.size(); i += parts)
    for (const Collective& collective : AllCollectives(ranks))
      for (int32_t chunks = 1; chunks <= 2; ++chunks)
        Compare(digraphs[i], collective, chunks, "digraph " + std::to_string(i), count);
  EXPECT_GT(count.yes, 100);
  EXPECT_GT(count.no, 50);
  EXPECT_EQ(count.stopped, 0);
  EXPECT_LT(count.too_long, (count.yes + count.no) / 5);
}

TEST(SmtBruteForce, TheDigraphOfTwo) {
  const Topology pair = StronglyConnectedDigraphs(2)[0];
  Count count;
  for (const Collective& collective : AllCollectives(2))
    for (int32_t chunks = 1; chunks <= 4; ++chunks) Compare(pair, collective, chunks, "pair", count);
  EXPECT_GT(count.yes, 100);
  EXPECT_EQ(count.stopped, 0);
}

TEST(SmtBruteForce, EveryDigraphOfThree) { CompareDigraphs(3, 0, 1); }

class SmtBruteForceOfFour : public ::testing::TestWithParam<size_t> {};
TEST_P(SmtBruteForceOfFour, EveryDigraph) { CompareDigraphs(4, GetParam(), 4); }
INSTANTIATE_TEST_SUITE_P(Parts, SmtBruteForceOfFour, ::testing::Range<size_t>(0, 4));

// Two parts; some ranks contribute to each, and some need a sum of some contributions.
Collective RandomTables(Random& random, int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kCustom;
  spec.custom_name = "tables";
  spec.custom_weights = {1, 1};
  const uint64_t subsets = uint64_t{1} << ranks;
  spec.ranks = AllRanks(ranks);
  for (int32_t part = 0; part < 2; ++part) {
    const uint64_t have = 1 + random.Below(subsets - 1);
    for (int32_t r = 0; r < ranks; ++r) {
      if ((have >> r & 1) != 0) spec.pre.push_back({Rank(r), PartId(part), {Rank(r)}});
      TableEntry need{Rank(r), PartId(part), {}};
      const uint64_t terms = have & random.Below(subsets);
      for (int32_t q = 0; q < ranks; ++q)
        if ((terms >> q & 1) != 0) need.contributions.push_back(Rank(q));
      if (!need.contributions.empty() && random.Below(2) == 0) spec.post.push_back(std::move(need));
    }
  }
  return Collective::Create(spec).value();
}

TEST(SmtBruteForce, UserDefinedTables) {
  Random random(5);
  Count count;
  const std::vector<Topology> three = StronglyConnectedDigraphs(3), four = StronglyConnectedDigraphs(4);
  for (size_t i = 0; i < 60; ++i) {
    const Topology& topology =
        i % 4 == 3 ? four[random.Below(four.size())] : three[random.Below(three.size())];
    const Collective tables = RandomTables(random, topology.num_ranks());
    Compare(topology, tables, 1, "tables " + std::to_string(i), count);
  }
  EXPECT_GT(count.yes, 300);
  EXPECT_GT(count.no, 100);
  EXPECT_EQ(count.stopped, 0);
}

// Switches, parallel and unequal links, long paths, one-way links; members with relays between them.
TEST(SmtBruteForce, MachinesOfEveryKind) {
  struct Row {
    std::string name, xml;
    std::vector<int32_t> ranks;
  };
  const std::vector<Row> rows = {
      {"one switch",
       "<gpu id='0'/><gpu id='1'/><gpu id='2'/><switch id='s'/>"
       "<link from='gpu:*' to='s' bandwidth='1GB/s' latency='1us'/>",
       {0, 1, 2}},
      {"five planes",
       "<gpu id='0'/><gpu id='1'/><switch id='a'/><switch id='b'/><switch id='c'/><switch id='d'/><switch "
       "id='e'/>"
       "<link from='gpu:*' to='a' bandwidth='1GB/s' latency='1us'/>"
       "<link from='gpu:*' to='b' bandwidth='1GB/s' latency='1us'/>"
       "<link from='gpu:*' to='c' bandwidth='1GB/s' latency='1us'/>"
       "<link from='gpu:*' to='d' bandwidth='1GB/s' latency='1us'/>"
       "<link from='gpu:*' to='e' bandwidth='1GB/s' latency='1us'/>",
       {0, 1}},
      {"two switches",
       "<gpu id='0'/><gpu id='1'/><gpu id='2'/><gpu id='3'/><switch id='s'/><switch id='t'/>"
       "<link from='0' to='s' bandwidth='1GB/s' latency='1us'/>"
       "<link from='1' to='s' bandwidth='2GB/s' latency='1us'/>"
       "<link from='2' to='t' bandwidth='1GB/s' latency='1us'/>"
       "<link from='3' to='t' bandwidth='1GB/s' latency='1us'/>"
       "<link from='s' to='t' bandwidth='1GB/s' latency='1us'/>",
       {0, 1, 2, 3}},
      {"triangle of switches",
       "<gpu id='0'/><gpu id='1'/><gpu id='2'/><switch id='a'/><switch id='b'/><switch id='c'/>"
       "<link from='0' to='a' bandwidth='1GB/s' latency='1us'/>"
       "<link from='1' to='b' bandwidth='1GB/s' latency='1us'/>"
       "<link from='2' to='c' bandwidth='1GB/s' latency='1us'/>"
       "<link from='a' to='b' bandwidth='1GB/s' latency='1us' duplex='false'/>"
       "<link from='b' to='c' bandwidth='1GB/s' latency='1us' duplex='false'/>"
       "<link from='c' to='a' bandwidth='1GB/s' latency='1us' duplex='false'/>",
       {0, 1, 2}},
      {"unlike links",
       "<gpu id='0'/><gpu id='1'/><gpu id='2'/>"
       "<link from='0' to='1' bandwidth='2GB/s' latency='1us'/>"
       "<link from='0' to='1' bandwidth='1GB/s' latency='1us'/>"
       "<link from='1' to='2' bandwidth='3GB/s' latency='1us'/>"
       "<link from='2' to='0' bandwidth='2GB/s' latency='1us' duplex='false'/>",
       {0, 1, 2}},
      {"relays",
       "<gpu id='0'/><gpu id='1'/><gpu id='2'/><gpu id='3'/>"
       "<link from='0' to='1' bandwidth='1GB/s' latency='1us'/>"
       "<link from='1' to='2' bandwidth='1GB/s' latency='1us'/>"
       "<link from='2' to='3' bandwidth='1GB/s' latency='1us'/>"
       "<link from='3' to='0' bandwidth='1GB/s' latency='1us'/>",
       {0, 2}},
      {"relays of three",
       "<gpu id='0'/><gpu id='1'/><gpu id='2'/><gpu id='3'/>"
       "<link from='0' to='1' bandwidth='1GB/s' latency='1us'/>"
       "<link from='1' to='2' bandwidth='1GB/s' latency='1us' duplex='false'/>"
       "<link from='2' to='3' bandwidth='1GB/s' latency='1us'/>"
       "<link from='3' to='0' bandwidth='1GB/s' latency='1us'/>",
       {3, 0, 2}},
      {"star around a relay",
       "<gpu id='0'/><gpu id='1'/><gpu id='2'/><gpu id='3'/>"
       "<link from='0' to='1' bandwidth='1GB/s' latency='1us'/>"
       "<link from='0' to='2' bandwidth='1GB/s' latency='1us'/>"
       "<link from='0' to='3' bandwidth='2GB/s' latency='1us'/>",
       {1, 2, 3}},
  };
  Count count;
  for (const Row& row : rows) {
    const Topology topology =
        ReadNativeXml("<topology name='t'><host name='h'>" + row.xml + "</host></topology>", "t").value();
    std::vector<Rank> ranks;
    for (int32_t r : row.ranks) ranks.push_back(Rank(r));
    for (const Collective& collective : SubsetCollectives(ranks))
      for (int32_t chunks : {1, 2, 5}) Compare(topology, collective, chunks, row.name, count);
  }
  EXPECT_GT(count.yes, 500);
  EXPECT_GT(count.no, 200);
}

}  // namespace
}  // namespace xccl::testing
