// Steps become instructions in three passes: the structure is proved on stand-in chunks of one size (P1 to
// P5, interchange/msccl/outline.h); the steps are run on symbolic values in an order that this finds, which
// tells the value of every slot (interchange/msccl/run.h); and the program is written down from the values.
// Chunks of a part may differ by an element, so that a scratch slot for several chunks becomes several slots.
#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/strings.h"
#include "interchange/msccl/custom.h"
#include "interchange/msccl/depth.h"
#include "interchange/msccl/file.h"
#include "interchange/msccl/outline.h"
#include "interchange/msccl/run.h"
#include "ir/analysis/program_index.h"
#include "ir/verify/verify_accesses.h"
#include "ir/verify/verify_program.h"
#include "ir/violation.h"
#include "topologies/topology.h"

namespace xccl {
namespace {

using msccl::BadStep;
using msccl::File;
using msccl::Made;

StatusOr<CollectiveKind> KindOf(const File& file, const ImportOptions& options) {
  if (file.collective == "custom") return options.collective.value_or(CollectiveKind::kCustom);
  if (file.collective == "reducescatter") return CollectiveKind::kReduceScatter;
  for (const CollectiveKind kind :
       {CollectiveKind::kAllreduce, CollectiveKind::kAllgather, CollectiveKind::kReduceScatter,
        CollectiveKind::kAlltoall, CollectiveKind::kBroadcast, CollectiveKind::kReduce})
    if (file.collective == ToString(kind)) return kind;
  return InvalidInput(fmt::format(
      "{}: coll=\"{}\"; expected allreduce, allgather, reduce_scatter, alltoall, broadcast, reduce or custom",
      options.file, Shortened(file.collective)));
}

// The only rank for which this holds; -1: none, or several.
template <typename Holds>
int32_t OnlyRank(const File& file, const Holds& holds) {
  int32_t only = -1;
  for (size_t r = 0; r < file.ranks.size(); ++r) {
    if (!holds(file.ranks[r])) continue;
    if (only >= 0) return -1;
    only = static_cast<int32_t>(r);
  }
  return only;
}

// A root alone reads input, or receives nothing, where it is the source; it alone writes output, or sends
// nothing, where all comes to it.
Rank RootOf(const File& file, CollectiveKind kind) {
  const bool source = TraitsOf(kind).before == KindTraits::Holders::kRoot;
  const auto any = [](const msccl::FileRank& rank, const auto& wanted) {
    return std::ranges::any_of(
        rank.blocks, [&](const msccl::FileBlock& block) { return std::ranges::any_of(block.steps, wanted); });
  };
  const int32_t user = OnlyRank(file, [&](const msccl::FileRank& rank) {
    return any(rank, [&](const msccl::FileStep& step) {
      return source ? ReadsSource(step.op) && step.src.buffer == BufferKind::kInput
                    : WritesDestination(step.op) && step.dst.buffer == BufferKind::kOutput;
    });
  });
  const int32_t end = OnlyRank(file, [&](const msccl::FileRank& rank) {
    return !any(rank,
                [&](const msccl::FileStep& step) { return source ? Receives(step.op) : Sends(step.op); });
  });
  return Rank(std::max(0, user >= 0 ? user : end));
}

// Cut into the file's chunks.
StatusOr<Collective> CollectiveOf(const File& file, const ImportOptions& options,
                                  const msccl::Outline& outline) {
  CollectiveSpec spec;
  XCCL_ASSIGN_OR_RETURN(spec.kind, KindOf(file, options));
  if (spec.kind == CollectiveKind::kCustom) return msccl::WhatItDoes(file, options.file, outline);
  const auto ranks = static_cast<int32_t>(file.ranks.size());
  spec.ranks = AllRanks(ranks);
  if (IsRooted(spec.kind)) spec.root = options.root ? *options.root : RootOf(file, spec.kind);
  XCCL_ASSIGN_OR_RETURN(const Collective whole, Collective::Create(std::move(spec)));
  const int32_t parts = whole.num_parts() == 1 ? 1 : ranks;
  if (file.chunks_per_loop % parts != 0)
    return InvalidInput(fmt::format("{}: nchunksperloop=\"{}\"; expected a multiple of {} ranks for {}",
                                    options.file, file.chunks_per_loop, parts, whole.name()));
  return whole.WithChunks(file.chunks_per_loop / parts);
}

class Writer {
 public:
  Writer(const File& file, const std::string& name, const msccl::Outline& outline, const msccl::Ran& ran)
      : file_(file), name_(name), outline_(outline), ran_(ran) {}

  StatusOr<Program> Write() {
    XCCL_RETURN_IF_ERROR(WriteDown());
    return std::move(program_);
  }

 private:
  // Scratch slots in order of the file's; by diagonals where one holds several places of a part.
  static std::vector<int32_t> LayOutScratch(const std::vector<std::array<int32_t, 3>>& keys,
                                            RankProgram& rank) {
    std::vector<int32_t> order(keys.size());
    for (size_t k = 0; k < order.size(); ++k) order[k] = static_cast<int32_t>(k);
    std::map<int32_t, int32_t> places;
    bool several = false;
    for (const auto& [cell, place, chunk] : keys) several |= ++places[cell] > 1;
    std::ranges::sort(order, {}, [&](int32_t k) {
      const auto& [cell, place, chunk] = keys[static_cast<size_t>(k)];
      return std::pair(several ? cell - place : cell, place);
    });
    std::vector<int32_t> slot_of(order.size());
    for (size_t s = 0; s < order.size(); ++s) {
      slot_of[static_cast<size_t>(order[s])] = static_cast<int32_t>(s);
      rank.scratch.push_back(ChunkId(keys[static_cast<size_t>(order[s])][2]));
    }
    return slot_of;
  }

  // Appends runs whose operands are consecutive and whose flags are equal. Returns how many there are.
  static int32_t AddRuns(const Made& made, const std::vector<int32_t>& slot_of, Threadblock& block) {
    const auto slot = [&](Operand operand) {
      if (operand.buffer == BufferKind::kScratch) operand.slot = slot_of[static_cast<size_t>(operand.slot)];
      return operand;
    };
    const size_t count = made.first.size();
    int32_t runs = 0;
    for (size_t k = 0; k < count || (k == 0 && made.op == Opcode::kNop); ++k) {
      Instruction next;
      next.op = made.op;
      if (count > 0) {
        next.count = 1;
        if (!made.src.empty()) next.src = slot(made.src[k]);
        if (!made.dst.empty()) next.dst = slot(made.dst[k]);
        next.first = made.first[k];
        next.final = made.final[k];
      }
      const auto follows = [](const Operand& a, const Operand& b, int32_t by) {
        return a.buffer == b.buffer && b.slot == a.slot + by;
      };
      if (runs > 0) {
        Instruction& last = block.instructions.back();
        if (last.first == next.first && last.final == next.final &&
            (made.src.empty() || follows(last.src, next.src, last.count)) &&
            (made.dst.empty() || follows(last.dst, next.dst, last.count))) {
          ++last.count;
          continue;
        }
      }
      block.instructions.push_back(next);
      ++runs;
    }
    return runs;
  }

  Status WriteDown() {
    const ProgramIndex index(outline_.program);
    program_ = outline_.program;
    program_.dependencies.clear();
    program_.protocol = file_.protocol;
    program_.in_place = file_.in_place;
    program_.segment_bytes =
        file_.segment_bytes >= 0 ? file_.segment_bytes : msccl::PieceBytes(file_.protocol);
    for (Rank r(0); r.value < program_.ranks.size(); ++r.value) {
      RankProgram& rank = program_.ranks[r];
      const std::vector<int32_t> slot_of = LayOutScratch(ran_.scratch[r.index()], rank);
      Threadblock copies;
      const int32_t num_copies =
          ran_.copies[r.index()].src.empty() ? 0 : AddRuns(ran_.copies[r.index()], slot_of, copies);
      std::vector<std::vector<int32_t>> last(rank.threadblocks.size());  // by step: its last instruction
      std::vector<std::vector<int32_t>> begin(rank.threadblocks.size());
      for (size_t b = 0; b < rank.threadblocks.size(); ++b) {
        Threadblock& block = rank.threadblocks[b];
        block.instructions.clear();
        const int32_t first = index.BlockFirst(index.RankFirstBlock(r) + static_cast<int32_t>(b));
        for (size_t s = 0; s < file_.ranks[r.index()].blocks[b].steps.size(); ++s) {
          begin[b].push_back(static_cast<int32_t>(block.instructions.size()));
          for (const Made& made : ran_.made[static_cast<size_t>(first) + s]) {
            const int32_t runs = AddRuns(made, slot_of, block);
            if (runs > 1 && (Sends(made.op) || Receives(made.op)))
              return BadStep(
                  file_, name_, {r, static_cast<int32_t>(b), static_cast<int32_t>(s)},
                  "moves chunks that are not side by side in one buffer, or of which only some are "
                  "the rank's own input or complete sums; expected cnt=\"1\" messages there");
          }
          last[b].push_back(static_cast<int32_t>(block.instructions.size()) - 1);
        }
      }
      for (size_t b = 0; b < rank.threadblocks.size(); ++b)
        for (size_t s = 0; s < last[b].size(); ++s) {
          const int32_t node =
              index.BlockFirst(index.RankFirstBlock(r) + static_cast<int32_t>(b)) + static_cast<int32_t>(s);
          Instruction& i = rank.threadblocks[b].instructions[static_cast<size_t>(begin[b][s])];
          i.dep_first = static_cast<int32_t>(program_.dependencies.size());
          for (const Dependency& on : index.Dependencies(node)) {
            program_.dependencies.push_back(
                {on.threadblock, last[static_cast<size_t>(on.threadblock)][static_cast<size_t>(on.index)]});
            ++i.dep_count;
          }
          if (num_copies > 0 && ran_.made[static_cast<size_t>(node)].back().after_copies) {
            program_.dependencies.push_back({static_cast<int32_t>(rank.threadblocks.size()), num_copies - 1});
            ++i.dep_count;
          }
        }
      if (num_copies > 0) rank.threadblocks.push_back(std::move(copies));
    }
    return OkStatus();
  }

  const File& file_;
  const std::string& name_;
  const msccl::Outline& outline_;
  const msccl::Ran& ran_;
  Program program_;
};

// Rule P6 on the cells that the file names: the program has a slot for every value, where the file may put
// several values in a cell of scratch. A threadblock runs its steps once for every piece of a chunk, and
// pieces share no bytes, so that the order of one run is all that counts.
Status CheckRaces(const File& file, const std::string& name, const Collective& collective,
                  const msccl::Outline& outline) {
  Program program = outline.program;
  program.protocol = file.protocol;
  for (Rank r(0); r.value < program.ranks.size(); ++r.value) {
    RankProgram& rank = program.ranks[r];
    rank.scratch.assign(static_cast<size_t>(file.ranks[r.index()].scratch), ChunkId(0));
    for (size_t b = 0; b < rank.threadblocks.size(); ++b)
      for (size_t s = 0; s < rank.threadblocks[b].instructions.size(); ++s) {
        const msccl::FileStep& step = file.ranks[r.index()].blocks[b].steps[s];
        rank.threadblocks[b].instructions[s].src = step.src;
        rank.threadblocks[b].instructions[s].dst = step.dst;
      }
  }
  const ProgramIndex index(program);
  std::vector<Violation> races;
  CheckAccesses(program, collective, index, outline.order, file.in_place && !file.out_of_place, races);
  if (races.empty()) return OkStatus();
  return BadAt(file, name, program, index, races.front());
}

}  // namespace

namespace {

StatusOr<LoweredProgram> Prove(File file, const ImportOptions& options) {
  XCCL_ASSIGN_OR_RETURN(const msccl::Outline outline, OutlineOf(file, options.file));
  XCCL_ASSIGN_OR_RETURN(Collective collective, CollectiveOf(file, options, outline));
  if (collective.kind() == CollectiveKind::kCustom) {  // which has no form in place
    file.in_place = false;
    file.out_of_place = true;
  }
  XCCL_ASSIGN_OR_RETURN(const msccl::Ran ran, RunFile(file, options.file, collective, outline));
  XCCL_RETURN_IF_ERROR(CheckRaces(file, options.file, collective, outline));
  XCCL_ASSIGN_OR_RETURN(Program program, Writer(file, options.file, outline, ran).Write());
  Program proved = program;
  XCCL_ASSIGN_OR_RETURN(const Topology links, msccl::LinksOf(proved));
  if (const std::vector<Violation> wrong = VerifyProgram(proved, collective, links); !wrong.empty())
    return InvalidInput(fmt::format("{}: {}", options.file, ToString(wrong.front())));
  return LoweredProgram{std::move(collective), std::move(program)};
}

}  // namespace

StatusOr<LoweredProgram> msccl::ProveFile(const File& file, const ImportOptions& options) {
  StatusOr<LoweredProgram> proved = Prove(file, options);
  const StatusOr<CollectiveKind> kind = KindOf(file, options);
  if (proved.ok() || options.root || !kind.ok() || !IsRooted(*kind)) return proved;
  return InvalidInput(fmt::format("{}; hint: --root, which no file of these formats says; rank {} was taken",
                                  proved.status().message(), RootOf(file, *kind).value));
}

}  // namespace xccl
