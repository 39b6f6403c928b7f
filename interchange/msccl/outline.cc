#include "interchange/msccl/outline.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <optional>
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
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      const std::vector<FileBlock>& blocks = file_.ranks[r.index()].blocks;
      for (size_t b = 0; b < blocks.size(); ++b) {
        Threadblock& block = program_.ranks[r].threadblocks.emplace_back();
        block.channel = blocks[b].channel;
        if (blocks[b].send >= 0) block.send_peer = Rank(blocks[b].send);
        if (blocks[b].recv >= 0) block.recv_peer = Rank(blocks[b].recv);
        AddConnections(r, blocks[b], block);
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
    for (const auto& [key, links] : connections_) {
      const auto& [src, dst, channel] = key;
      if (src == dst)
        return InvalidInput(fmt::format("{}: rank {} sends to itself on channel {}; expected another rank",
                                        name_, src.value, channel));
      program_.connections.push_back({src, dst, channel, links});
    }
    AddGroups();
    return OkStatus();
  }

  void AddConnections(Rank r, const FileBlock& from, const Threadblock& block) {
    if (block.send_peer) {
      std::vector<LinkId>& links = connections_[{r, *block.send_peer, block.channel}];
      if (links.empty()) links = from.links;
    }
    if (block.recv_peer) connections_.try_emplace({*block.recv_peer, r, block.channel});
    for (const int32_t m : from.send_all) connections_.try_emplace({r, Rank(m), block.channel});
    for (const int32_t m : from.recv_all) connections_.try_emplace({Rank(m), r, block.channel});
  }

  // Groups in their order, and the threadblocks that name them.
  void AddGroups() {
    using Key = std::tuple<Group::Kind, Rank, int32_t>;
    std::map<Key, std::pair<Group, std::vector<size_t>>> groups;  // with their threadblocks
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      const std::vector<FileBlock>& blocks = file_.ranks[r.index()].blocks;
      for (size_t b = 0; b < blocks.size(); ++b)
        for (const Group::Kind kind : {Group::Kind::kMulticast, Group::Kind::kReduce}) {
          const bool sends = kind == Group::Kind::kMulticast;
          const std::vector<int32_t>& members = sends ? blocks[b].send_all : blocks[b].recv_all;
          if (members.empty()) continue;
          auto& [group, of] = groups[{kind, r, blocks[b].channel}];
          group = {kind, r, {}, blocks[b].channel, sends ? blocks[b].links : blocks[b].recv_links, 0};
          for (const int32_t m : members) group.members.emplace_back(m);
          of.push_back(b);
        }
    }
    for (auto& [key, entry] : groups) {
      const auto id = static_cast<int32_t>(program_.groups.size());
      for (const size_t b : entry.second) {
        Threadblock& block = program_.ranks[entry.first.root].threadblocks[b];
        (entry.first.kind == Group::Kind::kMulticast ? block.send_group : block.recv_group) = id;
      }
      program_.groups.push_back(std::move(entry.first));
    }
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
      if (violation.rule <= "P5") return BadAt(file_, name_, program_, ProgramIndex(program_), violation);
    const ProgramIndex index(program_);
    return TopologicalOrder(program_, index, ProgramEdges::kAll);
  }

  const File& file_;
  const std::string_view name_;
  Program program_;
  std::map<std::tuple<Rank, Rank, int32_t>, std::vector<LinkId>> connections_;  // with their hints
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

Status BadAt(const File& file, std::string_view name, const Program& program, const ProgramIndex& index,
             const Violation& violation) {
  const auto is_of = [&](const std::string& place) { return violation.where.ends_with(place); };
  for (int32_t node = 0; node < index.size(); ++node)
    if (is_of(ToString(index.Site(node))))
      return BadStep(file, name, index.Site(node), fmt::format("{} [{}]", violation.text, violation.rule));
  for (size_t c = 0; c < program.connections.size(); ++c) {
    if (!is_of(ToString(program.connections[c]))) continue;
    const auto id = static_cast<int32_t>(c);
    const auto ends = index.SendsOf(id).empty() ? index.ReceivesOf(id) : index.SendsOf(id);
    if (!ends.empty())
      return BadStep(file, name, index.Site(ends[0]),
                     fmt::format("begins {}: {} [{}]", violation.where, violation.text, violation.rule));
  }
  return InvalidInput(fmt::format("{}: {}", name, ToString(violation)));
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
  for (Group& group : program.groups) {
    const NodeId at(static_cast<int64_t>(spec.nodes.size()));
    spec.nodes.push_back({NodeKind::kSwitch, fmt::format("s{}", at.value), std::nullopt, true, true});
    const auto link = [&](NodeId from, NodeId to) {
      spec.links.push_back({from, to, 1, 0, 0});
      group.path.emplace_back(std::ssize(spec.links) - 1);
      return group.path.back();
    };
    const bool out = group.kind == Group::Kind::kMulticast;
    const NodeId root(group.root.value);
    group.path.clear();
    std::vector<LinkId> branches;
    const LinkId trunk = out ? link(root, at) : LinkId(std::ssize(spec.links) + std::ssize(group.members));
    for (const Rank m : group.members)
      branches.push_back(out ? link(at, NodeId(m.value)) : link(NodeId(m.value), at));
    if (!out) link(at, root);
    for (size_t m = 0; m < branches.size(); ++m) {
      const std::optional<int32_t> c =
          out ? FindConnection(program, group.root, group.members[m], group.channel)
              : FindConnection(program, group.members[m], group.root, group.channel);
      program.connections[static_cast<size_t>(*c)].path =
          out ? std::vector<LinkId>{trunk, branches[m]} : std::vector<LinkId>{branches[m], trunk};
    }
  }
  return Topology::Create(std::move(spec));
}

}  // namespace xccl::msccl
