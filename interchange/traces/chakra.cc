// A rank's instructions are taken pass by pass, each after all instructions that it waits for. Instructions
// at the same depth (the longest chain of waits before them) are ordered by peer, the nearest peer behind the
// rank first, so that ranks which send to all peers at once do not all begin with one peer. An instruction's
// *frontier* is the set of nodes that are done when it is: its own nodes, or, if it is local, the nodes that
// it waits for.
#include "interchange/traces/chakra.h"

#include <fmt/core.h>
#include <google/protobuf/io/zero_copy_stream_impl_lite.h>
#include <google/protobuf/util/delimited_message_util.h>

#include <algorithm>
#include <array>
#include <limits>
#include <map>
#include <span>
#include <utility>

#include "base/graph/grouped.h"
#include "interchange/traces/chakra.pb.h"
#include "ir/analysis/program_index.h"
#include "ir/analysis/rank_clocks.h"
#include "ir/sizes.h"

namespace xccl {
namespace {

constexpr const char* kVersion = "0.0.4";

using Frontier = std::vector<uint64_t>;

// Appends messages to a trace.
class TraceWriter {
 public:
  explicit TraceWriter(std::string& trace) : stream_(&trace) {}

  void Metadata(const std::string& title) {
    chakra::GlobalMetadata metadata;
    metadata.set_version(kVersion);
    chakra::AttributeProto& attribute = *metadata.add_attr();
    attribute.set_name("schedule");
    attribute.set_string_val(title);
    Write(metadata);
  }
  uint64_t Message(bool sends, Rank src, Rank dst, int64_t bytes, int64_t tag, const Frontier& after) {
    chakra::Node node;
    node.set_id(next_id_);
    node.set_type(sends ? chakra::COMM_SEND_NODE : chakra::COMM_RECV_NODE);
    node.set_name(fmt::format("{} {}, message {}", sends ? "send to" : "receive from",
                              sends ? dst.value : src.value, tag));
    for (const uint64_t id : after) node.add_data_deps(id);
    chakra::AttributeProto& cpu = *node.add_attr();
    cpu.set_name("is_cpu_op");
    cpu.set_bool_val(false);
    Number(node, "comm_src", src.value);
    Number(node, "comm_dst", dst.value);
    Number(node, "comm_tag", static_cast<int32_t>(tag));
    chakra::AttributeProto& size = *node.add_attr();
    size.set_name("comm_size");
    size.set_int64_val(bytes);
    Write(node);
    return next_id_++;
  }

 private:
  static void Number(chakra::Node& node, const char* name, int32_t value) {
    chakra::AttributeProto& attribute = *node.add_attr();
    attribute.set_name(name);
    attribute.set_int32_val(value);
  }
  template <class Message>
  void Write(const Message& message) {
    XCCL_CHECK(google::protobuf::util::SerializeDelimitedToZeroCopyStream(message, &stream_));
  }

  google::protobuf::io::StringOutputStream stream_;
  uint64_t next_id_ = 0;
};

class Tracer {
 public:
  Tracer(const LoweredProgram& lowered, int64_t size_bytes)
      : program_(lowered.program),
        collective_(lowered.collective),
        sizes_(collective_, size_bytes),
        index_(program_),
        passes_(NumPasses(program_, sizes_)),
        first_tag_(program_.connections.size()) {}

  StatusOr<std::vector<std::string>> Run(const std::string& title) {
    int64_t nodes = 0;
    std::map<std::pair<Rank, Rank>, int64_t> tags;
    for (size_t c = 0; c < program_.connections.size(); ++c) {
      const Connection& connection = program_.connections[c];
      const int64_t messages = std::ssize(index_.SendsOf(static_cast<int32_t>(c))) * passes_;
      int64_t& next = tags[{connection.src, connection.dst}];
      first_tag_[c] = next;
      next += messages;
      nodes += 2 * messages;
    }
    if (nodes > kMostChakraNodes)
      return LimitReached(
          fmt::format("chakra: {} nodes in {} passes; expected at most {}; hint: a smaller size", nodes,
                      passes_, kMostChakraNodes));
    const Grouped<int32_t> of_rank = ByRank(index_, TopologicalOrder(program_, index_, ProgramEdges::kLocal));
    std::vector<std::string> traces(static_cast<size_t>(program_.ranks.size()));
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      TraceWriter writer(traces[r.index()]);
      writer.Metadata(title);
      Trace(r, InTurn(r, of_rank[r.value]), writer);
    }
    return traces;
  }

 private:
  // How far behind the rank its first peer is, around the circle of all ranks.
  int32_t Distance(Rank r, int32_t node) const {
    const Opcode op = index_.instruction(node).op;
    const std::span<const int32_t> connections = Sends(op)      ? index_.SendConnections(index_.BlockOf(node))
                                                 : Receives(op) ? index_.RecvConnections(index_.BlockOf(node))
                                                                : std::span<const int32_t>();
    if (connections.empty()) return 0;
    const Connection& connection = program_.connections[static_cast<size_t>(connections[0])];
    const int32_t ranks = program_.ranks.size();
    const int32_t ahead = Sends(op) ? connection.dst.value - r.value : r.value - connection.src.value;
    return (ahead + ranks) % ranks;
  }

  std::vector<int32_t> InTurn(Rank r, std::span<const int32_t> order) const {
    std::map<int32_t, int32_t> depth;  // by node
    std::vector<std::array<int32_t, 3>> keys;
    for (size_t i = 0; i < order.size(); ++i) {
      const int32_t node = order[i];
      int32_t& own = depth[node];
      if (node > index_.BlockFirst(index_.BlockOf(node))) own = depth.at(node - 1) + 1;
      for (const Dependency& d : index_.Dependencies(node))
        own = std::max(own, depth.at(index_.NodeOf(r, d)) + 1);
      keys.push_back({own, Distance(r, node), static_cast<int32_t>(i)});
    }
    std::ranges::sort(keys);
    std::vector<int32_t> turn;
    for (const std::array<int32_t, 3>& key : keys) turn.push_back(order[static_cast<size_t>(key[2])]);
    return turn;
  }

  void Trace(Rank r, std::span<const int32_t> order, TraceWriter& writer) {
    for (const BufferKind kind : {BufferKind::kInput, BufferKind::kOutput, BufferKind::kScratch})
      chunks_[static_cast<size_t>(kind)] = SlotChunks(program_, collective_, r, kind);
    const int32_t first_block = index_.RankFirstBlock(r),
                  blocks = index_.RankFirstBlock(Rank(r.value + 1)) - first_block;
    const int32_t first_node = index_.BlockFirst(first_block);
    const size_t nodes = static_cast<size_t>(index_.BlockFirst(first_block + blocks) - first_node);
    // The frontier that the last instruction of each instance of a threadblock left.
    std::vector<Frontier> last(static_cast<size_t>(blocks) * static_cast<size_t>(program_.instances));
    std::vector<Frontier> done(nodes);
    for (int32_t pass = 0; pass < passes_; ++pass) {
      for (const int32_t node : order) {
        const int32_t block = index_.BlockOf(node);
        Frontier& before =
            last[static_cast<size_t>((block - first_block) * program_.instances + pass % program_.instances)];
        Frontier after = before;
        for (const Dependency& d : index_.Dependencies(node)) {
          const Frontier& on = done[static_cast<size_t>(index_.NodeOf(r, d) - first_node)];
          after.insert(after.end(), on.begin(), on.end());
        }
        Tidy(after);
        done[static_cast<size_t>(node - first_node)] = before =
            Nodes(node, block, pass, std::move(after), writer);
      }
    }
  }

  static void Tidy(Frontier& frontier) {
    std::ranges::sort(frontier);
    frontier.erase(std::unique(frontier.begin(), frontier.end()), frontier.end());
  }

  // Writes an instruction's nodes; returns its frontier.
  Frontier Nodes(int32_t node, int32_t block, int32_t pass, Frontier after, TraceWriter& writer) {
    const Instruction& i = index_.instruction(node);
    const int64_t bytes = Bytes(i, pass);
    if (bytes == 0) return after;
    const auto messages = [&](std::span<const int32_t> connections, int32_t ordinal, bool sends) {
      Frontier made;
      for (const int32_t c : connections) {
        const Connection& connection = program_.connections[static_cast<size_t>(c)];
        const int64_t of_pass = std::ssize(index_.SendsOf(c));
        made.push_back(writer.Message(sends, connection.src, connection.dst, bytes,
                                      first_tag_[static_cast<size_t>(c)] + pass * of_pass + ordinal, after));
      }
      after = std::move(made);
    };
    if (Receives(i.op)) messages(index_.RecvConnections(block), index_.RecvOrdinal(node), false);
    if (Sends(i.op)) messages(index_.SendConnections(block), index_.SendOrdinal(node), true);
    return after;
  }

  int64_t Bytes(const Instruction& i, int32_t pass) const {
    if (i.op == Opcode::kNop) return 0;
    const Operand& operand = ReadsSource(i.op) ? i.src : i.dst;
    const std::vector<ChunkId>& of = chunks_[static_cast<size_t>(operand.buffer)];
    int64_t elements = 0;
    for (int32_t k = 0; k < i.count; ++k) {
      const Slice slice = SliceOf(sizes_.ChunkElements(of[static_cast<size_t>(operand.slot + k)]),
                                  sizes_.element_bytes(), passes_, pass);
      elements += slice.end - slice.begin;
    }
    return elements * sizes_.element_bytes();
  }

  const Program& program_;
  const Collective& collective_;
  const CollectiveSizes sizes_;
  const ProgramIndex index_;
  const int32_t passes_;
  std::vector<int64_t> first_tag_;  // by connection: of its first message
  std::vector<ChunkId> chunks_[3];  // in the slots of the rank's buffers
};

}  // namespace

StatusOr<std::vector<std::string>> ChakraTraces(const LoweredProgram& lowered, int64_t size_bytes,
                                                const std::string& title) {
  return Tracer(lowered, size_bytes).Run(title);
}

}  // namespace xccl
