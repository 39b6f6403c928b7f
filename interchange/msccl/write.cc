// Chunks of all weights become runs of equal XML chunks. Threadblocks keep their order; instructions become
// steps, whose waits are rewritten to MSCCL's rules: one threadblock and step a step, so that further waits
// take nops before it, and never a wait for a nop.
#include "interchange/msccl/write.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <limits>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "base/strings.h"
#include "base/units.h"
#include "interchange/msccl/depth.h"
#include "ir/analysis/program_index.h"

namespace xccl {
namespace {

constexpr std::array<std::string_view, 9> kTypes = {"s",    "r",   "rcs", "rrs", "rrc",
                                                    "rrcs", "cpy", "re",  "nop"};  // by Opcode
constexpr std::array<std::string_view, 3> kBuffers = {"i", "o", "s"};              // by BufferKind
constexpr std::array<std::string_view, kNumProtocols> kProtocols = {"Simple", "LL", "LL128"};

// The arrays of the parsers and kernels: msccl.h and xml.h of microsoft/msccl b23e9cd, msccl_struct.h and
// msccl_parser.cc of msccl-executor-nccl c6f6b36 and of RCCL 0cbce2a, which has 64 threadblocks.
struct Limits {
  int32_t steps;         // steps of a threadblock
  int32_t threadblocks;  // threadblocks of a rank
};
constexpr std::array<Limits, 3> kLimits = {{{256, 216}, {64, 1024}, {64, 64}}};  // by MscclTarget
constexpr int32_t kMostChannels = 32;
using msccl::kMostCount;
constexpr int32_t kMostNodes = 4096;      // XML elements that one rank keeps
constexpr int32_t kMostChildren = 1024;   // children of one XML element
constexpr int32_t kMostDependedOn = 128;  // threadblocks; the number of one that is waited for is an int8
constexpr int64_t kMultiprocessors = 80;  // a V100's, the smallest GPU of the library
constexpr size_t kMostText = 255;         // characters of an attribute
constexpr int64_t kDefaultMaxBytes = int64_t{1}
                                     << 27;  // what microsoft/msccl takes where a file says nothing

struct Step {
  Opcode op = Opcode::kNop;
  std::string_view src_buffer = "i", dst_buffer = "o";
  int64_t src = -1, dst = -1, count = 0;
  std::optional<Dependency> wait = {};  // on an instruction, until they have step numbers
  bool waited_for = false;
};

struct Block {
  std::vector<Step> steps;
  std::vector<int32_t> done;  // by instruction: the step that ends it, -1: it has none
  int32_t id = -1;            // -1: left out, for it does nothing
  bool waited_for = false;
};

class Writer {
 public:
  Writer(const Program& program, const Collective& collective, const MscclXmlOptions& options)
      : program_(program),
        collective_(collective),
        options_(options),
        limits_(kLimits[static_cast<size_t>(options.target)]) {}

  StatusOr<WrittenXml> Write() {
    XCCL_RETURN_IF_ERROR(CheckOptions());
    XCCL_RETURN_IF_ERROR(CheckProgram());
    XCCL_RETURN_IF_ERROR(CutChunks());
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) XCCL_RETURN_IF_ERROR(WriteRank(r));
    XCCL_RETURN_IF_ERROR(CheckDepth());
    WrittenXml written;
    for (ChunkId c(0); c.value < collective_.num_chunks(); ++c.value)
      written.most_of_a_chunk = std::max(written.most_of_a_chunk, WidthOf(c));
    MscclXml& xml = written.xml;
    xml.chunks_per_loop = static_cast<int32_t>(ChunksOfPart() * parts_of_loop_);
    xml.text = Head(xml.chunks_per_loop) + body_ + "</algo>\n";
    xml.selection = Selection(xml.chunks_per_loop);
    xml.warnings = Warnings();
    return written;
  }

 private:
  template <typename... Args>
  Status Bad(fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidInput(options_.name + ": " + fmt::format(format, std::forward<Args>(args)...));
  }
  std::string_view Target() const { return ToString(options_.target); }

  Status CheckOptions() const {
    const bool plain = std::ranges::all_of(
        options_.name, [](char c) { return c >= ' ' && c <= '~' && c != '"' && c != '<' && c != '&'; });
    if (!plain || options_.name.empty() || options_.name.size() > kMostText)
      return InvalidInput(
          fmt::format("name '{}' of {} characters; expected 1 to {} of ASCII without \", < and &",
                      Shortened(options_.name), options_.name.size(), kMostText));
    if (options_.min_bytes < 0 || options_.max_bytes < 0 ||
        (options_.max_bytes > 0 && options_.max_bytes < options_.min_bytes))
      return Bad("sizes from {} to {} bytes; expected the second to be as large as the first",
                 options_.min_bytes, options_.max_bytes);
    if (options_.target == MscclTarget::kMsccl && options_.in_place && !program_.in_place)
      return Bad("in place; the program is only right out of place");
    return OkStatus();
  }

  Status CheckProgram() {
    constexpr CollectiveKind kKnown[] = {CollectiveKind::kAllreduce,     CollectiveKind::kAllgather,
                                         CollectiveKind::kReduceScatter, CollectiveKind::kAlltoall,
                                         CollectiveKind::kBroadcast,     CollectiveKind::kReduce};
    if (std::ranges::find(kKnown, collective_.kind()) == std::end(kKnown))
      return Bad(
          "{}; expected allreduce, allgather, reduce_scatter, alltoall, broadcast or reduce: "
          "{} selects no others",
          collective_.name(), Target());
    const int32_t ranks = program_.ranks.size();
    bool all = collective_.num_members() == ranks;
    for (int32_t r = 0; r < ranks && all; ++r) all = collective_.ranks()[static_cast<size_t>(r)] == Rank(r);
    if (!all)
      return Bad(
          "{} of {} of the machine's {} ranks, or in another order; expected all in order: MSCCL XML "
          "has no others; hint: plan on the members alone",
          collective_.name(), collective_.num_members(), ranks);
    if (ranks > kMostChildren)
      return Bad("{} ranks; expected {} at most for {}", ranks, kMostChildren, Target());
    for (const Group& group : program_.groups)
      return Bad(
          "{} group of rank {}, which a switch serves; expected connections between two ranks: {} cannot use "
          "switches so; hint: plan --plain-switches",
          ToString(group.kind), group.root.value, Target());
    parts_of_loop_ = collective_.kind() == CollectiveKind::kAlltoall ? ranks : collective_.num_parts();
    for (const Connection& connection : program_.connections)
      channels_ = std::max(channels_, connection.channel + 1);
    if (channels_ > kMostChannels)
      return Bad("{} channels; expected {} at most for {}", channels_, kMostChannels, Target());
    return OkStatus();
  }

  int64_t ChunksOfPart() const { return unit_; }

  // The fewest equal chunks of a part, so that every chunk of the program is some of them.
  Status CutChunks() {
    const int64_t most = kMostOffset / parts_of_loop_;
    for (int32_t p = 0; p < collective_.num_parts(); ++p) {
      int64_t divisor = 0;
      const ChunkId first = collective_.FirstChunk(PartId(p));
      for (int32_t c = 0; c < collective_.ChunksOf(PartId(p)); ++c)
        divisor = std::gcd(divisor, collective_.Weight(ChunkId(first.value + c)));
      if (divisor == 0) continue;
      const int64_t chunks = collective_.PartWeight(PartId(p)) / divisor;
      const int64_t factor = chunks / std::gcd(unit_, chunks);
      if (factor > most / unit_)
        return Bad(
            "part {} needs a multiple of {} equal chunks, and earlier parts of {}; expected {} at most: an "
            "offset of MSCCL has 16 bits; hint: fewer --chunks",
            p, chunks, unit_, most);
      unit_ *= factor;
    }
    return OkStatus();
  }

  int64_t WidthOf(ChunkId c) const {
    const int64_t all = collective_.PartWeight(collective_.PartOf(c));
    return all == 0 ? 0 : collective_.Weight(c) * unit_ / all;
  }

  // By buffer and slot: the XML chunks before it; one entry more than slots.
  using Offsets = std::array<std::vector<int64_t>, 3>;
  Offsets LayOut(Rank r) const {
    Offsets all;
    for (const BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch}) {
      std::vector<int64_t>& offsets = all[static_cast<size_t>(kind)];
      offsets.assign(1, 0);
      for (const ChunkId c : SlotChunks(program_, collective_, r, kind))
        offsets.push_back(offsets.back() + WidthOf(c));
    }
    return all;
  }
  int64_t OffsetOf(const Operand& operand) const {
    return offsets_[static_cast<size_t>(operand.buffer)][static_cast<size_t>(operand.slot)];
  }
  static int64_t CountOf(const Instruction& i, const Offsets& offsets) {
    if (i.op == Opcode::kNop) return 0;
    const Operand& operand = ReadsSource(i.op) ? i.src : i.dst;
    const std::vector<int64_t>& of = offsets[static_cast<size_t>(operand.buffer)];
    return of[static_cast<size_t>(operand.slot + i.count)] - of[static_cast<size_t>(operand.slot)];
  }
  int64_t CountOf(const Instruction& i) const { return CountOf(i, offsets_); }

  // The last instruction with steps, by threadblock, of all that must be done when this one is.
  void Resolve(const RankProgram& rank, Dependency on, std::map<int32_t, int32_t>& waits) const {
    std::vector<Dependency> stack = {on};
    std::set<std::pair<int32_t, int32_t>> seen;
    while (!stack.empty()) {
      const Dependency next = stack.back();
      stack.pop_back();
      if (!seen.emplace(next.threadblock, next.index).second) continue;
      const Instruction& i = rank.threadblocks[static_cast<size_t>(next.threadblock)]
                                 .instructions[static_cast<size_t>(next.index)];
      if (CountOf(i) > 0) {
        int32_t& last = waits.try_emplace(next.threadblock, -1).first->second;
        last = std::max(last, next.index);
        continue;
      }
      if (next.index > 0) stack.push_back({next.threadblock, next.index - 1});
      for (const Dependency& d : DependenciesOf(i)) stack.push_back(d);
    }
  }

  std::span<const Dependency> DependenciesOf(const Instruction& i) const {
    return std::span(program_.dependencies)
        .subspan(static_cast<size_t>(i.dep_first), static_cast<size_t>(i.dep_count));
  }

  Block MakeBlock(const RankProgram& rank, int32_t tb) const {
    Block block;
    std::map<int32_t, int32_t> waited, waits;  // by threadblock: instruction
    for (const Instruction& i : rank.threadblocks[static_cast<size_t>(tb)].instructions) {
      for (const Dependency& d : DependenciesOf(i)) Resolve(rank, d, waits);
      const int64_t count = CountOf(i);
      block.done.push_back(-1);
      if (count == 0) continue;
      std::erase_if(waits, [&](const auto& wait) {
        if (wait.first == tb) return true;
        int32_t& before = waited.try_emplace(wait.first, -1).first->second;
        if (wait.second <= before) return true;
        before = wait.second;
        return false;
      });
      AddSteps(i, count, waits, block.steps);
      waits.clear();
      block.done.back() = static_cast<int32_t>(block.steps.size()) - 1;
    }
    return block;
  }

  void AddSteps(const Instruction& i, int64_t count, const std::map<int32_t, int32_t>& waits,
                std::vector<Step>& steps) const {
    std::optional<Dependency> last;
    for (const auto& [threadblock, index] : waits) {
      if (last) steps.push_back(Step{.wait = last});
      last = Dependency{threadblock, index};
    }
    const Operand& src = ReadsSource(i.op) ? i.src : i.dst;
    const Operand& dst = WritesDestination(i.op) ? i.dst : i.src;
    for (int64_t at = 0; at < count; at += kMostCount) {
      steps.push_back(Step{.op = i.op,
                           .src_buffer = kBuffers[static_cast<size_t>(src.buffer)],
                           .dst_buffer = kBuffers[static_cast<size_t>(dst.buffer)],
                           .src = OffsetOf(src) + at,
                           .dst = OffsetOf(dst) + at,
                           .count = std::min<int64_t>(kMostCount, count - at),
                           .wait = last});
      last.reset();
    }
  }

  // Only the first 128 threadblocks can be waited for. Where there are more, the threadblocks that others
  // wait for come first.
  Status Number(Rank r, std::vector<Block>& blocks, std::vector<int32_t>& order) {
    for (const Block& block : blocks)
      for (const Step& step : block.steps)
        if (step.wait) blocks[static_cast<size_t>(step.wait->threadblock)].waited_for = true;
    for (size_t b = 0; b < blocks.size(); ++b)
      if (!blocks[b].steps.empty()) order.push_back(static_cast<int32_t>(b));
    const auto waited_for = [&](int32_t b) { return blocks[static_cast<size_t>(b)].waited_for; };
    most_blocks_ = std::max<int64_t>(most_blocks_, std::ssize(order));
    if (std::ssize(order) > limits_.threadblocks)
      return Bad("rank {}: {} threadblocks; expected {} at most for {}; hint: plan --max-ctas {}", r.value,
                 order.size(), limits_.threadblocks, Target(), limits_.threadblocks);
    const auto depended = std::ranges::count_if(order, waited_for);
    if (depended > kMostDependedOn)
      return Bad("rank {}: {} threadblocks that others wait for; expected {} at most for {}", r.value,
                 depended, kMostDependedOn, Target());
    if (std::ssize(order) > kMostDependedOn) std::stable_partition(order.begin(), order.end(), waited_for);
    for (size_t id = 0; id < order.size(); ++id)
      blocks[static_cast<size_t>(order[id])].id = static_cast<int32_t>(id);
    return OkStatus();
  }

  Status CheckRank(Rank r, const std::vector<Block>& blocks) const {
    int64_t nodes = 1 + program_.ranks.size();
    std::map<int32_t, int32_t> sends, receives;  // by channel
    for (size_t b = 0; b < blocks.size(); ++b) {
      const Block& block = blocks[b];
      if (block.id < 0) continue;
      nodes += 1 + std::ssize(block.steps);
      const Threadblock& tb = program_.ranks[r].threadblocks[b];
      if (std::ssize(block.steps) > limits_.steps)
        return Bad("rank {}: {} steps in threadblock {}; expected {} at most for {}; hint: fewer --chunks{}",
                   r.value, block.steps.size(), block.id, limits_.steps, Target(),
                   options_.target == MscclTarget::kExecutor ? ", or build it with MSCCL_MAX_NUM_STEPS" : "");
      for (const bool sending : {true, false}) {
        if (!(sending ? tb.send_peer : tb.recv_peer)) continue;
        if (++(sending ? sends : receives)[tb.channel] > kMostPeersOfChannel)
          return Bad("rank {}: over {} threadblocks {} on channel {}; expected {} at most for {}", r.value,
                     kMostPeersOfChannel, sending ? "send" : "receive", tb.channel, kMostPeersOfChannel,
                     Target());
      }
    }
    if (nodes > kMostNodes)
      return Bad("rank {}: {} XML elements; expected {} at most for {}; hint: fewer --chunks", r.value, nodes,
                 kMostNodes, Target());
    for (const std::vector<int64_t>& offsets : offsets_)
      if (offsets.back() > kMostOffset)
        return Bad("rank {}: {} chunks in a buffer; expected {} at most for {}; hint: fewer --chunks",
                   r.value, offsets.back(), kMostOffset, Target());
    return OkStatus();
  }

  Status WriteRank(Rank r) {
    const RankProgram& rank = program_.ranks[r];
    offsets_ = LayOut(r);
    std::vector<Block> blocks;
    for (int32_t tb = 0; tb < std::ssize(rank.threadblocks); ++tb) blocks.push_back(MakeBlock(rank, tb));
    std::vector<int32_t> order;
    XCCL_RETURN_IF_ERROR(Number(r, blocks, order));
    for (Block& block : blocks) {
      for (Step& step : block.steps) {
        if (!step.wait) continue;
        Block& on = blocks[static_cast<size_t>(step.wait->threadblock)];
        const int32_t until = on.done[static_cast<size_t>(step.wait->index)];
        on.steps[static_cast<size_t>(until)].waited_for = true;
        step.wait = Dependency{on.id, until};
      }
    }
    XCCL_RETURN_IF_ERROR(CheckRank(r, blocks));
    body_ += fmt::format("  <gpu id=\"{}\" i_chunks=\"{}\" o_chunks=\"{}\" s_chunks=\"{}\">\n", r.value,
                         offsets_[0].back(), offsets_[1].back(), offsets_[2].back());
    for (const int32_t b : order)
      WriteBlock(r, rank.threadblocks[static_cast<size_t>(b)], blocks[static_cast<size_t>(b)]);
    body_ += "  </gpu>\n";
    return OkStatus();
  }

  // The path of a threadblock's sends, for readers that know the machine. Parsers of MSCCL XML look up the
  // attributes that they know and pass over all others.
  std::string LinksOf(Rank r, const Threadblock& tb) const {
    if (!tb.send_peer) return "";
    const std::optional<int32_t> c = FindConnection(program_, r, *tb.send_peer, tb.channel);
    std::string links;
    for (const LinkId link : program_.connections[static_cast<size_t>(*c)].path)
      links += fmt::format("{}{}", links.empty() ? "" : ",", link.value);
    return links.empty() || links.size() > kMostText ? "" : fmt::format(" links=\"{}\"", links);
  }

  void WriteBlock(Rank r, const Threadblock& tb, const Block& block) {
    body_ += fmt::format("    <tb id=\"{}\" send=\"{}\" recv=\"{}\" chan=\"{}\"{}>\n", block.id,
                         tb.send_peer ? tb.send_peer->value : -1, tb.recv_peer ? tb.recv_peer->value : -1,
                         tb.channel, LinksOf(r, tb));
    for (size_t s = 0; s < block.steps.size(); ++s) {
      const Step& step = block.steps[s];
      body_ += fmt::format(
          "      <step s=\"{}\" type=\"{}\" srcbuf=\"{}\" srcoff=\"{}\" dstbuf=\"{}\" dstoff=\"{}\" "
          "cnt=\"{}\" "
          "depid=\"{}\" deps=\"{}\" hasdep=\"{}\"/>\n",
          s, kTypes[static_cast<size_t>(step.op)], step.src_buffer, step.src, step.dst_buffer, step.dst,
          step.count, step.wait ? step.wait->threadblock : -1, step.wait ? step.wait->index : -1,
          step.waited_for ? 1 : 0);
    }
    body_ += "    </tb>\n";
  }

  // An executor sends large chunks one by one, and has few of them under way. Rule P5 is checked for that.
  Status CheckDepth() const {
    std::vector<Offsets> offsets;
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) offsets.push_back(LayOut(r));
    const msccl::ChunksOf chunks = [&](Rank r, const Instruction& i) {
      return CountOf(i, offsets[r.index()]);
    };
    const int64_t per_loop = ChunksOfPart() * parts_of_loop_;
    const int32_t at_a_time =
        options_.max_bytes > 0 ? msccl::ChunksAtATime(program_.protocol, options_.max_bytes, per_loop) : 1;
    if (!msccl::WaitsForever(program_, chunks, at_a_time)) return OkStatus();
    const std::optional<int32_t> fewest = msccl::FewestAtATime(program_, chunks);
    return Bad(
        "waits in a circle with {} chunks under way on a connection, which is what {} has in protocol {}; "
        "expected a program that needs no more, not {} slots{}",
        msccl::Depth(program_.protocol), Target(), kProtocols[static_cast<size_t>(program_.protocol)],
        program_.slots,
        fewest ? fmt::format("; hint: --max-size={}, to which {} chunks go at a time",
                             FormatSize(msccl::LargestSize(program_.protocol, *fewest, per_loop)), *fewest)
               : "");
  }

  int64_t MaxBytes() const {
    if (options_.max_bytes > 0 || options_.target != MscclTarget::kMsccl) return options_.max_bytes;
    return std::max(kDefaultMaxBytes, 2 * options_.min_bytes);
  }

  std::string Coll() const {
    if (collective_.kind() == CollectiveKind::kReduceScatter && options_.target != MscclTarget::kMsccl)
      return "reducescatter";
    return collective_.name();
  }

  std::string Head(int32_t chunks) const {
    const bool one_mode = options_.target == MscclTarget::kMsccl;
    const bool in_place = one_mode ? options_.in_place : program_.in_place;
    return fmt::format(
        "<algo name=\"{}\" proto=\"{}\" nchannels=\"{}\" nchunksperloop=\"{}\" ngpus=\"{}\" coll=\"{}\" "
        "inplace=\"{}\" outofplace=\"{}\" minBytes=\"{}\" maxBytes=\"{}\">\n",
        options_.name, kProtocols[static_cast<size_t>(program_.protocol)], std::max(1, channels_), chunks,
        program_.ranks.size(), Coll(), in_place ? 1 : 0, one_mode && in_place ? 0 : 1, options_.min_bytes,
        MaxBytes());
  }

  std::string Selection(int32_t chunks) const {
    const bool one_mode = options_.target == MscclTarget::kMsccl;
    const std::string most = MaxBytes() == 0 ? std::string("on, without an upper limit")
                             : one_mode      ? fmt::format("to less than {} bytes", MaxBytes())
                                             : fmt::format("to {} bytes", MaxBytes());
    const std::string_view modes = one_mode            ? (options_.in_place ? "in place" : "out of place")
                                   : program_.in_place ? "in place and out of place"
                                                       : "out of place";
    return fmt::format("{} selects it for {} on {} ranks, {}, from {} bytes {}, where {} divides the {}",
                       Target(), collective_.name(), program_.ranks.size(), modes, options_.min_bytes, most,
                       chunks, parts_of_loop_ > 1 ? "elements of all ranks together" : "number of elements");
  }

  std::vector<std::string> Warnings() const {
    std::vector<std::string> warnings;
    if (options_.target == MscclTarget::kMsccl && MaxBytes() <= options_.min_bytes)
      warnings.push_back(fmt::format("msccl never selects it: no size is from {} to less than {} bytes",
                                     options_.min_bytes, MaxBytes()));
    if (most_blocks_ > kMultiprocessors)
      warnings.push_back(
          fmt::format("{} threadblocks of a rank wait for each other, one a multiprocessor: a V100 has 80 of "
                      "these, an A100 108; hint: plan --max-ctas",
                      most_blocks_));
    if (collective_.spec().root)
      warnings.push_back(fmt::format("the file is right for root {} alone, and {} does not look at the root",
                                     collective_.spec().root->value, Target()));
    return warnings;
  }

  const Program& program_;
  const Collective& collective_;
  const MscclXmlOptions& options_;
  const Limits limits_;
  int32_t channels_ = 0;
  int64_t most_blocks_ = 0;  // most threadblocks of a rank
  int64_t parts_of_loop_ = 1;
  int64_t unit_ = 1;  // XML chunks of a part
  Offsets offsets_;   // offsets of the rank that is written
  std::string body_;
};

}  // namespace

StatusOr<WrittenXml> WriteAsItIs(const Program& program, const Collective& collective,
                                 const MscclXmlOptions& options) {
  return Writer(program, collective, options).Write();
}

}  // namespace xccl
