// Asks the plugin as every release of NCCL does.
#include <gtest/gtest.h>

#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

#include "base/files.h"
#include "runtime/nccl/tuner/abi.h"
#include "runtime/nccl/tuner/lookup.h"
#include "runtime/nccl/tuner/stand_in.h"

namespace xccl::nccl_tuner {
namespace {

std::vector<std::string> logged;

void Log(int, unsigned long, const char*, int, const char* format, ...) {
  char text[1024];
  va_list arguments;
  va_start(arguments, format);
  std::vsnprintf(text, sizeof text, format, arguments);
  va_end(arguments);
  logged.emplace_back(text);
}

class Plugin : public testing::TestWithParam<Release> {
 protected:
  Plugin() {
    logged.clear();
    for (const char* name : {"XCCL_TUNER_TABLE", "NCCL_TUNER_CONFIG_FILE", "NCCL_ALGO", "NCCL_PROTO"})
      unsetenv(name);
  }

  int Version() const { return GetParam().version; }

  std::string UseTable(const std::string& text) const {
    std::string path = testing::TempDir() + "/tuner.table";
    EXPECT_EQ(WriteFileAtomically(path, text), OkStatus());
    setenv("XCCL_TUNER_TABLE", path.c_str(), 1);
    return path;
  }

  void* Init(size_t nodes, size_t ranks) const {
    void* context = nullptr;
    Constants constants = {};
    EXPECT_EQ(nccl_.Init(nodes, ranks, Log, &context, constants), kSuccess);
    return context;
  }

  void End(void* context) const { EXPECT_EQ(nccl_.End(context), kSuccess); }

  Answer Ask(void* context, const Asked& asked) const {
    Answer answer = nccl_.Ask(context, asked);
    EXPECT_EQ(answer.result, kSuccess);
    return answer;
  }

  // The plugin's choice, as "algorithm/protocol/channels".
  std::string Choice(void* context, const Asked& asked) const {
    const Answer answer = Ask(context, asked);
    if (!answer.steered) return "-1/-1/" + std::to_string(answer.channels);
    return std::to_string(answer.algorithm) + "/" + std::to_string(answer.protocol) + "/" +
           std::to_string(answer.channels);
  }

  StandIn nccl_ = StandIn::Load("runtime/nccl/tuner/libnccl-tuner-xccl.so", GetParam()).value();
};

TEST_P(Plugin, FirstRowThatMatchesDecides) {
  UseTable(
      "xccl-tuner 1\nallreduce max_bytes=1024 algorithm=tree protocol=ll channels=4\n"
      "allreduce max_bytes=4096 algorithm=ring protocol=simple\n");
  void* context = Init(1, 8);
  EXPECT_EQ(Choice(context, {.bytes = 1024}), "0/0/4");
  EXPECT_EQ(Choice(context, {.bytes = 1025}), "1/2/0");
  EXPECT_EQ(Choice(context, {.bytes = 4097}), "-1/-1/0");
  EXPECT_EQ(Choice(context, {.collective = 2}), "-1/-1/0");
  EXPECT_EQ(Choice(context, {.collective = 5}), "-1/-1/0");
  EXPECT_EQ(Choice(context, {.collective = -1}), "-1/-1/0");
  End(context);
}

TEST_P(Plugin, KeepsWhatNcclDoesNotOffer) {
  UseTable("allreduce,0,-1,nvls,simple,8,-1,-1\nallreduce,0,-1,ring,ll,2,-1,-1\n");
  void* context = Init(1, 8);
  Asked asked;
  asked.offered.reset();
  if (Version() > 2) {
    EXPECT_EQ(Choice(context, asked), "-1/-1/0");
  }
  asked.offered.set(IndexOf(Algorithm::kRing, Protocol::kLl));
  EXPECT_EQ(Choice(context, asked), "1/0/2");  // the second row, as NVLS is not there
  End(context);
}

TEST_P(Plugin, RowsForSomeCommunicatorsSteerThese) {
  UseTable("allreduce,0,-1,ring,ll,2,2,16\n");
  void *here = Init(2, 16), *elsewhere = Init(1, 16);
  EXPECT_EQ(Choice(here, {}), Version() == 1 ? "-1/-1/0" : "1/0/2");
  EXPECT_EQ(Choice(elsewhere, {}), "-1/-1/0");
  End(here);
  EXPECT_EQ(Choice(elsewhere, {}), "-1/-1/0");
  End(elsewhere);
}

TEST_P(Plugin, ConditionsOnWhatNcclDoesNotSayDoNotHold) {
  UseTable("allreduce,0,-1,ring,ll,2,-1,-1,3,1\n");
  void* context = Init(1, 8);
  EXPECT_EQ(Choice(context, {.pipe_ops = 3, .registered = 1}), Version() < 4 ? "-1/-1/0" : "1/0/2");
  EXPECT_EQ(Choice(context, {.pipe_ops = 3, .registered = 0}), "-1/-1/0");
  EXPECT_EQ(Choice(context, {.pipe_ops = 2, .registered = 1}), "-1/-1/0");
  End(context);
}

// NVIDIA's own example has a broadcast by trees, which NCCL has not.
TEST_P(Plugin, RowsOfListsThatNcclHasNoKernelsForAreNoted) {
  const std::string path = UseTable(
      "broadcast,0,-1,tree,simple,-1,-1,-1\nallreduce,0,1024,nvls,ll,-1,-1,-1\nallreduce,0,-1,ring,ll,2,-1,-"
      "1\n");
  void* context = Init(1, 8);
  ASSERT_EQ(logged.size(), 3U);
  EXPECT_EQ(logged[0],
            "TUNER/XCCL: " + path +
                ":1:16: broadcast by tree, simple; expected a combination that NCCL has; the row is "
                "left out");
  EXPECT_EQ(logged[1], "TUNER/XCCL: " + path +
                           ":2:18: allreduce by nvls, ll; expected a combination that NCCL has; the row is "
                           "left out");
  EXPECT_EQ(Choice(context, {.bytes = 1024}), "1/0/2");
  End(context);
}

TEST_P(Plugin, FaultsAreToldOnceAndSteerNothing) {
  const std::string path = UseTable("allreduce,0,1,rings,ll,2,-1,-1\n");
  void *first = Init(1, 8), *second = Init(1, 8);
  EXPECT_EQ(logged, std::vector<std::string>{"TUNER/XCCL: " + path +
                                             ":1:15: no algorithm 'rings'; did you mean 'ring'?; nothing is "
                                             "steered"});
  EXPECT_EQ(Choice(first, {}), "-1/-1/0");
  End(first);
  End(second);
  logged.clear();
  setenv("XCCL_TUNER_TABLE", "/nowhere/t", 1);
  first = Init(1, 8);
  EXPECT_EQ(logged, std::vector<std::string>{"TUNER/XCCL: /nowhere/t: cannot read: No such file or "
                                             "directory; nothing is steered"});
  EXPECT_EQ(Choice(first, {}), "-1/-1/0");
  End(first);
  logged.clear();
  unsetenv("XCCL_TUNER_TABLE");
  first = Init(1, 8);
  EXPECT_EQ(logged, std::vector<std::string>{
                        "TUNER/XCCL: no table: XCCL_TUNER_TABLE names none; nothing is steered"});
  End(first);
}

TEST_P(Plugin, SaysWhatItRead) {
  const std::string path = UseTable("allreduce,0,1,ring,ll,2,-1,-1\nallreduce,0,1,ring,ll,2,1,-1\n");
  End(Init(2, 16));
  EXPECT_EQ(logged, std::vector<std::string>{
                        "TUNER/XCCL: 2 rows from " + path + ", 1 for " +
                        (Version() == 1 ? "any number of nodes and ranks" : "2 nodes and 16 ranks")});
}

TEST_P(Plugin, MayBeEndedTwice) {
  UseTable("allreduce,0,-1,ring,ll,2,-1,-1\n");
  void *context = Init(1, 8), *other = Init(1, 8);
  End(context);
  if (Version() > 1) End(context);  // v1 ends as often as it begins
  EXPECT_EQ(Choice(other, {}), "1/0/2");
  End(other);
  End(other);
  End(nullptr);
  EXPECT_EQ(Choice(nullptr, {}), "-1/-1/0");
}

TEST_P(Plugin, OldReleasesAreToldOnlyWhatTheyCanRun) {
  UseTable(
      "allreduce,0,-1,ring,ll128,-1,-1,-1\nallreduce,0,-1,nvls,simple,8,-1,-1\n"
      "allreduce,0,-1,collnet_direct,simple,8,-1,-1\nallgather,0,-1,pat,simple,-1,-1,-1\n"
      "broadcast,0,-1,tree,simple,-1,-1,-1\nreduce,0,-1,ring,ll,33,-1,-1\n");
  if (Version() > 2) return;
  void* context = Init(1, 8);
  EXPECT_EQ(Choice(context, {}), "-1/-1/0");
  EXPECT_EQ(Choice(context, {.nvls = 1}), Version() == 1 ? "-1/-1/0" : "4/2/0");
  EXPECT_EQ(Choice(context, {.collnet = 1}), "2/2/0");
  EXPECT_EQ(Choice(context, {.collective = 2}), "-1/-1/0");
  EXPECT_EQ(Choice(context, {.collective = 0}), "-1/-1/0");
  EXPECT_EQ(Choice(context, {.collective = 1}), "1/0/0");
  End(context);
  setenv("NCCL_ALGO", "ring", 1);
  context = Init(1, 8);
  EXPECT_EQ(Choice(context, {.collective = 1}), "-1/-1/0");
  End(context);
}

TEST_P(Plugin, ChunksFollowTheChoice) {
  if (Version() < 6) return;
  UseTable("xccl-tuner 1\nallreduce max_bytes=4096 algorithm=ring protocol=simple chunk_bytes=65536\n");
  void* context = Init(1, 8);
  const auto chunk = [&](int collective, size_t bytes, Algorithm algorithm) {
    Asked asked = {.collective = collective, .bytes = bytes, .chunk_bytes = 1};
    asked.offered = Choices().set(IndexOf(algorithm, Protocol::kSimple));
    return Ask(context, asked).chunk_bytes;
  };
  EXPECT_EQ(chunk(4, 4096, Algorithm::kRing), 65536U);
  EXPECT_EQ(chunk(4, 4097, Algorithm::kRing), 1U);
  EXPECT_EQ(chunk(4, 4096, Algorithm::kTree), 1U);
  EXPECT_EQ(chunk(3, 4096, Algorithm::kRing), 1U);
  End(context);
}

TEST(StandIn, SaysWhatALibraryLacks) {
  EXPECT_EQ(
      StandIn::Load("/nowhere/libnccl-tuner.so", kReleases[0]).status(),
      InvalidInput("/nowhere/libnccl-tuner.so: cannot be loaded: /nowhere/libnccl-tuner.so: cannot open "
                   "shared object file: No such file or directory"));
}

INSTANTIATE_TEST_SUITE_P(Releases, Plugin, testing::ValuesIn(kReleases));

}  // namespace
}  // namespace xccl::nccl_tuner
