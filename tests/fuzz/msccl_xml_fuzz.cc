// Plans of other tools as MSCCL XML.
#include "interchange/common/foreign.h"
#include "interchange/msccl/read.h"
#include "interchange/msccl/xml.h"
#include "ir/interpret/interpret.h"
#include "tests/fuzz/fuzz.h"

namespace xccl::testing {
namespace {

// Small enough to be run and written again.
bool IsSmall(const LoweredProgram& lowered) {
  int64_t chunks = 0;
  for (const RankProgram& rank : lowered.program.ranks)
    for (const Threadblock& block : rank.threadblocks)
      for (const Instruction& i : block.instructions) chunks += i.count;
  return chunks < 10'000 && lowered.collective.num_chunks() < 10'000;
}

}  // namespace

void FuzzOne(std::string_view text) {
  const StatusOr<Imported> read =
      ReadMscclXml(text, {.file = "fuzz", .collective = CollectiveKind::kBroadcast});
  if (!read.ok()) return CheckRefusal(read.status());
  const LoweredProgram& lowered = read->lowered;
  if (!IsSmall(lowered)) return;
  // A program that the reader accepts runs.
  const InterpretOptions options{.size_bytes = 4096};
  std::vector<std::vector<std::byte>> inputs;
  for (Rank r(0); r.value < lowered.program.ranks.size(); ++r.value)
    inputs.emplace_back(
        static_cast<size_t>(4 * LayoutOf(lowered.program, lowered.collective,
                                         CollectiveSizes(lowered.collective, 4096), r, BufferKind::kInput)
                                    .elements));
  XCCL_CHECK(Interpret(lowered.program, lowered.collective, inputs, options).ok());
  // A file that the writer makes can be read again.
  const MscclXmlOptions to{.target = MscclTarget::kMsccl};
  const StatusOr<MscclXml> once = WriteMscclXml(lowered.program, lowered.collective, to);
  if (!once.ok()) return CheckRefusal(once.status());
  const Rank root = lowered.collective.spec().root.value_or(Rank(0));
  const StatusOr<Imported> again = ReadMscclXml(once->text, {.root = root});
  XCCL_CHECK(again.ok());
}

}  // namespace xccl::testing
