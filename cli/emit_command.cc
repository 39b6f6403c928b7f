// emit: source text of a plan's program.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

#include "base/files.h"
#include "base/strings.h"
#include "cli/commands.h"
#include "codegen/emit.h"
#include "ir/numbers.h"
#include "ir/plan.h"

namespace xccl {
namespace {

constexpr std::array<std::string_view, 2> kTargets = {"cuda", "host"};

struct EmitFlags {
  std::string plan, to, output, type = "float", op = "sum";
  int32_t threads = EmitOptions().threads;
};

StatusOr<EmitOptions> OptionsOf(const EmitFlags& flags) {
  EmitOptions options;
  if (flags.to == "host") {
    options.target = EmitTarget::kHost;
  } else if (flags.to != "cuda") {
    return UsageError("--to: no format '" + flags.to + "'; expected cuda or host" +
                      DidYouMean(flags.to, kTargets));
  }
  XCCL_ASSIGN_OR_RETURN(options.type, ParseDataType(flags.type));
  XCCL_ASSIGN_OR_RETURN(options.op, ParseReduceOp(flags.op));
  options.threads = flags.threads;
  options.title = flags.plan.substr(flags.plan.rfind('/') + 1);
  return options;
}

Status EmitPlan(const EmitFlags& flags) {
  XCCL_ASSIGN_OR_RETURN(const EmitOptions options, OptionsOf(flags));
  XCCL_ASSIGN_OR_RETURN(const Plan plan, ReadPlan(flags.plan));
  if (!plan.program) return InvalidInput(flags.plan + ": no program in the file; hint: plan -o writes one");
  StatusOr<std::string> text = Emit(plan.program->program, plan.program->collective, options);
  if (!text.ok()) return Annotate(text.status(), flags.plan);
  if (!flags.output.empty()) return WriteFileAtomically(flags.output, *text);
  std::fputs(text->c_str(), stdout);
  return OkStatus();
}

}  // namespace

void AddEmitCommand(CLI::App& app, Session& session) {
  CLI::App* command = app.add_subcommand("emit", "Write a plan's program as source code");
  auto flags = std::make_shared<EmitFlags>();
  command->add_option("PLAN", flags->plan, "a plan file")->required();
  command->add_option("--to", flags->to, "cuda or host")->required();
  command->add_option("--dtype", flags->type, "element type where the compiler is not told (XCCL_TYPE)");
  command->add_option("--redop", flags->op, "operator where the compiler is not told (XCCL_OPERATOR)");
  command->add_option("--threads", flags->threads,
                      "threads of a block where the compiler is not told; 0: the protocol's");
  command->add_option("-o", flags->output, "write to this file");
  command->footer("Example:\n  xccl-synth emit allreduce.plan.json --to cuda -o allreduce.cu");
  command->callback([&session, flags] { session.work = [flags] { return EmitPlan(*flags); }; });
}

}  // namespace xccl
