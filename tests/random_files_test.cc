// Topology files as scripts and disks leave them: samples with elements cut, repeated, renamed and dropped.
// Each is refused with its place and a reason, or read, and then bounded and planned. XCCL_LONG=1 makes
// 10,000.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <regex>
#include <string>
#include <vector>

#include "base/files.h"
#include "base/random.h"
#include "base/testing/shared_data.h"
#include "cli/describe/describe.h"
#include "ir/bounds/bound.h"
#include "pipeline/pipeline.h"
#include "tests/testing/check.h"
#include "tests/testing/collectives.h"
#include "tests/testing/mutate_text.h"
#include "topologies/library/library.h"
#include "topologies/load/load.h"
#include "topologies/nccl/nccl_xml.h"

namespace xccl::testing {
namespace {

std::vector<std::string> Samples() {
  std::vector<std::string> samples;
  const std::vector<std::string> small = LibraryNamesUpTo(200);
  for (const LibraryFile& file : LibraryFiles())
    if (std::ranges::find(small, file.name) != small.end() && LoadTopology(file.name)->num_ranks() <= 64)
      samples.emplace_back(file.text);
  std::vector<std::string> directories = {"tests/fuzz/corpus/native_xml", "tests/fuzz/corpus/nccl_xml"};
  if (const auto shared = SharedData("data/nccl-topologies")) directories.push_back(*shared);
  for (const std::string& directory : directories) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::directory_iterator(directory)) files.push_back(entry.path());
    std::ranges::sort(files);
    for (const std::filesystem::path& file : files)
      if (file.extension() == ".xml") samples.push_back(ReadFile(file.string()).value());
  }
  return samples;
}

struct Counts {
  int read = 0, assumed = 0, refused = 0, planned = 0;
};

// A dump that is read without a warning has the GPUs that are written in it.
void ExpectWhatIsWritten(const std::string& text, const Topology& topology) {
  if (!IsNcclXml(text) || !topology.spec().warnings.empty()) return;
  int64_t gpus = 0;
  for (size_t at = text.find("<gpu"); at != std::string::npos; at = text.find("<gpu", at + 1)) ++gpus;
  EXPECT_EQ(topology.num_ranks(), gpus) << text;
}

void Plan(const Topology& topology, uint64_t file, Counts& counts) {
  constexpr CollectiveKind kKinds[] = {CollectiveKind::kAllreduce, CollectiveKind::kAllgather,
                                       CollectiveKind::kAlltoall, CollectiveKind::kBroadcast};
  CollectiveSpec spec;
  spec.kind = kKinds[file % std::size(kKinds)];
  spec.ranks = AllRanks(topology.num_ranks());
  if (IsRooted(spec.kind)) spec.root = Rank(0);
  const Collective collective = Collective::Create(spec).value();
  PlanOptions options;
  options.request.size_bytes = 1 << 20;
  const StatusOr<Bound> bound =
      LowerBound(topology, collective, options.request.size_bytes, options.request.model);
  if (!bound.ok()) {
    EXPECT_EQ(bound.status().code(), StatusCode::kInfeasible) << bound.status().message();
    return;
  }
  if (topology.num_ranks() > 16 || file % 8 != 0) return;
  options.lower = true;
  const StatusOr<PlanResult> plan = MakePlan(topology, collective, options);
  ASSERT_TRUE(plan.ok()) << plan.status().message();
  EXPECT_GE(plan->simulation.time_ps, bound->bound_ps);
  ++counts.planned;
}

void CheckFile(const std::string& text, uint64_t file, Random& random, Counts& counts) {
  static const std::regex refusal(R"(f\.xml:(\d+:\d+: |[^:]+: )[^]+)");
  constexpr const char* kArchs[] = {"sm80", "sm90", "gfx942"};
  const std::string path = "f.xml";
  ASSERT_EQ(WriteFileAtomically(path, text), OkStatus());
  LoadOptions options;
  if (random.Below(2) == 0) options.gpu_arch = kArchs[random.Below(3)];
  if (random.Below(2) == 0) options.gpus_per_switch = 1;
  const StatusOr<Topology> topology = LoadTopology("./" + path, options);
  if (!topology.ok()) {
    EXPECT_EQ(topology.status().code(), StatusCode::kInvalidInput);
    EXPECT_TRUE(std::regex_match(topology.status().message().substr(2), refusal))
        << topology.status().message() << "\n"
        << text;
    ++counts.refused;
    return;
  }
  ++(topology->spec().warnings.empty() ? counts.read : counts.assumed);
  ExpectWhatIsWritten(text, *topology);
  if (topology->num_ranks() > 128) return;
  EXPECT_FALSE(DescribeText(*topology).empty());
  Plan(*topology, file, counts);
}

TEST(RandomFiles, AreReadOrRefusedWithAReason) {
  const std::vector<std::string> samples = Samples();
  const uint64_t files = LongRun() ? 10'000 : 400;
  std::filesystem::current_path(::testing::TempDir());
  Counts counts;
  Random random(15);
  for (uint64_t file = 0; file < files && !HasFailure(); ++file) {
    SCOPED_TRACE(fmt::format("file {}", file));
    std::string text = samples[random.Below(samples.size())];
    for (uint64_t changes = random.Below(3) + 1; changes > 0; --changes) text = MutateText(text, random);
    CheckFile(text, file, random, counts);
  }
  fmt::print("{} read, {} with something assumed, {} refused; {} planned\n", counts.read, counts.assumed,
             counts.refused, counts.planned);
}

}  // namespace
}  // namespace xccl::testing
