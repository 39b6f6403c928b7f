// 1. Count the entries that each rank adds to the page.
// 2. Choose ranks while their entries fit: first the ranks of the critical path from its end to its start,
//    then all other ranks in order.
// 3. Write the chosen ranks as columns with one entry for each threadblock, instruction, dependency and pass.
#include "pipeline/view/program_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <span>
#include <string>
#include <utility>

#include "ir/analysis/program_index.h"
#include "pipeline/view/writer.h"

namespace xccl::view {
namespace {

char OpcodeLetter(Opcode op) {
  switch (op) {
    case Opcode::kSend:
      return 's';
    case Opcode::kRecv:
      return 'r';
    case Opcode::kRecvCopySend:
      return 'c';
    case Opcode::kRecvReduceSend:
      return 'f';
    case Opcode::kRecvReduceCopy:
      return 'p';
    case Opcode::kRecvReduceCopySend:
      return 'a';
    case Opcode::kCopy:
      return 'k';
    case Opcode::kReduce:
      return 'e';
    case Opcode::kNop:
      return 'n';
  }
  return 'n';
}

char WaitLetter(ProgramWait wait) {
  switch (wait) {
    case ProgramWait::kNothing:
      return '-';
    case ProgramWait::kThreadblock:
      return 'b';
    case ProgramWait::kHandOff:
      return 'h';
    case ProgramWait::kMessage:
      return 'm';
    case ProgramWait::kSlot:
      return 's';
    case ProgramWait::kLink:
      return 'l';
  }
  return '-';
}

char PathLetter(PathKind kind) {
  switch (kind) {
    case PathKind::kTransfer:
      return 'b';
    case PathKind::kLatency:
      return 'a';
    case PathKind::kOverhead:
      return 'o';
    case PathKind::kThreadblock:
      return 't';
    case PathKind::kHandOff:
      return 'w';
    case PathKind::kHop:
      return 'h';
    case PathKind::kLaunch:
      return 'l';
  }
  return 'b';
}

// Writes the threadblocks and instructions of some ranks of a program.
class ProgramWriter {
 public:
  ProgramWriter(const Program& program, const ProgramTrace& trace, JsonWriter& json)
      : program_(program), index_(program), trace_(trace), json_(json) {}

  void Write(int64_t most_entries) {
    ChooseRanks(most_entries);
    json_.BeginObject();
    json_.Member("protocol", ToString(program_.protocol));
    json_.Member("slots", program_.slots);
    json_.Member("instances", program_.instances);
    json_.Member("passes", trace_.passes);
    json_.Member("time_ps", trace_.simulation.time_ps);
    json_.Member("notes", Notes());
    json_.Member("ranks", ranks_);
    WriteBlocks();
    WriteInstructions();
    WriteTimes();
    WriteSlices();
    json_.EndObject();
  }

 private:
  // Returns the entries that each rank adds to the page: instructions, half of the dependencies, and passes.
  std::vector<int64_t> EntriesOfRanks() const {
    std::vector<int64_t> entries(static_cast<size_t>(index_.num_ranks()));
    for (int32_t node = 0; node < index_.size(); ++node)
      entries[index_.BlockRank(index_.BlockOf(node)).index()] +=
          1 + (index_.instruction(node).dep_count + 1) / 2;
    for (const TracedPass& slice : trace_.slices)
      ++entries[index_.BlockRank(index_.BlockOf(slice.node)).index()];
    return entries;
  }

  // Chooses the ranks to write: the ranks of the critical path from its end to its start, then all others in
  // order. Skips a rank that does not fit, but always chooses one rank.
  void ChooseRanks(int64_t most_entries) {
    const std::vector<int64_t> entries = EntriesOfRanks();
    std::vector<bool> chosen(entries.size(), false);
    int64_t total = 0;
    const auto take = [&](size_t rank) {
      if (chosen[rank] || (total > 0 && total + entries[rank] > most_entries)) return;
      chosen[rank] = true;
      total += entries[rank];
    };
    const std::vector<PathPiece>& pieces = trace_.critical_path.pieces;
    for (auto piece = pieces.rbegin(); piece != pieces.rend(); ++piece)
      if (piece->block) take(index_.BlockRank(*piece->block).index());
    for (size_t r = 0; r < entries.size(); ++r) take(r);
    number_.assign(static_cast<size_t>(index_.size()), -1);
    for (size_t r = 0; r < chosen.size(); ++r) {
      if (!chosen[r]) continue;
      ranks_.push_back(static_cast<int32_t>(r));
      const Rank rank(static_cast<int32_t>(r));
      for (size_t b = 0; b < program_.ranks[rank].threadblocks.size(); ++b) {
        const int32_t block = index_.RankFirstBlock(rank) + static_cast<int32_t>(b);
        blocks_.push_back(block);
        for (int32_t node = index_.BlockFirst(block); node < index_.BlockFirst(block + 1); ++node) {
          number_[static_cast<size_t>(node)] = static_cast<int32_t>(nodes_.size());
          nodes_.push_back(node);
        }
      }
    }
  }

  std::vector<std::string> Notes() const {
    std::vector<std::string> notes;
    if (std::ssize(ranks_) < index_.num_ranks())
      notes.push_back(
          fmt::format("The page has the threadblocks of {} of {} ranks, those of the critical path first.",
                      ranks_.size(), index_.num_ranks()));
    if (trace_.slices.empty() && index_.size() > 0)
      notes.push_back(fmt::format(
          "The program runs in {} passes, too many to show one by one: times are sums over passes.",
          trace_.passes));
    return notes;
  }

  void WriteBlocks() {
    std::vector<int64_t> first = {0};
    for (const int32_t rank : ranks_)
      first.push_back(first.back() + std::ssize(program_.ranks[Rank(rank)].threadblocks));
    json_.Member("block_first", first);
    Column(json_, "channel", blocks_, [&](int32_t b) { return index_.threadblock(b).channel; });
    for (const bool sends : {true, false}) {
      json_.Key(sends ? "send" : "recv");
      json_.BeginArray();
      for (const int32_t b : blocks_) {
        const Threadblock& block = index_.threadblock(b);
        json_.Value(sends ? SendPeers(program_, block) : RecvPeers(program_, block));
      }
      json_.EndArray();
    }
    Letters(json_, "send_group", blocks_,
            [&](int32_t b) { return index_.threadblock(b).send_group ? 'm' : '-'; });
    Letters(json_, "recv_group", blocks_, [&](int32_t b) {
      const Threadblock& block = index_.threadblock(b);
      if (!block.recv_group) return '-';
      return FanInOf(program_, block) == nullptr ? 'r' : 'f';
    });
    std::vector<int64_t> instruction_first = {0};
    for (const int32_t b : blocks_)
      instruction_first.push_back(instruction_first.back() + index_.BlockFirst(b + 1) - index_.BlockFirst(b));
    json_.Member("instruction_first", instruction_first);
  }

  void WriteInstructions() {
    const auto at = [&](int32_t node) -> const Instruction& { return index_.instruction(node); };
    const auto buffer = [](bool used, const Operand& operand) {
      return used ? ToString(operand.buffer)[0] : '-';
    };
    Letters(json_, "op", nodes_, [&](int32_t n) { return OpcodeLetter(at(n).op); });
    Column(json_, "count", nodes_, [&](int32_t n) { return at(n).count; });
    Letters(json_, "from_buffer", nodes_,
            [&](int32_t n) { return buffer(ReadsSource(at(n).op), at(n).src); });
    Column(json_, "from", nodes_, [&](int32_t n) { return at(n).src.slot; });
    Letters(json_, "to_buffer", nodes_,
            [&](int32_t n) { return buffer(WritesDestination(at(n).op), at(n).dst); });
    Column(json_, "to", nodes_, [&](int32_t n) { return at(n).dst.slot; });
    std::vector<int64_t> first = {0};
    std::vector<Dependency> dependencies;
    for (const int32_t n : nodes_) {
      const std::span<const Dependency> of_node = index_.Dependencies(n);
      dependencies.insert(dependencies.end(), of_node.begin(), of_node.end());
      first.push_back(std::ssize(dependencies));
    }
    json_.Member("dependency_first", first);
    Column(json_, "dependency_block", dependencies, [](const Dependency& d) { return d.threadblock; });
    Column(json_, "dependency_index", dependencies, [](const Dependency& d) { return d.index; });
  }

  void WriteTimes() {
    const auto at = [&](int32_t node) -> const TracedInstruction& {
      return trace_.instructions[static_cast<size_t>(node)];
    };
    const auto wait = [&](int32_t node, ProgramWait kind) {
      return at(node).waits_ps[static_cast<size_t>(kind)];
    };
    Column(json_, "start", nodes_, [&](int32_t n) { return at(n).start_ps; });
    Column(json_, "end", nodes_, [&](int32_t n) { return at(n).end_ps; });
    Column(json_, "busy", nodes_, [&](int32_t n) { return at(n).busy_ps; });
    Column(json_, "wait_block", nodes_,
           [&](int32_t n) { return wait(n, ProgramWait::kThreadblock) + wait(n, ProgramWait::kHandOff); });
    Column(json_, "wait_message", nodes_, [&](int32_t n) { return wait(n, ProgramWait::kMessage); });
    Column(json_, "wait_slot", nodes_, [&](int32_t n) { return wait(n, ProgramWait::kSlot); });
    Column(json_, "wait_link", nodes_, [&](int32_t n) { return wait(n, ProgramWait::kLink); });
  }

  void WriteSlices() {
    std::vector<TracedPass> slices;
    for (const TracedPass& slice : trace_.slices)
      if (number_[static_cast<size_t>(slice.node)] >= 0) slices.push_back(slice);
    json_.Key("slices");
    if (slices.empty()) {
      json_.Null();
      return;
    }
    json_.BeginObject();
    Column(json_, "instruction", slices,
           [&](const TracedPass& s) { return number_[static_cast<size_t>(s.node)]; });
    Column(json_, "pass", slices, [](const TracedPass& s) { return s.pass; });
    Column(json_, "reached", slices, [](const TracedPass& s) { return s.reached_ps; });
    Column(json_, "start", slices, [](const TracedPass& s) { return s.start_ps; });
    Column(json_, "end", slices, [](const TracedPass& s) { return s.end_ps; });
    Letters(json_, "waited", slices, [](const TracedPass& s) { return WaitLetter(s.waited_for); });
    json_.EndObject();
  }

  const Program& program_;
  const ProgramIndex index_;
  const ProgramTrace& trace_;
  JsonWriter& json_;
  std::vector<int32_t> ranks_, blocks_, nodes_;  // ranks, threadblocks and instructions to write, in order
  std::vector<int32_t> number_;                  // by node of index_: its place in nodes_, or -1
};

}  // namespace

void WriteProgram(const LoweredProgram& lowered, const ProgramTrace& trace, const ViewOptions& options,
                  JsonWriter& json) {
  ProgramWriter(lowered.program, trace, json).Write(options.most_entries);
}

void WriteCritical(const CriticalPath& path, const Program* program, bool with_messages, JsonWriter& json) {
  const std::optional<ProgramIndex> index =
      program == nullptr ? std::nullopt : std::optional<ProgramIndex>(std::in_place, *program);
  json.BeginObject();
  Letters(json, "kind", path.pieces, [](const PathPiece& piece) { return PathLetter(piece.kind); });
  Column(json, "start", path.pieces, [](const PathPiece& piece) { return piece.start_ps; });
  Column(json, "end", path.pieces, [](const PathPiece& piece) { return piece.end_ps; });
  Column(json, "link", path.pieces,
         [](const PathPiece& piece) { return piece.link ? piece.link->value : -1; });
  Column(json, "message", path.pieces,
         [&](const PathPiece& piece) { return with_messages ? piece.message.value_or(-1) : -1; });
  Column(json, "rank", path.pieces, [&](const PathPiece& piece) {
    return index && piece.block ? index->BlockRank(*piece.block).value : -1;
  });
  Column(json, "block", path.pieces, [&](const PathPiece& piece) {
    return index && piece.block ? *piece.block - index->RankFirstBlock(index->BlockRank(*piece.block)) : -1;
  });
  json.Member("stretched", path.stretched);
  json.EndObject();
}

}  // namespace xccl::view
