#include "base/memory.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

namespace xccl {
namespace {

constexpr int64_t kGiB = int64_t{1} << 30;

// A machine's files below a folder of the test.
std::string Files(const std::string& name, const std::vector<std::pair<std::string, std::string>>& files) {
  const std::string root = testing::TempDir() + "/memory_test_" + name;
  for (const auto& [path, text] : files) {
    std::filesystem::create_directories(std::filesystem::path(root + path).parent_path());
    std::ofstream(root + path) << text;
  }
  return root;
}

TEST(FreeMemory, IsWhatTheMachineOrItsGroupsLeave) {
  const std::pair<std::string, std::string> meminfo = {
      "/proc/meminfo", "MemTotal:       16777216 kB\nMemFree: 1024 kB\nMemAvailable:    8388608 kB\n"};
  struct Case {
    std::string name;
    std::vector<std::pair<std::string, std::string>> files;
    std::optional<int64_t> free;
  };
  const std::string gib = std::to_string(kGiB), gib4 = std::to_string(4 * kGiB);
  for (const Case& at : {
           Case{"nothing", {}, std::nullopt},
           Case{"machine", {meminfo}, 8 * kGiB},
           Case{"no_limit",
                {meminfo,
                 {"/proc/self/cgroup", "0::/a\n"},
                 {"/sys/fs/cgroup/a/memory.max", "max\n"},
                 {"/sys/fs/cgroup/a/memory.current", "4096\n"}},
                8 * kGiB},
           // The group above has the limit; its cache of files would be given back.
           Case{"above",
                {meminfo,
                 {"/proc/self/cgroup", "0::/a/b\n"},
                 {"/sys/fs/cgroup/a/b/memory.max", "max\n"},
                 {"/sys/fs/cgroup/a/memory.max", gib4},
                 {"/sys/fs/cgroup/a/memory.current", gib4},
                 {"/sys/fs/cgroup/a/memory.stat", "anon 1\nfile " + gib + "\n"}},
                kGiB},
           // A container sees the host's path and its own group at the top.
           Case{"container",
                {meminfo,
                 {"/proc/self/cgroup", "0::/host/path\n"},
                 {"/sys/fs/cgroup/memory.max", gib4},
                 {"/sys/fs/cgroup/memory.current", gib}},
                3 * kGiB},
           Case{"version_1",
                {meminfo,
                 {"/proc/self/cgroup", "5:cpu:/x\n3:memory:/x\n"},
                 {"/sys/fs/cgroup/memory/x/memory.limit_in_bytes", gib4},
                 {"/sys/fs/cgroup/memory/x/memory.usage_in_bytes", gib}},
                3 * kGiB},
           // A group that uses more than a limit that was lowered under it.
           Case{"over",
                {meminfo,
                 {"/proc/self/cgroup", "0::/\n"},
                 {"/sys/fs/cgroup/memory.max", gib},
                 {"/sys/fs/cgroup/memory.current", gib4}},
                0},
       })
    EXPECT_EQ(FreeMemory(Files(at.name, at.files)), at.free) << at.name;
}

TEST(CheckMemory, SaysWhatWouldBeNeeded) {
  const MemoryLeft memory{.limit_bytes = kGiB / 2, .left_bytes = kGiB / 4};
  EXPECT_TRUE(CheckMemory("ring", "a plan", 0.2 * kGiB, memory).ok());
  EXPECT_TRUE(CheckMemory("ring", "a plan", 1e15, std::nullopt).ok());
  const Status refused = CheckMemory("ring", "a plan", 2.1 * kGiB, memory);
  EXPECT_EQ(refused.code(), StatusCode::kLimit);
  EXPECT_EQ(
      refused.message(),
      "ring: needs about 2.1GiB more for a plan; expected at most 256MiB, which is left of 512MiB; hint: "
      "--memory-limit=3GiB or fewer ranks");
}

}  // namespace
}  // namespace xccl
