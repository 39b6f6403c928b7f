#include <fmt/core.h>

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/version.h"
#include "cli/commands.h"
#include "cli/output.h"
#include "cli/shell_texts.h"
#include "ir/collective.h"
#include "ir/known_machines.h"
#include "ir/numbers.h"
#include "synth/engines.h"
#include "topologies/load/load.h"

namespace xccl {
namespace {

struct CompletionFlags {
  const CommandLine* line = nullptr;
  std::string target;
};

template <typename Values>
std::vector<std::string> NamesOf(const Values& values) {
  std::vector<std::string> names;
  for (const auto& value : values) names.emplace_back(ToString(value));
  return names;
}

// Options that take a name, whatever the command.
std::vector<std::string> NamesFor(const std::string& option) {
  if (option == "--collective" || option == "--collectives") return NamesOf(AllNamedCollectives());
  if (option == "--dtype") return NamesOf(AllDataTypes());
  if (option == "--redop") return NamesOf(AllReduceOps());
  if (option == "TOPOLOGY") return LibraryNames();
  if (option == "--machine") return {KnownMachineNames().begin(), KnownMachineNames().end()};
  std::vector<std::string> names;
  if (option == "--engine" || option == "--engines")
    for (const Engine& engine : AllEngines()) names.emplace_back(engine.name);
  return names;
}

Status PrintCompletion(const CompletionFlags& flags, const Session&) {
  if (flags.target == "bash") return Print(BashCompletion(flags.line->Texts(), NamesFor));
  if (flags.target == "zsh") return Print(ZshCompletion(flags.line->Texts(), NamesFor));
  return Print(
      ManualPage(flags.line->Texts(), flags.line->description(), fmt::format("xccl-synth {}", kVersion)));
}

}  // namespace

void AddCompletionCommand(CommandLine& line, Session& session) {
  auto [command, flags] =
      AddCommand(line, session, "completion", "Completion for a shell, or this tool's page of the manual",
                 PrintCompletion);
  flags.line = &line;
  command.AddOption("SHELL", flags.target, "what to print").Required().OneOf({"bash", "zsh", "man"});
  command.Footer(
      "Examples:\n"
      "  source <(xccl-synth completion bash)\n"
      "  xccl-synth completion zsh > \"${fpath[1]}/_xccl-synth\"\n"
      "  xccl-synth completion man > xccl-synth.1 && man ./xccl-synth.1");
}

}  // namespace xccl
