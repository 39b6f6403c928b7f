#include "cli/flags.h"

#include <fmt/core.h>

#include <algorithm>

#include "base/memory.h"
#include "base/units.h"
#include "cli/experts.h"
#include "cli/say.h"
#include "ir/collective_args.h"
#include "ir/collective_json.h"
#include "ir/time_model.h"
#include "pipeline/arguments.h"

namespace xccl {

namespace {

// Bytes that planning takes for a counted part before anything moves: its demand, its orbit, its chunk and
// its bytes. Other parts are alike, and no table has them.
constexpr double kBytesOfCountedPart = 64;

constexpr const char* kTopologyHelp =
    "a file (native XML, an NCCL/RCCL dump, nvidia-smi topo -m, a fabric: ibnetdiscover, Slurm, ...,\n"
    "another tool's), a library machine (dgx-a100), or a short form\n"
    "(torus:4x4x4@bandwidth=50GB/s,latency=500ns, nvswitch:8, fat-tree:k=4, ...)";

// Adds the flags that complete or change a machine that is loaded.
void AddLoadFlags(Command& command, LoadOptions& load) {
  command.AddOption("--gpu-arch", load.gpu_arch, "GPU architecture that a file leaves out: sm90, gfx942");
  command.AddOption("--gpus-per-switch", load.gpus_per_switch,
                    "GPUs under each PCIe switch, for dumps that list none");
  command
      .AddOption("--gpu-busids", load.gpu_busids,
                 "the GPUs of a dump that does not tell which devices they are")
      .TypeName("BUSID,...");
  command.AddOption("--pcie-gen", load.pcie_gen, "PCIe generation of the GPUs of nvidia-smi topo -m: 1 to 6");
  command
      .AddOption("--nic-rate", load.nic_rate, "rate of the NICs of nvidia-smi topo -m or a fabric: 400Gbit/s")
      .TypeName("RATE|NAME=RATE,...");
  command
      .AddOption("--host", load.host_kinds,
                 "a fabric: the host at its ends, as a dump or a library machine (repeatable, with HOSTS=)")
      .TypeName("[HOSTS=]DUMP");
  command
      .AddOption("--hosts-file", load.hosts_file,
                 "a fabric: its hosts that count, one a line, each perhaps with a dump")
      .TypeName("FILE");
  command.AddOption("--job", load.job, "only these hosts, and the switches between them: gpu[001-016]")
      .TypeName("HOSTS");
  command
      .AddOption("--link", load.link,
                 "links of another tool's file that states none: bandwidth=25GB/s,latency=500ns")
      .TypeName("NAME=VALUE,...");
  command.AddOption("--hosts", load.hosts, "join this many copies of the host by their NICs");
  const Option rails =
      command.AddFlag("--rails", load.rails,
                      "--hosts: one switch for NIC i of every host (default where each NIC is near GPUs)");
  command.AddFlag("--no-rails", load.no_rails, "--hosts: one fabric for all NICs").Excludes(rails);
  command
      .AddOption("--fabric", load.fabric,
                 "--hosts: what joins the NICs: bandwidth=50GB/s,oversubscription=2, or type=fat-tree,k=8")
      .TypeName("NAME=VALUE,...");
  command.AddOption(
      "--nvlink-domain", load.nvlink_domain,
      "--hosts: copies share one NVSwitch, up to so many GPUs (72 where a dump shows such a host)");
  command.AddFlag("--plain-switches", load.plain_switches,
                  "switches only forward: for executors that cannot multicast or reduce in them");
  command.AddOption("--without-link", load.without_links, "remove the links A->B (repeatable)")
      .TypeName("A->B");
  command.AddOption("--degrade", load.degrades, "multiply the bandwidth of the links A->B by F (repeatable)")
      .TypeName("A->B=F");
}

}  // namespace

void AddTopologyFlags(Command& command, TopologyFlags& flags, bool required, const std::string& name) {
  command.AddOption(name, flags.topology, kTopologyHelp).Required(required);
  AddLoadFlags(command, flags.load);
}

void AddTopologiesFlags(Command& command, TopologiesFlags& flags, const std::string& several, bool required) {
  command.AddOption("TOPOLOGY", flags.topologies, fmt::format("{};\nseveral: {}", kTopologyHelp, several))
      .Required(required);
  AddLoadFlags(command, flags.load);
}

void SayWarnings(const std::vector<std::string>& warnings) {
  constexpr size_t kMost = 20;
  for (size_t w = 0; w < warnings.size() && w < kMost; ++w) SayWarning(warnings[w]);
  if (warnings.size() > kMost)
    SayWarning(fmt::format("and {} more; hint: xccl-synth topo --json lists all", warnings.size() - kMost));
}

StatusOr<Topology> ReadTopology(const TopologyFlags& flags, bool result_lists_warnings) {
  XCCL_ASSIGN_OR_RETURN(Topology topology, LoadTopology(flags.topology, flags.load));
  if (!result_lists_warnings) SayWarnings(topology.spec().warnings);
  return topology;
}

void AddCollectiveFlags(Command& command, CollectiveFlags& flags) {
  command.AddOption(
      "--collective,-c", flags.collective,
      "allreduce, allgather(v), reduce_scatter(v), broadcast, reduce, gather, scatter, alltoall(v),\n"
      "sendrecv, barrier; plan also dispatch, combine (of experts)");
  command.AddOption("--root", flags.root,
                    "root of broadcast, reduce, gather, scatter (default: the first rank)");
  command.AddOption("--ranks", flags.ranks, "the ranks that take part: 0,2,4-7 (default: all)");
  command.AddFlag("--no-relays", flags.no_relays, "ranks that do not take part carry nothing for the others");
  command.AddOption("--collective-file", flags.collective_file,
                    "a collective of your own: its two tables as JSON");
  command.AddOption("--counts", flags.counts,
                    "CSV with the counts of allgatherv, reduce_scatterv, alltoallv");
  command.AddOption("--pairs", flags.pairs, "source and destination pairs of sendrecv: 0>1,2>3");
}

namespace {

StatusOr<std::vector<Rank>> Roots(const std::string& roots, int32_t ranks) {
  if (roots.empty()) return std::vector{Rank(0)};
  if (roots == "all") return AllRanks(ranks);
  return FlagValue("--root", ParseRankList(roots, ranks));
}

}  // namespace

StatusOr<int64_t> ParseSizeFlag(const std::string& flag, const std::string& text) {
  XCCL_ASSIGN_OR_RETURN(const int64_t size, FlagValue(flag, ParseSize(text)));
  XCCL_RETURN_IF_ERROR(Annotate(CheckSize(size), flag));
  return size;
}

Status CheckNotEmpty(const std::string& flag, int64_t size_bytes, const Collective& collective) {
  return Annotate(CheckNotEmpty(size_bytes, collective), flag);
}

StatusOr<std::vector<int64_t>> ParseSizesFlag(const std::string& text, std::vector<int64_t> otherwise) {
  if (text.empty()) return otherwise;
  XCCL_ASSIGN_OR_RETURN(std::vector<int64_t> sizes, FlagValue("--sizes", ParseSizeList(text)));
  for (int64_t size : sizes) XCCL_RETURN_IF_ERROR(Annotate(CheckSize(size), "--sizes"));
  return sizes;
}

StatusOr<Collective> MakeCollective(const CollectiveFlags& flags, const Topology& topology) {
  if (!flags.collective_file.empty()) {
    if (!flags.collective.empty()) return UsageError("--collective-file: not together with --collective");
    return ReadCollectiveFile(flags.collective_file, topology.num_ranks());
  }
  if (flags.collective.empty()) return UsageError("no collective; hint: --collective=allreduce");
  if (IsExpertCall(flags.collective))
    return UsageError(
        fmt::format("--collective: {0} has no counts before it runs; hint: xccl-synth plan "
                    "TOPOLOGY -c {0} plans it",
                    flags.collective));
  CollectiveSpec spec;
  XCCL_ASSIGN_OR_RETURN(spec.kind, FlagValue("--collective", ParseCollectiveKind(flags.collective)));
  spec.ranks = AllRanks(topology.num_ranks());
  if (!flags.ranks.empty()) {
    XCCL_ASSIGN_OR_RETURN(spec.ranks, FlagValue("--ranks", ParseRankList(flags.ranks, topology.num_ranks())));
  }
  if (flags.root && !IsRooted(spec.kind))
    return UsageError(
        fmt::format("--root: {}; {} takes no root; expected broadcast, reduce, gather or scatter",
                    *flags.root, flags.collective));
  if (flags.root) spec.root = Rank(*flags.root);
  if (!flags.root && IsRooted(spec.kind)) spec.root = spec.ranks.front();
  if (!flags.counts.empty()) {
    XCCL_ASSIGN_OR_RETURN(spec.counts,
                          ReadCountsFile(flags.counts, spec.kind, static_cast<int32_t>(spec.ranks.size())));
  }
  if (!flags.pairs.empty()) {
    XCCL_ASSIGN_OR_RETURN(spec.pairs, FlagValue("--pairs", ParsePairs(flags.pairs, topology.num_ranks())));
  }
  if (spec.kind == CollectiveKind::kSendrecv && spec.pairs.empty())
    return UsageError("sendrecv: no pairs; hint: --pairs='0>1,1>0'");
  if (flags.counts.empty() &&
      (spec.kind == CollectiveKind::kAllgatherv || spec.kind == CollectiveKind::kReduceScatterv ||
       spec.kind == CollectiveKind::kAlltoallv))
    return UsageError(flags.collective + ": no counts; hint: --counts=FILE.csv");
  if (!spec.counts.empty())
    XCCL_RETURN_IF_ERROR(CheckMemory(fmt::format("{} of {} ranks", flags.collective, spec.ranks.size()),
                                     fmt::format("{} parts", spec.counts.size()),
                                     kBytesOfCountedPart * static_cast<double>(spec.counts.size())));
  StatusOr<Collective> collective = Collective::Create(std::move(spec));
  // Without a file of counts, the command line itself asked for something impossible.
  if (!collective.ok() && flags.counts.empty()) return UsageError(collective.status().message());
  return collective;
}

StatusOr<Problem> ReadProblem(const TopologyFlags& topology, const CollectiveFlags& flags,
                              bool result_lists_warnings) {
  XCCL_ASSIGN_OR_RETURN(Topology whole, ReadTopology(topology, result_lists_warnings));
  XCCL_ASSIGN_OR_RETURN(Collective collective, MakeCollective(flags, whole));
  if (!flags.no_relays) return Problem{std::move(whole), std::move(collective)};
  XCCL_ASSIGN_OR_RETURN(Topology left, WithoutIdleRanks(std::move(whole), collective));
  return Problem{std::move(left), std::move(collective)};
}

StatusOr<std::vector<Collective>> CollectivesOf(const std::string& collectives_text,
                                                const std::string& roots_text, const Topology& topology) {
  XCCL_ASSIGN_OR_RETURN(const std::vector<CollectiveKind> kinds,
                        ListValue("--collectives", collectives_text, ParseCollectiveKind));
  XCCL_ASSIGN_OR_RETURN(const std::vector<Rank> roots, Roots(roots_text, topology.num_ranks()));
  if (!roots_text.empty() && std::ranges::none_of(kinds, IsRooted))
    return UsageError("--root: " + collectives_text +
                      ": none has a root; expected broadcast, reduce, gather or scatter among --collectives");
  std::vector<Collective> collectives;
  for (const CollectiveKind kind : kinds) {
    CollectiveFlags one;
    one.collective = ToString(kind);
    for (const Rank root : IsRooted(kind) ? roots : std::vector{Rank(0)}) {
      if (IsRooted(kind)) one.root = root.value;
      XCCL_ASSIGN_OR_RETURN(Collective collective, MakeCollective(one, topology));
      collectives.push_back(std::move(collective));
    }
  }
  return collectives;
}

}  // namespace xccl
