#include "interchange/msccl/read.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/units.h"
#include "interchange/msccl/depth.h"
#include "interchange/msccl/dialect.h"
#include "interchange/msccl/file.h"
#include "interchange/msccl/outline.h"
#include "ir/analysis/program_index.h"

namespace xccl {

namespace {

constexpr int64_t kMostMessages = 1 << 23;

// Executors send large chunks one by one, and a file that counts on several chunks a message may then wait in
// a circle. Limits max_bytes so that no size makes it wait, and returns a warning that says so.
StatusOr<std::string> LimitSizes(const msccl::File& file, const std::string& name, int64_t& max_bytes) {
  XCCL_ASSIGN_OR_RETURN(msccl::Outline outline, msccl::OutlineOf(file, name));
  outline.program.protocol = file.protocol;
  int64_t all = 0;
  for (const msccl::FileRank& rank : file.ranks)
    for (const msccl::FileBlock& block : rank.blocks)
      for (const msccl::FileStep& step : block.steps) all += std::max(1, step.count);
  if (all > kMostMessages)
    return fmt::format(
        "{}: {} chunks in all steps; expected {} at most to say whether large ones wait in a circle", name,
        all, kMostMessages);
  const msccl::ChunksOf chunks = [](Rank /*r*/, const Instruction& i) { return int64_t{i.count}; };
  const std::optional<ProgramSite> stuck = msccl::WaitsForever(outline.program, chunks, 1);
  if (!stuck) return std::string();
  const std::optional<int32_t> fewest = msccl::FewestAtATime(outline.program, chunks);
  const int64_t safe = fewest ? msccl::LargestSize(file.protocol, *fewest, file.chunks_per_loop) : 0;
  if (max_bytes > 0 && max_bytes <= safe) return std::string();
  const std::string where =
      fmt::format("{}:{}: rank {} threadblock {} step {}", name, StepAt(file, *stuck).line, stuck->rank.value,
                  stuck->threadblock, stuck->index);
  if (safe == 0 || safe < file.min_bytes)
    return fmt::format(
        "{} waits in a circle at every size that the file is for: it has {} messages under way at most",
        where, msccl::Depth(file.protocol));
  max_bytes = safe;
  return fmt::format(
      "{} waits in a circle above {}: executors then move fewer than {} chunks at a time, and have {} such "
      "messages under way on a connection in protocol {} (with NCCL's buffers); sizes end there",
      where, FormatSize(safe), *fewest, msccl::Depth(file.protocol), ToString(file.protocol));
}

}  // namespace

StatusOr<Imported> ReadMscclXml(std::string_view text, const ImportOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const msccl::File file, msccl::ReadFile(text, options.file));
  XCCL_ASSIGN_OR_RETURN(LoweredProgram lowered, msccl::ProveFile(file, options));
  std::vector<std::string> warnings = msccl::DialectWarnings(text, file, options.file);
  int64_t max_bytes = file.max_bytes;
  XCCL_ASSIGN_OR_RETURN(std::string limited, LimitSizes(file, options.file, max_bytes));
  if (!limited.empty()) warnings.push_back(std::move(limited));
  return Imported{.format = "MSCCL XML",
                  .name = file.name,
                  .lowered = std::move(lowered),
                  .min_bytes = file.min_bytes,
                  .max_bytes = max_bytes,
                  .warnings = std::move(warnings)};
}

}  // namespace xccl
