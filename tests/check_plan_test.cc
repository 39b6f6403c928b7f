// Checks and times plans of every engine with examples/check_plan.py, which shares no code with this project.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/random.h"
#include "ir/analysis/bitwise_same.h"
#include "ir/lower/testing/checked.h"
#include "ir/plan.h"
#include "ir/simulate/simulate.h"
#include "ir/testing/graphs.h"
#include "ir/testing/translated.h"
#include "ir/translated.h"
#include "ir/verify/read_plan.h"
#include "ir/verify/verify_plan.h"
#include "ir/verify/verify_schedule.h"
#include "synth/common/synthesizer.h"
#include "synth/engines.h"
#include "tests/testing/check.h"
#include "tests/testing/collectives.h"
#include "tests/testing/mutate.h"
#include "tests/testing/topologies.h"
#include "topologies/load/load.h"
#include "topologies/symmetry.h"

namespace xccl::testing {
namespace {

// Runs the script with each line that it is given, and writes what the script prints and a NUL: starting
// Python takes longer than most checks.
constexpr const char* kServer =
    "import io, runpy, sys\n"
    "sys.path.insert(0, \"examples\")\n"
    "for line in sys.stdin:\n"
    "    sys.argv = [\"examples/check_plan.py\"] + line.split()\n"
    "    shown, sys.stdout = sys.stdout, io.StringIO()\n"
    "    try:\n"
    "        runpy.run_path(sys.argv[0], run_name=\"__main__\")\n"
    "    except SystemExit as end:\n"
    "        if isinstance(end.code, str):\n"
    "            print(end.code)\n"
    "    except Exception as error:\n"
    "        print(repr(error))\n"
    "    text, sys.stdout = sys.stdout.getvalue(), shown\n"
    "    print(text, end=\"\\0\", flush=True)\n";

// Returns what the script prints.
std::string Outsider(const std::string& arguments) {
  struct Ends {
    std::FILE *to, *from;
  };
  static const Ends server = [] {
    const std::string answers = ::testing::TempDir() + "/answers";
    XCCL_CHECK(mkfifo(answers.c_str(), 0600) == 0);
    std::FILE* const to = popen(("python3 -c '" + std::string(kServer) + "' >" + answers).c_str(), "w");
    std::FILE* const from = std::fopen(answers.c_str(), "r");
    XCCL_CHECK(to != nullptr && from != nullptr);
    std::filesystem::remove(answers);
    return Ends{to, from};
  }();
  std::fputs((arguments + "\n").c_str(), server.to);
  std::fflush(server.to);
  std::string text;
  for (int c = std::fgetc(server.from); c > 0; c = std::fgetc(server.from)) text += static_cast<char>(c);
  return text;
}

bool HavePython() { return std::system("python3 -c pass > /dev/null 2>&1") == 0; }

Plan PlanOf(const Synthesis& answer, const Topology& topology, const SynthesisRequest& request) {
  MadeBy made_by;
  made_by.engine = answer.engine;
  made_by.size_bytes = request.size_bytes;
  return Plan{topology, answer.collective, answer.schedule, std::nullopt, made_by};
}

void CheckTime(const Plan& plan, const std::string& path, int64_t size_bytes, TimeModel model) {
  SimulateOptions options;
  options.size_bytes = size_bytes;
  options.model = model;
  const Simulation ours = Simulate(plan.schedule, plan.collective, plan.topology, options);
  EXPECT_EQ(
      Outsider(path + " --size " + std::to_string(size_bytes) + " --model " + std::string(ToString(model))),
      "ok\ntime_ps " + std::to_string(ours.time_ps) + "\n")
      << plan.made_by.engine << ": " << Describe(plan.collective) << " of " << plan.topology.name() << " at "
      << size_bytes;
}

class CheckPlan : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (!HavePython()) GTEST_SKIP() << "no python3";
  }
};

TEST_P(CheckPlan, AgreesOnRulesAndTimes) {
  const uint64_t seed = static_cast<uint64_t>(GetParam());
  const Topology topology = MakeRandomMachine(seed, {.max_ranks = 6, .max_switches = 3});
  const std::string path = ::testing::TempDir() + "/outsider" + std::to_string(seed) + ".plan.json";
  Random random(seed);
  for (const Collective& collective : AllCollectives(topology.num_ranks())) {
    SynthesisRequest request;
    request.topology = &topology;
    request.collective = &collective;
    for (const Engine& engine : AllEngines()) {
      if (engine.name == "smt" || engine.name == "auto" || !engine.Serves(request).ok()) continue;
      if (!LongRun() && random.Below(8) > 0) continue;
      StatusOr<Synthesis> answer = engine.Synthesize(request);
      if (answer.ok()) answer->schedule = Expand(answer->schedule, answer->collective, topology).value();
      if (!answer.ok()) continue;
      Plan plan = PlanOf(*answer, topology, request);
      ASSERT_EQ(WritePlan(plan, path), OkStatus());
      CheckTime(plan, path, 3000, TimeModel::kPipelined);
      CheckTime(plan, path, 1'000'000, TimeModel::kBlocking);
      CheckTime(plan, path, 2 << 20, TimeModel::kPipelined);
      if (plan.schedule.size() == 0) continue;
      AllMutations()[random.Below(AllMutations().size())].apply(plan.schedule, topology, random);
      ASSERT_EQ(WritePlan(plan, path), OkStatus());
      const bool right = VerifySchedule(plan.schedule, plan.collective, topology).empty();
      const std::string text = Outsider(path + " --size 100");
      EXPECT_EQ(text.rfind("ok\n", 0) == 0, right) << text;
    }
  }
}

// A chain of 510 links and 8224 segments, of which only some are run.
TEST(CheckPlanTimes, AgreesWhereTheSimulationExtrapolates) {
  if (!HavePython()) GTEST_SKIP() << "no python3";
  const std::string path = ::testing::TempDir() + "/extrapolated.plan.json";
  const Topology topology = *LoadTopology("nvswitch:256");
  const Collective collective = testing::MakeCollective(CollectiveKind::kBroadcast, 256, Rank(0));
  const SynthesisRequest request{.topology = &topology, .collective = &collective, .size_bytes = 1 << 30};
  const Engine* const ring = FindEngine("ring").value();
  const Synthesis answer = ring->Synthesize(request).value();
  const Plan plan = PlanOf(answer, topology, request);
  ASSERT_EQ(WritePlan(plan, path), OkStatus());
  CheckTime(plan, path, 1 << 30, TimeModel::kPipelined);
  CheckTime(plan, path, 1 << 30, TimeModel::kBlocking);
  SimulateOptions all{.size_bytes = 8 << 20, .extrapolate = false};
  const Simulation every = Simulate(plan.schedule, plan.collective, plan.topology, all);
  EXPECT_EQ(Outsider(path + " --size 8388608 --every-segment"),
            "ok\ntime_ps " + std::to_string(every.time_ps) + "\n");
}

// One member, all data at the one rank that wants it, and ranks that have what they need.
TEST(CheckPlanEmpty, AgreesWhereNothingMoves) {
  if (!HavePython()) GTEST_SKIP() << "no python3";
  const std::string path = ::testing::TempDir() + "/empty.plan.json";
  const Topology topology = *LoadTopology("ring:3");
  std::vector<CollectiveSpec> specs;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
        CollectiveKind::kBroadcast, CollectiveKind::kReduce, CollectiveKind::kGather,
        CollectiveKind::kScatter, CollectiveKind::kAlltoall}) {
    CollectiveSpec& spec = specs.emplace_back();
    spec.kind = kind;
    spec.ranks = {Rank(2)};
    if (IsRooted(kind)) spec.root = Rank(2);
  }
  CollectiveSpec& still = specs.emplace_back();
  still.kind = CollectiveKind::kAlltoallv;
  still.ranks = AllRanks(2);
  still.counts = {5, 0, 0, 3};
  CollectiveSpec& custom = specs.emplace_back();
  custom.kind = CollectiveKind::kCustom;
  custom.custom_name = "has-what-it-needs";
  custom.ranks = AllRanks(3);
  custom.custom_weights = {1};
  custom.pre = {{Rank(1), PartId(0), {Rank(1)}}};
  custom.post = custom.pre;
  for (const CollectiveSpec& spec : specs) {
    const StatusOr<Collective> collective = Collective::Create(spec);
    ASSERT_TRUE(collective.ok()) << collective.status().message();
    Plan plan{topology, *collective, {}, std::nullopt, {}};
    plan.schedule.num_chunks = collective->num_chunks();
    ASSERT_EQ(ToStatus(VerifyPlan(plan)).message(), "") << collective->name();
    ASSERT_EQ(WritePlan(plan, path), OkStatus());
    for (const int64_t size_bytes : {0, 3000, 1 << 16, 1 << 17, 1 << 30})
      for (const TimeModel model : {TimeModel::kPipelined, TimeModel::kBlocking})
        CheckTime(plan, path, size_bytes, model);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, CheckPlan, ::testing::Range(0, 4));

// Programs are checked against their own schedule, and against other engines' schedules, whose paths and
// orders differ.
TEST(CheckPlanPrograms, AgreesOnWhatBelongsTogether) {
  if (!HavePython()) GTEST_SKIP() << "no python3";
  const std::string path = ::testing::TempDir() + "/programs.plan.json";
  int32_t together = 0, apart = 0;
  for (const char* name : {"ring:4", "nvswitch:3@multicast=true,reduce=true"}) {
    const Topology topology = *LoadTopology(name);
    for (CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kAllreduce, CollectiveKind::kAlltoall}) {
      const Collective collective = testing::MakeCollective(kind, topology.num_ranks());
      SynthesisRequest request{.topology = &topology, .collective = &collective};
      std::optional<LoweredProgram> before;  // program of the engine before
      for (const Engine& engine : AllEngines()) {
        if (engine.name == "smt" || engine.name == "auto" || !engine.Serves(request).ok()) continue;
        const StatusOr<Synthesis> answer = engine.Synthesize(request);
        if (!answer.ok()) continue;
        Plan plan = PlanOf(*answer, topology, request);
        plan.bitwise_same = IsBitwiseSame(plan.schedule, plan.collective, topology);
        const LoweredProgram own =
            LowerFoldedChecked(plan.schedule, plan.collective, topology, {.size_bytes = 1 << 20}).value();
        plan.program = own;
        for (const bool swapped : {false, true}) {
          if (swapped && (!before || before->collective.num_chunks() > plan.collective.num_chunks()))
            continue;
          if (swapped) plan.program = before;
          const bool right = VerifyPlan(plan).empty();
          EXPECT_TRUE(right || swapped);
          ++(right ? together : apart);
          ASSERT_EQ(WritePlan(plan, path), OkStatus());
          const std::string text = Outsider(path + " --size 100");
          EXPECT_EQ(text.rfind("ok\n", 0) == 0, right)
              << name << " " << ToString(kind) << " " << engine.name << ": " << text;
        }
        before = own;
      }
    }
  }
  EXPECT_GT(together, 20);
  EXPECT_GT(apart, 10);
}

// Compressed plans, right and wrong, some of which have translates that share links.
TEST(CheckPlanCompressed, AgreesOnRulesAndTimes) {
  if (!HavePython()) GTEST_SKIP() << "no python3";
  const std::string path = ::testing::TempDir() + "/compressed.plan.json";
  Random random(1);
  for (const char* name : {"torus:2x3", "mesh:2x4", "leaf-spine:2x2x2@latency=1us,overhead=100ns"}) {
    const Topology topology = *LoadTopology(name);
    const SymmetryGroup group = FindTranslations(topology);
    for (CollectiveKind kind :
         {CollectiveKind::kAllgather, CollectiveKind::kReduceScatter, CollectiveKind::kAllreduce}) {
      TranslatedAnswer answer = Compressed(topology, group, kind, 2, random);
      Plan plan{topology, std::move(answer.collective), std::move(answer.schedule), std::nullopt, {}};
      ASSERT_EQ(WritePlan(plan, path, 0), OkStatus());
      const StatusOr<Plan> read = ReadPlan(path);
      ASSERT_TRUE(read.ok()) << read.status().message();
      EXPECT_EQ(read->schedule, plan.schedule);
      CheckTime(plan, path, 3000, TimeModel::kPipelined);
      CheckTime(plan, path, 1'000'000, TimeModel::kBlocking);
      CheckTime(plan, path, 6 << 20, TimeModel::kPipelined);
      for (int32_t round = 0; round < 3; ++round) {
        Plan wrong = plan;
        Automorphism& generator = wrong.schedule.symmetry.front();
        const auto any = [&] { return random.Below(generator.image.size()); };
        if (round == 0) std::swap(generator.image[any()], generator.image[any()]);
        if (round == 1) generator.order += static_cast<int32_t>(random.Below(3)) - 1;
        if (round == 2)
          wrong.schedule.first[random.Below(2)] = ChunkId(static_cast<int64_t>(random.Below(4)));
        ASSERT_EQ(WritePlan(wrong, path, 0), OkStatus());
        const bool right = VerifySchedule(wrong.schedule, wrong.collective, topology).empty();
        const std::string text = Outsider(path + " --size 100");
        EXPECT_EQ(text.rfind("ok\n", 0) == 0, right) << text;
      }
    }
  }
}

// A file may list its paths in a table. Files do that where many transfers go over trees.
TEST(CheckPlanPaths, AgreesOnATableOfThem) {
  if (!HavePython()) GTEST_SKIP() << "no python3";
  const Topology topology = *LoadTopology("nvswitch:3@multicast=true,reduce=true,latency=1us");
  std::vector<LinkId> up, down;
  for (const int32_t r : {1, 2}) up.push_back(topology.Out(topology.NodeOf(Rank(r)))[0]);
  up.push_back(topology.In(topology.NodeOf(Rank(0)))[0]);
  down.push_back(topology.Out(topology.NodeOf(Rank(0)))[0]);
  for (const int32_t r : {1, 2}) down.push_back(topology.In(topology.NodeOf(Rank(r)))[0]);
  CollectiveSpec spec;
  spec.kind = CollectiveKind::kAllreduce;
  spec.ranks = AllRanks(3);
  Plan plan{topology, *Collective::Create(spec), {}, {}, {}};
  plan.schedule.num_chunks = 1;
  plan.schedule.Add(ChunkId(0), 1, Rank(1), Rank(0), up, TransferOp::kReduce, 0);
  plan.schedule.Add(ChunkId(0), 1, Rank(0), Rank(1), down, TransferOp::kCopy, 1);
  const std::string path = ::testing::TempDir() + "/paths.plan.json";
  ASSERT_EQ(WritePlan(plan, path, 0), OkStatus());
  std::ifstream in(path);
  std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto replace = [&](std::string_view what, std::string_view by) {
    ASSERT_NE(text.find(what), text.npos) << what;
    text.replace(text.find(what), what.size(), by);
  };
  replace(R"("src":[[1,2],0])", R"("src":[1,0])");
  replace(R"("dst":[0,[1,2]])", R"("dst":[0,1])");
  replace(R"("path":)", R"("paths":)");
  replace(R"("op":"rc")", R"("path":[0,1],"op":"rc")");
  for (const bool right : {true, false}) {
    if (!right) replace(R"("src":[1,0])", R"("src":[2,0])");
    std::ofstream(path) << text;
    const StatusOr<Plan> read = ReadPlan(path);
    ASSERT_EQ(read.ok(), right);
    if (!right) {
      EXPECT_NE(Outsider(path).rfind("ok\n", 0), 0u);
      continue;
    }
    EXPECT_EQ(read->schedule, plan.schedule);
    CheckTime(*read, path, 1 << 20, TimeModel::kPipelined);
  }
}

// Checks the example of docs/ir.md, section 10.
TEST(CheckPlanExample, OfTheDocumentation) {
  if (!HavePython()) GTEST_SKIP() << "no python3";
  std::FILE* file = std::fopen("docs/ir.md", "r");
  ASSERT_NE(file, nullptr);
  std::string text;
  char block[4096];
  while (const size_t got = std::fread(block, 1, sizeof block, file)) text.append(block, got);
  std::fclose(file);
  const size_t begin = text.find("{\n \"format\":1");
  ASSERT_NE(begin, text.npos);
  const std::string path = ::testing::TempDir() + "/example.plan.json";
  file = std::fopen(path.c_str(), "w");
  const std::string plan = text.substr(begin, text.find("```", begin) - begin);
  std::fwrite(plan.data(), 1, plan.size(), file);
  std::fclose(file);
  EXPECT_EQ(Outsider(path), "ok\ntime_ps 3000000\n");
  const StatusOr<Plan> read = ReadPlan(path);
  ASSERT_TRUE(read.ok()) << read.status().message();
  ASSERT_EQ(WritePlan(*read, path + "2"), OkStatus());
  CheckTime(*read, path + "2", 2000, TimeModel::kPipelined);
}

}  // namespace
}  // namespace xccl::testing
