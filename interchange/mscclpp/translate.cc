// Steps of a threadblock that has one peer on each side stay together, and a receive and the step that it
// feeds become one if nothing else reads the data and no other message is received or sent between them.
// Other threadblocks are taken apart by peer. A switch's work for all its ranks is a step of its own.
#include "interchange/mscclpp/translate.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "ir/program.h"

namespace xccl::mscclpp {
namespace {

constexpr int32_t kDefaultSlots = 8;  // every message of a plan has a place of its own

// A step of the program: one of the plan's, or several in one.
struct Made {
  Opcode op = Opcode::kNop;
  Place src, dst;
  std::vector<int32_t> steps;  // steps of the plan that it joins
  int64_t count = 0;
};

class Translator {
 public:
  Translator(const File& file, const Run& run) : file_(file), run_(run), place_(run.steps.size(), 0) {
    for (const auto& blocks : run.blocks)
      for (const std::vector<int32_t>& steps : blocks)
        for (size_t i = 0; i < steps.size(); ++i)
          place_[static_cast<size_t>(steps[i])] = static_cast<int32_t>(i);
  }

  msccl::File Translate(const Form& form) {
    each_ = form.each;
    msccl::File made;
    made.name = file_.name;
    made.collective = "custom";
    made.in_place = file_.in_place;
    made.out_of_place = !file_.in_place;
    made.protocol = file_.packets ? Protocol::kLl : Protocol::kSimple;
    made.segment_bytes = SegmentBytes();
    made.ranks.resize(file_.gpus.size());
    blocks_.resize(file_.gpus.size());
    of_step_.assign(run_.steps.size(), {-1, -1});
    for (size_t r = 0; r < blocks_.size(); ++r) MakeBlocks(r, form.together);
    if (form.merged) MergePieces();
    made.slots = std::min(kMaxSlots, (file_.slots > 0 ? file_.slots : kDefaultSlots) * MostOfASignal());
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
  struct MadeBlock {
    std::vector<Made> made;
    int32_t send = -1, recv = -1;
    std::vector<int32_t> send_all = {}, recv_all = {};  // by a switch
    std::vector<LinkId> links = {}, recv_links = {};
  };

  // The bytes of a chunk that a pipeline moves at a time; 0: the plan has no pipeline.
  int64_t SegmentBytes() const {
    int64_t bytes = 0;
    for (const Gpu& gpu : file_.gpus)
      for (const mscclpp::Block& block : gpu.blocks)
        for (const Op& op : block.ops)
          if (op.name == OpName::kPipeline) bytes = std::max(bytes, op.unit_bytes / op.unit_chunks);
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
  // The rank and threadblock at the other end of a message; -1 and a number for all at a switch.
  std::pair<int32_t, size_t> OtherOf(int32_t s, bool together) {
    if (StepAt(s).kind == Step::Kind::kSwitch) {
      const std::pair ranks(StepAt(s).from, StepAt(s).to);
      const auto at = switches_.try_emplace(ranks, switches_.size()).first;
      return {-1, at->second};
    }
    if (StepAt(s).other < 0) return {-1, 0};
    if (each_) return {PeerOf(StepAt(s)), static_cast<size_t>(std::min(s, StepAt(s).other))};
    const Step& other = StepAt(StepAt(s).other);
    const auto b = static_cast<size_t>(other.block < 0 ? 0 : other.block);
    // Steps done aside for another rank have one threadblock for each threadblock that they serve.
    if (other.aside) return {other.rank, file_.gpus[static_cast<size_t>(other.rank)].blocks.size() + b};
    return {other.rank, together ? FirstPart(static_cast<size_t>(other.rank), b) : b};
  }

  void MakeBlocks(size_t r, bool together) {
    std::map<std::pair<int32_t, int32_t>, std::vector<Made>> aside;  // by peer and its threadblock
    for (size_t s = 0; s < run_.steps.size(); ++s)
      if (run_.steps[s].aside && run_.steps[s].rank == static_cast<int32_t>(r))
        aside[{PeerOf(run_.steps[s]), each_ ? static_cast<int32_t>(s) : StepAt(run_.steps[s].other).block}]
            .push_back(Alone(static_cast<int32_t>(s)));
    std::vector<std::vector<int32_t>> joined(run_.blocks[r].size());
    for (size_t b = 0; b < joined.size(); ++b) {
      std::vector<int32_t>& all = joined[together ? FirstPart(r, b) : b];
      all.insert(all.end(), run_.blocks[r][b].begin(), run_.blocks[r][b].end());
    }
    for (const std::vector<int32_t>& steps : joined) {
      std::set<std::pair<int32_t, size_t>> to, from;
      for (const int32_t s : steps) {
        if (StepAt(s).kind == Step::Kind::kSend || !StepAt(s).to.empty()) to.insert(OtherOf(s, together));
        if (StepAt(s).kind == Step::Kind::kRecv || !StepAt(s).from.empty()) from.insert(OtherOf(s, together));
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
    MadeBlock block;
    for (const Made& one : made)
      for (const int32_t s : one.steps) {
        const Step& step = StepAt(s);
        if (step.kind == Step::Kind::kSend) block.send = PeerOf(step);
        if (step.kind == Step::Kind::kRecv) block.recv = PeerOf(step);
        const bool at_switch = step.kind == Step::Kind::kSwitch;
        if (at_switch) block.send_all = step.to;
        if (at_switch) block.recv_all = step.from;
        if (step.aside || (step.kind != Step::Kind::kSend && !at_switch)) continue;
        const mscclpp::Block& hints = file_.gpus[r].blocks[static_cast<size_t>(step.block)];
        block.links = hints.links;
        if (at_switch) block.recv_links = hints.recv_links;
      }
    for (size_t i = 0; i < made.size(); ++i)
      for (const int32_t s : made[i].steps)
        of_step_[static_cast<size_t>(s)] = {static_cast<int32_t>(blocks_[r].size()), static_cast<int32_t>(i)};
    block.made = std::move(made);
    blocks_[r].push_back(std::move(block));
  }

  Made Alone(int32_t s) const {
    const Step& step = StepAt(s);
    constexpr std::array<Opcode, 6> kOps = {Opcode::kSend, Opcode::kRecv,   Opcode::kCopy,
                                            Opcode::kCopy, Opcode::kReduce, Opcode::kSend};  // by Step::Kind
    const Opcode op = step.from.empty() ? kOps[static_cast<size_t>(step.kind)] : Opcode::kRecvReduceCopySend;
    return {op, step.src, step.dst, {s}, step.count};
  }
  // A sum at a third place is a copy and an addition.
  std::vector<Made> Plain(int32_t s) const {
    std::vector<Made> made = {Alone(s)};
    if (StepAt(s).kind == Step::Kind::kSum)
      made.push_back({Opcode::kReduce, StepAt(s).src2, StepAt(s).dst, {s}, StepAt(s).count});
    return made;
  }

  // Joins a receive, the step that adds or copies its message, and the send of the result into one step at
  // the place of one of them. If messages would then be out of order, every step stays by itself.
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

  // The one step that reads a step's result, if it is in the same threadblock and reads the same chunks.
  std::optional<int32_t> ReaderOf(int32_t s, int32_t readers) const {
    const Step& step = StepAt(s);
    if (step.readers != readers || step.reader < 0) return std::nullopt;
    const Step& reader = StepAt(step.reader);
    if (reader.block != step.block || reader.rank != step.rank || reader.count != step.count || reader.aside)
      return std::nullopt;
    return step.reader;
  }

  // Does a step receive or send another message than the one that the step `receive` receives? Pieces of a
  // message have one signal. Sends that are joined to an earlier receive are not asked for.
  bool IsOtherMessage(int32_t s, int32_t receive, const std::set<int32_t>& gone) const {
    const Step& step = StepAt(s);
    if (step.kind == Step::Kind::kSend) return !gone.contains(s);
    return step.kind == Step::Kind::kRecv && s != receive &&
           (step.signal < 0 || step.signal != StepAt(receive).signal);
  }

  void JoinReceive(int32_t s, const std::vector<int32_t>& steps, std::map<int32_t, Made>& joined,
                   std::set<int32_t>& gone) const {
    const Step& receive = StepAt(s);
    Made made{Opcode::kRecv, {}, receive.dst, {s}, receive.count};
    int32_t at = s;     // in whose place all is done
    int32_t value = s;  // the step whose result is sent on
    const auto position = [&](int32_t step) { return std::ranges::find(steps, step); };
    // Copied to where it belongs, and read no more or sent on as well.
    std::optional<int32_t> user;
    for (auto next = position(s); next != steps.end() && !user && !IsOtherMessage(*next, s, gone); ++next) {
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

  // Is a step done when a threadblock comes to its own step `at`?
  bool IsDone(int32_t wanted, const std::vector<int32_t>& steps, int32_t at) const {
    const auto ends = [&](int32_t later) {
      return later == wanted || (StepAt(wanted).block >= 0 && StepAt(later).block == StepAt(wanted).block &&
                                 place_[static_cast<size_t>(later)] >= place_[static_cast<size_t>(wanted)]);
    };
    for (const int32_t s : steps) {
      if (s == wanted || std::ranges::any_of(StepAt(s).after, ends)) return true;
      if (s == at) return false;
    }
    return false;
  }

  // The first send of the result, if no other message comes before it, and neither it nor a step before it
  // waits for anything else, nor a hint says that they are apart. Over memory a sum that goes on is one op
  // with its put: two ops are two instructions.
  void JoinSend(int32_t value, Made& made, const std::vector<int32_t>& steps, int32_t at,
                std::set<int32_t>& gone) const {
    const auto is_done = [&](int32_t before) { return IsDone(before, steps, at); };
    auto next = std::ranges::find(steps, at);
    for (++next; next != steps.end(); ++next) {
      const Step& send = StepAt(*next);
      if (gone.contains(*next)) continue;
      if (send.kind != Step::Kind::kSend) {
        if (IsOtherMessage(*next, made.steps[0], gone) || !std::ranges::all_of(send.after, is_done)) return;
        continue;
      }
      const Step& from = StepAt(value);
      if (send.apart) return;
      if (made.op != Opcode::kRecv && send.type == ChannelType::kMemory &&
          (send.block != from.block || send.op != from.op))
        return;
      if (send.count != from.count || send.src != from.dst ||
          std::ranges::find(send.after, value) == send.after.end() ||
          !std::ranges::all_of(send.after, is_done))
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

  // The signal that tells of the message that a step sends or receives; -1: none, or a switch moves it.
  int32_t SignalOf(const Made& one, Step::Kind kind) const {
    for (const int32_t s : one.steps) {
      const Step& step = StepAt(s);
      if (step.kind != kind || step.other < 0 || StepAt(step.other).kind == Step::Kind::kSwitch) continue;
      return (kind == Step::Kind::kRecv ? step : StepAt(step.other)).signal;
    }
    return -1;
  }

  // Are two steps that follow each other in a threadblock pieces of one message, side by side in memory?
  bool ArePieces(const Made& a, const Made& b) const {
    if (a.op != b.op || !(Sends(a.op) || Receives(a.op))) return false;
    const auto follow = [&](const Place& at, const Place& next) {
      return at.buffer == next.buffer && at.begin + a.count == next.begin;
    };
    const auto same = [&](Step::Kind kind) {
      const int32_t signal = SignalOf(a, kind);
      return signal >= 0 && signal == SignalOf(b, kind);
    };
    return (!ReadsSource(a.op) || follow(a.src, b.src)) &&
           (!WritesDestination(a.op) || follow(a.dst, b.dst)) && (!Sends(a.op) || same(Step::Kind::kSend)) &&
           (!Receives(a.op) || same(Step::Kind::kRecv));
  }

  // The most messages that a threadblock sends with one signal. One message of the plan whose pieces lie
  // apart takes so many slots.
  int32_t MostOfASignal() const {
    int32_t most = 1;
    for (const std::vector<MadeBlock>& blocks : blocks_)
      for (const MadeBlock& block : blocks) {
        std::map<int32_t, int32_t> messages;  // by signal
        for (const Made& one : block.made)
          if (const int32_t signal = SignalOf(one, Step::Kind::kSend); signal >= 0)
            most = std::max(most, ++messages[signal]);
      }
    return most;
  }

  // Merges a step of a threadblock into the step before it, if the other ends of their messages can be
  // merged, too.
  void MergePieces() {
    // By rank, block and step: is it one with the step before?
    std::vector<std::vector<std::vector<bool>>> joins(blocks_.size());
    std::vector<std::array<size_t, 3>> left;
    for (size_t r = 0; r < blocks_.size(); ++r)
      for (const MadeBlock& block : blocks_[r]) {
        std::vector<bool>& all = joins[r].emplace_back(block.made.size(), false);
        for (size_t i = 1; i < block.made.size(); ++i) {
          all[i] = ArePieces(block.made[i - 1], block.made[i]);
          if (!all[i]) left.push_back({r, joins[r].size() - 1, i});
        }
        if (!block.made.empty()) left.push_back({r, joins[r].size() - 1, 0});
      }
    // The other ends of steps that stay apart stay apart.
    while (!left.empty()) {
      const auto [r, b, i] = left.back();
      left.pop_back();
      for (const int32_t s : blocks_[r][b].made[i].steps) {
        if (StepAt(s).other < 0) continue;
        const auto rank = static_cast<size_t>(StepAt(StepAt(s).other).rank);
        const auto [block, index] = of_step_[static_cast<size_t>(StepAt(s).other)];
        const auto other = joins[rank][static_cast<size_t>(block)].begin() + index;
        if (!*other) continue;
        *other = false;
        left.push_back({rank, static_cast<size_t>(block), static_cast<size_t>(index)});
      }
    }
    for (size_t r = 0; r < blocks_.size(); ++r)
      for (size_t b = 0; b < blocks_[r].size(); ++b) {
        std::vector<Made> merged;
        for (size_t i = 0; i < blocks_[r][b].made.size(); ++i) {
          Made& one = blocks_[r][b].made[i];
          if (joins[r][b][i]) {
            merged.back().count += one.count;
            merged.back().steps.insert(merged.back().steps.end(), one.steps.begin(), one.steps.end());
          } else {
            merged.push_back(std::move(one));
          }
          for (const int32_t s : merged.back().steps)
            of_step_[static_cast<size_t>(s)].second = static_cast<int32_t>(merged.size()) - 1;
        }
        blocks_[r][b].made = std::move(merged);
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
      const Step& end = run_.steps[s];
      if (end.other < 0) continue;
      const auto a = static_cast<size_t>(end.rank), b = static_cast<size_t>(StepAt(end.other).rank);
      parent[find(id[{a, static_cast<size_t>(of_step_[s].first)}])] =
          find(id[{b, static_cast<size_t>(of_step_[static_cast<size_t>(end.other)].first)}]);
    }
    for (size_t r = 0; r < blocks_.size(); ++r)
      for (size_t b = 0; b < blocks_[r].size(); ++b) {
        const MadeBlock& block = blocks_[r][b];
        std::set<std::tuple<size_t, size_t>>& joins = pairs[find(id[{r, b}])];
        if (block.send >= 0) joins.insert({r, static_cast<size_t>(block.send)});
        if (block.recv >= 0) joins.insert({static_cast<size_t>(block.recv), r});
        for (const int32_t m : block.send_all) joins.insert({r, static_cast<size_t>(m)});
        for (const int32_t m : block.recv_all) joins.insert({static_cast<size_t>(m), r});
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
        const MadeBlock& block = blocks_[r][b];
        made.ranks[r].blocks.push_back({block.send,
                                        block.recv,
                                        channel.at(find(id[{r, b}])),
                                        {},
                                        block.send_all,
                                        block.recv_all,
                                        block.links,
                                        block.recv_links});
      }
  }

  static Operand OperandAt(Place place) { return {place.buffer, static_cast<int32_t>(place.begin)}; }
  msccl::FileStep StepOf(size_t r, size_t /*b*/, const Made& one) const {
    const Step& last = StepAt(one.steps.back());
    msccl::FileStep step;
    step.op = one.op;
    step.src = OperandAt(one.src);
    step.dst = OperandAt(one.dst);
    step.count = static_cast<int32_t>(one.count);
    step.posts = true;
    step.place = PlaceOf(static_cast<int64_t>(r), std::max(0, last.block), last.op, last.name);
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
  bool each_ = false;                                 // as in Form
  std::vector<int32_t> place_;                        // by step: in its threadblock
  std::vector<std::vector<MadeBlock>> blocks_;        // by rank
  std::vector<std::pair<int32_t, int32_t>> of_step_;  // block and index
  std::map<std::pair<std::vector<int32_t>, std::vector<int32_t>>, size_t>
      switches_;  // numbers by from and to
};

}  // namespace

msccl::File Translate(const File& file, const Run& run, const Form& form) {
  return Translator(file, run).Translate(form);
}

}  // namespace xccl::mscclpp
