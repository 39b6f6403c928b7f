// Names, totals and layouts of a Program. Layouts follow from the collective's buffers: parts in order, and
// the chunks of each part in order.
#include "ir/program.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "base/check.h"

namespace xccl {
namespace {

struct OpcodeInfo {
  Opcode op;
  std::string_view name;
  bool sends, receives, reads_source, writes_destination;
};
constexpr std::array<OpcodeInfo, 9> kOpcodes = {{
    {Opcode::kSend, "send", true, false, true, false},
    {Opcode::kRecv, "recv", false, true, false, true},
    {Opcode::kRecvCopySend, "recv_copy_send", true, true, false, true},
    {Opcode::kRecvReduceSend, "recv_reduce_send", true, true, true, false},
    {Opcode::kRecvReduceCopy, "recv_reduce_copy", false, true, true, true},
    {Opcode::kRecvReduceCopySend, "recv_reduce_copy_send", true, true, true, true},
    {Opcode::kCopy, "copy", false, false, true, true},
    {Opcode::kReduce, "reduce", false, false, true, true},
    {Opcode::kNop, "nop", false, false, false, false},
}};

constexpr std::string_view kProtocolNames[kNumProtocols] = {"simple", "ll", "ll128"};  // by Protocol
constexpr std::string_view kGroupNames[] = {"multicast", "reduce", "fan-in"};          // by Group::Kind
constexpr std::string_view kBufferNames[] = {"input", "output", "scratch"};            // by BufferKind

template <typename Enum>
std::optional<Enum> Parse(std::string_view name, std::span<const std::string_view> names) {
  const auto found = std::ranges::find(names, name);
  if (found == names.end()) return std::nullopt;
  return static_cast<Enum>(found - names.begin());
}

const OpcodeInfo& InfoOf(Opcode op) { return kOpcodes[static_cast<size_t>(op)]; }

constexpr int64_t kSliceBytes = 16;  // slices, and runs in scratch, start at multiples of this

// Rounds up to whole units of 16 bytes, or of one element if that is larger.
int64_t AlignElements(int64_t elements, int64_t element_bytes) {
  const int64_t unit = std::max<int64_t>(1, kSliceBytes / element_bytes);
  return (elements + unit - 1) / unit * unit;
}

std::span<const Rank> PeersOf(const Program& program, const std::optional<Rank>& peer,
                              const std::optional<int32_t>& group) {
  if (group) return program.groups[static_cast<size_t>(*group)].members;
  if (peer) return {&*peer, 1};
  return {};
}

}  // namespace

std::string_view ToString(Opcode op) { return InfoOf(op).name; }
bool Sends(Opcode op) { return InfoOf(op).sends; }
bool Receives(Opcode op) { return InfoOf(op).receives; }
bool ReadsSource(Opcode op) { return InfoOf(op).reads_source; }
bool WritesDestination(Opcode op) { return InfoOf(op).writes_destination; }

std::string_view ToString(Protocol protocol) { return kProtocolNames[static_cast<size_t>(protocol)]; }
std::optional<Protocol> ParseProtocol(std::string_view name) { return Parse<Protocol>(name, kProtocolNames); }

std::string_view ToString(Group::Kind kind) { return kGroupNames[static_cast<size_t>(kind)]; }
std::optional<Group::Kind> ParseGroupKind(std::string_view name) {
  return Parse<Group::Kind>(name, kGroupNames);
}

std::string ToString(const Connection& connection) {
  return fmt::format("connection {}->{} channel {}", connection.src.value, connection.dst.value,
                     connection.channel);
}

std::string_view ToString(BufferKind buffer) { return kBufferNames[static_cast<size_t>(buffer)]; }

ProgramStats Stats(const Program& program, const CollectiveSizes& sizes) {
  ProgramStats stats;
  for (const RankProgram& rank : program.ranks) {
    stats.threadblocks = std::max(stats.threadblocks, static_cast<int32_t>(rank.threadblocks.size()));
    for (const Threadblock& tb : rank.threadblocks)
      stats.instructions += static_cast<int64_t>(tb.instructions.size());
    int64_t bytes = 0;
    for (size_t i = 0; i < rank.scratch.size(); ++i) {
      if (i == 0 || rank.scratch[i].value != rank.scratch[i - 1].value + 1) bytes = AlignElements(bytes, 1);
      bytes += sizes.ChunkBytes(rank.scratch[i]);
    }
    stats.scratch_bytes = std::max(stats.scratch_bytes, bytes);
  }
  for (const Connection& connection : program.connections)
    stats.channels = std::max(stats.channels, connection.channel + 1);
  stats.threadblocks *= program.instances;
  stats.channels *= program.instances;
  return stats;
}

int32_t NumPasses(const Program& program, const CollectiveSizes& sizes) {
  if (program.segment_bytes <= 0) return 1;
  const int64_t largest = sizes.LargestChunkBytes();
  const int64_t asked = largest / program.segment_bytes + (largest % program.segment_bytes != 0 ? 1 : 0);
  const int64_t most = std::clamp<int64_t>(asked, 1, kMaxPasses);
  // Slices are rounded up, so the largest chunk may have fewer than `most` slices.
  const int64_t elements = largest / sizes.element_bytes();
  const int64_t slice =
      std::max<int64_t>(1, SliceOf(elements, sizes.element_bytes(), static_cast<int32_t>(most), 0).end);
  return static_cast<int32_t>(std::max<int64_t>(1, (elements + slice - 1) / slice));
}

Slice SliceOf(int64_t chunk_elements, int64_t element_bytes, int32_t passes, int32_t pass) {
  const int64_t step = AlignElements((chunk_elements + passes - 1) / passes, element_bytes);
  return {std::min(chunk_elements, step * pass), std::min(chunk_elements, step * (pass + 1))};
}

std::vector<ChunkId> SlotChunks(const Program& program, const Collective& collective, Rank rank,
                                BufferKind buffer) {
  if (buffer == BufferKind::kScratch) return program.ranks[rank].scratch;
  std::vector<ChunkId> chunks;
  const std::vector<PartId> parts =
      buffer == BufferKind::kInput ? collective.InputParts(rank) : collective.OutputParts(rank);
  for (PartId part : parts)
    for (int32_t i = 0; i < collective.ChunksOf(part); ++i)
      chunks.push_back(ChunkId(collective.FirstChunk(part).value + i));
  return chunks;
}

BufferLayout LayoutOf(const Program& program, const Collective& collective, const CollectiveSizes& sizes,
                      Rank rank, BufferKind buffer) {
  BufferLayout layout;
  layout.chunk = SlotChunks(program, collective, rank, buffer);
  layout.begin.reserve(layout.chunk.size());
  for (size_t i = 0; i < layout.chunk.size(); ++i) {
    const bool continues = i > 0 && layout.chunk[i].value == layout.chunk[i - 1].value + 1;
    if (buffer == BufferKind::kScratch && !continues)
      layout.elements = AlignElements(layout.elements, sizes.element_bytes());
    layout.begin.push_back(layout.elements);
    layout.elements += sizes.ChunkElements(layout.chunk[i]);
  }
  return layout;
}

std::optional<int32_t> InPlaceShift(const Collective& collective, Rank rank) {
  const std::optional<Collective::InPlace> in_place = collective.InPlaceOf(rank);
  if (!in_place) return std::nullopt;
  int32_t shift = 0;
  const std::vector<PartId> output = collective.OutputParts(rank), input = collective.InputParts(rank);
  for (int32_t i = 0; i < in_place->input_at_output_part && i < static_cast<int32_t>(output.size()); ++i)
    shift += collective.ChunksOf(output[static_cast<size_t>(i)]);
  for (int32_t i = 0; i < in_place->output_at_input_part && i < static_cast<int32_t>(input.size()); ++i)
    shift -= collective.ChunksOf(input[static_cast<size_t>(i)]);
  return shift;
}

std::span<const Rank> SendPeers(const Program& program, const Threadblock& block) {
  return PeersOf(program, block.send_peer, block.send_group);
}

std::span<const Rank> RecvPeers(const Program& program, const Threadblock& block) {
  return PeersOf(program, block.recv_peer, block.recv_group);
}

const Group* FanInOf(const Program& program, const Threadblock& block) {
  if (!block.recv_group) return nullptr;
  const Group& group = program.groups[static_cast<size_t>(*block.recv_group)];
  return group.kind == Group::Kind::kFanIn ? &group : nullptr;
}

std::optional<int32_t> FindConnection(const Program& program, Rank src, Rank dst, int32_t channel) {
  const auto key = [](const Connection& c) { return std::tuple(c.src, c.dst, c.channel); };
  const auto it = std::lower_bound(
      program.connections.begin(), program.connections.end(), std::tuple(src, dst, channel),
      [&](const Connection& c, const std::tuple<Rank, Rank, int32_t>& wanted) { return key(c) < wanted; });
  if (it == program.connections.end() || key(*it) != std::tuple(src, dst, channel)) return std::nullopt;
  return static_cast<int32_t>(it - program.connections.begin());
}

Connection BranchOf(const Group& group, Rank member) {
  const bool out = group.kind == Group::Kind::kMulticast;
  return {.src = out ? group.root : member,
          .dst = out ? member : group.root,
          .channel = group.channel,
          .path = {}};
}

size_t FindBranch(const Program& program, const Group& group, Rank member) {
  const Connection branch = BranchOf(group, member);
  const std::optional<int32_t> found = FindConnection(program, branch.src, branch.dst, branch.channel);
  XCCL_CHECK(found.has_value());
  return static_cast<size_t>(*found);
}

}  // namespace xccl
