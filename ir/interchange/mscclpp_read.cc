// The plan is run without data (mscclpp_run.h), which gives steps and their order. Steps of a threadblock
// that has one peer on each side stay together, and a receive becomes one with what it feeds, as far as
// nothing else reads it; other threadblocks are taken apart by peer. MSCCL XML's reader proves the result,
// for it has the same model.
#include "ir/interchange/mscclpp_read.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ir/interchange/msccl_file.h"
#include "ir/interchange/mscclpp_file.h"
#include "ir/interchange/mscclpp_run.h"

namespace xccl {
namespace {

using mscclpp::File;
using mscclpp::Place;
using mscclpp::Run;
using mscclpp::Step;

constexpr int32_t kDefaultSlots = 8;  // every message of a plan has a place of its own

// A step of the program: one of the plan's, or several in one.
struct Made {
  Opcode op = Opcode::kNop;
  Place src, dst;
  std::vector<int32_t> steps;  // of the plan
};

class Translator {
 public:
  Translator(const File& file, const Run& run) : file_(file), run_(run) {}

  msccl::File Translate(bool together) {
    msccl::File made;
    made.name = file_.name;
    made.collective = "custom";
    made.in_place = file_.in_place;
    made.out_of_place = !file_.in_place;
    made.protocol = file_.packets ? Protocol::kLl : Protocol::kSimple;
    made.slots = file_.slots > 0 ? file_.slots : kDefaultSlots;
    made.segment_bytes = SegmentBytes();
    made.ranks.resize(file_.gpus.size());
    blocks_.resize(file_.gpus.size());
    of_step_.assign(run_.steps.size(), {-1, -1});
    for (size_t r = 0; r < blocks_.size(); ++r) MakeBlocks(r, together);
    Number(made);
    for (size_t r = 0; r < blocks_.size(); ++r) {
      made.ranks[r].scratch = static_cast<int32_t>(run_.scratch[r]);
      for (size_t b = 0; b < blocks_[r].size(); ++b)
        for (const Made& one : blocks_[r][b].made) made.ranks[r].blocks[b].steps.push_back(StepOf(r, b, one));
      for (size_t b = 0; b < blocks_[r].size(); ++b) AddWaits(r, b, made);
    }
    return made;
  }

 private:
  struct Block {
    std::vector<Made> made;
    int32_t send = -1, recv = -1;
  };

  int64_t SegmentBytes() const {
    int64_t bytes = 0;
    for (const mscclpp::Gpu& gpu : file_.gpus)
      for (const mscclpp::Block& block : gpu.blocks)
        for (const mscclpp::Op& op : block.ops) bytes = std::max(bytes, op.unit_bytes);
    return bytes;
  }
  const Step& StepAt(int32_t step) const { return run_.steps[static_cast<size_t>(step)]; }
  // The rank at the other end of a send or receive; -1: neither.
  int32_t PeerOf(const Step& step) const { return step.other < 0 ? -1 : StepAt(step.other).rank; }

  // Parts of one threadblock are one again.
  size_t FirstPart(size_t r, size_t b) const {
    while (file_.gpus[r].blocks[b].continues >= 0) b = static_cast<size_t>(file_.gpus[r].blocks[b].continues);
    return b;
  }
  // The rank and threadblock at the other end of a message.
  std::pair<int32_t, size_t> OtherOf(int32_t s, bool together) const {
    if (StepAt(s).other < 0) return {-1, 0};
    const Step& other = StepAt(StepAt(s).other);
    const auto b = static_cast<size_t>(other.block < 0 ? 0 : other.block);
    // What is done aside has a threadblock for each that it is done for.
    if (other.aside) return {other.rank, file_.gpus[static_cast<size_t>(other.rank)].blocks.size() + b};
    return {other.rank, together ? FirstPart(static_cast<size_t>(other.rank), b) : b};
  }

  void MakeBlocks(size_t r, bool together) {
    std::map<std::pair<int32_t, int32_t>, std::vector<Made>> aside;  // by peer and its threadblock
    for (size_t s = 0; s < run_.steps.size(); ++s)
      if (run_.steps[s].aside && run_.steps[s].rank == static_cast<int32_t>(r))
        aside[{PeerOf(run_.steps[s]), StepAt(run_.steps[s].other).block}].push_back(
            Alone(static_cast<int32_t>(s)));
    std::vector<std::vector<int32_t>> joined(run_.blocks[r].size());
    for (size_t b = 0; b < joined.size(); ++b) {
      std::vector<int32_t>& all = joined[together ? FirstPart(r, b) : b];
      all.insert(all.end(), run_.blocks[r][b].begin(), run_.blocks[r][b].end());
    }
    for (const std::vector<int32_t>& steps : joined) {
      std::set<std::pair<int32_t, size_t>> to, from;
      for (const int32_t s : steps) {
        if (StepAt(s).kind == Step::Kind::kSend) to.insert(OtherOf(s, together));
        if (StepAt(s).kind == Step::Kind::kRecv) from.insert(OtherOf(s, together));
      }
      if (steps.empty()) continue;
      if (together && to.size() <= 1 && from.size() <= 1) {
        AddBlock(r, Fused(steps));
        continue;
      }
      // By receive or send, and its other end.
      std::map<std::pair<bool, std::pair<int32_t, size_t>>, std::vector<Made>> apart;
      for (const int32_t s : steps)
        for (Made& one : Plain(s))
          apart[{StepAt(s).kind == Step::Kind::kRecv, OtherOf(s, together)}].push_back(std::move(one));
      for (auto& [key, made] : apart) AddBlock(r, std::move(made));
    }
    for (auto& [key, made] : aside) AddBlock(r, std::move(made));
  }

  void AddBlock(size_t r, std::vector<Made> made) {
    Block block;
    for (const Made& one : made)
      for (const int32_t s : one.steps) {
        if (StepAt(s).kind == Step::Kind::kSend) block.send = PeerOf(StepAt(s));
        if (StepAt(s).kind == Step::Kind::kRecv) block.recv = PeerOf(StepAt(s));
      }
    for (size_t i = 0; i < made.size(); ++i)
      for (const int32_t s : made[i].steps)
        of_step_[static_cast<size_t>(s)] = {static_cast<int32_t>(blocks_[r].size()), static_cast<int32_t>(i)};
    block.made = std::move(made);
    blocks_[r].push_back(std::move(block));
  }

  Made Alone(int32_t s) const {
    const Step& step = StepAt(s);
    constexpr std::array<Opcode, 5> kOps = {Opcode::kSend, Opcode::kRecv, Opcode::kCopy, Opcode::kCopy,
                                            Opcode::kReduce};  // by Step::Kind
    return {kOps[static_cast<size_t>(step.kind)], step.src, step.dst, {s}};
  }
  // A sum at a third place is a copy and an addition.
  std::vector<Made> Plain(int32_t s) const {
    std::vector<Made> made = {Alone(s)};
    if (StepAt(s).kind == Step::Kind::kSum)
      made.push_back({Opcode::kReduce, StepAt(s).src2, StepAt(s).dst, {s}});
    return made;
  }

  // A receive, what adds or copies it, and what sends the result, in one: where the last of them stands
  // first.
  std::vector<Made> Fused(const std::vector<int32_t>& steps) const {
    std::map<int32_t, Made> joined;  // by the step in whose place it is done
    std::set<int32_t> gone;
    for (const int32_t s : steps) {
      const Step& step = StepAt(s);
      if (step.kind != Step::Kind::kRecv) continue;
      JoinReceive(s, steps, joined, gone);
    }
    std::vector<Made> made;
    for (const int32_t s : steps) {
      if (gone.contains(s)) continue;
      if (const auto at = joined.find(s); at != joined.end()) {
        made.push_back(at->second);
        continue;
      }
      for (Made& one : Plain(s)) made.push_back(std::move(one));
    }
    if (InOrder(made, Step::Kind::kSend) && InOrder(made, Step::Kind::kRecv)) return made;
    made.clear();
    for (const int32_t s : steps)
      for (Made& one : Plain(s)) made.push_back(std::move(one));
    return made;
  }
  // Messages must keep the order in which they were put.
  bool InOrder(const std::vector<Made>& made, Step::Kind kind) const {
    int32_t last = -1;
    for (const Made& one : made)
      for (const int32_t s : one.steps) {
        if (StepAt(s).kind != kind) continue;
        const int32_t number = std::min(s, StepAt(s).other);
        if (number < last) return false;
        last = number;
      }
    return true;
  }

  // The one reader of what a step wrote, in the same threadblock and of the same chunks.
  std::optional<int32_t> ReaderOf(int32_t s, int32_t readers) const {
    const Step& step = StepAt(s);
    if (step.readers != readers || step.reader < 0) return std::nullopt;
    const Step& reader = StepAt(step.reader);
    if (reader.block != step.block || reader.rank != step.rank || reader.count != step.count || reader.aside)
      return std::nullopt;
    return step.reader;
  }

  void JoinReceive(int32_t s, const std::vector<int32_t>& steps, std::map<int32_t, Made>& joined,
                   std::set<int32_t>& gone) const {
    const Step& receive = StepAt(s);
    Made made{Opcode::kRecv, {}, receive.dst, {s}};
    int32_t at = s;     // in whose place all is done
    int32_t value = s;  // the step whose result is sent on
    const auto position = [&](int32_t step) { return std::ranges::find(steps, step); };
    // Copied to where it belongs, and read no more or sent on as well.
    std::optional<int32_t> user;
    for (auto next = position(s); next != steps.end() && !user; ++next) {
      const Step& step = StepAt(*next);
      const bool reads =
          step.count == receive.count &&
          ((step.kind == Step::Kind::kCopy && step.src == receive.dst) ||
           (step.kind == Step::Kind::kSum && (step.src == receive.dst || step.src2 == receive.dst)) ||
           (step.kind == Step::Kind::kAdd && (step.src == receive.dst || step.dst == receive.dst)));
      if (reads) user = *next;
    }
    const auto feeds = [&](int32_t reader) {
      return std::ranges::find(StepAt(reader).after, s) != StepAt(reader).after.end();
    };
    if (user && feeds(*user) && receive.dst.buffer == BufferKind::kScratch) {
      const Step& step = StepAt(*user);
      const bool copy = step.kind == Step::Kind::kCopy;
      const int32_t sends_on =
          copy && receive.readers == 2 && ReaderOf(s, 2) && StepAt(receive.reader).kind == Step::Kind::kSend
              ? 2
              : 1;
      if (receive.readers == sends_on) {
        if (copy) {
          made.dst = step.dst;
        } else {
          made.op = Opcode::kRecvReduceCopy;
          made.src =
              step.src == receive.dst ? (step.kind == Step::Kind::kSum ? step.src2 : step.dst) : step.src;
          made.dst = step.dst;
        }
        made.steps.push_back(*user);
        gone.insert(s);
        at = *user;
        if (!(copy && sends_on == 2)) value = *user;
      }
    }
    JoinSend(value, made, steps, at, gone);
    joined[at] = std::move(made);
  }

  // The first send of the result, if no other send comes before it.
  void JoinSend(int32_t value, Made& made, const std::vector<int32_t>& steps, int32_t at,
                std::set<int32_t>& gone) const {
    auto next = std::ranges::find(steps, at);
    for (++next; next != steps.end(); ++next) {
      const Step& send = StepAt(*next);
      if (send.kind != Step::Kind::kSend) continue;
      if (gone.contains(*next)) continue;
      const Step& from = StepAt(value);
      if (send.count != from.count || send.src != from.dst ||
          std::ranges::find(send.after, value) == send.after.end())
        return;
      made.steps.push_back(*next);
      gone.insert(*next);
      if (made.op == Opcode::kRecv)
        made.op = Opcode::kRecvCopySend;
      else if (from.dst.buffer == BufferKind::kScratch && from.readers == 1)
        made.op = Opcode::kRecvReduceSend;
      else
        made.op = Opcode::kRecvReduceCopySend;
      return;
    }
  }

  // Channels: blocks that share a connection have one number, and no two connections between two ranks.
  void Number(msccl::File& made) {
    std::map<std::pair<size_t, size_t>, size_t> id;  // by rank and block
    std::vector<size_t> parent;
    for (size_t r = 0; r < blocks_.size(); ++r)
      for (size_t b = 0; b < blocks_[r].size(); ++b) {
        id[{r, b}] = parent.size();
        parent.push_back(parent.size());
      }
    const auto find = [&](size_t n) {
      while (parent[n] != n) n = parent[n] = parent[parent[n]];
      return n;
    };
    std::map<size_t, std::set<std::tuple<size_t, size_t>>> pairs;  // by set: ranks that its connections join
    for (size_t s = 0; s < run_.steps.size(); ++s) {
      const Step& send = run_.steps[s];
      if (send.kind != Step::Kind::kSend) continue;
      const auto a = static_cast<size_t>(send.rank), b = static_cast<size_t>(StepAt(send.other).rank);
      parent[find(id[{a, static_cast<size_t>(of_step_[s].first)}])] =
          find(id[{b, static_cast<size_t>(of_step_[static_cast<size_t>(send.other)].first)}]);
    }
    for (size_t r = 0; r < blocks_.size(); ++r)
      for (size_t b = 0; b < blocks_[r].size(); ++b) {
        if (blocks_[r][b].send >= 0)
          pairs[find(id[{r, b}])].insert({r, static_cast<size_t>(blocks_[r][b].send)});
        if (blocks_[r][b].recv >= 0)
          pairs[find(id[{r, b}])].insert({static_cast<size_t>(blocks_[r][b].recv), r});
      }
    std::map<std::tuple<size_t, size_t>, std::set<int32_t>> taken;
    std::map<size_t, int32_t> channel;
    for (const auto& [set, joins] : pairs) {
      int32_t number = 0;
      const auto used = [&](const auto& pair) { return taken[pair].contains(number); };
      while (std::ranges::any_of(joins, used)) ++number;
      for (const auto& pair : joins) taken[pair].insert(number);
      channel[set] = number;
    }
    for (size_t r = 0; r < blocks_.size(); ++r)
      for (size_t b = 0; b < blocks_[r].size(); ++b) {
        const auto at = channel.find(find(id[{r, b}]));
        made.ranks[r].blocks.push_back(
            {blocks_[r][b].send, blocks_[r][b].recv, at == channel.end() ? 0 : at->second, {}});
      }
  }

  static Operand OperandAt(Place place) { return {place.buffer, static_cast<int32_t>(place.begin)}; }
  msccl::FileStep StepOf(size_t r, size_t /*b*/, const Made& one) const {
    const Step& last = StepAt(one.steps.back());
    msccl::FileStep step;
    step.op = one.op;
    step.src = OperandAt(one.src);
    step.dst = OperandAt(one.dst);
    step.count = static_cast<int32_t>(last.count);
    step.posts = true;
    step.place = mscclpp::PlaceOf(static_cast<int64_t>(r), std::max(0, last.block), last.op, last.name);
    return step;
  }

  void AddWaits(size_t r, size_t b, msccl::File& made) const {
    std::map<int32_t, int32_t> waited;  // by block: the last step that was waited for
    for (size_t i = 0; i < blocks_[r][b].made.size(); ++i)
      for (const int32_t s : blocks_[r][b].made[i].steps)
        for (const int32_t before : StepAt(s).after) {
          const auto [block, index] = of_step_[static_cast<size_t>(before)];
          if (block == static_cast<int32_t>(b)) continue;
          int32_t& last = waited.try_emplace(block, -1).first->second;
          if (index <= last) continue;
          last = index;
          made.ranks[r].blocks[b].steps[i].more_waits.emplace_back(block, index);
        }
  }

  const File& file_;
  const Run& run_;
  std::vector<std::vector<Block>> blocks_;            // by rank
  std::vector<std::pair<int32_t, int32_t>> of_step_;  // block and index
};

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
  XCCL_ASSIGN_OR_RETURN(const Run run, mscclpp::RunFile(file, options.file));
  msccl::File made = Translator(file, run).Translate(true);
  made.chunks_per_loop = loop;
  StatusOr<LoweredProgram> lowered = msccl::ProveFile(made, proving);
  if (!lowered.ok()) {  // threadblocks may wait for each other where their steps did not
    made = Translator(file, run).Translate(false);
    made.chunks_per_loop = loop;
    StatusOr<LoweredProgram> apart = msccl::ProveFile(made, proving);
    if (!apart.ok()) return lowered.status();
    lowered = std::move(apart);
  }
  const uint64_t most = file.max_bytes;
  return Imported{.format = "MSCCL++ plan",
                  .name = file.name,
                  .lowered = *std::move(lowered),
                  .min_bytes = file.min_bytes,
                  .max_bytes = most > static_cast<uint64_t>(std::numeric_limits<int64_t>::max())
                                   ? 0
                                   : static_cast<int64_t>(most)};
}

}  // namespace xccl
