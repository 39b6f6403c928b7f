// xccl-synth: parses the command line, runs one command, maps its status to the exit code.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <new>

#include "cli/commands.h"
#include "cli/pipeline.h"

namespace {

int Report(const xccl::Status& status) {
  if (!status.ok()) std::fprintf(stderr, "xccl-synth: %s\n", status.message().c_str());
  return xccl::ExitCode(status.code());
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
  app.failure_message([](const CLI::App* parser, const CLI::Error& error) {
    const std::string command = parser->get_name() == "xccl-synth" ? "" : parser->get_name() + " ";
    return "xccl-synth: " + std::string(error.what()) + "\nTry: xccl-synth " + command + "--help\n";
  });
  xccl::Session session;
  xccl::AddTopoCommand(app, session);
  xccl::AddBoundCommand(app, session);
  xccl::AddPlanCommand(app, session);
  xccl::AddVerifyCommand(app, session);
  xccl::AddSimulateCommand(app, session);
  xccl::AddCompareCommand(app, session);
  xccl::AddRunCommand(app, session);
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : xccl::ExitCode(xccl::StatusCode::kUsage);
  }
  try {
    return Report(session.work());
  } catch (const std::bad_alloc&) {
    return Report(xccl::LimitReached("out of memory; hint: fewer ranks or --chunks=1"));
  }
}
