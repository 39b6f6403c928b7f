// Ops in the order of the file, each checked against the arrays of execution_common.hpp and against the use
// that the handlers of execution_kernel.hpp make of its operands.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <tuple>
#include <utility>

#include "interchange/mscclpp/file.h"

namespace xccl::mscclpp {
namespace {

// How many operands an op has on each side, and where they lie: l local, r of peers, s of a switch; a last
// letter in capitals stands for one or more, and + for any number of the letter before it.
struct Shape {
  std::string_view src, dst;
};
Shape ShapeOf(OpName name) {
  switch (name) {
    case OpName::kPut:
    case OpName::kPws:
    case OpName::kPwsf:
    case OpName::kPpkt:
      return {"L", "R"};
    case OpName::kGet:
      return {"R", "L"};
    case OpName::kCopy:
    case OpName::kCpkt:
    case OpName::kUpkt:
      return {"l", "l"};
    case OpName::kRe:
    case OpName::kRepkt:
      return {"L", "l"};
    case OpName::kRes:
    case OpName::kRespkt:
      return {"L", "lR"};
    case OpName::kRre:
      return {"lR", "l"};
    case OpName::kRres:
      return {"lR", "lR"};
    case OpName::kRppkt:
      return {"l", "R"};
    case OpName::kRecpkt:
      return {"L", "ll"};
    case OpName::kRecspkt:
      return {"L", "llR"};
    case OpName::kGlres:
      return {"s", "s"};
    case OpName::kGstore:
    case OpName::kGstorePkt:
      return {"l", "s"};
    case OpName::kNop:
    case OpName::kBarrier:
    case OpName::kSignal:
    case OpName::kWait:
    case OpName::kRlxSignal:
    case OpName::kRlxWait:
    case OpName::kFlush:
    case OpName::kPipeline:
    case OpName::kSemAcquire:
    case OpName::kSemRelease:
      return {};
  }
  return {};
}

bool Fits(const std::vector<Piece>& pieces, std::string_view shape) {
  const auto letter = [](const Piece& piece) {
    return piece.where == Piece::Where::kLocal ? 'l' : piece.where == Piece::Where::kRemote ? 'r' : 's';
  };
  size_t at = 0;
  for (const char wanted : shape) {
    const char lower = wanted < 'a' ? static_cast<char>(wanted - 'A' + 'a') : wanted;
    if (at == pieces.size() || letter(pieces[at]) != lower) return false;
    ++at;
    while (wanted < 'a' && at < pieces.size() && letter(pieces[at]) == lower) ++at;
  }
  return at == pieces.size();
}

class Checker {
 public:
  Checker(const File& file, std::string_view name) : file_(file), name_(name) {}

  Status Check() {
    for (rank_ = 0; rank_ < std::ssize(file_.gpus); ++rank_) {
      const Gpu& gpu = file_.gpus[static_cast<size_t>(rank_)];
      if (std::ssize(gpu.blocks) > kMostBlocks)
        return Bad(fmt::format("rank {}", rank_),
                   "{} threadblocks; expected {} at most, which wait for each "
                   "other on {} multiprocessors; hint: plan --max-ctas {}",
                   gpu.blocks.size(), kMostBlocks, kMultiprocessors, kMostBlocks);
      for (const auto& [chunks, what] : {std::pair(gpu.input, "input"), std::pair(gpu.output, "output"),
                                         std::pair(gpu.scratch, "scratch")})
        if (chunks > kMostChunks)
          return Bad(
              fmt::format("rank {}", rank_),
              "{} chunks of {}; expected {} at most: the executor selects a plan for multiples of their "
              "number alone; hint: fewer --chunks",
              chunks, what, kMostChunks);
      for (block_ = 0; block_ < std::ssize(gpu.blocks); ++block_)
        XCCL_RETURN_IF_ERROR(CheckBlock(gpu, gpu.blocks[static_cast<size_t>(block_)]));
    }
    return OkStatus();
  }

 private:
  template <typename... Args>
  Status Bad(std::string_view place, fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidInput(
        fmt::format("{}: {}: {}", name_, place, fmt::format(format, std::forward<Args>(args)...)));
  }
  template <typename... Args>
  Status BadOp(const Op& op, fmt::format_string<Args...> format, Args&&... args) const {
    return Bad(PlaceOf(rank_, block_, op_, op.name), format, std::forward<Args>(args)...);
  }

  Status CheckBlock(const Gpu& gpu, const Block& block) {
    const std::string place = fmt::format("rank {} threadblock {}", rank_, block_);
    size_t ops = block.ops.size();
    for (const Op& op : block.ops) ops += op.ops.size();
    if (ops > static_cast<size_t>(kMostOps))
      return Bad(place, "{} ops; expected {} at most; hint: fewer --chunks", ops, kMostOps);
    for (size_t type = 0; type < kNumChannelTypes; ++type) {
      const std::vector<int32_t>& ids = block.channels[type];
      const size_t all = type < 2 ? gpu.peers[type].size() : gpu.switches.size();
      if (std::ssize(ids) > kMostChannels)
        return Bad(place, "{} {} channels; expected {} at most", ids.size(),
                   ToString(static_cast<ChannelType>(type)), kMostChannels);
      for (const int32_t id : ids)
        if (id < 0 || static_cast<size_t>(id) >= all)
          return Bad(place, "{} channel {}; expected one of the rank's {}",
                     ToString(static_cast<ChannelType>(type)), id, all);
      if (type >= 2) continue;
      if (std::ssize(block.remotes[type]) > kMostChannels)
        return Bad(place, "{} buffers of peers; expected {} at most", block.remotes[type].size(),
                   kMostChannels);
      for (const int32_t id : block.remotes[type])
        if (id < 0 || static_cast<size_t>(id) >= gpu.remotes.size())
          return Bad(place, "buffer {} of peers; expected one of the rank's {}", id, gpu.remotes.size());
    }
    op_ = 0;
    for (const Op& op : block.ops) {
      XCCL_RETURN_IF_ERROR(CheckOp(gpu, block, op, 0));
      if (op.name == OpName::kPipeline) XCCL_RETURN_IF_ERROR(CheckPipeline(op));
      ++op_;
      for (const Op& inner : op.ops) {
        XCCL_RETURN_IF_ERROR(CheckOp(gpu, block, inner, op.unit_chunks));
        ++op_;
      }
    }
    return OkStatus();
  }

  Status CheckPipeline(const Op& op) const {
    if (op.unit_bytes < kAlignment || op.unit_bytes % kAlignment != 0 || op.unit_bytes >= kMostBytes)
      return BadOp(op, "unit_size {}; expected a multiple of 16 below 2^32", op.unit_bytes);
    return OkStatus();
  }

  // Ops that the executor has no code for, or wrong code.
  Status CheckDefects(const Op& op, int64_t in_pipeline) const {
    if ((op.name == OpName::kPws || op.name == OpName::kPwsf) && op.type != ChannelType::kPort)
      return BadOp(op, "the executor does not signal over a {} channel; expected put, nop and signal",
                   ToString(op.type));
    if (op.name == OpName::kPpkt && op.type == ChannelType::kPort)
      for (const Piece& piece : op.src)
        if (piece.buffer != BufferKind::kScratch)
          return BadOp(
              op,
              "the executor's ports put the {} as if it were packets; expected packets in scratch, or a "
              "memory channel",
              ToString(piece.buffer));
    if (IsPacketOp(op.name) && !file_.packets)
      return BadOp(op, "packets with protocol Simple, whose scratch has half of their room; expected LL");
    if (op.name == OpName::kGet) {
      for (size_t i = 0; i < op.src.size() && i < op.dst.size(); ++i)
        if (op.src[i].index != op.dst[i].index)
          return BadOp(
              op, "the executor swaps offsets {} and {}; expected equal ones, or a put by the other rank",
              op.src[i].index, op.dst[i].index);
    }
    if (in_pipeline > 0 && op.name == OpName::kPipeline)
      return BadOp(op, "a pipeline in a pipeline; expected one");
    if (in_pipeline > 0 && op.group_size > 1)
      return BadOp(op, "tbg_info in a pipeline; expected none: the executor runs on past the end");
    if (in_pipeline > 0 && IsPacketOp(op.name))
      return BadOp(op, "packets in a pipeline, which repeats them at one place; expected them outside");
    if ((op.name == OpName::kPut || op.name == OpName::kPpkt) && op.type == ChannelType::kMemory)
      for (const Piece& piece : op.src)
        if (piece.buffer != op.src[0].buffer)
          return BadOp(op,
                       "the executor takes all its sources from the first one's buffer; expected one buffer");
    return OkStatus();
  }

  Status CheckOp(const Gpu& gpu, const Block& block, const Op& op, int64_t in_pipeline) const {
    XCCL_RETURN_IF_ERROR(CheckDefects(op, in_pipeline));
    if (std::ssize(op.channels) > kMostChannelsOfOp)
      return BadOp(op, "{} channels; expected {} at most", op.channels.size(), kMostChannelsOfOp);
    for (const int32_t channel : op.channels)
      if (op.type == ChannelType::kNone || channel < 0 ||
          static_cast<size_t>(channel) >= block.channels[static_cast<size_t>(op.type)].size())
        return BadOp(op, "channel {}; expected one of the threadblock's {}", channel,
                     op.type == ChannelType::kNone ? 0 : block.channels[static_cast<size_t>(op.type)].size());
    if (std::ssize(op.semaphores) > kMostSemaphoresOfOp)
      return BadOp(op, "{} semaphores; expected {} at most", op.semaphores.size(), kMostSemaphoresOfOp);
    for (const int32_t semaphore : op.semaphores)
      if (semaphore < 0 || static_cast<size_t>(semaphore) >= gpu.semaphores.size())
        return BadOp(op, "semaphore {}; expected one of the rank's {}", semaphore, gpu.semaphores.size());
    if (op.name == OpName::kBarrier && (op.barrier < 0 || op.barrier >= kMostBarriers))
      return BadOp(op, "barrier {}; expected 0 to {}", op.barrier, kMostBarriers - 1);
    const Shape shape = ShapeOf(op.name);
    for (const auto& [side, pieces, wanted] :
         {std::tuple("src_buff", &op.src, shape.src), std::tuple("dst_buff", &op.dst, shape.dst)}) {
      if (std::ssize(*pieces) > kMostBuffersOfOp)
        return BadOp(op, "{} with {} buffers; expected {} at most", side, pieces->size(), kMostBuffersOfOp);
      if (!Fits(*pieces, wanted))
        return BadOp(op, "{} with other buffers than the executor takes; expected those of the op", side);
      for (const Piece& piece : *pieces) XCCL_RETURN_IF_ERROR(CheckPiece(gpu, block, op, piece, in_pipeline));
      XCCL_RETURN_IF_ERROR(CheckPackets(op, *pieces, pieces == &op.dst));
    }
    const bool pairs = op.name == OpName::kPut || op.name == OpName::kPws || op.name == OpName::kPwsf ||
                       op.name == OpName::kPpkt || op.name == OpName::kGet;
    if (pairs && op.src.size() != op.dst.size())
      return BadOp(op, "{} sources and {} destinations; expected as many", op.src.size(), op.dst.size());
    if (op.type == ChannelType::kPort && op.channels.size() < op.dst.size())
      return BadOp(op, "{} channels for {} destinations; expected one for each", op.channels.size(),
                   op.dst.size());
    for (const std::vector<Piece>* pieces : {&op.src, &op.dst})
      for (size_t i = 0; i < pieces->size(); ++i) {
        const int64_t size = pairs ? op.src[i].size : op.src[0].size;
        if ((*pieces)[i].size != size)
          return BadOp(op, "{} and {} chunks; expected as many on both sides", size, (*pieces)[i].size);
      }
    return OkStatus();
  }

  Status CheckPiece(const Gpu& gpu, const Block& block, const Op& op, const Piece& piece,
                    int64_t in_pipeline) const {
    BufferKind buffer = piece.buffer;
    std::vector<int64_t> owners = {rank_};
    if (piece.where == Piece::Where::kRemote) {
      if (op.type != ChannelType::kMemory && op.type != ChannelType::kPort)
        return BadOp(op, "a buffer of a peer over a {} channel; expected memory or port", ToString(op.type));
      const std::vector<int32_t>& list = block.remotes[static_cast<size_t>(op.type)];
      if (piece.id < 0 || static_cast<size_t>(piece.id) >= list.size())
        return BadOp(op, "buffer_id {}; expected one of the threadblock's {}", piece.id, list.size());
      const RemoteBuffer& remote = gpu.remotes[static_cast<size_t>(list[static_cast<size_t>(piece.id)])];
      buffer = remote.buffer;
      owners = {remote.rank};
      if (std::ranges::find(remote.types, op.type) == remote.types.end())
        return BadOp(op, "buffer_id {} over a {} channel; expected one of its access_channel_types", piece.id,
                     ToString(op.type));
    } else if (piece.where == Piece::Where::kSwitch) {
      const std::vector<int32_t>& list = block.channels[static_cast<size_t>(ChannelType::kSwitch)];
      if (piece.id < 0 || static_cast<size_t>(piece.id) >= list.size())
        return BadOp(op, "switch_channel_id {}; expected one of the threadblock's {}", piece.id, list.size());
      const Switch& channel = gpu.switches[static_cast<size_t>(list[static_cast<size_t>(piece.id)])];
      buffer = channel.buffer;
      owners.assign(channel.ranks.begin(), channel.ranks.end());
    }
    if (file_.double_scratch) XCCL_RETURN_IF_ERROR(CheckHalves(op, piece, buffer, owners));
    for (const int64_t owner : owners) {
      const Gpu& of = file_.gpus[static_cast<size_t>(owner)];
      const int64_t chunks = buffer == BufferKind::kInput    ? of.input
                             : buffer == BufferKind::kOutput ? of.output
                                                             : of.scratch;
      if (piece.size < 1 || piece.index < 0 || piece.index > chunks - piece.size)
        return BadOp(op, "chunks {} to {} of rank {}'s {}; expected some of its {}", piece.index,
                     piece.index + piece.size - 1, owner, ToString(buffer), chunks);
    }
    if (in_pipeline > 0 && piece.size != in_pipeline)
      return BadOp(op, "{} chunks in a pipeline over {}; expected as many: the executor runs on past the end",
                   piece.size, in_pipeline);
    return OkStatus();
  }

  // Packets lie in scratch; the executor looks at no buffer there.
  Status CheckPackets(const Op& op, const std::vector<Piece>& pieces, bool dst) const {
    if (!IsPacketOp(op.name)) return OkStatus();
    const bool first_is_plain =
        dst ? op.name == OpName::kRespkt || op.name == OpName::kRepkt || op.name == OpName::kRecpkt ||
                  op.name == OpName::kRecspkt || op.name == OpName::kUpkt
            : op.name != OpName::kRppkt && op.name != OpName::kUpkt && op.name != OpName::kGstorePkt;
    const bool all_are_plain = !dst && op.name == OpName::kPpkt;
    for (size_t i = first_is_plain ? 1 : 0; i < pieces.size() && !all_are_plain; ++i)
      if (pieces[i].where == Piece::Where::kLocal && pieces[i].buffer != BufferKind::kScratch)
        return BadOp(op, "packets in the {}; expected them in scratch", ToString(pieces[i].buffer));
    return OkStatus();
  }

  // In every second call packets lie in the second half of scratch. An op computes the half's offset from its
  // own rank's scratch, and adds none for plain data elsewhere and for data that ports read.
  Status CheckHalves(const Op& op, const Piece& piece, BufferKind buffer,
                     const std::vector<int64_t>& owners) const {
    const bool local = piece.where == Piece::Where::kLocal;
    if (buffer == BufferKind::kScratch && !IsPacketOp(op.name) && (!local || op.type == ChannelType::kPort))
      return BadOp(op,
                   "plain data in the first half of {}'s scratch, where every second call looks in the "
                   "second; expected packets, or use_double_scratch_buffer false",
                   local ? "its own rank" : "a peer");
    if (local || !IsPacketOp(op.name)) return OkStatus();
    if (buffer != BufferKind::kScratch)
      return BadOp(op, "packets in a peer's {}; expected them in scratch", ToString(buffer));
    const int64_t own = file_.gpus[static_cast<size_t>(rank_)].scratch;
    for (const int64_t owner : owners)
      if (const int64_t other = file_.gpus[static_cast<size_t>(owner)].scratch; other != own)
        return BadOp(
            op,
            "puts packets behind half of its own rank's scratch, of {} chunks, in every second call, "
            "and rank {}, with {}, looks behind half of its own; expected as many scratch_chunks at "
            "all ranks",
            own, owner, other);
    return OkStatus();
  }

  const File& file_;
  const std::string_view name_;
  int64_t rank_ = 0, block_ = 0, op_ = 0;
};

}  // namespace

bool IsPacketOp(OpName name) {
  switch (name) {
    case OpName::kPpkt:
    case OpName::kRppkt:
    case OpName::kRespkt:
    case OpName::kCpkt:
    case OpName::kUpkt:
    case OpName::kRepkt:
    case OpName::kRecpkt:
    case OpName::kRecspkt:
    case OpName::kGstorePkt:
      return true;
    case OpName::kNop:
    case OpName::kBarrier:
    case OpName::kPut:
    case OpName::kPws:
    case OpName::kPwsf:
    case OpName::kGet:
    case OpName::kCopy:
    case OpName::kSignal:
    case OpName::kWait:
    case OpName::kRlxSignal:
    case OpName::kRlxWait:
    case OpName::kFlush:
    case OpName::kRe:
    case OpName::kRes:
    case OpName::kRre:
    case OpName::kRres:
    case OpName::kGlres:
    case OpName::kGstore:
    case OpName::kPipeline:
    case OpName::kSemAcquire:
    case OpName::kSemRelease:
      return false;
  }
  return false;
}

bool PollsPackets(OpName name) { return IsPacketOp(name) && name != OpName::kPpkt && name != OpName::kCpkt; }

Status CheckLimits(const File& file, std::string_view name) { return Checker(file, name).Check(); }

std::vector<std::string> LimitWarnings(const File& file, std::string_view name) {
  std::array<std::string, 3> first;  // by kind of warning: its place
  std::array<int64_t, 3> count{};
  const auto look = [&](int64_t rank, int64_t block, int64_t index, const Op& op) {
    const int kind = op.name == OpName::kFlush                                   ? 0
                     : op.name == OpName::kPwsf                                  ? 1
                     : op.name == OpName::kPpkt && op.type == ChannelType::kPort ? 2
                                                                                 : -1;
    if (kind >= 0 && count[static_cast<size_t>(kind)]++ == 0)
      first[static_cast<size_t>(kind)] = PlaceOf(rank, block, index, op.name);
  };
  for (size_t r = 0; r < file.gpus.size(); ++r)
    for (size_t b = 0; b < file.gpus[r].blocks.size(); ++b) {
      int64_t index = 0;
      for (const Op& op : file.gpus[r].blocks[b].ops) {
        look(static_cast<int64_t>(r), static_cast<int64_t>(b), index++, op);
        for (const Op& inner : op.ops) look(static_cast<int64_t>(r), static_cast<int64_t>(b), index++, inner);
      }
    }
  constexpr std::array<std::string_view, 3> kTexts = {
      "the executor's flush does nothing",
      "executors from be6a941 (August 2025) to before dc0b8d7 (June 2026) put from a wrong address",
      "the executor takes the source from the first plan that its process has run: right for that one alone"};
  std::vector<std::string> warnings;
  for (size_t k = 0; k < kTexts.size(); ++k)
    if (count[k] > 0)
      warnings.push_back(fmt::format("{}: {}{}: {}", name, first[k],
                                     count[k] > 1 ? fmt::format(" and {} more", count[k] - 1) : "",
                                     kTexts[k]));
  return warnings;
}

}  // namespace xccl::mscclpp
