// A threadblock stays a threadblock, once for every instance, and every instance has its own share of the
// equal chunks that a chunk is cut into. A message is put where its receiver has a free place, and a signal
// follows it. Senders first wait until the receiver's kernel runs. The segments of a program are one
// pipeline op. Threadblocks of more than 64 ops are cut into parts that follow each other by semaphores;
// messages between two parts have channels of their own, for parts may be passes apart.
#include "interchange/mscclpp/json.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <utility>

#include "base/strings.h"
#include "interchange/common/rounded_weights.h"
#include "interchange/mscclpp/blocks.h"
#include "interchange/mscclpp/cut.h"
#include "interchange/mscclpp/file.h"
#include "ir/analysis/program_index.h"

namespace xccl {
namespace {

using mscclpp::ChannelType;
using mscclpp::File;
using mscclpp::Gpu;

// execution_plan.cc reads it as an int.
constexpr int64_t kMostMinBytes = std::numeric_limits<int32_t>::max();

// Do some connections leave what loads and stores reach?
bool UsesPorts(const Program& program, const MscclppOptions& options) {
  return std::ranges::any_of(program.connections, [&](const Connection& c) {
    return mscclpp::TypeOf(options.domains, c.src, c.dst) == ChannelType::kPort;
  });
}

// Packets go over memory channels alone.
bool SendsPackets(const Program& program, const MscclppOptions& options) {
  return program.protocol == Protocol::kLl && !UsesPorts(program, options);
}

// The most pieces of a message: an instance's shares of neighbouring chunks lie apart. A switch's messages
// have none.
int32_t MostPieces(const Program& program) {
  if (program.instances == 1 || program.segment_bytes == 0) return 1;
  std::vector<bool> over_switch(program.connections.size(), false);
  for (const Group& group : program.groups)
    for (const Rank member : group.members)
      if (HasSwitch(group)) over_switch[FindBranch(program, group, member)] = true;
  int32_t most = 1;
  const ProgramIndex index(program);
  for (int32_t node = 0; node < index.size(); ++node) {
    const Instruction& i = index.instruction(node);
    const int32_t connection = Sends(i.op) ? index.SendConnection(index.BlockOf(node)) : -1;
    if (connection >= 0 && !over_switch[static_cast<size_t>(connection)]) most = std::max(most, i.count);
  }
  return most;
}

class Writer {
 public:
  Writer(const Program& program, const Collective& collective, const MscclppOptions& options)
      : program_(program), collective_(collective), options_(options) {}

  StatusOr<MscclppJson> Write() {
    XCCL_RETURN_IF_ERROR(CheckOptions());
    XCCL_RETURN_IF_ERROR(CheckProgram());
    const bool ports = UsesPorts(program_, options_);
    const bool packets = SendsPackets(program_, options_);
    const bool pipelined = !packets && program_.segment_bytes > 0;
    XCCL_ASSIGN_OR_RETURN(const mscclpp::Cut cut,
                          mscclpp::Cut::Make(program_, collective_, pipelined, options_.name));
    File file;
    file.name = options_.name;
    file.collective = Coll();
    file.packets = packets;
    file.in_place = options_.in_place;
    file.double_scratch = packets;
    file.slots = program_.slots;
    XCCL_ASSIGN_OR_RETURN(file.gpus,
                          mscclpp::MakeGpus(program_, collective_, cut,
                                            {.name = options_.name,
                                             .domains = options_.domains,
                                             .in_place = options_.in_place,
                                             .packets = packets,
                                             .pipeline_bytes = pipelined ? PipelineBytes(cut) : 0}));
    size_t blocks = 0;
    for (const Gpu& gpu : file.gpus) blocks = std::max(blocks, gpu.blocks.size());
    while (file.threads > 256 && std::ssize(file.gpus) > 0 &&
           static_cast<int32_t>(blocks) * file.threads > mscclpp::kMultiprocessors * 1024)
      file.threads /= 2;
    XCCL_RETURN_IF_ERROR(mscclpp::CheckLimits(file, options_.name));
    XCCL_RETURN_IF_ERROR(SetSizes(cut, file));
    // MSCCL++ keeps channels by the plan's name.
    file.name = fmt::format("{}-{:016x}", options_.name, HashOf(mscclpp::WriteFile(file)));
    MscclppJson json;
    json.max_bytes = static_cast<int64_t>(file.max_bytes);
    json.text = mscclpp::WriteFile(file);
    json.chunks = static_cast<int32_t>(std::max(cut.NominalInput(), cut.NominalOutput()));
    json.selection = Selection(file, cut);
    json.warnings = Warnings(file, ports);
    return json;
  }

 private:
  template <typename... Args>
  Status Bad(fmt::format_string<Args...> format, Args&&... args) const {
    return InvalidInput(options_.name + ": " + fmt::format(format, std::forward<Args>(args)...));
  }

  // A span's share of a segment of the largest chunk, in whole vectors of the executor.
  int64_t PipelineBytes(const mscclpp::Cut& cut) const {
    const int64_t bytes = std::clamp<int64_t>(program_.segment_bytes / cut.spans_of_largest(), 1,
                                              mscclpp::kMostBytes - mscclpp::kAlignment);
    return (bytes + mscclpp::kAlignment - 1) / mscclpp::kAlignment * mscclpp::kAlignment;
  }

  Status CheckOptions() const {
    if (options_.min_bytes < 0 || options_.max_bytes < 0 ||
        (options_.max_bytes > 0 && options_.max_bytes < options_.min_bytes))
      return Bad("sizes from {} to {} bytes; expected the second to be as large as the first",
                 options_.min_bytes, options_.max_bytes);
    if (options_.min_bytes > kMostMinBytes)
      return Bad("sizes from {} bytes; expected {} at most: MSCCL++ reads min_message_size as 32 bits",
                 options_.min_bytes, kMostMinBytes);
    if (options_.in_place && !program_.in_place)
      return Bad("in place; the program is only right out of place");
    return OkStatus();
  }

  Status CheckProgram() const {
    constexpr CollectiveKind kKnown[] = {CollectiveKind::kAllreduce,     CollectiveKind::kAllgather,
                                         CollectiveKind::kReduceScatter, CollectiveKind::kBroadcast,
                                         CollectiveKind::kReduce,        CollectiveKind::kGather,
                                         CollectiveKind::kScatter,       CollectiveKind::kAlltoall};
    if (std::ranges::find(kKnown, collective_.kind()) == std::end(kKnown))
      return Bad(
          "{}; expected allreduce, allgather, reduce_scatter, broadcast, reduce, gather, scatter or "
          "alltoall: "
          "a plan of MSCCL++ cuts all buffers into chunks of one size",
          collective_.name());
    const int32_t ranks = program_.ranks.size();
    if (ranks < 2) return Bad("{} of 1 rank; expected 2 at least, as MSCCL++ does", collective_.name());
    bool all = collective_.num_members() == ranks;
    for (int32_t r = 0; r < ranks && all; ++r) all = collective_.ranks()[static_cast<size_t>(r)] == Rank(r);
    if (!all)
      return Bad(
          "{} of {} of the machine's {} ranks, or in another order; expected all in order: a plan of MSCCL++ "
          "is for all ranks of a communicator; hint: plan on the members alone",
          collective_.name(), collective_.num_members(), ranks);
    return OkStatus();
  }

  std::string Coll() const {
    return collective_.kind() == CollectiveKind::kReduceScatter ? "reducescatter" : collective_.name();
  }

  // Chunks of the buffer by whose size a plan is selected: a rank's input, but in an allgather its output.
  int64_t ChunksOfSize(const mscclpp::Cut& cut) const {
    return collective_.kind() == CollectiveKind::kAllgather ? cut.NominalOutput() : cut.NominalInput();
  }

  // All offsets must fit 32 bits. Offsets into packets are doubled, and a doubled buffer adds half of itself.
  Status SetSizes(const mscclpp::Cut& cut, File& file) const {
    int64_t most_chunks = std::max(cut.NominalInput(), cut.NominalOutput());
    for (const Gpu& gpu : file.gpus)
      most_chunks =
          std::max(most_chunks, gpu.scratch * (file.packets ? 2 : 1) * (file.double_scratch ? 2 : 1));
    const int64_t chunk = (mscclpp::kMostBytes - 1) / most_chunks / mscclpp::kAlignment * mscclpp::kAlignment;
    const int64_t most = chunk * ChunksOfSize(cut), least = mscclpp::kAlignment * ChunksOfSize(cut);
    if (options_.max_bytes > most)
      return Bad(
          "sizes to {} bytes; expected {} at most: offsets of MSCCL++ have 32 bits, and the largest "
          "buffer has {} chunks of {}; hint: --max-size {}",
          options_.max_bytes, most, most_chunks, ChunksOfSize(cut), most);
    if (options_.max_bytes > 0 && options_.max_bytes < least)
      return Bad("sizes to {} bytes; expected {} or more: {} chunks of 16 bytes", options_.max_bytes, least,
                 ChunksOfSize(cut));
    if (options_.min_bytes > most)
      return Bad("sizes from {} bytes; expected {} at most, the largest size that MSCCL++ takes",
                 options_.min_bytes, most);
    file.max_bytes = static_cast<uint64_t>(options_.max_bytes > 0 ? options_.max_bytes : most);
    file.min_bytes = std::max(options_.min_bytes, least);
    return OkStatus();
  }

  std::string Selection(const File& file, const mscclpp::Cut& cut) const {
    return fmt::format(
        "MSCCL++ selects it for {} on {} ranks, {}, from {} to {} bytes {}; all such sizes must be "
        "multiples of {} bytes",
        file.collective, program_.ranks.size(), file.in_place ? "in place" : "out of place", file.min_bytes,
        file.max_bytes, collective_.kind() == CollectiveKind::kAllgather ? "of output" : "of input",
        ChunksOfSize(cut) * mscclpp::kAlignment);
  }

  std::vector<std::string> Warnings(const File& file, bool ports) const {
    std::vector<std::string> warnings;
    if (program_.protocol != Protocol::kSimple && !file.packets)
      warnings.push_back(
          fmt::format("protocol {} is written as simple: MSCCL++ {}", ToString(program_.protocol),
                      ports ? "sends packets over memory channels alone" : "has no such packets"));
    if (file.packets && (program_.instances > 1 || program_.segment_bytes > 0))
      warnings.emplace_back("segments and instances are left out: MSCCL++ sends packets in one pass");
    if (collective_.spec().root)
      warnings.push_back(
          fmt::format("the plan is right for root {} alone, and MSCCL++ does not look at the root",
                      collective_.spec().root->value));
    if (file.in_place && collective_.kind() == CollectiveKind::kReduceScatter)
      warnings.emplace_back(
          "MSCCL++'s NCCL library never selects it on all ranks: it takes a reduce_scatter for in place "
          "where "
          "both pointers are equal, which is so at rank 0 alone");
    if (ports)
      warnings.emplace_back(
          "port channels read inputs and outputs from the start of their allocations: pass buffers that "
          "begin "
          "there");
    return warnings;
  }

  const Program& program_;
  const Collective& collective_;
  const MscclppOptions& options_;
};

}  // namespace

IdVector<Rank, int32_t> LoadStoreDomains(const Topology& topology) {
  // Sets of nodes, by a node of each; hosts come after the nodes.
  std::vector<int32_t> parent(static_cast<size_t>(topology.num_nodes() + topology.num_hosts()));
  for (size_t n = 0; n < parent.size(); ++n) parent[n] = static_cast<int32_t>(n);
  const auto find = [&](int32_t n) {
    while (parent[static_cast<size_t>(n)] != n)
      n = parent[static_cast<size_t>(n)] = parent[static_cast<size_t>(parent[static_cast<size_t>(n)])];
    return n;
  };
  const auto join = [&](int32_t a, int32_t b) { parent[static_cast<size_t>(find(a))] = find(b); };
  for (int32_t r = 0; r < topology.num_ranks(); ++r)
    join(topology.NodeOf(Rank(r)).value, topology.num_nodes() + topology.HostOf(Rank(r)).value);
  for (int32_t l = 0; l < topology.num_links(); ++l) {
    const Link& link = topology.link(LinkId(l));
    const auto carries = [&](NodeId n) {
      return topology.node(n).kind == NodeKind::kGpu || topology.node(n).kind == NodeKind::kSwitch;
    };
    if (carries(link.from) && carries(link.to)) join(link.from.value, link.to.value);
  }
  IdVector<Rank, int32_t> domains;
  for (int32_t r = 0; r < topology.num_ranks(); ++r) domains.push_back(find(topology.NodeOf(Rank(r)).value));
  return domains;
}

Program AsRunByMscclpp(Program program, const MscclppOptions& options) {
  if (SendsPackets(program, options)) {
    program.segment_bytes = 0;
    program.instances = 1;
  } else {
    program.slots = std::min(kMaxSlots, program.slots * MostPieces(program));
    program.protocol = Protocol::kSimple;
  }
  return program;
}

StatusOr<MscclppJson> WriteMscclppJson(const Program& program, const Collective& collective,
                                       const MscclppOptions& options) {
  StatusOr<MscclppJson> exact = Writer(program, collective, options).Write();
  if (exact.ok() && exact->chunks <= mscclpp::kMostChunks) return exact;
  const int32_t units =
      mscclpp::kMostChunks / std::max<int64_t>(1, collective.num_parts()) / program.instances;
  const std::optional<RoundedParts> rounded = RoundedWeights(collective, units);
  if (!rounded) return exact;
  StatusOr<MscclppJson> nearly = Writer(program, rounded->collective, options).Write();
  if (!nearly.ok()) return exact;
  nearly->warnings.push_back(rounded->text);
  return nearly;
}

}  // namespace xccl
