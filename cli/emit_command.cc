// emit: writes a plan's program as source text, compiled with nvcc if asked, or in the format of another
// tool; or draws it.
#include <fmt/core.h>

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "base/files.h"
#include "base/json/json_writer.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "cli/say.h"
#include "codegen/emit.h"
#include "interchange/msccl/xml.h"
#include "interchange/mscclpp/json.h"
#include "interchange/traces/chakra.h"
#include "ir/numbers.h"
#include "ir/plan.h"
#include "ir/program_json.h"
#include "ir/verify/read_plan.h"
#include "pipeline/draw.h"
#include "pipeline/emit.h"
#include "pipeline/emit_msccl.h"
#include "pipeline/runnable_plan.h"
#include "runtime/bootstrap/placement.h"
#include "runtime/cuda/nvcc.h"
#include "runtime/plan_book.h"

namespace xccl {
namespace {

struct EmitFlags {
  std::string plan, to, output, types, ops, archs, nvcc;
  std::string size;                          // size at which traces and drawings are made
  std::string executor, min_size, max_size;  // for MSCCL XML
  std::optional<int32_t> rank;               // for the program
  bool in_place = false;
  int32_t threads = EmitOptions().threads;
};

// "sm_90", "90".
StatusOr<int32_t> ParseArch(std::string_view text) {
  const StatusOr<int64_t> arch = ParseInteger(text.substr(text.starts_with("sm_") ? 3 : 0), 50, 999);
  if (arch.ok()) return static_cast<int32_t>(*arch);
  return UsageError(fmt::format("no architecture '{}'; expected sm_80, sm_90, sm_100 or the like", text));
}

StatusOr<AheadOfTime> AheadOf(const EmitFlags& flags) {
  AheadOfTime ahead;
  XCCL_ASSIGN_OR_RETURN(ahead.types, ListValue("--dtype", flags.types, ParseDataType));
  XCCL_ASSIGN_OR_RETURN(ahead.ops, ListValue("--redop", flags.ops, ParseReduceOp));
  if (flags.archs.empty()) {
    if (ahead.types.size() > 1 || ahead.ops.size() > 1)
      return UsageError("--dtype, --redop: several; expected one of each without --arch");
    return ahead;
  }
  if (flags.to != "cuda") return UsageError("--arch: needs --to cuda");
  XCCL_ASSIGN_OR_RETURN(ahead.archs, ListValue("--arch", flags.archs, ParseArch));
  ahead.nvcc = flags.nvcc;
  if (ahead.nvcc.empty()) {
    XCCL_ASSIGN_OR_RETURN(ahead.nvcc, cuda::FindNvcc(ProcessEnvironment));
  }
  return ahead;
}

StatusOr<EmitOptions> OptionsOf(const EmitFlags& flags, const AheadOfTime& ahead) {
  EmitOptions options;
  if (flags.to == "host") {
    options.target = EmitTarget::kHost;
  }
  if (!ahead.types.empty()) options.type = ahead.types[0];
  if (!ahead.ops.empty()) options.op = ahead.ops[0];
  options.threads = flags.threads;
  options.title = flags.plan.substr(flags.plan.rfind('/') + 1);
  return options;
}

Status EmitBook(const EmitFlags& flags, const EmitOptions& options, const AheadOfTime& ahead) {
  if (flags.to != "cuda" || !flags.output.empty())
    return UsageError(flags.plan + ": a plan book; expected --to cuda and no -o: kernels go into the book");
  XCCL_ASSIGN_OR_RETURN(const PlanBook book, ReadPlanBook(flags.plan));
  XCCL_ASSIGN_OR_RETURN(const std::vector<std::string> left_out,
                        WithProgress("compiling " + flags.plan,
                                     [&](Progress&) { return WriteBookKernels(book, options, ahead); }));
  for (const std::string& line : left_out) SayNote(line);
  return OkStatus();
}

// Prints the text, or writes it to a file and prints the file's name and size.
Status PrintOrWrite(const std::string& text, const std::string& file) {
  if (file.empty()) return Print(text);
  XCCL_RETURN_IF_ERROR(WriteFileAtomically(file, text));
  return Print(FileLine({file}));
}

// One file a rank, named as ASTRA-sim looks for them: PREFIX.3.et.
Status EmitChakra(const EmitFlags& flags) {
  if (flags.output.empty())
    return UsageError("--to chakra: needs -o PREFIX: one file a rank, PREFIX.0.et, ...");
  if (IsPlanBook(flags.plan))
    return UsageError(flags.plan + ": a plan book; expected one plan for --to chakra");
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(flags.plan));
  int64_t size_bytes = plan.made_by.size_bytes;
  if (!flags.size.empty()) {
    XCCL_ASSIGN_OR_RETURN(size_bytes, ParseSizeFlag("--size", flags.size));
    XCCL_RETURN_IF_ERROR(CheckNotEmpty("--size", size_bytes, plan.collective));
  }
  StatusOr<std::vector<std::string>> traces =
      ChakraTraces(*plan.program, size_bytes, flags.plan.substr(flags.plan.rfind('/') + 1));
  if (!traces.ok()) return Annotate(traces.status(), flags.plan);
  std::vector<std::string> files;
  for (size_t r = 0; r < traces->size(); ++r) {
    files.push_back(fmt::format("{}.{}.et", flags.output, r));
    XCCL_RETURN_IF_ERROR(WriteFileAtomically(files.back(), (*traces)[r]));
  }
  return Print(FileLine(files));
}

Status NoMscclFlags(const EmitFlags& flags) {
  if (!flags.executor.empty() && flags.to != "msccl-xml") return UsageError("--for: needs --to msccl-xml");
  if (flags.to == "msccl-xml" || flags.to == "mscclpp-json") return OkStatus();
  for (const auto& [flag, given] :
       {std::pair("--min-size", !flags.min_size.empty()), std::pair("--max-size", !flags.max_size.empty()),
        std::pair("--in-place", flags.in_place)})
    if (given) return UsageError(fmt::format("{}: needs --to msccl-xml or mscclpp-json", flag));
  return OkStatus();
}

// Both formats say which sizes a plan is selected for.
StatusOr<AskedSizes> SizesOf(const EmitFlags& flags) {
  AskedSizes sizes;
  for (const auto& [flag, text, bytes] : {std::tuple("--min-size", &flags.min_size, &sizes.min_bytes),
                                          std::tuple("--max-size", &flags.max_size, &sizes.max_bytes)}) {
    if (text->empty()) continue;
    const StatusOr<int64_t> size = ParseSize(*text);
    if (!size.ok()) return UsageError(fmt::format("{}: {}", flag, size.status().message()));
    *bytes = *size;
  }
  return sizes;
}

// The name that the file gives itself: that of the plan file.
std::string NameOf(const EmitFlags& flags) {
  std::string name = flags.plan.substr(flags.plan.rfind('/') + 1);
  for (const std::string_view ending : {".json", ".plan"})
    if (name.ends_with(ending)) name.resize(name.size() - ending.size());
  return name;
}

Status NoCompilerFlags(const EmitFlags& flags) {
  if (flags.types.empty() && flags.ops.empty() && flags.archs.empty()) return OkStatus();
  return UsageError("--dtype, --redop, --arch: need --to cuda or host");
}

StatusOr<MscclXmlOptions> MscclOptionsOf(const EmitFlags& flags) {
  MscclXmlOptions options;
  XCCL_RETURN_IF_ERROR(NoCompilerFlags(flags));
  if (!flags.executor.empty()) {
    const StatusOr<MscclTarget> target = ParseMscclTarget(flags.executor);
    if (!target.ok()) return UsageError("--for: " + target.status().message());
    options.target = *target;
  }
  if (flags.in_place && options.target != MscclTarget::kMsccl)
    return UsageError("--in-place: needs --for msccl; the others run a file in place and out of place");
  options.in_place = flags.in_place;
  options.name = NameOf(flags);
  return options;
}

Status EmitMsccl(const EmitFlags& flags) {
  XCCL_ASSIGN_OR_RETURN(const MscclXmlOptions options, MscclOptionsOf(flags));
  XCCL_ASSIGN_OR_RETURN(const AskedSizes sizes, SizesOf(flags));
  if (IsPlanBook(flags.plan))
    return UsageError(flags.plan + ": a plan book; expected a plan file: MSCCL XML is one file a plan");
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(flags.plan));
  XCCL_ASSIGN_OR_RETURN(const MscclXml xml, EmitMscclXml(plan, options, sizes));
  SayNote(xml.selection);
  for (const std::string& line : xml.warnings) SayWarning(line);
  return PrintOrWrite(xml.text, flags.output);
}

Status EmitMscclpp(const EmitFlags& flags) {
  XCCL_RETURN_IF_ERROR(NoCompilerFlags(flags));
  MscclppOptions options;
  options.in_place = flags.in_place;
  options.name = NameOf(flags);
  XCCL_ASSIGN_OR_RETURN(const AskedSizes sizes, SizesOf(flags));
  if (IsPlanBook(flags.plan))
    return UsageError(flags.plan + ": a plan book; expected a plan file: an MSCCL++ plan is one file a plan");
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(flags.plan));
  XCCL_ASSIGN_OR_RETURN(const MscclppJson json, EmitMscclppJson(plan, options, sizes));
  SayNote(json.selection);
  for (const std::string& line : json.warnings) SayWarning(line);
  return PrintOrWrite(json.text, flags.output);
}

// A picture or a trace.
template <Drawing kWhat>
Status EmitDrawing(const EmitFlags& flags) {
  XCCL_RETURN_IF_ERROR(NoCompilerFlags(flags));
  if (IsPlanBook(flags.plan))
    return UsageError(fmt::format("{}: a plan book; expected a plan file for --to {}", flags.plan, flags.to));
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(flags.plan));
  std::optional<int64_t> size_bytes;
  if (!flags.size.empty()) {
    XCCL_ASSIGN_OR_RETURN(size_bytes, ParseSizeFlag("--size", flags.size));
    XCCL_RETURN_IF_ERROR(CheckNotEmpty("--size", *size_bytes, plan.collective));
  }
  XCCL_ASSIGN_OR_RETURN(const Drawn drawn, WithProgress("simulating " + flags.plan, [&](Progress&) {
                          return DrawPlan(plan, kWhat, size_bytes);
                        }));
  if (!drawn.note.empty()) SayNote(drawn.note);
  return PrintOrWrite(drawn.text, flags.output);
}

// CUDA or host source.
Status EmitSource(const EmitFlags& flags) {
  XCCL_ASSIGN_OR_RETURN(const AheadOfTime ahead, AheadOf(flags));
  XCCL_ASSIGN_OR_RETURN(const EmitOptions options, OptionsOf(flags, ahead));
  if (IsPlanBook(flags.plan)) return EmitBook(flags, options, ahead);
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadRunnablePlan(flags.plan));
  if (!ahead.archs.empty() && flags.output.empty())
    return UsageError("--arch: needs -o FILE: cubins are written beside it");
  StatusOr<std::string> text = Emit(plan.program->program, plan.program->collective, options);
  if (!text.ok()) return Annotate(text.status(), flags.plan);
  if (ahead.archs.empty()) return PrintOrWrite(*text, flags.output);
  XCCL_RETURN_IF_ERROR(
      WriteKernel(*text, flags.output, TypeClass::kAny, plan.collective.Reduces(), ahead).status());
  return Print(FileLine({flags.output}));
}

// The program as a plan file has it, of all ranks or of one.
Status EmitProgram(const EmitFlags& flags) {
  XCCL_RETURN_IF_ERROR(NoCompilerFlags(flags));
  if (IsPlanBook(flags.plan))
    return UsageError(flags.plan + ": a plan book; expected a plan file for --to program");
  XCCL_ASSIGN_OR_RETURN(const Plan plan, flags.rank ? ReadPlanOfRank(flags.plan, Rank(*flags.rank))
                                                    : ReadRunnablePlan(flags.plan));
  std::ostringstream out;
  JsonWriter writer(out);
  WriteProgramJson(*plan.program, plan.collective, writer);
  writer.Finish();
  return PrintOrWrite(std::move(out).str(), flags.output);
}

// One format of --to.
struct Format {
  std::string_view name;
  Status (*emit)(const EmitFlags& flags);
  bool has_size = false;  // takes --size; the others serve all sizes
};
constexpr Format kFormats[] = {
    {"cuda", EmitSource},
    {"host", EmitSource},
    {"program", EmitProgram},
    {"chakra", EmitChakra, true},
    {"msccl-xml", EmitMsccl},
    {"mscclpp-json", EmitMscclpp},
    {"svg", EmitDrawing<Drawing::kSvg>, true},
    {"dot", EmitDrawing<Drawing::kDot>},
    {"perfetto", EmitDrawing<Drawing::kPerfetto>, true},
};

std::vector<std::string_view> FormatNames() {
  std::vector<std::string_view> names;
  for (const Format& format : kFormats) names.push_back(format.name);
  return names;
}

Status EmitPlan(const EmitFlags& flags, const Session& /*session*/) {
  // Help has no room for the list and for the word that CLI11 adds to an option that must be given.
  if (flags.to.empty()) return UsageError("--to is required");
  const Format& format = *std::ranges::find(kFormats, flags.to, &Format::name);
  if (!format.has_size && !flags.size.empty())
    return UsageError("--size: needs --to chakra, svg or perfetto; other formats serve all sizes");
  if (flags.rank && flags.to != "program")
    return UsageError(
        fmt::format("--rank: needs --to program; a file for {} says what all ranks do", flags.to));
  XCCL_RETURN_IF_ERROR(NoMscclFlags(flags));
  return format.emit(flags);
}

}  // namespace

void AddEmitCommand(CommandLine& line, Session& session) {
  auto [command, flags] = AddCommand(
      line, session, "emit", "Write a plan as source code, for other tools, or as a picture", EmitPlan);
  command
      .AddOption("PLAN", flags.plan,
                 "a plan file, or a plan book: its plans get kernels that its index names")
      .Required();
  command
      .AddOption("--to", flags.to,
                 "required: cuda, host, program (JSON, as in the plan file), chakra (execution traces for "
                 "ASTRA-sim), "
                 "msccl-xml (for MSCCL and RCCL), "
                 "mscclpp-json (execution plans for MSCCL++), svg (the schedule drawn), dot (the machine "
                 "for Graphviz) or perfetto (the simulation as a trace for ui.perfetto.dev)")
      .OneOf(FormatNames());
  command
      .AddOption("--rank", flags.rank,
                 "program: the part of this rank alone, its threadblocks and connections; makes it where the "
                 "plan of a large symmetric machine has no program")
      .Between(0, (int64_t{1} << 31) - 1);
  command.AddOption("-s,--size", flags.size,
                    "chakra, svg, perfetto: the size (default: that which the plan is made for)");
  command.AddOption("--dtype", flags.types,
                    "element type where the compiler is not told (XCCL_TYPE); with --arch a list of those to "
                    "compile for (default float)");
  command.AddOption(
      "--redop", flags.ops,
      "operator where the compiler is not told (XCCL_OPERATOR); with --arch a list (default sum)");
  command.AddOption("--arch", flags.archs,
                    "sm_90,sm_100: also compile with nvcc, to cubins beside the source");
  command.AddOption("--nvcc", flags.nvcc,
                    "the compiler (default: from CUDA_HOME, CUDA_PATH, PATH or /usr/local/cuda)");
  command.AddOption("--threads", flags.threads,
                    "threads of a block where the compiler is not told; 0: the protocol's");
  command
      .AddOption("--for", flags.executor,
                 "MSCCL XML: what runs it, msccl, executor or rccl (default executor)")
      .OneOf({ToString(MscclTarget::kMsccl), ToString(MscclTarget::kExecutor), ToString(MscclTarget::kRccl)});
  command.AddOption("--min-size", flags.min_size,
                    "MSCCL XML, MSCCL++: the smallest size that it is selected for (default: the plan's)");
  command.AddOption(
      "--max-size", flags.max_size,
      "MSCCL XML, MSCCL++: the largest one (default the plan's, or none; msccl: 128MiB, and less "
      "than it)");
  command.AddFlag("--in-place", flags.in_place,
                  "MSCCL XML for msccl, MSCCL++: for calls in place, not out of place");
  command.AddOption("-o", flags.output, "write to this file; chakra: to OUT.RANK.et");
  command.Footer(
      "Examples:\n"
      "  xccl-synth emit allreduce.plan.json --to cuda -o allreduce.cu\n"
      "  xccl-synth emit allgather.plan.json --to program --rank 0 -o rank0.json\n"
      "  xccl-synth emit allreduce.plan.json --to chakra --size 16MiB -o trace\n"
      "  xccl-synth emit allreduce.plan.json --to perfetto -o trace.json\n"
      "  xccl-synth emit allreduce.plan.json --to msccl-xml --for executor -o allreduce.xml\n"
      "  xccl-synth emit allreduce.plan.json --to mscclpp-json -o allreduce.json\n"
      "  xccl-synth emit BOOK --to cuda --arch sm_90,sm_100 --dtype float,bfloat16");
}

}  // namespace xccl
