// The order of turns, limits, and engines that make wrong plans.
#include "synth/portfolio/portfolio.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <algorithm>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "synth/common/serves.h"
#include "synth/common/test_machines.h"
#include "synth/portfolio/auto.h"

namespace xccl {
namespace {

// Sends the chunk of rank 0 along the ring; `first` is the link of the first transfer.
Schedule AlongTheRing(int32_t ranks, int32_t first) {
  Schedule schedule;
  schedule.num_chunks = 1;
  for (int32_t r = first; r + 1 < ranks; ++r) {
    const LinkId link(2 * r);
    schedule.Add(ChunkId(0), 1, Rank(r), Rank(r + 1), std::vector{link}, TransferOp::kCopy, r - first);
  }
  return schedule;
}

Engine EngineOf(std::string_view name, int32_t first, bool asks_pairs, bool offers) {
  const auto make = [=](const SynthesisRequest& request) -> StatusOr<Synthesis> {
    return Synthesis{.collective = *request.collective,
                     .schedule = AlongTheRing(request.topology->num_ranks(), first),
                     .engine = std::string(name),
                     .note = ""};
  };
  Engine engine{.name = name,
                .summary = "",
                .kinds = {CollectiveKind::kBroadcast},
                .asks_pairs = asks_pairs,
                .make = make};
  if (offers)
    engine.offer = [=](const SynthesisRequest& request) -> StatusOr<Offer> {
      return Offer{.make = [=](int64_t) { return make(request); }};
    };
  return engine;
}

Collective BroadcastOn(int32_t ranks) {
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = AllRanks(ranks);
  spec.root = Rank(0);
  return *Collective::Create(std::move(spec));
}

// The caller may have more time than the search had, and simulates the plan.
TEST(Portfolio, AFirstPlanStandsWhenTheTimeIsOver) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  request.limits.deadline = Deadline(0.0);
  const std::vector<Engine> engines = {EngineOf("first", 0, false, true), EngineOf("second", 0, false, true)};
  const StatusOr<Synthesis> made = TryEngines(request, engines);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->engine, "first");
  EXPECT_EQ(made->schedule.size(), 3);
}

// A plan that cannot be there in time is refused before it is made; the message is of the one that needs
// least.
TEST(Portfolio, PlansThatTakeTooLongAreNotBegun) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  request.limits.deadline = Deadline(2.0);
  std::vector<Engine> engines;
  for (const auto& [name, work] :
       {std::pair("long", int64_t{20'000'000}), {"longest", int64_t{200'000'000}}}) {
    engines.push_back(EngineOf(name, 0, false, true));
    engines.back().offer = [work = work](const SynthesisRequest&) -> StatusOr<Offer> {
      return Offer{.work = work, .make = [](int64_t) -> StatusOr<Synthesis> {
                     ADD_FAILURE() << "it was made";
                     return LimitReached("made");
                   }};
    };
  }
  const StatusOr<Synthesis> made = TryEngines(request, engines);
  EXPECT_EQ(made.status().code(), StatusCode::kLimit);
  EXPECT_NE(
      made.status().message().find("long: a plan of 20000000 moves of a chunk takes about 30 s; expected at "
                                   "most --time-limit=2s; hint: --time-limit=60s"),
      std::string::npos)
      << made.status().message();
}

// The system's limit stands for --memory-limit.
TEST(Portfolio, PlansThatTakeTooMuchMemoryAreNotBegun) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  rlimit before = {};
  ASSERT_EQ(getrlimit(RLIMIT_AS, &before), 0);
  rlimit limited = before;
  limited.rlim_cur = rlim_t{1} << 45;  // more than a sanitizer's tables
  if (before.rlim_cur < limited.rlim_cur) GTEST_SKIP() << "the test runs under a limit of memory";
  std::vector<Engine> engines = {EngineOf("wide", 0, false, true), EngineOf("huge", 0, false, true),
                                 EngineOf("small", 0, false, true)};
  const auto never = [](int64_t) -> StatusOr<Synthesis> {
    ADD_FAILURE() << "it was made";
    return LimitReached("made");
  };
  engines[0].offer = [never](const SynthesisRequest&) -> StatusOr<Offer> {
    return Offer{.work = 0, .bytes = int64_t{1} << 60, .make = never};
  };
  engines[1].offer = [never](const SynthesisRequest&) -> StatusOr<Offer> {
    return Offer{.work = int64_t{1} << 40, .make = never};
  };
  ASSERT_EQ(setrlimit(RLIMIT_AS, &limited), 0);
  const StatusOr<Synthesis> made = TryEngines(request, engines);
  engines.pop_back();
  engines.erase(engines.begin());
  const StatusOr<Synthesis> none = TryEngines(request, engines);
  setrlimit(RLIMIT_AS, &before);
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_EQ(made->engine, "small");
  EXPECT_NE(
      none.status().message().find("huge: needs about 122880.0GiB more for a plan of 1099511627776 moves"),
      std::string::npos)
      << none.status().message();
}

TEST(Portfolio, AWrongPlanCostsItsEngineTheTurnAndNoMore) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  const std::string text = "liar: it made a wrong plan: step 0: rank 1 sends chunk 0, which it does not hold";
  for (const bool offers : {false, true})
    for (const bool asks_pairs : {false, true}) {
      const std::vector<Engine> engines = {EngineOf("liar", 1, asks_pairs, offers),
                                           EngineOf("honest", 0, asks_pairs, offers)};
      const StatusOr<Synthesis> made = TryEngines(request, engines);
      ASSERT_TRUE(made.ok()) << made.status().message();
      EXPECT_EQ(made->engine, "honest");
      EXPECT_EQ(made->faults, std::vector{text});

      const StatusOr<Synthesis> none = TryEngines(request, std::span(engines).first(1));
      EXPECT_EQ(none.status(),
                BugError("auto: no engine has a plan for broadcast on " + topology.name() + ": " + text));

      SynthesisRequest without = request;
      without.passed_over = {"honest"};
      EXPECT_EQ(TryEngines(without, engines).status().code(), StatusCode::kBug);
    }
}

// Some ranks are planned alone and then with relays. Rank 0 of five reaches four others along the ring in
// three hops, and with rank 4 as a relay in two.
std::vector<Engine>& EnginesOfSome() {
  static auto& engines = *new std::vector<Engine>;
  return engines;
}

void SetEnginesOfSome(int32_t liar_on, bool relays) {
  std::vector<Engine>& engines = EnginesOfSome();
  engines.assign(2, EngineOf("honest", 0, false, false));
  engines[0].name = "liar";
  for (Engine& engine : engines)
    engine.make = [=, name = engine.name](const SynthesisRequest& request) -> StatusOr<Synthesis> {
      const int32_t ranks = request.topology->num_ranks();
      const bool lies = name == "liar" && ranks == liar_on;
      Synthesis made{.collective = *request.collective,
                     .schedule = AlongTheRing(ranks, lies ? 1 : 0),
                     .engine = std::string(name),
                     .note = ""};
      if (lies || ranks == 4 || !relays) return made;
      made.schedule = AlongTheRing(3, 0);
      for (const auto& [from, to] : {std::pair(0, 4), {4, 3}})
        for (const LinkId link : request.topology->Out(NodeId(from)))
          if (request.topology->link(link).to == NodeId(to))
            made.schedule.Add(ChunkId(0), 1, Rank(from), Rank(to), std::vector{link}, TransferOp::kCopy,
                              from / 4);
      Normalize(made.schedule);
      return made;
    };
}

TEST(Auto, SaysOfWrongPlansOfBothSearchesWhicheverPlanIsKept) {
  const Topology topology = testing::MakeRing(5);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kBroadcast;
  spec.ranks = AllRanks(4);
  spec.root = Rank(0);
  const Collective broadcast = *Collective::Create(std::move(spec));
  const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  const std::vector text = {
      std::string("liar: it made a wrong plan: step 0: rank 1 sends chunk 0, which it does not hold")};
  for (const int32_t liar_on : {4, 5})
    for (const bool relays : {false, true}) {
      SetEnginesOfSome(liar_on, relays);
      const Engine engine = AutoEngine([]() -> std::span<const Engine> { return EnginesOfSome(); });
      const StatusOr<Synthesis> made = engine.make(request);
      ASSERT_TRUE(made.ok()) << made.status().message();
      EXPECT_EQ(made->schedule.size(), relays ? 4 : 3);
      EXPECT_EQ(made->faults, text) << liar_on << ", " << relays;
    }
}

// The plan is right and could be cut finer, but one of its `others` is wrong.
TEST(Portfolio, AWrongOtherPlanCostsItsEngineTheVariations) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  for (const bool lies : {false, true}) {
    SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64 << 20};
    int32_t turns = 0;
    request.progress = [&](const std::string&) { ++turns; };
    Engine engine = EngineOf("mixed", 0, false, false);
    engine.offer = [=, make = engine.make](const SynthesisRequest& asked) -> StatusOr<Offer> {
      return Offer{.make = [=](int64_t) -> StatusOr<Synthesis> {
        StatusOr<Synthesis> made = make(asked);
        made->others.push_back(*made);
        if (lies) made->others[0].schedule = AlongTheRing(4, 1);
        return made;
      }};
    };
    const StatusOr<Synthesis> made = TryEngines(request, std::span(&engine, 1));
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->faults.size(), lies ? 1u : 0u);
    if (lies)
      EXPECT_EQ(turns, 1);
    else
      EXPECT_GT(turns, 1);
  }
}

// Rank 1 adds all three values at once, rank 0 one after the other.
TEST(Portfolio, SaysThatPlansRoundDifferently) {
  const Topology topology = testing::MakeFullMesh(3);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  spec.ranks = AllRanks(3);
  const Collective allreduce = *Collective::Create(std::move(spec));
  Engine engine = EngineOf("sums", 0, false, false);
  engine.kinds = {CollectiveKind::kAllreduce};
  engine.make = [](const SynthesisRequest& request) -> StatusOr<Synthesis> {
    Synthesis made{.collective = *request.collective, .schedule = {}, .engine = "sums", .note = ""};
    made.schedule.num_chunks = 1;
    const auto add = [&](int32_t from, int32_t to, TransferOp op, int32_t step) {
      for (const LinkId link : request.topology->Out(NodeId(from)))
        if (request.topology->link(link).to == NodeId(to))
          made.schedule.Add(ChunkId(0), 1, Rank(from), Rank(to), std::vector{link}, op, step);
    };
    add(1, 0, TransferOp::kReduce, 0);
    add(0, 1, TransferOp::kReduce, 0);
    add(2, 1, TransferOp::kReduce, 0);
    add(2, 0, TransferOp::kReduce, 1);
    add(0, 2, TransferOp::kCopy, 2);
    return made;
  };
  SynthesisRequest request{.topology = &topology, .collective = &allreduce, .size_bytes = 64};
  EXPECT_EQ(TryEngines(request, std::span(&engine, 1)).status(),
            LimitReached("auto: no engine has a plan for allreduce on " + topology.name() +
                         ": sums: ranks get different roundings of one sum; hint: --allow-divergent"));
  request.allow_divergent = true;
  EXPECT_TRUE(TryEngines(request, std::span(&engine, 1)).ok());
}

// The reason is that of an engine for the collective, and the hint an engine that auto does not ask.
TEST(Portfolio, RefusesWithAReasonOfUse) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  std::vector<Engine> engines = {EngineOf("picky", 0, false, true), EngineOf("sums", 0, false, true)};
  engines[0].offer = [](const SynthesisRequest&) -> StatusOr<Offer> {
    return InvalidInput("picky: four ranks; expected five");
  };
  engines[1].kinds = {CollectiveKind::kAllreduce};
  const std::string text =
      "auto: no engine has a plan for broadcast on " + topology.name() + ": picky: four ranks; expected five";
  EXPECT_EQ(TryEngines(request, engines).status(), InvalidInput(text));
  engines.push_back(EngineOf("thorough", 0, false, true));
  engines.back().searches_long = true;
  EXPECT_EQ(TryEngines(request, engines).status(), InvalidInput(text + "; hint: --engine=thorough"));
}

TEST(Portfolio, SaysWhichEngineIsAskedAndTheBestTimeSoFar) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  std::vector<std::string> said;
  request.progress = [&](const std::string& what) { said.push_back(what); };
  const std::vector<Engine> engines = {EngineOf("first", 0, false, true), EngineOf("second", 0, false, true)};
  const StatusOr<Synthesis> made = TryEngines(request, engines);
  ASSERT_TRUE(made.ok()) << made.status().message();
  ASSERT_GE(said.size(), 2u);
  EXPECT_EQ(said[0], "first");
  EXPECT_EQ(said[1], "second; best so far 3.019us by first");
}

// The chain takes seven times as long as the star, promises a thousand times, and costs a tenth of the
// budget.
TEST(Portfolio, WhereProgramsDecideAnEnginesOwnPlanIsKeptHoweverSlow) {
  const Topology topology = testing::MakeFullMesh(8);
  const Collective broadcast = BroadcastOn(8);
  const auto engine_of = [](std::string_view name, bool chain) {
    const auto make = [=](const SynthesisRequest& request) -> StatusOr<Synthesis> {
      Synthesis made{
          .collective = *request.collective, .schedule = {}, .engine = std::string(name), .note = ""};
      made.schedule.num_chunks = 1;
      for (int32_t to = 1; to < 8; ++to) {
        const Rank from(chain ? to - 1 : 0);
        for (const LinkId link : request.topology->Out(NodeId(from.value)))
          if (request.topology->link(link).to == NodeId(to))
            made.schedule.Add(ChunkId(0), 1, from, Rank(to), std::vector{link}, TransferOp::kCopy,
                              chain ? to - 1 : 0);
      }
      return made;
    };
    Engine engine{.name = name, .summary = "", .kinds = {CollectiveKind::kBroadcast}, .make = make};
    engine.offer = [=](const SynthesisRequest& request) -> StatusOr<Offer> {
      return Offer{.time_ps = chain ? 1e12 : 0, .work = chain ? 120'000 : 0, .make = [=](int64_t) {
                     return make(request);
                   }};
    };
    return engine;
  };
  const std::vector<Engine> engines = {engine_of("star", false), engine_of("chain", true)};
  for (const bool decide : {false, true}) {
    const SynthesisRequest request{
        .topology = &topology, .collective = &broadcast, .size_bytes = 64, .programs_decide = decide};
    const StatusOr<Synthesis> made = TryEngines(request, engines);
    ASSERT_TRUE(made.ok()) << made.status().message();
    EXPECT_EQ(made->engine, "star");
    EXPECT_EQ(std::ranges::count(made->others, "chain", &Synthesis::engine), decide ? 1 : 0);
  }
}

// Variations of the first plan once used up the budget, and the second engine's faster program was not made.
TEST(Portfolio, WhereProgramsDecideEnginesAreAskedBeforeVariations) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  SynthesisRequest request{
      .topology = &topology, .collective = &broadcast, .size_bytes = 64, .programs_decide = true};
  std::vector<std::string> said;
  request.progress = [&](const std::string& what) { said.push_back(what.substr(0, what.find(';'))); };
  std::vector<Engine> engines = {EngineOf("first", 0, false, true), EngineOf("second", 0, false, true)};
  engines[1].offer = [make = engines[1].make](const SynthesisRequest& asked) -> StatusOr<Offer> {
    return Offer{.time_ps = 1e9, .work = 1000, .make = [=](int64_t) { return make(asked); }};
  };
  ASSERT_TRUE(TryEngines(request, engines).ok());
  ASSERT_GE(said.size(), 3u);
  EXPECT_EQ(said[1], "second");
  EXPECT_EQ(said[2], "first");
}

// On many ranks, variations of a plan far above the bound once used up the work that a plan near it needed.
TEST(Portfolio, OnManyRanksAnEngineWithAnEstimateIsAskedBeforeVariations) {
  const Topology topology = testing::MakeRing(600);
  const Collective broadcast = BroadcastOn(600);
  SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  std::vector<std::string> said;
  request.progress = [&](const std::string& what) { said.push_back(what.substr(0, what.find(';'))); };
  std::vector<Engine> engines = {EngineOf("first", 0, false, true), EngineOf("second", 0, false, true)};
  engines[1].offer = [make = engines[1].make](const SynthesisRequest& asked) -> StatusOr<Offer> {
    const auto ps = 1.2 * static_cast<double>(asked.bound->bound_ps);
    return Offer{.time_ps = ps, .work = 1'000'000, .make = [=](int64_t) { return make(asked); }};
  };
  ASSERT_TRUE(TryEngines(request, engines).ok());
  ASSERT_GE(said.size(), 3u);
  EXPECT_EQ(said[0], "first");
  EXPECT_EQ(said[1], "second");
  EXPECT_EQ(said[2], "first");
}

// Variations of a plan once used up the work that another engine's plan needed, which promised as much.
TEST(Portfolio, VariationsLeaveTheWorkOfAnEnginesOwnPlan) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  request.limits.work_units = 100;
  const auto second_with = [&](int64_t work) {
    std::vector<std::string> said;
    request.progress = [&](const std::string& what) { said.push_back(what.substr(0, what.find(';'))); };
    std::vector<Engine> engines = {EngineOf("first", 0, false, true), EngineOf("second", 0, false, true)};
    engines[1].offer = [=, make = engines[1].make](const SynthesisRequest& asked) -> StatusOr<Offer> {
      return Offer{.work = work, .make = [=](int64_t) { return make(asked); }};
    };
    EXPECT_TRUE(TryEngines(request, engines).ok());
    EXPECT_GE(said.size(), 2u);
    return said.size() < 2 ? "" : said[1];
  };
  EXPECT_EQ(second_with(200), "first");  // a variation; the work is enough for both
  EXPECT_EQ(second_with(395),
            "second");  // the variation takes 3 moves; a plan may take four times what is left
}

// The four plans of a turn ask their engine for one finer plan, not for four: otherwise the turns multiply
// with each step to finer plans.
TEST(Portfolio, PlansOfOneTurnShareTheVariationsThatAskTheirEngine) {
  const Topology topology = testing::MakeLine({10, 10, 10}, {});
  CollectiveSpec spec = BroadcastOn(4).spec();
  const Collective broadcast = *Collective::Create(std::move(spec));
  const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 1 << 12};
  std::map<int32_t, int> asked;  // how often, by chunks
  Engine engine = EngineOf("engine", 0, false, false);
  engine.any_chunks = true;
  engine.make = [&](const SynthesisRequest& of) -> StatusOr<Synthesis> {
    const int32_t chunks = of.limits.chunks.value_or(1);
    ++asked[chunks];
    Synthesis made{
        .collective = of.collective->WithChunks(chunks), .schedule = {}, .engine = "engine", .note = ""};
    made.schedule.num_chunks = chunks;
    for (int32_t step = 0; step < chunks + 2; ++step)
      for (int32_t r = std::max(0, step - chunks + 1); r <= std::min(step, 2); ++r)
        made.schedule.Add(ChunkId(step - r), 1, Rank(r), Rank(r + 1), std::vector{LinkId(r)},
                          TransferOp::kCopy, step);
    for (int32_t lag = 1; lag < 4; ++lag) {
      Synthesis other = made;
      other.others.clear();
      for (int32_t& step : other.schedule.step) step *= lag + 1;
      made.others.push_back(std::move(other));
    }
    return made;
  };
  const StatusOr<Synthesis> made = TryEngines(request, std::vector{engine});
  ASSERT_TRUE(made.ok()) << made.status().message();
  EXPECT_TRUE(made->faults.empty());
  EXPECT_GT(asked.size(), 2U);
  for (const auto& [chunks, times] : asked) EXPECT_EQ(times, 1) << chunks << " chunks";
}

// The budget is for one plan of a million moves. The cheapest of several was made, however slow.
TEST(Portfolio, IfTheBudgetIsForOnePlanItIsTheFastest) {
  const Topology topology = testing::MakeRing(4);
  const Collective broadcast = BroadcastOn(4);
  const SynthesisRequest request{.topology = &topology, .collective = &broadcast, .size_bytes = 64};
  const auto made_with = [&](int64_t work) {
    std::vector<Engine> engines = {EngineOf("slow", 0, false, true), EngineOf("fast", 0, false, true)};
    for (size_t i = 0; i < engines.size(); ++i)
      engines[i].offer = [=, make = engines[i].make](const SynthesisRequest& asked) -> StatusOr<Offer> {
        return Offer{.time_ps = (i == 0 ? 2 : 1.1) * static_cast<double>(asked.bound->bound_ps),
                     .work = work + static_cast<int64_t>(i),
                     .make = [=](int64_t) { return make(asked); }};
      };
    std::string first;
    SynthesisRequest asked = request;
    asked.progress = [&](const std::string& what) { first = first.empty() ? what : first; };
    EXPECT_TRUE(TryEngines(asked, engines).ok());
    return first;
  };
  EXPECT_EQ(made_with(1000), "slow");
  EXPECT_EQ(made_with(1'000'000), "fast");
}

}  // namespace
}  // namespace xccl
