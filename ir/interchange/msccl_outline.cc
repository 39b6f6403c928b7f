#include "ir/interchange/msccl_outline.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

#include "ir/collective.h"
#include "ir/verify/verify_program.h"
#include "ir/violation.h"

namespace xccl::msccl {
namespace {

class Drawing {
 public:
  Drawing(const File& file, std::string_view name) : file_(file), name_(name) {}

  StatusOr<Outline> Make() {
    XCCL_RETURN_IF_ERROR(Draw());
    XCCL_ASSIGN_OR_RETURN(std::vector<int32_t> order, ProveStructure());
    return Outline{std::move(program_), std::move(order)};
  }

 private:
  // The step that ends a wait: steps without hasdep, and nops, post nothing, and any later step will do.
  StatusOr<int32_t> Until(const ProgramSite& site, const FileStep& step) const {
    const std::vector<FileStep>& steps =
        file_.ranks[site.rank.index()].blocks[static_cast<size_t>(step.wait_block)].steps;
    for (size_t s = static_cast<size_t>(step.wait_step); s < steps.size(); ++s)
      if (steps[s].posts && steps[s].op != Opcode::kNop) return static_cast<int32_t>(s);
    return BadStep(file_, name_, site,
                   fmt::format("waits for step {} of threadblock {}; expected hasdep=\"1\" there or later",
                               step.wait_step, step.wait_block));
  }

  // The program with all operands in slot 0 of output: its structure alone.
  Status Draw() {
    program_.ranks = IdVector<Rank, RankProgram>(file_.ranks.size());
    program_.slots = file_.slots > 0 ? file_.slots : file_.protocol == Protocol::kSimple ? 2 : 8;
    std::map<std::tuple<Rank, Rank, int32_t>, bool> connections;
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      const std::vector<FileBlock>& blocks = file_.ranks[r.index()].blocks;
      for (size_t b = 0; b < blocks.size(); ++b) {
        Threadblock& block = program_.ranks[r].threadblocks.emplace_back();
        block.channel = blocks[b].channel;
        if (blocks[b].send >= 0) block.send_peer = Rank(blocks[b].send);
        if (blocks[b].recv >= 0) block.recv_peer = Rank(blocks[b].recv);
        if (block.send_peer) connections[{r, *block.send_peer, block.channel}] = true;
        if (block.recv_peer) connections[{*block.recv_peer, r, block.channel}] = true;
        for (const FileStep& step : blocks[b].steps) {
          Instruction i;
          i.op = step.op;
          i.count = step.count;
          i.src.buffer = i.dst.buffer = BufferKind::kOutput;
          widest_ = std::max(widest_, step.count);
          i.dep_first = static_cast<int32_t>(program_.dependencies.size());
          for (const auto& [on_block, on_step] : step.more_waits) {
            program_.dependencies.push_back({on_block, on_step});
            ++i.dep_count;
          }
          if (step.wait_block >= 0) {
            const ProgramSite site{r, static_cast<int32_t>(b),
                                   static_cast<int32_t>(block.instructions.size())};
            XCCL_ASSIGN_OR_RETURN(const int32_t until, Until(site, step));
            program_.dependencies.push_back({step.wait_block, until});
            ++i.dep_count;
          }
          block.instructions.push_back(i);
        }
      }
    }
    for (const auto& [key, unused] : connections) {
      const auto& [src, dst, channel] = key;
      if (src == dst)
        return InvalidInput(fmt::format("{}: rank {} sends to itself on channel {}; expected another rank",
                                        name_, src.value, channel));
      program_.connections.push_back({src, dst, channel, {}});
    }
    return OkStatus();
  }

  // On stand-in chunks of one size.
  StatusOr<std::vector<int32_t>> ProveStructure() const {
    CollectiveSpec spec;
    spec.kind = CollectiveKind::kCustom;
    spec.custom_name = "msccl";
    spec.ranks = AllRanks(program_.ranks.size());
    spec.custom_weights.assign(static_cast<size_t>(widest_), 1);
    for (const Rank r : spec.ranks)
      for (int32_t p = 0; p < widest_; ++p) spec.post.push_back({r, PartId(p), {r}});
    XCCL_ASSIGN_OR_RETURN(const Collective stand_in, Collective::Create(std::move(spec)));
    Program proved = program_;
    XCCL_ASSIGN_OR_RETURN(const Topology links, LinksOf(proved));
    for (const Violation& violation : VerifyProgram(proved, stand_in, links))
      if (violation.rule <= "P5") return InvalidInput(fmt::format("{}: {}", name_, ToString(violation)));
    const ProgramIndex index(program_);
    return TopologicalOrder(program_, index, ProgramEdges::kAll);
  }

  const File& file_;
  const std::string_view name_;
  Program program_;
  int32_t widest_ = 1;
};

}  // namespace

StatusOr<Outline> OutlineOf(const File& file, std::string_view name) { return Drawing(file, name).Make(); }

const FileStep& StepAt(const File& file, const ProgramSite& site) {
  return file.ranks[site.rank.index()]
      .blocks[static_cast<size_t>(site.threadblock)]
      .steps[static_cast<size_t>(site.index)];
}

Status BadStep(const File& file, std::string_view name, const ProgramSite& site, std::string_view text) {
  if (const std::string& place = StepAt(file, site).place; !place.empty())
    return InvalidInput(fmt::format("{}: {} {}", name, place, text));
  return InvalidInput(fmt::format("{}:{}: rank {} threadblock {} step {} {}", name, StepAt(file, site).line,
                                  site.rank.value, site.threadblock, site.index, text));
}

StatusOr<Topology> LinksOf(Program& program) {
  TopologySpec spec;
  spec.name = "msccl";
  spec.hosts.push_back({"h0"});
  for (int32_t r = 0; r < program.ranks.size(); ++r)
    spec.nodes.push_back({NodeKind::kGpu, std::to_string(r), HostId(0), false, false});
  for (Connection& c : program.connections) {
    c.path = {LinkId(static_cast<int64_t>(spec.links.size()))};
    spec.links.push_back({NodeId(c.src.value), NodeId(c.dst.value), 1, 0, 0});
  }
  return Topology::Create(std::move(spec));
}

}  // namespace xccl::msccl
