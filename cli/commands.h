// One function a command: it adds a subcommand with its flags to the parser, and the work to do when it is
// chosen.
#pragma once

#include <functional>

#include "base/status.h"

namespace CLI {
class App;
}

namespace xccl {

// What all commands share. `work` is set by the chosen command and run once the whole command line is parsed.
struct Session {
  bool json = false;
  std::function<Status()> work;
};

void AddTopoCommand(CLI::App& app, Session& session);
void AddBoundCommand(CLI::App& app, Session& session);
void AddPlanCommand(CLI::App& app, Session& session);
void AddVerifyCommand(CLI::App& app, Session& session);
void AddSimulateCommand(CLI::App& app, Session& session);
void AddCompareCommand(CLI::App& app, Session& session);
void AddEmitCommand(CLI::App& app, Session& session);
void AddRunCommand(CLI::App& app, Session& session);
void AddTuneCommand(CLI::App& app, Session& session);

}  // namespace xccl
