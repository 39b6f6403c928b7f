// topo: shows a machine, or writes it as XML, JSON, a drawing or dot.
#include <algorithm>
#include <string>
#include <vector>

#include "base/strings.h"
#include "cli/commands.h"
#include "cli/describe/describe.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "draw/draw.h"
#include "draw/layout/layout.h"
#include "ir/collective_args.h"
#include "topologies/nccl/this_machine.h"
#include "topologies/submachine.h"
#include "topologies/xml/native_xml.h"

namespace xccl {
namespace {

struct Flags {
  TopologiesFlags topology;
  bool this_machine = false;
  bool list = false;
  std::string ranks;  // "0,2,4-7"; empty: all
  std::string format = "text";
};

// Counts, and the warnings as a list of texts.
std::string DescribeJson(const Topology& topology) {
  return ToJson({{"name", topology.name()},
                 {"ranks", int64_t{topology.num_ranks()}},
                 {"hosts", int64_t{topology.num_hosts()}},
                 {"nodes", int64_t{topology.num_nodes()}},
                 {"links", int64_t{topology.num_links()}},
                 {"warnings", topology.spec().warnings}});
}

StatusOr<Topology> Load(const Flags& flags) {
  if (flags.this_machine) {
    if (!flags.topology.topologies.empty()) return UsageError("--this-machine: not together with a TOPOLOGY");
    return ReadThisMachine(flags.topology.load);
  }
  if (flags.topology.topologies.empty())
    return UsageError(
        "no topology; expected a file, a library machine or a short form; hint: xccl-synth topo --list");
  return LoadTopology(flags.topology.topologies, flags.topology.load);
}

Status Topo(const Flags& flags, const Session& session) {
  if (flags.list) return Print(Join(LibraryNames(), "\n") + "\n");
  XCCL_ASSIGN_OR_RETURN(Topology topology, Load(flags));
  if (!flags.ranks.empty()) {
    XCCL_ASSIGN_OR_RETURN(std::vector<Rank> ranks,
                          FlagValue("--ranks", ParseRankList(flags.ranks, topology.num_ranks())));
    std::ranges::sort(ranks);
    topology = MembersAlone(topology, ranks).topology;
  }
  const std::string format = session.json ? "json" : flags.format;
  std::string text;
  if (format == "text") text = DescribeText(topology);
  if (format == "xml") text = WriteNativeXml(topology);
  if (format == "json") text = DescribeJson(topology);
  if (format == "svg") text = TopologySvg(topology, LayOut(topology));
  if (format == "dot") text = TopologyDot(topology, LayOut(topology));
  if (format != "json") SayWarnings(topology.spec().warnings);
  return Print(text);
}

}  // namespace

void AddTopoCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "topo", "Show a machine, or write it in another format", Topo);
  AddTopologiesFlags(command, flags.topology, "files of one fabric (LLDP: one a host)", false);
  command.AddFlag("--this-machine", flags.this_machine,
                  "read the machine that this runs on (NCCL or nvidia-smi)");
  command.AddOption("--ranks", flags.ranks,
                    "these ranks, and what joins them, alone: 0,2,4-7 (default: all)");
  command.AddFlag("--list", flags.list, "names of the library's machines");
  command
      .AddOption("--format", flags.format, "text, xml, json, svg (a drawing) or dot (the same for Graphviz)")
      .OneOf({"text", "xml", "json", "svg", "dot"})
      .ShowDefault();
  command.AddFlag("--json", session.json, "same as --format json");
  command.Footer(
      "Examples:\n"
      "  xccl-synth topo dgx-h100\n"
      "  xccl-synth topo torus:4x4x4@bandwidth=50GB/s,latency=500ns --format xml\n"
      "  xccl-synth topo rail-4 --format svg > rail-4.svg\n"
      "  xccl-synth topo nccl-dump.xml --gpu-arch sm90 --hosts 4\n"
      "  xccl-synth topo ibnetdiscover.txt --host nccl-dump.xml --job 'gpu[001-016]'");
}

}  // namespace xccl
