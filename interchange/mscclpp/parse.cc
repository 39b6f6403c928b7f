#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <utility>

#include "base/json/json_value.h"
#include "base/strings.h"
#include "interchange/mscclpp/file.h"

namespace xccl::mscclpp {
namespace {

constexpr int64_t kMostNumber = std::numeric_limits<int32_t>::max();
constexpr int64_t kMostRanks = 4096;

template <typename Enum>
StatusOr<Enum> NameIn(const JsonValue& value, std::string_view what,
                      std::span<const std::string_view> known) {
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, value.String());
  const StatusOr<size_t> index = IndexOfName(what, name, known);
  if (!index.ok()) return value.Error(index.status().message());
  return static_cast<Enum>(*index);
}
StatusOr<BufferKind> ReadBuffer(const JsonValue& value) {
  return NameIn<BufferKind>(value, "buffer", BufferNames());
}
StatusOr<ChannelType> ReadType(const JsonValue& value) {
  return NameIn<ChannelType>(value, "channel type", ChannelTypeNames());
}

// The entries of an array of objects; absent as empty.
StatusOr<std::vector<JsonValue>> Entries(const JsonValue& object, std::string_view key) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, object.Find(key));
  if (!value) return std::vector<JsonValue>();
  return value->Items();
}
StatusOr<std::vector<int32_t>> Numbers(const JsonValue& object, std::string_view key) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, object.Find(key));
  if (!value) return std::vector<int32_t>();
  return object.GetIntegers<int32_t>(key, 0, kMostNumber);
}
StatusOr<int64_t> NumberOr(const JsonValue& object, std::string_view key, int64_t otherwise) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, object.Find(key));
  return value ? value->Integer(0, kMostNumber) : otherwise;
}
StatusOr<bool> BoolOr(const JsonValue& object, std::string_view key, bool otherwise) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> value, object.Find(key));
  return value ? value->Bool() : otherwise;
}

StatusOr<std::vector<Piece>> ReadPieces(const JsonValue& op, std::string_view key) {
  std::vector<Piece> pieces;
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> entries, Entries(op, key));
  for (const JsonValue& entry : entries) {
    Piece piece;
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> type, entry.Find("type"));
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> peer, entry.Find("buffer_id"));
    XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> switched, entry.Find("switch_channel_id"));
    if ((type ? 1 : 0) + (peer ? 1 : 0) + (switched ? 1 : 0) != 1)
      return entry.Error("expected one of type, buffer_id and switch_channel_id");
    if (type) {
      XCCL_ASSIGN_OR_RETURN(piece.buffer, ReadBuffer(*type));
    } else {
      piece.where = peer ? Piece::Where::kRemote : Piece::Where::kSwitch;
      XCCL_ASSIGN_OR_RETURN(const int64_t id, (peer ? peer : switched)->Integer(0, kMostNumber));
      piece.id = static_cast<int32_t>(id);
    }
    XCCL_ASSIGN_OR_RETURN(piece.index, entry.GetInteger("index", 0, kMostNumber));
    XCCL_ASSIGN_OR_RETURN(piece.size, entry.GetInteger("size", 1, kMostNumber));
    pieces.push_back(piece);
  }
  return pieces;
}

Status ReadRest(const JsonValue& value, Op& op) {
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> group, value.Find("tbg_info"));
  if (group) {
    XCCL_ASSIGN_OR_RETURN(const int64_t size, group->GetInteger("tbg_size", 1, kMostBlocks));
    XCCL_ASSIGN_OR_RETURN(const int64_t block, group->GetInteger("tb_id", 0, size - 1));
    op.group_size = static_cast<int32_t>(size);
    op.group_block = static_cast<int32_t>(block);
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> reduces, value.Find("reduce_op"));
  if (reduces) {
    XCCL_ASSIGN_OR_RETURN(const std::string_view name, reduces->String());
    if (name != "sum")
      return reduces->Error("'" + Shortened(name) + "'; expected 'sum': the executor adds whatever is here");
    op.sums = true;
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> apart, value.Find("apart"));
  if (apart) {
    XCCL_ASSIGN_OR_RETURN(op.apart, apart->Bool());
  }
  XCCL_ASSIGN_OR_RETURN(const int64_t barrier,
                        NumberOr(value, "barrier_id", op.name == OpName::kBarrier ? -1 : 0));
  XCCL_ASSIGN_OR_RETURN(const int64_t blocks, NumberOr(value, "num_threadblocks", 0));
  op.barrier = static_cast<int32_t>(barrier);
  op.barrier_blocks = static_cast<int32_t>(blocks);
  return OkStatus();
}

// Ops of MSCCL++'s language that its executor does not load (execution_plan.cc, getOpType).
constexpr std::array<std::string_view, 2> kOfTheLanguageAlone = {"glre", "start"};

StatusOr<OpName> ReadOpName(const JsonValue& value) {
  XCCL_ASSIGN_OR_RETURN(const std::string_view name, value.String());
  if (std::ranges::find(kOfTheLanguageAlone, name) != kOfTheLanguageAlone.end())
    return value.Error("op '" + std::string(name) +
                       "' is not supported; expected another: MSCCL++'s executor does not load it either");
  return NameIn<OpName>(value, "op", OpNames());
}

StatusOr<Op> ReadOp(const JsonValue& value, bool inner) {
  Op op;
  XCCL_ASSIGN_OR_RETURN(const JsonValue name, value.Get("name"));
  XCCL_ASSIGN_OR_RETURN(op.name, ReadOpName(name));
  XCCL_ASSIGN_OR_RETURN(op.src, ReadPieces(value, "src_buff"));
  XCCL_ASSIGN_OR_RETURN(op.dst, ReadPieces(value, "dst_buff"));
  XCCL_ASSIGN_OR_RETURN(op.channels, Numbers(value, "channel_ids"));
  XCCL_ASSIGN_OR_RETURN(op.semaphores, Numbers(value, "semaphore_ids"));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> type, value.Find("channel_type"));
  if (type) {
    XCCL_ASSIGN_OR_RETURN(op.type, ReadType(*type));
  }
  XCCL_RETURN_IF_ERROR(ReadRest(value, op));
  if (op.name != OpName::kPipeline) return op;
  if (inner) return value.Error("a pipeline in a pipeline; expected other ops");
  XCCL_ASSIGN_OR_RETURN(const JsonValue context, value.Get("iter_context"));
  XCCL_ASSIGN_OR_RETURN(op.unit_bytes, context.GetInteger("unit_size", 1, kMostBytes - 1));
  XCCL_ASSIGN_OR_RETURN(op.unit_chunks, context.GetInteger("num_chunks", 1, kMostNumber));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> ops, value.GetItems("ops"));
  for (const JsonValue& entry : ops) {
    XCCL_ASSIGN_OR_RETURN(Op one, ReadOp(entry, true));
    op.ops.push_back(std::move(one));
  }
  return op;
}

StatusOr<Block> ReadBlock(const JsonValue& value, int64_t id) {
  Block block;
  XCCL_RETURN_IF_ERROR(value.GetInteger("id", id, id).status());
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> ops, value.GetItems("ops"));
  for (const JsonValue& entry : ops) {
    XCCL_ASSIGN_OR_RETURN(Op op, ReadOp(entry, false));
    block.ops.push_back(std::move(op));
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> channels, value.GetItems("channels"));
  for (const JsonValue& entry : channels) {
    XCCL_ASSIGN_OR_RETURN(const JsonValue name, entry.Get("channel_type"));
    XCCL_ASSIGN_OR_RETURN(const ChannelType type, ReadType(name));
    XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Numbers(entry, "channel_ids"));
    if (type == ChannelType::kNone) continue;
    std::vector<int32_t>& all = block.channels[static_cast<size_t>(type)];
    all.insert(all.end(), ids.begin(), ids.end());
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> remotes, Entries(value, "remote_buffer_refs"));
  for (const JsonValue& entry : remotes) {
    XCCL_ASSIGN_OR_RETURN(const JsonValue name, entry.Get("access_channel_type"));
    XCCL_ASSIGN_OR_RETURN(const ChannelType type, ReadType(name));
    XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Numbers(entry, "remote_buffer_ids"));
    if (type != ChannelType::kMemory && type != ChannelType::kPort)
      return name.Error("expected 'memory' or 'port'");
    std::vector<int32_t>& all = block.remotes[static_cast<size_t>(type)];
    all.insert(all.end(), ids.begin(), ids.end());
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> continues, value.Find("continues"));
  if (continues) {
    if (id == 0) return continues->Error("the first threadblock continues none");
    XCCL_ASSIGN_OR_RETURN(const int64_t before, continues->Integer(0, id - 1));
    block.continues = static_cast<int32_t>(before);
  }
  for (const auto& [key, links] :
       {std::pair("links", &block.links), std::pair("recv_links", &block.recv_links)}) {
    XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> ids, Numbers(value, key));
    for (const int32_t id : ids) links->emplace_back(id);
  }
  return block;
}

Status ReadChannels(const JsonValue& value, int64_t ranks, Gpu& gpu) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> channels, value.GetItems("channels"));
  for (const JsonValue& entry : channels) {
    XCCL_ASSIGN_OR_RETURN(const JsonValue name, entry.Get("channel_type"));
    XCCL_ASSIGN_OR_RETURN(const ChannelType type, ReadType(name));
    if (type == ChannelType::kNone) continue;
    if (type != ChannelType::kSwitch) {
      XCCL_ASSIGN_OR_RETURN(const std::vector<int32_t> peers,
                            entry.GetIntegers<int32_t>("connected_to", 0, ranks - 1));
      std::vector<int32_t>& all = gpu.peers[static_cast<size_t>(type)];
      all.insert(all.end(), peers.begin(), peers.end());
      continue;
    }
    XCCL_ASSIGN_OR_RETURN(const JsonValue buffer, entry.Get("buffer_type"));
    XCCL_ASSIGN_OR_RETURN(const BufferKind kind, ReadBuffer(buffer));
    XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> groups, entry.GetItems("rank_groups"));
    for (const JsonValue& group : groups) {
      Switch& one = gpu.switches.emplace_back();
      one.buffer = kind;
      XCCL_ASSIGN_OR_RETURN(one.chunks, group.GetInteger("size", 0, kMostNumber));
      XCCL_ASSIGN_OR_RETURN(one.ranks, group.GetIntegers<int32_t>("ranks", 0, ranks - 1));
      std::ranges::sort(one.ranks);
      if (one.ranks.size() < 2 || std::ranges::adjacent_find(one.ranks) != one.ranks.end())
        return group.Error("expected two or more ranks, each once");
    }
  }
  return OkStatus();
}

StatusOr<Gpu> ReadGpu(const JsonValue& value, int64_t id, int64_t ranks) {
  Gpu gpu;
  XCCL_RETURN_IF_ERROR(value.GetInteger("id", id, id).status());
  // The executor divides by the first two.
  XCCL_ASSIGN_OR_RETURN(gpu.input, value.GetInteger("input_chunks", 1, kMostChunks));
  XCCL_ASSIGN_OR_RETURN(gpu.output, value.GetInteger("output_chunks", 1, kMostChunks));
  XCCL_ASSIGN_OR_RETURN(gpu.scratch, value.GetInteger("scratch_chunks", 0, kMostChunks));
  XCCL_RETURN_IF_ERROR(ReadChannels(value, ranks, gpu));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> remotes, Entries(value, "remote_buffers"));
  for (const JsonValue& entry : remotes) {
    RemoteBuffer& remote = gpu.remotes.emplace_back();
    XCCL_ASSIGN_OR_RETURN(const int64_t rank, entry.GetInteger("rank", 0, ranks - 1));
    remote.rank = static_cast<int32_t>(rank);
    XCCL_ASSIGN_OR_RETURN(const JsonValue type, entry.Get("type"));
    XCCL_ASSIGN_OR_RETURN(remote.buffer, ReadBuffer(type));
    XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> types, entry.GetItems("access_channel_types"));
    for (const JsonValue& access : types) {
      XCCL_ASSIGN_OR_RETURN(const ChannelType one, ReadType(access));
      remote.types.push_back(one);
    }
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> semaphores, Entries(value, "semaphores"));
  for (const JsonValue& entry : semaphores) {
    XCCL_ASSIGN_OR_RETURN(const int64_t first, entry.GetInteger("init_value", 0, kMostNumber));
    gpu.semaphores.push_back(static_cast<int32_t>(first));
  }
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> blocks, value.GetItems("threadblocks"));
  for (const JsonValue& entry : blocks) {
    XCCL_ASSIGN_OR_RETURN(Block block, ReadBlock(entry, std::ssize(gpu.blocks)));
    gpu.blocks.push_back(std::move(block));
  }
  return gpu;
}

Status ReadSizes(const JsonValue& root, File& file) {
  XCCL_ASSIGN_OR_RETURN(const int64_t threads, NumberOr(root, "num_threads_per_block", 1024));
  file.threads = static_cast<int32_t>(threads);
  XCCL_ASSIGN_OR_RETURN(file.alignment, NumberOr(root, "buffer_alignment", kAlignment));
  if (file.alignment < 16 || file.alignment % 16 != 0)
    return root.Error("buffer_alignment: expected a multiple of 16: the executor adds 16 bytes at a time");
  XCCL_ASSIGN_OR_RETURN(file.min_bytes, NumberOr(root, "min_message_size", 0));
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> most, root.Find("max_message_size"));
  if (most) {
    XCCL_ASSIGN_OR_RETURN(file.max_bytes, most->Unsigned());
    if (file.max_bytes > 0 && file.max_bytes < static_cast<uint64_t>(file.min_bytes))
      return most->Error(
          fmt::format("{}; expected at least min_message_size, {}", file.max_bytes, file.min_bytes));
  }
  XCCL_ASSIGN_OR_RETURN(const std::optional<JsonValue> slots, root.Find("slots"));
  if (slots) {
    XCCL_ASSIGN_OR_RETURN(const int64_t count, slots->Integer(1, kMaxSlots));
    file.slots = static_cast<int32_t>(count);
  }
  return OkStatus();
}

}  // namespace

StatusOr<File> ReadFile(std::string_view text, std::string_view name) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(text, std::string(name)));
  const JsonValue root = document.root();
  File file;
  XCCL_ASSIGN_OR_RETURN(const std::string_view own_name, root.GetString("name"));
  file.name = own_name;
  XCCL_ASSIGN_OR_RETURN(const std::string_view collective, root.GetString("collective"));
  file.collective = collective;
  XCCL_ASSIGN_OR_RETURN(const JsonValue protocol, root.Get("protocol"));
  XCCL_ASSIGN_OR_RETURN(const std::string_view protocol_name, protocol.String());
  if (protocol_name != "Simple" && protocol_name != "LL")
    return protocol.Error("'" + Shortened(protocol_name) + "'; expected 'Simple' or 'LL'");
  file.packets = protocol_name == "LL";
  XCCL_ASSIGN_OR_RETURN(file.in_place, root.GetBool("inplace"));
  XCCL_ASSIGN_OR_RETURN(file.reuse, BoolOr(root, "reuse_resources", false));
  XCCL_ASSIGN_OR_RETURN(file.double_scratch, BoolOr(root, "use_double_scratch_buffer", false));
  XCCL_RETURN_IF_ERROR(ReadSizes(root, file));
  XCCL_ASSIGN_OR_RETURN(const JsonValue list, root.Get("gpus"));
  XCCL_ASSIGN_OR_RETURN(const std::vector<JsonValue> gpus, list.Items());
  if (gpus.size() < 2 || std::ssize(gpus) > kMostRanks)
    return list.Error(Counted(std::ssize(gpus), "rank") + "; expected 2 to " + std::to_string(kMostRanks));
  for (size_t r = 0; r < gpus.size(); ++r) {
    XCCL_ASSIGN_OR_RETURN(Gpu gpu, ReadGpu(gpus[r], static_cast<int64_t>(r), std::ssize(gpus)));
    file.gpus.push_back(std::move(gpu));
  }
  return file;
}

}  // namespace xccl::mscclpp
