// A threadblock's instructions are stored in columns: a string of opcode names, strings with one character
// per instruction for buffers and flags, and columns of integers. docs/ir.md has an example.
#include "ir/program_json.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <string>

#include "base/strings.h"
#include "ir/collective_json.h"

namespace xccl {
namespace {

constexpr int32_t kMax = std::numeric_limits<int32_t>::max();
// By Opcode: the name that MSCCL uses, if it has the instruction.
constexpr std::array<std::string_view, 9> kShortNames = {"s",    "r",   "rcs", "rrs", "rrc",
                                                         "rrcs", "cpy", "re",  "nop"};
constexpr std::string_view kBuffers = "ios-";  // '-': the opcode does not use the operand
constexpr std::string_view kFlags = ".flb";    // nothing, first, final (last), both

char BufferCode(const Operand& operand, bool used) {
  return used ? kBuffers[static_cast<size_t>(operand.buffer)] : '-';
}

void WriteThreadblock(const Program& program, const Threadblock& block, JsonWriter& writer) {
  std::string ops, flags, src_buffer, dst_buffer;
  for (const Instruction& i : block.instructions) {
    if (!ops.empty()) ops += ' ';
    ops += kShortNames[static_cast<size_t>(i.op)];
    flags += kFlags[(i.first ? 1 : 0) + (i.final ? 2 : 0)];
    src_buffer += BufferCode(i.src, ReadsSource(i.op));
    dst_buffer += BufferCode(i.dst, WritesDestination(i.op));
  }
  const auto column = [&](std::string_view name, auto value) {
    writer.Key(name);
    writer.Integers(block.instructions, value);
  };
  writer.BeginObject();
  writer.Member("send", block.send_peer);
  writer.Member("send_group", block.send_group);
  writer.Member("recv", block.recv_peer);
  writer.Member("recv_group", block.recv_group);
  writer.Member("channel", block.channel);
  writer.Member("op", ops);
  column("count", [](const Instruction& i) { return i.count; });
  writer.Member("src_buffer", src_buffer);
  column("src", [](const Instruction& i) { return ReadsSource(i.op) ? i.src.slot : 0; });
  writer.Member("dst_buffer", dst_buffer);
  column("dst", [](const Instruction& i) { return WritesDestination(i.op) ? i.dst.slot : 0; });
  writer.Member("flags", flags);
  // Each dependency is three entries: instruction, threadblock, index.
  writer.Key("deps");
  writer.BeginArray();
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    const Instruction& instruction = block.instructions[i];
    for (int32_t d = 0; d < instruction.dep_count; ++d) {
      const Dependency& on = program.dependencies[static_cast<size_t>(instruction.dep_first + d)];
      for (int32_t value : {static_cast<int32_t>(i), on.threadblock, on.index}) writer.Integer(value);
    }
  }
  writer.EndArray();
  writer.EndObject();
}

StatusOr<std::vector<Opcode>> ReadOpcodes(const JsonValue& object) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, object.Get("op"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view text, value.String());
  std::vector<Opcode> ops;
  // A space stands between two names.
  for (size_t begin = 0; !text.empty() && begin <= text.size();) {
    const size_t end = std::min(text.find(' ', begin), text.size());
    const std::string_view name = text.substr(begin, end - begin);
    const StatusOr<size_t> index = IndexOfName("instruction", name, kShortNames);
    if (!index.ok()) return value.Error(index.status().message());
    ops.push_back(static_cast<Opcode>(*index));
    begin = end + 1;
  }
  return ops;
}

// Reads a column of `count` entries, each at least `low`.
StatusOr<std::span<const int64_t>> ReadColumn(const JsonValue& object, std::string_view key, size_t count,
                                              int32_t low) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, object.Get(key));
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> column, value.Integers(low, kMax));
  if (column.size() != count)
    return value.Error(fmt::format("{} entries; expected {}, as many as op", column.size(), count));
  return column;
}

// Reads a string with one of `codes` for every instruction, as indices into `codes`.
StatusOr<std::vector<size_t>> ReadCodes(const JsonValue& object, std::string_view key, size_t count,
                                        std::string_view codes) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, object.Get(key));
  XCCL_ASSIGN_OR_RETURN(const std::string_view text, value.String());
  if (text.size() != count)
    return value.Error(fmt::format("{} characters; expected {}, as many as op", text.size(), count));
  std::vector<size_t> indices;
  for (char c : text) {
    const size_t index = codes.find(c);
    if (index == std::string_view::npos)
      return value.Error(fmt::format("'{}'; expected only characters of '{}'", c, codes));
    indices.push_back(index);
  }
  return indices;
}

// Reads a rank, or the number of a group.
template <typename Id>
StatusOr<std::optional<Id>> ReadPeer(const JsonValue& object, std::string_view key) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, object.Find(key));
  if (!value) return std::optional<Id>();
  XCCL_ASSIGN_OR_RETURN(const int64_t id, value->Integer(0, kMax));
  return std::optional<Id>(static_cast<Id>(id));
}

Status ReadDependencies(const JsonValue& object, Threadblock& block, Program& program) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, object.Get("deps"));
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> deps, value.Integers(0, kMax));
  if (deps.size() % 3 != 0)
    return value.Error(fmt::format("{} entries; expected a multiple of three", deps.size()));
  if (program.dependencies.size() + deps.size() / 3 > static_cast<size_t>(kMax))
    return value.Error("too many dependencies; expected at most 2^31 - 1 in a program");
  size_t next = 0;
  for (size_t i = 0; i < block.instructions.size(); ++i) {
    Instruction& instruction = block.instructions[i];
    instruction.dep_first = static_cast<int32_t>(program.dependencies.size());
    for (; next < deps.size() && deps[next] == static_cast<int64_t>(i); next += 3)
      program.dependencies.push_back(
          {static_cast<int32_t>(deps[next + 1]), static_cast<int32_t>(deps[next + 2])});
    instruction.dep_count = static_cast<int32_t>(program.dependencies.size()) - instruction.dep_first;
  }
  if (next < deps.size())
    return value.Error(fmt::format("entry {}: instruction {}; expected the instructions in order, of 0..{}",
                                   next, deps[next], static_cast<int64_t>(block.instructions.size()) - 1));
  return OkStatus();
}

Status ReadOperands(const JsonValue& value, std::string_view key, bool Uses(Opcode),
                    Operand Instruction::*operand, std::vector<Instruction>& instructions) {
  const std::string buffer_key = fmt::format("{}_buffer", key);
  XCCL_ASSIGN_OR_RETURN(const std::vector<size_t> buffers,
                        ReadCodes(value, buffer_key, instructions.size(), kBuffers));
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> slots, ReadColumn(value, key, instructions.size(), 0));
  for (size_t i = 0; i < instructions.size(); ++i) {
    const bool given = buffers[i] < 3;
    if (given != Uses(instructions[i].op)) {
      XCCL_ASSIGN_OR_RETURN(const JsonValue column, value.Get(buffer_key));
      return column.Error(fmt::format("instruction {}: '{}' for {}; expected {}", i, kBuffers[buffers[i]],
                                      ToString(instructions[i].op), given ? "'-'" : "'i', 'o' or 's'"));
    }
    if (!given && slots[i] != 0) {
      XCCL_ASSIGN_OR_RETURN(const JsonValue column, value.Get(key));
      return column.Error(fmt::format("instruction {}: {} for {}, which has no such operand; expected 0", i,
                                      slots[i], ToString(instructions[i].op)));
    }
    if (given)
      instructions[i].*operand = {static_cast<BufferKind>(buffers[i]), static_cast<int32_t>(slots[i])};
  }
  return OkStatus();
}

StatusOr<Threadblock> ReadThreadblock(const JsonValue& value, Program& program) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys({"send", "send_group", "recv", "recv_group", "channel", "op", "count",
                                        "src_buffer", "src", "dst_buffer", "dst", "flags", "deps"}));
  Threadblock block;
  XCCL_ASSIGN_OR_RETURN(block.send_peer, ReadPeer<Rank>(value, "send"));
  XCCL_ASSIGN_OR_RETURN(block.send_group, ReadPeer<int32_t>(value, "send_group"));
  XCCL_ASSIGN_OR_RETURN(block.recv_peer, ReadPeer<Rank>(value, "recv"));
  XCCL_ASSIGN_OR_RETURN(block.recv_group, ReadPeer<int32_t>(value, "recv_group"));
  XCCL_ASSIGN_OR_RETURN(block.channel, value.GetInteger("channel", 0, kMax));
  XCCL_ASSIGN_OR_RETURN(const std::vector<Opcode> ops, ReadOpcodes(value));
  XCCL_ASSIGN_OR_RETURN(const std::span<const int64_t> count, ReadColumn(value, "count", ops.size(), 0));
  XCCL_ASSIGN_OR_RETURN(const std::vector<size_t> flags, ReadCodes(value, "flags", ops.size(), kFlags));
  block.instructions.resize(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    block.instructions[i].op = ops[i];
    block.instructions[i].count = static_cast<int32_t>(count[i]);
    block.instructions[i].first = (flags[i] & 1) != 0;
    block.instructions[i].final = (flags[i] & 2) != 0;
  }
  XCCL_RETURN_IF_ERROR(ReadOperands(value, "src", ReadsSource, &Instruction::src, block.instructions));
  XCCL_RETURN_IF_ERROR(ReadOperands(value, "dst", WritesDestination, &Instruction::dst, block.instructions));
  XCCL_RETURN_IF_ERROR(ReadDependencies(value, block, program));
  return block;
}

Status ReadConnections(const JsonValue& value, Program& program) {
  XCCL_ASSIGN_OR_RETURN(const IntegerLists lists, value.Lists(0, kMax));
  for (int64_t i = 0; i < lists.size(); ++i) {
    const std::span<const int64_t> entry = lists[i];
    if (lists.IsBare(i) || entry.size() < 3)
      return value.Error(
          fmt::format("entry {}: expected a list of source, destination, channel and the links", i));
    Connection& connection = program.connections.emplace_back();
    connection.src = Rank(entry[0]);
    connection.dst = Rank(entry[1]);
    connection.channel = static_cast<int32_t>(entry[2]);
    for (int64_t link : entry.subspan(3)) connection.path.push_back(LinkId(link));
  }
  return OkStatus();
}

void WriteGroups(const std::vector<Group>& groups, JsonWriter& writer) {
  writer.Key("groups");
  writer.BeginArray(JsonWriter::Layout::kLines);
  for (const Group& group : groups) {
    writer.BeginObject();
    writer.Member("kind", ToString(group.kind));
    writer.Member("root", group.root);
    writer.Member("members", group.members);
    writer.Member("channel", group.channel);
    if (HasSwitch(group))
      writer.Member("path", group.path);
    else
      writer.Member("own", group.own);
    writer.EndObject();
  }
  writer.EndArray();
}

StatusOr<Group> ReadGroup(const JsonValue& value) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys({"kind", "root", "members", "channel", "path", "own"}));
  Group group;
  XCCL_ASSIGN_OR_RETURN(const JsonValue kind, value.Get("kind"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, kind.String());
  const std::optional<Group::Kind> known = ParseGroupKind(name);
  if (!known) return kind.Error(fmt::format("no kind '{}'; expected multicast, reduce or fan-in", name));
  group.kind = *known;
  XCCL_ASSIGN_OR_RETURN(const int64_t root, value.GetInteger("root", 0, kMax));
  group.root = Rank(root);
  XCCL_ASSIGN_OR_RETURN(group.channel, value.GetInteger("channel", 0, kMax));
  XCCL_ASSIGN_OR_RETURN(group.members, value.GetIntegers<Rank>("members", 0, kMax));
  if (HasSwitch(group)) {
    XCCL_ASSIGN_OR_RETURN(group.path, value.GetIntegers<LinkId>("path", 0, kMax));
  } else {
    XCCL_ASSIGN_OR_RETURN(group.own, value.GetInteger("own", 0, kMax));
  }
  return group;
}

// Programs without groups have no key "groups".
Status ReadGroups(const JsonValue& program, std::vector<Group>& groups) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, program.Find("groups"));
  if (!value) return OkStatus();
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> items, value->Items());
  for (const JsonValue& item : items) {
    XCCL_ASSIGN_OR_RETURN(groups.emplace_back(), ReadGroup(item));
  }
  return OkStatus();
}

Status ReadRanks(const JsonValue& value, Program& program) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> ranks, value.GetItems("ranks"));
  for (const JsonValue& item : ranks) {
    XCCL_RETURN_IF_ERROR(item.CheckKeys({"scratch", "threadblocks"}));
    RankProgram rank;
    XCCL_ASSIGN_OR_RETURN(rank.scratch, item.GetIntegers<ChunkId>("scratch", 0, kMax));
    XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> blocks, item.GetItems("threadblocks"));
    for (const JsonValue& block : blocks) {
      XCCL_ASSIGN_OR_RETURN(rank.threadblocks.emplace_back(), ReadThreadblock(block, program));
    }
    program.ranks.push_back(std::move(rank));
  }
  return OkStatus();
}

}  // namespace

void WriteProgramJson(const LoweredProgram& lowered, const Collective& schedule_cut, JsonWriter& writer) {
  const Program& program = lowered.program;
  writer.BeginObject(JsonWriter::Layout::kLines);
  if (!(lowered.collective == schedule_cut)) WriteCutJson(lowered.collective, writer);
  writer.Member("protocol", ToString(program.protocol));
  writer.Member("slots", program.slots);
  writer.Member("instances", program.instances);
  writer.Member("segment_bytes", program.segment_bytes);
  writer.Member("in_place", program.in_place);
  writer.Key("connections");
  writer.BeginArray();
  for (const Connection& connection : program.connections) {
    writer.BeginArray();
    writer.Value(connection.src);
    writer.Value(connection.dst);
    writer.Value(connection.channel);
    for (LinkId link : connection.path) writer.Value(link);
    writer.EndArray();
  }
  writer.EndArray();
  if (!program.groups.empty()) WriteGroups(program.groups, writer);
  writer.Key("ranks");
  writer.BeginArray(JsonWriter::Layout::kLines);
  for (const RankProgram& rank : program.ranks) {
    writer.BeginObject();
    writer.Member("scratch", rank.scratch);
    writer.Key("threadblocks");
    writer.BeginArray(JsonWriter::Layout::kLines);
    for (const Threadblock& block : rank.threadblocks) WriteThreadblock(program, block, writer);
    writer.EndArray();
    writer.EndObject();
  }
  writer.EndArray();
  writer.EndObject();
}

StatusOr<LoweredProgram> ReadProgramJson(const JsonValue& value, const Collective& schedule_cut) {
  XCCL_RETURN_IF_ERROR(value.CheckKeys({"parts", "weights", "protocol", "slots", "instances", "segment_bytes",
                                        "in_place", "connections", "groups", "ranks"}));
  XCCL_ASSIGN_OR_RETURN(Collective collective, ReadCutJson(value, schedule_cut));
  Program program;
  XCCL_ASSIGN_OR_RETURN(const JsonValue protocol, value.Get("protocol"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view protocol_name, protocol.String());
  const std::optional<Protocol> known = ParseProtocol(protocol_name);
  if (!known)
    return protocol.Error(fmt::format("no protocol '{}'; expected simple, ll or ll128", protocol_name));
  program.protocol = *known;
  XCCL_ASSIGN_OR_RETURN(program.slots, value.GetInteger("slots", 1, kMaxSlots));
  XCCL_ASSIGN_OR_RETURN(program.instances, value.GetInteger("instances", 1, kMaxInstances));
  XCCL_ASSIGN_OR_RETURN(program.segment_bytes,
                        value.GetInteger("segment_bytes", 0, std::numeric_limits<int64_t>::max()));
  XCCL_ASSIGN_OR_RETURN(program.in_place, value.GetBool("in_place"));
  XCCL_ASSIGN_OR_RETURN(const JsonValue connections, value.Get("connections"));
  XCCL_RETURN_IF_ERROR(ReadConnections(connections, program));
  XCCL_RETURN_IF_ERROR(ReadGroups(value, program.groups));
  XCCL_RETURN_IF_ERROR(ReadRanks(value, program));
  return LoweredProgram{std::move(collective), std::move(program)};
}

}  // namespace xccl
