// Steps are run on pairs (part, contributions) in an order that they allow. RunFile reports wrong steps; here
// a place that nothing has written just holds no part.
#include "interchange/msccl/custom.h"

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <set>
#include <utility>
#include <vector>

#include "ir/analysis/program_index.h"

namespace xccl::msccl {
namespace {

struct Content {
  int32_t part = -1;
  std::set<Rank> contributions = {};
};

class Tracer {
 public:
  Tracer(const File& file, const Outline& outline)
      : file_(file), outline_(outline), index_(outline.program) {}

  StatusOr<Collective> Make(std::string_view name) {
    Fill();
    flight_.resize(outline_.program.connections.size());
    heads_.resize(flight_.size());
    for (const int32_t node : outline_.order) Run(node);
    XCCL_RETURN_IF_ERROR(End(name));
    return Collective::Create(std::move(spec_));
  }

 private:
  void Fill() {
    bool adds = false;
    for (const FileRank& rank : file_.ranks)
      for (const FileBlock& block : rank.blocks)
        for (const FileStep& step : block.steps)
          adds |= step.op == Opcode::kReduce || (Receives(step.op) && ReadsSource(step.op));
    spec_.kind = CollectiveKind::kCustom;
    spec_.custom_name = "custom";
    spec_.ranks = AllRanks(static_cast<int32_t>(file_.ranks.size()));
    int32_t parts = 0;
    for (const Rank r : spec_.ranks) {
      const FileRank& rank = file_.ranks[r.index()];
      memory_.push_back({std::vector<Content>(static_cast<size_t>(rank.input)),
                         std::vector<Content>(static_cast<size_t>(rank.output)),
                         std::vector<Content>(static_cast<size_t>(rank.scratch))});
      for (int32_t i = 0; i < rank.input; ++i) {
        const int32_t part = adds ? i : parts + i;
        memory_.back()[0][static_cast<size_t>(i)] = {part, {r}};
        spec_.pre.push_back({r, PartId(part), {r}});
      }
      parts = adds ? std::max(parts, rank.input) : parts + rank.input;
    }
    spec_.custom_weights.assign(static_cast<size_t>(parts), 1);
  }

  Content* At(Rank rank, const Operand& operand, int32_t k) {
    std::vector<Content>& buffer = memory_[rank.index()][static_cast<size_t>(operand.buffer)];
    const int64_t at = int64_t{operand.slot} + k;
    return at < std::ssize(buffer) ? &buffer[static_cast<size_t>(at)] : nullptr;
  }

  static void Add(const Content& more, Content& to) {
    to.contributions.insert(more.contributions.begin(), more.contributions.end());
  }

  void Run(int32_t node) {
    const ProgramSite site = index_.Site(node);
    const FileStep& step = StepAt(file_, site);
    const int32_t block = index_.BlockOf(node);
    for (int32_t k = 0; k < step.count; ++k) {
      Content content;
      if (ReadsSource(step.op))
        if (const Content* const from = At(site.rank, step.src, k)) content = *from;
      if (Receives(step.op)) {
        bool adds = ReadsSource(step.op);
        for (const int32_t c : index_.RecvConnections(block)) {
          const auto connection = static_cast<size_t>(c);
          const Content& received = flight_[connection][heads_[connection]++];
          if (adds)
            Add(received, content);
          else
            content = received;
          adds = true;
        }
      }
      if (Content* const to = WritesDestination(step.op) ? At(site.rank, step.dst, k) : nullptr) {
        if (step.op == Opcode::kReduce) Add(*to, content);
        *to = content;
      }
      if (!Sends(step.op)) continue;
      for (const int32_t c : index_.SendConnections(block))
        flight_[static_cast<size_t>(c)].push_back(content);
    }
  }

  Status End(std::string_view name) {
    for (const Rank r : spec_.ranks) {
      const std::vector<Content>& output = memory_[r.index()][1];
      int32_t last = -1;
      bool ended = false;
      for (size_t i = 0; i < output.size(); ++i) {
        const int32_t part = output[i].part;
        if (part < 0) {
          ended = true;
          continue;
        }
        if (ended)
          return InvalidInput(fmt::format(
              "{}: rank {} chunk {} of its output comes after one that nothing has written; expected no gaps",
              name, r.value, i));
        if (part <= last)
          return InvalidInput(
              fmt::format("{}: rank {} chunk {} of its output holds part {} of the inputs, after part {}; "
                          "expected them in "
                          "ascending order, as a collective of one's own has them",
                          name, r.value, i, part, last));
        last = part;
        spec_.post.push_back(
            {r, PartId(part), {output[i].contributions.begin(), output[i].contributions.end()}});
      }
    }
    return OkStatus();
  }

  const File& file_;
  const Outline& outline_;
  const ProgramIndex index_;
  CollectiveSpec spec_;
  std::vector<std::array<std::vector<Content>, 3>> memory_;  // by rank and buffer
  std::vector<std::vector<Content>> flight_;                 // by connection: all that was sent
  std::vector<size_t> heads_;                                // by connection: how much of it is received
};

}  // namespace

StatusOr<Collective> WhatItDoes(const File& file, std::string_view name, const Outline& outline) {
  return Tracer(file, outline).Make(name);
}

}  // namespace xccl::msccl
