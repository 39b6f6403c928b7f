#include "interchange/msccl/depth.h"

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

namespace xccl::msccl {
namespace {

// Every step of the file as the messages that it is, and by rank, threadblock and instruction the last of
// them.
struct Messages {
  Program program;
  std::vector<std::vector<std::vector<int32_t>>> last;
};

int64_t MessagesOf(int64_t chunks, int32_t at_a_time) {
  const auto of = [&](int64_t count) { return (count + at_a_time - 1) / at_a_time; };
  return std::max<int64_t>(1, chunks / kMostCount * of(kMostCount) + of(chunks % kMostCount));
}

Messages Split(const Program& program, const ChunksOf& chunks, int32_t at_a_time) {
  Messages made{program, {}};
  made.program.slots = Depth(program.protocol);
  made.program.dependencies.clear();
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    std::vector<std::vector<int32_t>>& last = made.last.emplace_back();
    for (Threadblock& tb : made.program.ranks[r].threadblocks) {
      std::vector<Instruction> instructions;
      last.emplace_back();
      for (Instruction i : tb.instructions) {
        for (int64_t left = MessagesOf(chunks(r, i), at_a_time); left > 0; --left) {
          instructions.push_back(i);
          i.dep_count = 0;
        }
        last.back().push_back(static_cast<int32_t>(instructions.size()) - 1);
      }
      tb.instructions = std::move(instructions);
    }
    for (Threadblock& tb : made.program.ranks[r].threadblocks)
      for (Instruction& i : tb.instructions) {
        const auto first = static_cast<int32_t>(made.program.dependencies.size());
        for (int32_t d = 0; d < i.dep_count; ++d) {
          const Dependency& on = program.dependencies[static_cast<size_t>(i.dep_first + d)];
          made.program.dependencies.push_back(
              {on.threadblock, last[static_cast<size_t>(on.threadblock)][static_cast<size_t>(on.index)]});
        }
        i.dep_first = first;
      }
  }
  return made;
}

}  // namespace

int32_t Depth(Protocol protocol) { return protocol == Protocol::kSimple ? kSimpleDepth : 8; }

// A message takes 4 of NCCL's 8 slots of 512 KiB in Simple, and one slot in LL and LL128. A slot holds 512
// threads × 8 lines × 8 data bytes in LL; in LL128 it holds 640 threads × 120 elements × 8 bytes, of which
// 15/16 are data.
int64_t PieceBytes(Protocol protocol) {
  constexpr std::array<int64_t, kNumProtocols> kPieces = {2LL << 20, 32LL << 10, 576'000};
  return kPieces[static_cast<size_t>(protocol)];
}

int32_t ChunksAtATime(Protocol protocol, int64_t size_bytes, int64_t chunks) {
  const int64_t chunk = std::max<int64_t>(1, size_bytes / chunks + (size_bytes % chunks > 0 ? 1 : 0));
  return static_cast<int32_t>(std::clamp<int64_t>(PieceBytes(protocol) / chunk, 1, kMostCount));
}

int64_t LargestSize(Protocol protocol, int32_t at_a_time, int64_t chunks) {
  return PieceBytes(protocol) / at_a_time * chunks;
}

std::optional<ProgramSite> WaitsForever(const Program& program, const ChunksOf& chunks, int32_t at_a_time) {
  const Messages messages = Split(program, chunks, at_a_time);
  const ProgramIndex index(messages.program);
  const std::vector<int32_t> order = TopologicalOrder(messages.program, index, ProgramEdges::kAll);
  if (std::ssize(order) == index.size()) return std::nullopt;
  std::vector<bool> ends(static_cast<size_t>(index.size()), false);
  for (const int32_t node : order) ends[static_cast<size_t>(node)] = true;
  const auto stuck = std::ranges::find(ends, false);
  ProgramSite site = index.Site(static_cast<int32_t>(stuck - ends.begin()));
  const std::vector<int32_t>& last = messages.last[site.rank.index()][static_cast<size_t>(site.threadblock)];
  site.index = static_cast<int32_t>(std::ranges::lower_bound(last, site.index) - last.begin());
  return site;
}

// More chunks a message are fewer messages, which need fewer slots.
std::optional<int32_t> FewestAtATime(const Program& program, const ChunksOf& chunks) {
  if (!WaitsForever(program, chunks, 1)) return 1;
  if (WaitsForever(program, chunks, kMostCount)) return std::nullopt;
  int32_t bad = 1, good = kMostCount;
  while (good - bad > 1) {
    const int32_t middle = (bad + good) / 2;
    (WaitsForever(program, chunks, middle) ? bad : good) = middle;
  }
  return good;
}

}  // namespace xccl::msccl
