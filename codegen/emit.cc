// Blocks whose code differs only in numbers form one class. A number that all members share is written into
// the code. Numbers that differ are columns of a table with one row per member; equal columns are stored
// once.
#include "codegen/emit.h"

#include <fmt/core.h>

#include <algorithm>
#include <limits>
#include <map>

#include "codegen/block_text.h"
#include "ir/kernel/kernel_form.h"
#include "ir/kernel/kernel_names.h"

namespace xccl {
namespace {

constexpr int64_t kMostConstantNumbers = 12 << 10;  // tables up to this size go into constant memory (64 KiB)

struct Site {
  Rank rank;
  int32_t block = 0;
};

struct BlockClass {
  std::vector<Site> members;
  std::vector<BlockText> texts;
};

// For one class: the numbers that differ, one row per member, and the text of each number.
struct Table {
  std::vector<std::vector<int64_t>> columns;
  std::vector<std::string> spelled;
};

Table TableOf(const BlockClass& of) {
  Table table;
  std::map<std::vector<int64_t>, size_t> known;
  for (size_t n = 0; n < of.texts[0].numbers.size(); ++n) {
    std::vector<int64_t> column;
    for (const BlockText& text : of.texts) column.push_back(text.numbers[n]);
    if (std::ranges::all_of(column, [&](int64_t v) { return v == column[0]; })) {
      table.spelled.push_back(std::to_string(column[0]));
      continue;
    }
    const auto [it, fresh] = known.try_emplace(column, table.columns.size());
    if (fresh) table.columns.push_back(column);
    table.spelled.push_back(fmt::format("k[{}]", it->second));
  }
  return table;
}

std::string Fill(const BlockText& text, const Table& table) {
  std::string code;
  size_t number = 0, comment = 0;
  for (char c : text.code) {
    if (c == kNumber) {
      code += table.spelled[number++];
    } else if (c == kComment) {
      code += text.comments[comment++];
    } else {
      code += c;
    }
  }
  return code;
}

class Emitter {
 public:
  Emitter(const Program& program, const Collective& collective, const KernelForm& form,
          const EmitOptions& options)
      : program_(program), collective_(collective), form_(form), options_(options) {}

  StatusOr<std::string> Run() {
    Classify();
    int64_t instructions = 0;
    for (const BlockClass& c : classes_)
      instructions += static_cast<int64_t>(
          form_.ranks[c.members[0].rank].blocks[static_cast<size_t>(c.members[0].block)].instructions.size());
    if (instructions > kMaxEmittedInstructions)
      return InvalidInput(
          fmt::format("emit: {} distinct instructions; at most {} are supported; hint: the interpreter "
                      "kernel runs programs of any size",
                      instructions, kMaxEmittedInstructions));
    int64_t numbers = 0;
    for (const BlockClass& c : classes_) {
      tables_.push_back(TableOf(c));
      numbers += static_cast<int64_t>(tables_.back().columns.size() * c.members.size());
      for (const auto& column : tables_.back().columns)
        for (int64_t v : column)
          if (v > std::numeric_limits<int32_t>::max()) return BugError("emit: a number above 2^31");
    }
    if (numbers > kMaxTableNumbers)
      return InvalidInput(
          fmt::format("emit: tables of {} numbers; at most {} are supported; hint: the interpreter kernel "
                      "runs programs of any size",
                      numbers, kMaxTableNumbers));
    constant_ = options_.target == EmitTarget::kHost ? "constexpr"
                : numbers <= kMostConstantNumbers    ? "__constant__ const"
                                                     : "__device__ const";
    Head(instructions);
    for (size_t c = 0; c < classes_.size(); ++c) Function(c);
    Dispatch();
    Tail();
    return std::move(out_);
  }

 private:
  void Classify() {
    std::map<std::string, size_t> known;
    for (Rank r(0); r.value < form_.ranks.size(); ++r.value) {
      for (size_t b = 0; b < form_.ranks[r].blocks.size(); ++b) {
        BlockText text = TextOf(program_, form_, r, form_.ranks[r].blocks[b]);
        const auto [it, fresh] = known.try_emplace(text.code, classes_.size());
        if (fresh) classes_.emplace_back();
        ends_ = std::max(ends_, text.ends);
        classes_[it->second].members.push_back({r, static_cast<int32_t>(b)});
        classes_[it->second].texts.push_back(std::move(text));
      }
    }
  }

  void Head(int64_t instructions) {
    if (!options_.title.empty()) out_ += fmt::format("// {}\n", options_.title);
    out_ += fmt::format("// {} on {} ranks, {} instructions, {} of them distinct. Generated; do not edit.\n",
                        collective_.name(), form_.ranks.size(), form_.instructions, instructions);
    out_ += "// A comment shows threadblock.instruction of the program as on the function's first rank.\n";
    out_ += options_.target == EmitTarget::kCuda ? "#include \"device/kernel.h\"\n\n"
                                                 : "#include \"device/host.h\"\n\n";
    if (options_.target == EmitTarget::kCuda) {
      out_ += fmt::format("#ifndef XCCL_TYPE\n#define XCCL_TYPE {}\n#endif\n", DeviceName(options_.type));
      out_ +=
          fmt::format("#ifndef XCCL_OPERATOR\n#define XCCL_OPERATOR {}\n#endif\n", DeviceName(options_.op));
      out_ += fmt::format("#ifndef XCCL_PROTOCOL\n#define XCCL_PROTOCOL {}\n#endif\n",
                          DeviceName(program_.protocol));
      out_ += fmt::format("#ifndef XCCL_THREADS\n#define XCCL_THREADS {}\n#endif\n\n",
                          options_.threads != 0     ? std::to_string(options_.threads)
                          : program_.groups.empty() ? "kDefaultThreads<Protocol::XCCL_PROTOCOL>"
                                                    : "kGroupThreads<Protocol::XCCL_PROTOCOL>");
    }
    // One file may hold host code of several programs.
    out_ += "namespace xccl::device {\n";
    out_ += options_.target == EmitTarget::kHost ? fmt::format("namespace {}_code {{\n\n", options_.symbol)
                                                 : "namespace {\n\n";
  }

  // On a GPU a function is compiled for one configuration; on the host one function serves all.
  const char* Declared() const {
    return options_.target == EmitTarget::kHost ? "void" : "template <class C>\nXCCL_DEVICE void";
  }
  const char* BlockType() const { return options_.target == EmitTarget::kHost ? "HostBlock" : "Block<C>"; }

  void Function(size_t c) {
    const BlockClass& of = classes_[c];
    const Table& table = tables_[c];
    out_ += fmt::format("// {}: rank {}, block {}",
                        of.members.size() == 1 ? "One block" : fmt::format("{} blocks", of.members.size()),
                        of.members[0].rank.value, of.members[0].block);
    if (of.members.size() > 1)
      out_ += fmt::format(" to rank {}, block {}", of.members.back().rank.value, of.members.back().block);
    out_ += ".\n";
    if (!table.columns.empty()) {
      out_ += fmt::format("{} int32_t kNumbers{}[{}][{}] = {{\n", constant_, c, of.members.size(),
                          table.columns.size());
      for (size_t m = 0; m < of.members.size(); ++m) {
        out_ += "    {";
        for (size_t k = 0; k < table.columns.size(); ++k)
          out_ += fmt::format("{}{}", k == 0 ? "" : ", ", table.columns[k][m]);
        out_ += "},\n";
      }
      out_ += "};\n";
    }
    out_ += fmt::format("{} Block{}({}& b{}) {{\n", Declared(), c, BlockType(),
                        table.columns.empty() ? "" : ", const int32_t* k");
    out_ += Fill(of.texts[0], table);
    out_ += "}\n\n";
  }

  // Writes which function, and which row of its numbers, each block of each rank uses.
  void Dispatch() {
    const int64_t sites = static_cast<int64_t>(form_.ranks.size()) * form_.blocks_per_rank;
    std::vector<std::pair<int32_t, int32_t>> of_site(static_cast<size_t>(sites), {-1, 0});
    for (size_t c = 0; c < classes_.size(); ++c)
      for (size_t m = 0; m < classes_[c].members.size(); ++m)
        of_site[static_cast<size_t>(classes_[c].members[m].rank.value * form_.blocks_per_rank +
                                    classes_[c].members[m].block)] = {static_cast<int32_t>(c),
                                                                      static_cast<int32_t>(m)};
    out_ += "// {function, row} of every block of every rank; -1: it has nothing to do.\n";
    const char* const qualifier = options_.target == EmitTarget::kHost ? "constexpr" : "__device__ const";
    out_ += fmt::format("{} int32_t kSites[{}][2] = {{", qualifier, std::max<int64_t>(sites, 1));
    for (size_t s = 0; s < of_site.size(); ++s)
      out_ += fmt::format("{}{{{}, {}}}",
                          s == 0        ? "\n    "
                          : s % 12 == 0 ? ",\n    "
                                        : ", ",
                          of_site[s].first, of_site[s].second);
    out_ += sites == 0 ? "{-1, 0}};\n\n" : "};\n\n";
    out_ += fmt::format("{} RunBlock({}& b) {{\n", Declared(), BlockType());
    out_ += fmt::format(
        "  const int32_t* const site = kSites[b.rank() * {} + b.block()];\n  switch (site[0]) {{\n",
        form_.blocks_per_rank);
    for (size_t c = 0; c < classes_.size(); ++c)
      out_ += fmt::format("    case {}:\n      return Block{}(b{});\n", c, c,
                          tables_[c].columns.empty() ? "" : fmt::format(", kNumbers{}[site[1]]", c));
    out_ += "    default:\n      return;\n  }\n}\n\n";
  }

  void Tail() {
    const std::string info = fmt::format(
        ".ranks = {}, .blocks_per_rank = {}, .threads = {}, .slots = {}, .instances = {}, .tables = {}, "
        ".direct = {}",
        form_.ranks.size(), form_.blocks_per_rank,
        options_.target == EmitTarget::kCuda ? "XCCL_THREADS" : "1", program_.slots, program_.instances,
        form_.tables ? 1 : 0, form_.direct || form_.switch_direct ? 1 : 0);
    if (options_.target == EmitTarget::kHost) {
      out_ += fmt::format("}}  // namespace {}_code\n\n", options_.symbol);
      out_ += fmt::format(
          "extern const HostKernel {0};\nconst HostKernel {0} = {{\n    {{{1}, .protocol = "
          "Protocol::{2}}},\n    "
          "{3}, {4}, {0}_code::RunBlock}};\n\n",
          options_.symbol, info, DeviceName(program_.protocol), form_.members, form_.messages_order);
      out_ += "}  // namespace xccl::device\n";
      return;
    }
    out_ += "}  // namespace\n}  // namespace xccl::device\n\nusing namespace xccl::device;\n";
    out_ += fmt::format(
        "extern \"C\" __constant__ const KernelInfo xccl_kernel_info = {{\n    {},\n    .protocol = "
        "Protocol::XCCL_PROTOCOL, .type = kTypeOf<XCCL_TYPE>, .op = Operator::XCCL_OPERATOR}};\n\n",
        info);
    out_ += "extern \"C\" __global__ void __launch_bounds__(XCCL_THREADS, 1)\n";
    out_ += "    xccl_kernel(const __grid_constant__ LaunchArgs args) {\n";
    out_ += "  using C = Config<Numbers<XCCL_TYPE, Operator::XCCL_OPERATOR>, Protocol::XCCL_PROTOCOL, ";
    out_ += fmt::format("{}, {}, {}, {}>;\n", program_.slots, ends_, form_.tables, form_.messages_order);
    out_ += fmt::format("  Block<C> b(C(), args, {{{}}}, BlockIndex(), {});\n  RunBlock(b);\n}}\n",
                        form_.members, form_.blocks_per_rank);
  }

  const Program& program_;
  const Collective& collective_;
  const KernelForm& form_;
  const EmitOptions& options_;
  std::vector<BlockClass> classes_;
  std::vector<Table> tables_;
  int32_t ends_ = 1;  // the most of one block
  std::string constant_, out_;
};

}  // namespace

StatusOr<std::string> Emit(const Program& program, const Collective& collective, const EmitOptions& options) {
  if (options.threads < 0 || options.threads > 1024 || options.threads % 32 != 0)
    return InvalidInput(fmt::format(
        "emit: {} threads; expected a multiple of 32 up to 1024, or 0 for the protocol's", options.threads));
  XCCL_ASSIGN_OR_RETURN(const KernelForm form, MakeKernelForm(program, collective));
  return Emitter(program, collective, form, options).Run();
}

}  // namespace xccl
