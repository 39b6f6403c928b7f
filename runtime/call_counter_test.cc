#include "runtime/call_counter.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>
#include <string>
#include <thread>
#include <vector>

#include "base/files.h"

namespace xccl {
namespace {

CallCounter::Key Allreduce(int64_t bytes, uint64_t server = 1) {
  return {.op = ReduceOp::kSum, .root = {}, .size_bytes = bytes, .server = server};
}

std::string Folder(const std::string& name) {
  const std::string folder = testing::TempDir() + "/" + name;
  std::filesystem::remove_all(folder);
  EXPECT_EQ(MakeFolders(folder), OkStatus());
  return folder;
}

CallLog Read(const std::string& path) {
  const StatusOr<std::string> text = ReadFile(path);
  if (!text.ok()) {
    ADD_FAILURE() << text.status().message();
    return {};
  }
  return ReadCallLog(*text, path).value();
}

TEST(CallCounter, ThreadsCountTogether) {
  const std::string folder = Folder("threads");
  CallLogFile file(folder + "/calls.json", "xccl", std::nullopt);
  const auto counter = file.AddCommunicator(Rank(0), 1, {Rank(0)});
  constexpr int kThreads = 4, kCalls = 1000;
  std::vector<std::jthread> threads;
  for (int t = 0; t < kThreads; ++t)
    threads.emplace_back([&] {
      for (int i = 0; i < kCalls; ++i) counter->Add(Allreduce(1024 << (i % 4)), "a.plan.json", 5);
    });
  threads.clear();
  counter->Add(Allreduce(1024), "a.plan.json", std::nullopt);
  file.Write();
  const CallLog log = Read(folder + "/calls.json");
  ASSERT_EQ(log.communicators.size(), 1U);
  const std::vector<CountedCalls>& rows = log.communicators[0].rows;
  ASSERT_EQ(rows.size(), 4U);
  for (size_t i = 0; i < rows.size(); ++i) {
    EXPECT_EQ(rows[i].size_bytes, 1024 << i);
    EXPECT_EQ(rows[i].calls, 1000 + (i == 0 ? 1 : 0));
    EXPECT_EQ(rows[i].timed, 1000);
    EXPECT_EQ(rows[i].time_ps, 5'000'000);
    EXPECT_EQ(rows[i].served_by, "a.plan.json");
  }
}

TEST(CallCounter, CommunicatorsThatEndedAreOne) {
  const std::string folder = Folder("ended");
  CallLogFile file(folder + "/calls.json", "xccl", std::nullopt);
  for (int i = 0; i < 100; ++i) {
    const auto counter = file.AddCommunicator(Rank(0), 1, {Rank(0)});
    counter->Add(Allreduce(8, 1), "a.plan.json", std::nullopt);
    counter->Add(Allreduce(8, 2), i % 2 == 0 ? "b.plan.json" : "c.plan.json", std::nullopt);
    file.End(counter);
  }
  file.Write();
  const CallLog log = Read(folder + "/calls.json");
  ASSERT_EQ(log.communicators.size(), 1U);
  std::vector<std::pair<std::string, int64_t>> calls;
  for (const CountedCalls& row : log.communicators[0].rows) calls.emplace_back(row.served_by, row.calls);
  const std::vector<std::pair<std::string, int64_t>> expected = {
      {"a.plan.json", 100}, {"b.plan.json", 50}, {"c.plan.json", 50}};
  EXPECT_EQ(calls, expected);
}

TEST(CallCounter, CallsOfExpertsAreOneRowForAllTokens) {
  const std::string folder = Folder("experts");
  CallLogFile file(folder + "/calls.json", "xccl", std::nullopt);
  for (int i = 0; i < 2; ++i) {
    const auto counter = file.AddCommunicator(Rank(0), 1, {Rank(0)});
    counter->AddExperts({.combines = true, .row_bytes = 64, .served_by = "a.plan.json"}, 3, 5);
    for (int tokens = 0; tokens < 5000; ++tokens)
      counter->AddExperts({.row_bytes = 64, .served_by = "a.plan.json"}, tokens, 2);
    file.End(counter);
  }
  file.Write();
  const CallLog log = Read(folder + "/calls.json");
  const CountedExperts dispatches{.combines = false,
                                  .row_bytes = 64,
                                  .served_by = "a.plan.json",
                                  .tokens = 2 * 4999 * 2500,
                                  .calls = 10'000,
                                  .timed = 10'000,
                                  .time_ps = 20'000'000};
  const CountedExperts combines{.combines = true,
                                .row_bytes = 64,
                                .served_by = "a.plan.json",
                                .tokens = 6,
                                .calls = 2,
                                .timed = 2,
                                .time_ps = 10'000};
  EXPECT_EQ(log.communicators.at(0).experts, (std::vector<CountedExperts>{dispatches, combines}));
}

TEST(CallCounter, ATableHasAnEnd) {
  const std::string folder = Folder("full");
  CallLogFile file(folder + "/calls.json", "xccl", std::nullopt);
  const auto counter = file.AddCommunicator(Rank(0), 1, {});
  for (int i = 0; i < 5000; ++i) counter->Add(Allreduce(i), "a.plan.json", std::nullopt);
  file.Write();
  const CallLog log = Read(folder + "/calls.json");
  EXPECT_EQ(log.communicators.at(0).rows.size(), 4096U);
  EXPECT_EQ(log.communicators.at(0).left_out, 5000 - 4096);
  for (int i = 0; i < 5000; ++i) counter->AddExperts({.row_bytes = i}, 1, 1);
  file.Write();
  const CallLog with_experts = Read(folder + "/calls.json");
  EXPECT_EQ(with_experts.communicators.at(0).experts.size(), 4096U);
  EXPECT_EQ(with_experts.communicators.at(0).left_out, 2 * (5000 - 4096));
}

TEST(CallCounter, TheNameSaysWhoseFileItIs) {
  struct Case {
    std::string pattern;
    std::optional<JobPlace> place;
    int32_t ranks, here;  // of the communicator, in this process
    std::string expected;
  };
  const std::string process = std::to_string(getpid());
  const Case cases[] = {
      {"a.json", std::nullopt, 2, 2, "a.json"},    // threads
      {"a.json", std::nullopt, 2, 1, "a.json.0"},  // the other rank is elsewhere
      {"a.json", JobPlace{Rank(5), 8}, 2, 2, "a.json.5"},
      {"a.json", JobPlace{Rank(0), 1}, 2, 2, "a.json"},
      {"a-%r.json", JobPlace{Rank(5), 8}, 2, 1, "a-5.json"},
      {"a-%p-%%.json", JobPlace{Rank(5), 8}, 2, 1, "a-" + process + "-%.json"},
      {"a%", std::nullopt, 1, 1, "a%"},
      {"a%x", std::nullopt, 1, 1, "a%x"},
  };
  for (const Case& c : cases) {
    const std::string folder = Folder("names");
    CallLogFile file(folder + "/" + c.pattern, "xccl", c.place);
    file.Write();
    EXPECT_TRUE(std::filesystem::is_empty(folder)) << "written without a communicator";
    for (int i = 0; i < c.here; ++i) file.AddCommunicator(Rank(i), c.ranks, {});
    file.Write();
    EXPECT_TRUE(PathExists(folder + "/" + c.expected)) << c.pattern;
  }
}

TEST(CallCounter, ARankThatComesLateIsNoOtherProcess) {
  const std::string folder = Folder("late");
  CallLogFile file(folder + "/calls.json", "xccl", std::nullopt);
  file.AddCommunicator(Rank(0), 2, {});
  file.Write();
  EXPECT_TRUE(PathExists(folder + "/calls.json.0"));
  file.AddCommunicator(Rank(1), 2, {});
  file.Write();
  EXPECT_TRUE(PathExists(folder + "/calls.json"));
  EXPECT_FALSE(PathExists(folder + "/calls.json.0"));
}

TEST(CallCounter, AFileStaysUntilTheNextOneIsWritten) {
  const std::string folder = Folder("stays");
  ASSERT_EQ(MakeFolders(folder + "/calls.json"), OkStatus());  // no file can be written there
  CallLogFile file(folder + "/calls.json", "xccl", std::nullopt);
  file.AddCommunicator(Rank(0), 2, {});
  file.Write();
  file.AddCommunicator(Rank(1), 2, {});
  testing::internal::CaptureStderr();
  file.Write();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "xccl: XCCL_LOG_CALLS: " + folder + "/calls.json: cannot write: Is a directory\n");
  EXPECT_EQ(Read(folder + "/calls.json.0").communicators.size(), 1U);
}

TEST(CallCounter, AForkWritesNothing) {
  const std::string folder = Folder("fork");
  CallLogFile file(folder + "/calls.json", "xccl", std::nullopt);
  file.AddCommunicator(Rank(0), 1, {});
  const pid_t child = fork();
  if (child == 0) {
    file.Write();
    _exit(0);
  }
  waitpid(child, nullptr, 0);
  EXPECT_TRUE(std::filesystem::is_empty(folder));
}

TEST(CallCounter, AFileThatCannotBeWrittenIsOneLine) {
  const std::string path = Folder("unwritable") + "/file";
  ASSERT_EQ(WriteFileAtomically(path, ""), OkStatus());
  CallLogFile file(path + "/calls.json", "xccl", std::nullopt);
  file.AddCommunicator(Rank(0), 1, {});
  testing::internal::CaptureStderr();
  file.Write();
  file.Write();
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "xccl: XCCL_LOG_CALLS: " + path + "/calls.json: cannot write: Not a directory\n");
}

}  // namespace
}  // namespace xccl
