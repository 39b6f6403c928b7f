// 1. Go through the instructions in a topological order. For every slot of every buffer, keep how many
//    contributions it holds. A number is enough, because no contribution is added twice (rule P7). If a write
//    has more contributions of a chunk than its rank had, the difference is a gain. The gain grows while the
//    passes of the instruction run.
// 2. Make a message of every send. All branches of a multicast make one message, and so do the sends that one
//    reduction in a switch adds up. A message stands for all passes of its instruction.
// 3. Put messages on links at the times of the trace. A trace that extrapolates, or would be too long, has no
//    times of messages on links. Then put a message there from the start of its send to the end of its
//    receive, with a share of the link's busy time by bytes.
// 4. Write messages one by one or, if there are too many, sums over time, ranks and chunks.
#include "pipeline/view/play_data.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "ir/analysis/program_index.h"
#include "ir/sizes.h"
#include "pipeline/view/holdings.h"
#include "pipeline/view/schedule_data.h"
#include "pipeline/view/writer.h"

namespace xccl::view {
namespace {

struct Message {
  std::vector<Rank> src, dst;
  int64_t bytes = 0;
  int64_t start_ps = std::numeric_limits<int64_t>::max(), end_ps = 0;
  std::vector<ChunkId> chunks;
  bool reduces = false;
  std::vector<LinkId> path;
};

bool Adds(Opcode op) {
  return op == Opcode::kRecvReduceSend || op == Opcode::kRecvReduceCopy || op == Opcode::kRecvReduceCopySend;
}

class ProgramPlay {
 public:
  ProgramPlay(const Plan& plan, const ProgramTrace& trace)
      : program_(plan.program->program),
        collective_(plan.program->collective),
        topology_(plan.topology),
        trace_(trace),
        index_(program_),
        sizes_(collective_, plan.made_by.size_bytes) {
    FillBuffers();
    FindWrites();
    FindMessages();
    FindHops();
  }

  void Write(int64_t most_entries, JsonWriter& json) const {
    const LinkTotals totals = Totals();
    const int32_t bins = BinsFor(totals);
    const bool detail = std::ssize(hops_) <= most_entries && std::ssize(messages_) <= most_entries &&
                        std::ssize(writes_) <= 4 * most_entries &&
                        int64_t{topology_.num_ranks()} * collective_.num_chunks() <= kMostCells;
    json.BeginObject();
    json.Member("time_ps", trace_.simulation.time_ps);
    json.Member("chunks", collective_.num_chunks());
    json.Member("notes", Notes(detail, bins));
    WriteTotals(totals, json);
    json.Key("detail");
    if (detail)
      WriteDetail(json);
    else
      json.Null();
    json.Key("binned");
    if (detail)
      json.Null();
    else
      WriteBinned(bins, json);
    json.EndObject();
  }

 private:
  struct Buffer {
    std::vector<ChunkId> chunk;  // by slot
    std::vector<int32_t> held;   // by slot: contributions
  };

  Buffer& BufferOf(Rank rank, BufferKind kind) { return buffers_[rank.index()][static_cast<size_t>(kind)]; }

  void FillBuffers() {
    buffers_.resize(static_cast<size_t>(topology_.num_ranks()));
    for (int32_t r = 0; r < topology_.num_ranks(); ++r) {
      for (const BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch}) {
        Buffer& buffer = BufferOf(Rank(r), kind);
        buffer.chunk = SlotChunks(program_, collective_, Rank(r), kind);
        buffer.held.resize(buffer.chunk.size());
      }
    }
    for (const HoldingRun& run : HoldingRuns(collective_, topology_.num_ranks(), true))
      for (int32_t c = run.chunk; c < run.chunk + run.count; ++c)
        most_[{run.rank.value, c}] = run.contributions;
    for (int32_t r = 0; r < topology_.num_ranks(); ++r) {
      Buffer& input = BufferOf(Rank(r), BufferKind::kInput);
      for (size_t s = 0; s < input.chunk.size(); ++s)
        if (const auto found = most_.find({r, input.chunk[s].value}); found != most_.end())
          input.held[s] = found->second;
    }
  }

  // Returns the sends whose messages a receive takes.
  std::vector<int32_t> SendersOf(int32_t node) const {
    std::vector<int32_t> senders;
    const size_t k = static_cast<size_t>(index_.RecvOrdinal(node));
    for (const int32_t connection : index_.RecvConnections(index_.BlockOf(node)))
      senders.push_back(index_.SendsOf(connection)[k]);
    return senders;
  }

  void FindWrites() {
    std::vector<std::vector<int32_t>> sent(static_cast<size_t>(index_.size()));
    for (const int32_t node : TopologicalOrder(program_, index_, ProgramEdges::kAll)) {
      const Instruction& instruction = index_.instruction(node);
      const Rank rank = index_.BlockRank(index_.BlockOf(node));
      std::vector<int32_t> value(static_cast<size_t>(instruction.count));
      const auto add = [&](const Operand& operand) {
        const Buffer& buffer = BufferOf(rank, operand.buffer);
        for (size_t i = 0; i < value.size(); ++i)
          value[i] += buffer.held[static_cast<size_t>(operand.slot) + i];
      };
      if (ReadsSource(instruction.op)) add(instruction.src);
      if (instruction.op == Opcode::kReduce) add(instruction.dst);
      if (Receives(instruction.op))
        for (const int32_t sender : SendersOf(node))
          for (size_t i = 0; i < value.size(); ++i) value[i] += sent[static_cast<size_t>(sender)][i];
      if (WritesDestination(instruction.op)) {
        Buffer& buffer = BufferOf(rank, instruction.dst.buffer);
        for (size_t i = 0; i < value.size(); ++i) {
          const size_t slot = static_cast<size_t>(instruction.dst.slot) + i;
          buffer.held[slot] = value[i];
          int32_t& most = most_[{rank.value, buffer.chunk[slot].value}];
          if (value[i] <= most) continue;
          writes_.push_back({rank, buffer.chunk[slot], StartOf(node), EndOf(node), value[i] - most});
          most = value[i];
        }
      }
      if (Sends(instruction.op)) sent[static_cast<size_t>(node)] = std::move(value);
    }
    std::ranges::stable_sort(writes_, {}, &HoldingWrite::end_ps);
  }

  int64_t EndOf(int32_t node) const { return trace_.instructions[static_cast<size_t>(node)].end_ps; }
  int64_t StartOf(int32_t node) const { return trace_.instructions[static_cast<size_t>(node)].start_ps; }

  // Makes the messages. The k-th sends of all members of a reduction in a switch make one message.
  void FindMessages() {
    std::vector<int32_t> group_of(program_.connections.size(), -1);  // -1: no switch
    for (size_t g = 0; g < program_.groups.size(); ++g)
      if (const Group& group = program_.groups[g]; HasSwitch(group))
        for (const Rank member : group.members)
          group_of[FindBranch(program_, group, member)] = static_cast<int32_t>(g);
    message_of_.assign(static_cast<size_t>(index_.size()), -1);
    std::map<std::pair<int32_t, int32_t>, int32_t> sums;  // (group, ordinal): message
    for (int32_t node = 0; node < index_.size(); ++node) {
      if (!Sends(index_.instruction(node).op)) continue;
      const std::span<const int32_t> connections = index_.SendConnections(index_.BlockOf(node));
      const int32_t g = group_of[static_cast<size_t>(connections.front())];
      const Group* const group = g < 0 ? nullptr : &program_.groups[static_cast<size_t>(g)];
      int32_t number = static_cast<int32_t>(messages_.size());
      if (group != nullptr && group->kind == Group::Kind::kReduce)
        number = sums.try_emplace({g, index_.SendOrdinal(node)}, number).first->second;
      if (number == std::ssize(messages_)) messages_.push_back(NewMessage(node, group));
      Message& message = messages_[static_cast<size_t>(number)];
      message_of_[static_cast<size_t>(node)] = number;
      message.src.push_back(index_.BlockRank(index_.BlockOf(node)));
      message.start_ps = std::min(message.start_ps, StartOf(node));
      message.end_ps = std::max(message.end_ps, EndOf(node));
    }
  }

  // Returns the message of a send, without its source.
  Message NewMessage(int32_t node, const Group* group) {
    const Instruction& instruction = index_.instruction(node);
    const Rank rank = index_.BlockRank(index_.BlockOf(node));
    const Operand& operand = WritesDestination(instruction.op) ? instruction.dst : instruction.src;
    const std::vector<ChunkId>& slots = BufferOf(rank, operand.buffer).chunk;
    Message message;
    for (int32_t i = 0; i < instruction.count; ++i) {
      message.chunks.push_back(slots[static_cast<size_t>(operand.slot + i)]);
      message.bytes += sizes_.ChunkBytes(message.chunks.back());
    }
    const std::span<const int32_t> connections = index_.SendConnections(index_.BlockOf(node));
    message.path =
        group == nullptr ? program_.connections[static_cast<size_t>(connections.front())].path : group->path;
    message.reduces = group != nullptr && group->kind == Group::Kind::kReduce;
    for (const int32_t connection : connections) {
      const int32_t receive = index_.ReceivesOf(connection)[static_cast<size_t>(index_.SendOrdinal(node))];
      message.dst.push_back(program_.connections[static_cast<size_t>(connection)].dst);
      message.reduces |= Adds(index_.instruction(receive).op);
      message.end_ps = std::max(message.end_ps, EndOf(receive));
    }
    return message;
  }

  void FindHops() {
    for (const TracedProgramHop& hop : trace_.hops)
      hops_.push_back({message_of_[static_cast<size_t>(hop.node)], hop.link, hop.start_ps, hop.end_ps,
                       hop.end_ps, hop.end_ps - hop.start_ps});
    if (hops_.empty()) {
      std::vector<int64_t> bytes(trace_.link_busy_ps.size());
      for (const Message& message : messages_)
        for (const LinkId link : message.path) bytes[link.index()] += message.bytes;
      for (size_t m = 0; m < messages_.size(); ++m) {
        const Message& message = messages_[m];
        for (const LinkId link : message.path) {
          const double share = static_cast<double>(message.bytes) /
                               static_cast<double>(std::max<int64_t>(1, bytes[link.index()]));
          const double busy = share * static_cast<double>(trace_.link_busy_ps[link.index()]);
          hops_.push_back({static_cast<int32_t>(m), link, message.start_ps, message.end_ps, message.end_ps,
                           static_cast<int64_t>(busy)});
        }
      }
    }
    std::ranges::stable_sort(hops_, {}, &TracedHop::message);
  }

  // Returns the number of parts in which the page shows a write of several passes.
  int32_t Parts() const {
    constexpr int32_t kParts = 8;
    return trace_.passes > 1 ? kParts : 1;
  }

  LinkTotals Totals() const {
    LinkTotals totals(topology_);
    for (const Message& message : messages_) {
      for (const LinkId link : message.path) {
        totals.bytes[link.index()] += message.bytes;
        ++totals.messages[link.index()];
      }
    }
    totals.busy_ps = trace_.link_busy_ps;
    return totals;
  }

  std::vector<std::string> Notes(bool detail, int32_t bins) const {
    std::vector<std::string> notes;
    if (!detail)
      notes.push_back(fmt::format(
          "This program has {} messages, too many to show one by one: loads of links are averages "
          "over {} equal parts of the time, and who holds what is added up over groups of ranks "
          "and of chunks.",
          messages_.size(), bins));
    else if (trace_.hops.empty() && !messages_.empty())
      notes.push_back(
          "A message is shown from the start of its first pass until its last one is there; its passes are "
          "added up.");
    if (trace_.ran_passes < trace_.passes)
      notes.push_back(fmt::format(
          "The program runs in {} passes; {} of them were simulated one by one, and the rest is the steady "
          "state that they settle into.",
          trace_.passes, trace_.ran_passes));
    return notes;
  }

  static void WriteRanks(const std::vector<Rank>& ranks, JsonWriter& json) {
    if (ranks.size() == 1)
      json.Value(ranks[0]);
    else
      json.Value(ranks);
  }

  void WriteTransfers(JsonWriter& json) const {
    struct Run {
      ChunkId chunk;
      int32_t count;
      const Message* message;
    };
    std::vector<Run> runs;
    std::vector<int64_t> first;
    for (const Message& message : messages_) {
      first.push_back(std::ssize(runs));
      for (const ChunkId chunk : message.chunks) {
        const bool goes_on =
            std::ssize(runs) > first.back() && runs.back().chunk.value + runs.back().count == chunk.value;
        if (goes_on)
          ++runs.back().count;
        else
          runs.push_back({chunk, 1, &message});
      }
    }
    first.push_back(std::ssize(runs));
    json.Member("transfer_first", first);
    Column(json, "chunk", runs, [](const Run& run) { return run.chunk.value; });
    Column(json, "count", runs, [](const Run& run) { return run.count; });
    Letters(json, "op", runs, [](const Run& run) { return run.message->reduces ? 'r' : 'c'; });
    Column(json, "arrival", runs, [](const Run& run) { return run.message->end_ps; });
  }

  void WriteDetail(JsonWriter& json) const {
    json.BeginObject();
    for (const auto& [key, ends] : {std::pair{"src", &Message::src}, std::pair{"dst", &Message::dst}}) {
      json.Key(key);
      json.BeginArray();
      for (const Message& message : messages_) WriteRanks(message.*ends, json);
      json.EndArray();
    }
    json.Key("step");
    json.Null();
    Column(json, "bytes", messages_, [](const Message& m) { return m.bytes; });
    Column(json, "start", messages_, [](const Message& m) { return m.start_ps; });
    Column(json, "end", messages_, [](const Message& m) { return m.end_ps; });
    WriteTransfers(json);
    WriteHops(std::ssize(messages_), hops_, json);
    WriteConditions(collective_, topology_.num_ranks(), json);
    json.Key("writes");
    json.BeginObject();
    Column(json, "rank", writes_, [](const HoldingWrite& w) { return w.rank.value; });
    Column(json, "chunk", writes_, [](const HoldingWrite& w) { return w.chunk.value; });
    Column(json, "start", writes_, [](const HoldingWrite& w) { return w.start_ps; });
    Column(json, "end", writes_, [](const HoldingWrite& w) { return w.end_ps; });
    Column(json, "gain", writes_, [](const HoldingWrite& w) { return w.gain; });
    json.Member("parts", Parts());
    json.EndObject();
    json.EndObject();
  }

  void WriteBinned(int32_t bins, JsonWriter& json) const {
    std::vector<std::vector<LinkId>> links(static_cast<size_t>(collective_.num_chunks()));
    for (const Message& message : messages_)
      for (const ChunkId chunk : message.chunks)
        links[chunk.index()].insert(links[chunk.index()].end(), message.path.begin(), message.path.end());
    json.BeginObject();
    json.Member("bins", int64_t{bins});
    WriteLoads(topology_.num_links(), hops_, trace_.simulation.time_ps, bins, json);
    BinnedHoldings(collective_, topology_, writes_, Parts(), links, trace_.simulation.time_ps,
                   kMostCells / 16)
        .Write(json);
    json.EndObject();
  }

  const Program& program_;
  const Collective& collective_;
  const Topology& topology_;
  const ProgramTrace& trace_;
  const ProgramIndex index_;
  const CollectiveSizes sizes_;
  std::vector<std::array<Buffer, 3>> buffers_;  // by rank
  // (rank, chunk): the most contributions that a slot of the rank has held.
  std::map<std::pair<int32_t, int32_t>, int32_t> most_;
  std::vector<HoldingWrite> writes_;  // by end
  std::vector<Message> messages_;
  std::vector<int32_t> message_of_;  // by node; -1: sends nothing
  std::vector<TracedHop> hops_;      // by message
};

}  // namespace

void WritePlay(const Plan& plan, const ProgramTrace& trace, const ViewOptions& options, JsonWriter& json) {
  ProgramPlay(plan, trace).Write(options.most_entries, json);
}

}  // namespace xccl::view
