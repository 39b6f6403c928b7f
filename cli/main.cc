// xccl-synth: parses the command line, runs one command, maps its status to the exit code.
#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/strings.h"
#include "cli/commands.h"
#include "pipeline/pipeline.h"

namespace {

int Report(const xccl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "xccl-synth: %s\n", status.message().c_str());
  return xccl::ExitCode(status.code());
}

// What CLI11 says of an argument that no command takes, with the nearest name that would do.
std::string UnexpectedText(const CLI::App& app) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const CLI::App& command = chosen.empty() ? app : *chosen.front();
  const std::vector<std::string> left = app.remaining(true);
  const bool flag = std::any_of(left.begin(), left.end(), [](const auto& word) { return word[0] == '-'; });
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  if (chosen.empty() && !flag) {
    names.clear();
    for (const CLI::App* each : app.get_subcommands({})) names.push_back(each->get_name());
  }
  const std::vector<std::string_view> known(names.begin(), names.end());
  const std::string place = chosen.empty() ? "" : command.get_name() + ": ";
  for (const std::string& word : left) {
    if (flag && word[0] != '-') continue;
    const std::string name = word.substr(0, word.find('='));
    if (flag) return fmt::format("{}no option '{}'{}", place, name, xccl::DidYouMean(name, known));
    if (chosen.empty()) return "no command '" + name + "'" + xccl::DidYouMean(name, known);
    return fmt::format("{}unexpected '{}'", place, word);
  }
  return place + "unexpected arguments";
}

// One line, and where to read more.
int ReportUsage(const CLI::App& app, const CLI::ParseError& error) {
  const std::vector<CLI::App*> chosen = app.get_subcommands();
  const bool words_left = !app.remaining(true).empty();
  const bool unexpected =
      dynamic_cast<const CLI::ExtrasError*>(&error) != nullptr || (chosen.empty() && words_left);
  std::string text = unexpected ? UnexpectedText(app) : std::string(error.what());
  if (!unexpected && chosen.empty())
    text = "no command; expected topo, bound, plan, verify, simulate, compare, emit, run or tune";
  std::fprintf(stderr, "xccl-synth: %s\nTry: xccl-synth %s--help\n", text.c_str(),
               chosen.empty() ? "" : (chosen.front()->get_name() + " ").c_str());
  return xccl::ExitCode(xccl::StatusCode::kUsage);
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app(
      "xccl-synth plans collective communication for a machine's wiring: it reads a topology, searches for a "
      "chunk\n"
      "schedule, proves it right, predicts its time, lowers it and runs it.",
      "xccl-synth");
  app.set_version_flag("--version", std::string("xccl-synth ") + xccl::kVersion);
  app.require_subcommand(1);
  app.get_formatter()->column_width(34);
  xccl::Session session;
  xccl::AddTopoCommand(app, session);
  xccl::AddBoundCommand(app, session);
  xccl::AddPlanCommand(app, session);
  xccl::AddVerifyCommand(app, session);
  xccl::AddSimulateCommand(app, session);
  xccl::AddCompareCommand(app, session);
  xccl::AddEmitCommand(app, session);
  xccl::AddRunCommand(app, session);
  xccl::AddTuneCommand(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return error.get_exit_code() == 0 ? app.exit(error) : ReportUsage(app, error);
  }
  try {
    return Report(session.work());
  } catch (const std::bad_alloc&) {
    return Report(xccl::LimitReached("out of memory; hint: fewer ranks or --chunks=1"));
  }
}
