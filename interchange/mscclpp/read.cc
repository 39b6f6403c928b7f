// The plan is run without data (interchange/mscclpp/run.h), which gives steps and their order, and translated
// to MSCCL XML's model (interchange/mscclpp/translate.h), whose reader proves the result.
#include "interchange/mscclpp/read.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "interchange/msccl/file.h"
#include "interchange/mscclpp/file.h"
#include "interchange/mscclpp/run.h"
#include "interchange/mscclpp/translate.h"

namespace xccl {
namespace {

using mscclpp::File;

// Threadblocks that share an op have equal parts of it: chunks become so many smaller ones.
Status CutGroups(File& file, std::string_view name) {
  int64_t factor = 1;
  const auto each = [&](const auto& act) {
    for (mscclpp::Gpu& gpu : file.gpus)
      for (mscclpp::Block& block : gpu.blocks)
        for (mscclpp::Op& op : block.ops) {
          act(op);
          for (mscclpp::Op& inner : op.ops) act(inner);
        }
  };
  constexpr int64_t kMost = 1 << 10;
  each(
      [&](const mscclpp::Op& op) { factor = std::min(std::lcm(factor, int64_t{op.group_size}), kMost + 1); });
  if (factor > kMost)
    return InvalidInput(fmt::format(
        "{}: groups of threadblocks whose sizes have no common multiple to {}; expected one", name, kMost));
  constexpr int64_t kMostChunks = std::numeric_limits<int32_t>::max();
  for (mscclpp::Gpu& gpu : file.gpus) {
    for (int64_t* chunks : {&gpu.input, &gpu.output, &gpu.scratch})
      if ((*chunks *= factor) > kMostChunks / 4)
        return InvalidInput(
            fmt::format("{}: {} chunks of a buffer; expected {} at most", name, *chunks, kMostChunks / 4));
  }
  each([&](mscclpp::Op& op) {
    for (std::vector<mscclpp::Piece>* pieces : {&op.src, &op.dst})
      for (mscclpp::Piece& piece : *pieces) {
        piece.size = piece.size * factor / op.group_size;
        piece.index = piece.index * factor + op.group_block * piece.size;
      }
  });
  return OkStatus();
}

StatusOr<CollectiveKind> KindOf(const File& file, const ImportOptions& options) {
  if (file.collective == "reducescatter") return CollectiveKind::kReduceScatter;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kBroadcast,
        CollectiveKind::kReduce, CollectiveKind::kGather, CollectiveKind::kScatter,
        CollectiveKind::kAlltoall})
    if (file.collective == ToString(kind)) return kind;
  if (options.collective) return *options.collective;
  return InvalidInput(
      fmt::format("{}: collective: '{}'; expected allreduce, allgather, reducescatter, broadcast, reduce, "
                  "gather, scatter or "
                  "alltoall; hint: --collective",
                  options.file, file.collective));
}

// All ranks cut their data alike: the chunks of one part.
StatusOr<int32_t> ChunksPerLoop(const File& file, CollectiveKind kind, const ImportOptions& options) {
  const auto ranks = static_cast<int64_t>(file.gpus.size());
  const KindTraits& traits = TraitsOf(kind);
  const bool many_in = traits.parts != KindTraits::Parts::kOne && traits.before != KindTraits::Holders::kOwn;
  const bool many_out = traits.parts != KindTraits::Parts::kOne && traits.after != KindTraits::Holders::kOwn;
  const bool all_pairs = traits.parts == KindTraits::Parts::kPerPair;
  const int64_t in = many_in || all_pairs ? ranks : 1, out = many_out || all_pairs ? ranks : 1;
  const int64_t loop = file.gpus[0].input / in * std::max(in, out);
  for (size_t r = 0; r < file.gpus.size(); ++r) {
    const mscclpp::Gpu& gpu = file.gpus[r];
    if (gpu.input * std::max(in, out) != loop * in || gpu.output * std::max(in, out) != loop * out)
      return InvalidInput(
          fmt::format("{}: rank {}: {} chunks of input and {} of output; expected {} and {} of a part at all "
                      "ranks for {}",
                      options.file, r, gpu.input, gpu.output, in, out, ToString(kind)));
  }
  if (loop > std::numeric_limits<int32_t>::max() / 4)
    return InvalidInput(fmt::format("{}: {} chunks; expected fewer", options.file, loop));
  return static_cast<int32_t>(loop);
}

}  // namespace

StatusOr<Imported> ReadMscclppJson(std::string_view text, const ImportOptions& options) {
  XCCL_ASSIGN_OR_RETURN(File file, mscclpp::ReadFile(text, options.file));
  ImportOptions proving = options;
  XCCL_ASSIGN_OR_RETURN(proving.collective, KindOf(file, options));
  XCCL_RETURN_IF_ERROR(mscclpp::CheckLimits(file, options.file));
  XCCL_RETURN_IF_ERROR(CutGroups(file, options.file));
  XCCL_ASSIGN_OR_RETURN(const int32_t loop, ChunksPerLoop(file, *proving.collective, options));
  XCCL_ASSIGN_OR_RETURN(const mscclpp::Run run, mscclpp::RunFile(file, options.file, options.plain_switches));
  // Threadblocks may wait for each other where their steps did not.
  StatusOr<LoweredProgram> lowered = InvalidInput("");
  Status first = OkStatus();
  for (const mscclpp::Form& form :
       {mscclpp::Form{.together = true, .merged = true}, mscclpp::Form{.together = true}, mscclpp::Form{},
        mscclpp::Form{.each = true}}) {
    msccl::File made = mscclpp::Translate(file, run, form);
    made.chunks_per_loop = loop;
    lowered = msccl::ProveFile(made, proving);
    if (lowered.ok()) break;
    if (first.ok()) first = lowered.status();
  }
  if (!lowered.ok()) return first;
  std::vector<std::string> warnings = mscclpp::LimitWarnings(file, options.file);
  std::string in_a_row;
  const Status calls = mscclpp::CheckCalls(file, options.file);
  if (calls.code() == StatusCode::kLimit) {
    warnings.push_back(calls.message() + ": calls in a row are not checked");
  } else if (!calls.ok()) {
    in_a_row = calls.message();
    warnings.push_back(in_a_row +
                       "; one call is right, and calls in a row need a barrier of all ranks between them");
  }
  // MSCCL++ counts a rank's input; in a gather that is one part of the size.
  const auto factor =
      static_cast<uint64_t>(*proving.collective == CollectiveKind::kGather ? std::ssize(file.gpus) : 1);
  constexpr uint64_t kMost = std::numeric_limits<int64_t>::max();
  return Imported{
      .format = "MSCCL++ plan",
      .name = file.name,
      .lowered = *std::move(lowered),
      .min_bytes = file.min_bytes * static_cast<int64_t>(factor),
      .max_bytes = file.max_bytes > kMost / factor ? 0 : static_cast<int64_t>(file.max_bytes * factor),
      .warnings = std::move(warnings),
      .in_a_row = std::move(in_a_row)};
}

}  // namespace xccl
