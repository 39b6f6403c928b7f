// emit: writes a plan's program as source text, compiled with nvcc if asked, or as what other tools read.
#include <fmt/core.h>

#include <array>
#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

#include "base/files.h"
#include "base/strings.h"
#include "base/units.h"
#include "cli/commands.h"
#include "cli/flags.h"
#include "cli/output.h"
#include "cli/progress.h"
#include "codegen/emit.h"
#include "ir/interchange/chakra.h"
#include "ir/numbers.h"
#include "ir/plan.h"
#include "ir/verify/read_plan.h"
#include "pipeline/emit.h"
#include "runtime/bootstrap/placement.h"
#include "runtime/cuda/nvcc.h"
#include "runtime/plan_book.h"

namespace xccl {
namespace {

constexpr std::array<std::string_view, 3> kTargets = {"cuda", "host", "chakra"};

struct EmitFlags {
  std::string plan, to, output, types, ops, archs, nvcc, size;
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
  } else if (flags.to != "cuda") {
    return UsageError("--to: no format '" + flags.to + "'; expected cuda, host or chakra" +
                      DidYouMean(flags.to, kTargets));
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
  for (const std::string& line : left_out) std::fprintf(stderr, "note: %s\n", line.c_str());
  return OkStatus();
}

// One file a rank, named as ASTRA-sim looks for them: PREFIX.3.et.
Status EmitChakra(const EmitFlags& flags) {
  if (flags.output.empty())
    return UsageError("--to chakra: needs -o PREFIX: one file a rank, PREFIX.0.et, ...");
  if (IsPlanBook(flags.plan))
    return UsageError(flags.plan + ": a plan book; expected one plan for --to chakra");
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(flags.plan));
  if (!plan.program) return InvalidInput(flags.plan + ": no program in the file; hint: plan -o writes one");
  int64_t size_bytes = plan.made_by.size_bytes;
  if (!flags.size.empty()) {
    XCCL_ASSIGN_OR_RETURN(size_bytes, ParseSizeFlag("--size", flags.size));
  }
  StatusOr<std::vector<std::string>> traces =
      ChakraTraces(*plan.program, size_bytes, flags.plan.substr(flags.plan.rfind('/') + 1));
  if (!traces.ok()) return Annotate(traces.status(), flags.plan);
  for (size_t r = 0; r < traces->size(); ++r)
    XCCL_RETURN_IF_ERROR(WriteFileAtomically(fmt::format("{}.{}.et", flags.output, r), (*traces)[r]));
  return OkStatus();
}

Status EmitPlan(const EmitFlags& flags, const Session& /*session*/) {
  if (flags.to == "chakra") return EmitChakra(flags);
  if (!flags.size.empty()) return UsageError("--size: needs --to chakra; other formats serve all sizes");
  XCCL_ASSIGN_OR_RETURN(const AheadOfTime ahead, AheadOf(flags));
  XCCL_ASSIGN_OR_RETURN(const EmitOptions options, OptionsOf(flags, ahead));
  if (IsPlanBook(flags.plan)) return EmitBook(flags, options, ahead);
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(flags.plan));
  if (!plan.program) return InvalidInput(flags.plan + ": no program in the file; hint: plan -o writes one");
  if (!ahead.archs.empty() && flags.output.empty())
    return UsageError("--arch: needs -o FILE: cubins are written beside it");
  StatusOr<std::string> text = Emit(plan.program->program, plan.program->collective, options);
  if (!text.ok()) return Annotate(text.status(), flags.plan);
  if (!ahead.archs.empty())
    return WriteKernel(*text, flags.output, TypeClass::kAny, plan.collective.Reduces(), ahead).status();
  if (!flags.output.empty()) return WriteFileAtomically(flags.output, *text);
  return Print(*text);
}

}  // namespace

void AddEmitCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "emit", "Write a plan's program as source code or for other tools", EmitPlan);
  command
      .AddOption("PLAN", flags.plan,
                 "a plan file, or a plan book: its plans get kernels that its index names")
      .Required();
  command.AddOption("--to", flags.to, "cuda, host, or chakra: execution traces for ASTRA-sim").Required();
  command.AddOption("-s,--size", flags.size, "chakra: the size (default: that which the plan is made for)");
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
  command.AddOption("-o", flags.output, "write to this file; chakra: to OUT.RANK.et");
  command.Footer(
      "Examples:\n"
      "  xccl-synth emit allreduce.plan.json --to cuda -o allreduce.cu\n"
      "  xccl-synth emit allreduce.plan.json --to chakra --size 16MiB -o trace\n"
      "  xccl-synth emit BOOK --to cuda --arch sm_90,sm_100 --dtype float,bfloat16");
}

}  // namespace xccl
