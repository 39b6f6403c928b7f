#include "sweep/work_list.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/strings.h"
#include "synth/engines.h"

namespace xccl {
namespace {

std::vector<std::string> Commands(std::string_view text) {
  const StatusOr<std::vector<SweepJob>> jobs = ParseWorkList(text, "work.txt");
  if (!jobs.ok()) return {jobs.status().message()};
  std::vector<std::string> commands;
  for (const SweepJob& job : *jobs) commands.push_back(Join(PlanArguments(job), " "));
  return commands;
}

TEST(WorkList, ALineIsAllItsCombinationsTheLastOptionFirst) {
  EXPECT_EQ(
      Commands("# two machines\n"
               "dgx1 torus:2x2@bandwidth=50GB/s,latency=1us -c allreduce -s 1KiB 2KiB  # sizes\n"),
      (std::vector<std::string>{
          "plan dgx1 --collective=allreduce --size=1024 --engine=auto",
          "plan dgx1 --collective=allreduce --size=2048 --engine=auto",
          "plan torus:2x2@bandwidth=50GB/s,latency=1us --collective=allreduce --size=1024 --engine=auto",
          "plan torus:2x2@bandwidth=50GB/s,latency=1us --collective=allreduce --size=2048 "
          "--engine=auto"}));
}

TEST(WorkList, SizesMayBeRangesAndProgramIsAPlanThatIsWrittenNowhere) {
  EXPECT_EQ(
      Commands("dgx1 -c barrier --size=1:4:x2 --program"),
      (std::vector<std::string>{"plan dgx1 --collective=barrier --size=1 --engine=auto --output=/dev/null",
                                "plan dgx1 --collective=barrier --size=2 --engine=auto --output=/dev/null",
                                "plan dgx1 --collective=barrier --size=4 --engine=auto "
                                "--output=/dev/null"}));
}

TEST(WorkList, AnOptionThatPlanTakesSeveralTimesIsAListEachTime) {
  EXPECT_EQ(Commands("dgx1 -c gather --without-link 0->1 0->2 --without-link 2->3"),
            (std::vector<std::string>{"plan dgx1 --collective=gather --size=67108864 --engine=auto "
                                      "--without-link=0->1 --without-link=2->3",
                                      "plan dgx1 --collective=gather --size=67108864 --engine=auto "
                                      "--without-link=0->2 --without-link=2->3"}));
}

TEST(WorkList, TheSameJobHasOneNameAndIsThereOnce) {
  EXPECT_EQ(Commands("dgx1 -c gather -e ring --seed 3 --model blocking --no-relays\n"
                     "dgx1 -c gather -e ring --no-relays --model blocking --seed 3 3\n"),
            (std::vector<std::string>{
                "plan dgx1 --collective=gather --size=67108864 --engine=ring --no-relays --model=blocking "
                "--seed=3"}));
}

TEST(WorkList, AllStandsForTheEnginesThatMayServe) {
  std::vector<std::string> expected;
  for (const Engine& engine : AllEngines())
    if (engine.MayServe(CollectiveKind::kAlltoall))
      expected.push_back(
          fmt::format("plan dgx1 --collective=alltoall --size=67108864 --engine={}", engine.name));
  EXPECT_EQ(Commands("dgx1 -c alltoall -e all"), expected);
  EXPECT_TRUE(
      std::ranges::none_of(expected, [](const std::string& command) { return command.ends_with("=ring"); }));
}

TEST(WorkList, WrongLinesAreRefusedWithTheirPlace) {
  const std::pair<const char*, const char*> wrong[] = {
      {"", "work.txt: no jobs; expected lines such as 'dgx-a100 ring:8 -c allreduce -s 1KiB 64MiB'"},
      {"# nothing\n \n",
       "work.txt: no jobs; expected lines such as 'dgx-a100 ring:8 -c allreduce -s 1KiB "
       "64MiB'"},
      {"\n-c allreduce", "work.txt:2: no topology; expected at least one before the first option"},
      {"dgx1", "work.txt:1: no collective; hint: --collective allreduce"},
      {"dgx1 -c allreduce --collective-file a.json",
       "work.txt:1: --collective-file: not together with --collective"},
      {"dgx1 -c alreduce", "work.txt:1: --collective: no collective 'alreduce'; did you mean 'allreduce'?"},
      {"dgx1 -c allreduce -e rign", "work.txt:1: --engine: no engine 'rign'; did you mean 'ring'?"},
      {"dgx1 -c allreduce -s 1XB",
       "work.txt:1: --size: '1XB': unknown unit 'XB'; a size is written like 64MiB"},
      {"dgx1 -c allreduce --sise 1", "work.txt:1: no option '--sise' in a sweep; did you mean '--size'?"},
      {"dgx1 -c allreduce -o a.json", "work.txt:1: no option '-o' in a sweep"},
      {"dgx1 -c allreduce -s", "work.txt:1: --size: no value; expected one"},
      {"dgx1 -c allreduce --seed=", "work.txt:1: --seed: no value; expected one"},
      {"dgx1 -c allreduce --no-relays yes", "work.txt:1: --no-relays: takes no value, but 'yes' follows"},
      {"dgx1 -c allreduce -s 1KiB -s 2KiB",
       "work.txt:1: --size: given twice; hint: all values behind one --size"},
      {"dgx1 -c allreduce\ndgx1 -c gather -s 1:1000000:x1.5",
       "work.txt:2: --size: '1.5': expected a whole number from 2 to 1048576"},
  };
  for (const auto& [text, message] : wrong)
    EXPECT_EQ(Commands(text), std::vector<std::string>{message}) << text;
}

TEST(WorkList, AListOfMoreThanAMillionJobsIsRefused) {
  std::string text = "dgx1 -c allreduce --seed";
  for (int i = 0; i < 1001; ++i) text += fmt::format(" {}", i);
  text += " --chunks";
  for (int i = 0; i < 1001; ++i) text += fmt::format(" {}", i);
  EXPECT_EQ(Commands(text),
            std::vector<std::string>{"work.txt:1: more than 1000000 jobs in one list; expected fewer"});
}

}  // namespace
}  // namespace xccl
