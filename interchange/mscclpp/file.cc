#include "interchange/mscclpp/file.h"

#include <fmt/core.h>

#include <sstream>

#include "base/json/json_writer.h"

namespace xccl::mscclpp {
namespace {

constexpr std::array<std::string_view, 30> kNames = {
    "nop",   "barrier",   "put",       "pws",      "pwsf",        "get",        "copy",   "signal",
    "wait",  "rlxsignal", "rlxwait",   "flush",    "re",          "res",        "rre",    "rres",
    "ppkt",  "rppkt",     "respkt",    "cpkt",     "upkt",        "repkt",      "recpkt", "recspkt",
    "glres", "gstore",    "gstorepkt", "pipeline", "sem_acquire", "sem_release"};
constexpr std::array<std::string_view, 4> kTypes = {"memory", "port", "switch", "none"};
constexpr std::array<std::string_view, 3> kBuffers = {"i", "o", "s"};  // by BufferKind

void WritePieces(JsonWriter& json, std::string_view key, const std::vector<Piece>& pieces) {
  if (pieces.empty()) return;
  json.Key(key);
  json.BeginArray();
  for (const Piece& piece : pieces) {
    json.BeginObject();
    if (piece.where == Piece::Where::kLocal)
      json.Member("type", kBuffers[static_cast<size_t>(piece.buffer)]);
    else
      json.Member(piece.where == Piece::Where::kRemote ? "buffer_id" : "switch_channel_id", piece.id);
    json.Member("index", piece.index);
    json.Member("size", piece.size);
    json.EndObject();
  }
  json.EndArray();
}

// Pipelines hold no pipelines.
void WriteOp(JsonWriter& json, const Op& op) {
  json.BeginObject();
  json.Member("name", ToString(op.name));
  WritePieces(json, "src_buff", op.src);
  WritePieces(json, "dst_buff", op.dst);
  if (!op.channels.empty()) json.Member("channel_ids", op.channels);
  if (op.type != ChannelType::kNone) json.Member("channel_type", ToString(op.type));
  if (!op.semaphores.empty()) json.Member("semaphore_ids", op.semaphores);
  if (op.name == OpName::kBarrier) {
    json.Member("barrier_id", op.barrier);
    json.Member("num_threadblocks", op.barrier_blocks);
  }
  if (op.group_size > 1) {
    json.Key("tbg_info");
    json.BeginObject();
    json.Member("tb_id", op.group_block);
    json.Member("tbg_size", op.group_size);
    json.EndObject();
  }
  if (op.sums) json.Member("reduce_op", "sum");
  if (op.apart) json.Member("apart", true);  // a key that the executor's loader does not look at
  if (op.name == OpName::kPipeline) {
    json.Key("iter_context");
    json.BeginObject();
    json.Member("unit_size", op.unit_bytes);
    json.Member("num_chunks", op.unit_chunks);
    json.EndObject();
    json.Key("ops");
    json.BeginArray(JsonWriter::Layout::kLines);
    for (const Op& inner : op.ops) WriteOp(json, inner);
    json.EndArray();
  }
  json.EndObject();
}

void WriteLinks(JsonWriter& json, std::string_view key, const std::vector<LinkId>& links) {
  if (links.empty()) return;
  json.Key(key);
  json.BeginArray();
  for (const LinkId link : links) json.Value(link.value);
  json.EndArray();
}

void WriteBlock(JsonWriter& json, const Block& block, size_t id) {
  json.BeginObject();
  json.Member("id", static_cast<int64_t>(id));
  json.Key("ops");
  json.BeginArray(JsonWriter::Layout::kLines);
  for (const Op& op : block.ops) WriteOp(json, op);
  json.EndArray();
  json.Key("channels");
  json.BeginArray();
  for (size_t type = 0; type < kNumChannelTypes; ++type) {
    if (block.channels[type].empty()) continue;
    json.BeginObject();
    json.Member("channel_type", kTypes[type]);
    json.Member("channel_ids", block.channels[type]);
    json.EndObject();
  }
  json.EndArray();
  json.Key("remote_buffer_refs");
  json.BeginArray();
  for (size_t type = 0; type < 2; ++type) {
    if (block.remotes[type].empty()) continue;
    json.BeginObject();
    json.Member("access_channel_type", kTypes[type]);
    json.Member("remote_buffer_ids", block.remotes[type]);
    json.EndObject();
  }
  json.EndArray();
  // Keys that the executor's loader does not look at.
  if (block.continues >= 0) json.Member("continues", block.continues);
  WriteLinks(json, "links", block.links);
  WriteLinks(json, "recv_links", block.recv_links);
  json.EndObject();
}

void WriteGpu(JsonWriter& json, const Gpu& gpu, size_t rank) {
  json.BeginObject();
  json.Member("id", static_cast<int64_t>(rank));
  json.Member("input_chunks", gpu.input);
  json.Member("output_chunks", gpu.output);
  json.Member("scratch_chunks", gpu.scratch);
  json.Key("threadblocks");
  json.BeginArray(JsonWriter::Layout::kLines);
  for (size_t b = 0; b < gpu.blocks.size(); ++b) WriteBlock(json, gpu.blocks[b], b);
  json.EndArray();
  json.Key("channels");
  json.BeginArray(JsonWriter::Layout::kLines);
  for (size_t type = 0; type < 2; ++type) {
    if (gpu.peers[type].empty()) continue;
    json.BeginObject();
    json.Member("channel_type", kTypes[type]);
    json.Member("connected_to", gpu.peers[type]);
    json.EndObject();
  }
  for (const Switch& channel : gpu.switches) {
    json.BeginObject();
    json.Member("channel_type", "switch");
    json.Member("buffer_type", kBuffers[static_cast<size_t>(channel.buffer)]);
    json.Key("rank_groups");
    json.BeginArray();
    json.BeginObject();
    json.Member("size", channel.chunks);
    json.Member("ranks", channel.ranks);
    json.EndObject();
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.Key("remote_buffers");
  json.BeginArray(JsonWriter::Layout::kLines);
  for (const RemoteBuffer& remote : gpu.remotes) {
    json.BeginObject();
    json.Member("rank", remote.rank);
    json.Member("type", kBuffers[static_cast<size_t>(remote.buffer)]);
    json.Key("access_channel_types");
    json.BeginArray();
    for (const ChannelType type : remote.types) json.Value(ToString(type));
    json.EndArray();
    json.EndObject();
  }
  json.EndArray();
  json.Key("semaphores");
  json.BeginArray();
  for (const int32_t value : gpu.semaphores) {
    json.BeginObject();
    json.Member("init_value", value);
    json.EndObject();
  }
  json.EndArray();
  json.EndObject();
}

}  // namespace

std::span<const std::string_view> OpNames() { return kNames; }
std::span<const std::string_view> ChannelTypeNames() { return kTypes; }
std::span<const std::string_view> BufferNames() { return kBuffers; }
std::string_view ToString(OpName name) { return kNames[static_cast<size_t>(name)]; }
std::string_view ToString(ChannelType type) { return kTypes[static_cast<size_t>(type)]; }
std::string PlaceOf(int64_t rank, int64_t block, int64_t op, OpName name) {
  return fmt::format("rank {} threadblock {} op {} ({})", rank, block, op, ToString(name));
}

std::string WriteFile(const File& file) {
  std::ostringstream text;
  JsonWriter json(text);
  json.BeginObject(JsonWriter::Layout::kLines);
  json.Member("name", file.name);
  json.Member("collective", file.collective);
  json.Member("protocol", file.packets ? "LL" : "Simple");
  json.Member("inplace", file.in_place);
  json.Member("reuse_resources", file.reuse);
  json.Key("gpus");
  json.BeginArray(JsonWriter::Layout::kLines);
  for (size_t r = 0; r < file.gpus.size(); ++r) WriteGpu(json, file.gpus[r], r);
  json.EndArray();
  json.Member("num_threads_per_block", file.threads);
  json.Member("use_double_scratch_buffer", file.double_scratch);
  json.Member("buffer_alignment", file.alignment);
  json.Member("min_message_size", file.min_bytes);
  json.Member("max_message_size", file.max_bytes);
  // Keys that the executor's loader does not look at.
  if (file.slots > 0) json.Member("slots", file.slots);
  json.EndObject();
  json.Finish();
  return std::move(text).str();
}

}  // namespace xccl::mscclpp
