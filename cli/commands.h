// One function per command: it adds a subcommand with its flags to the parser, and the work to do when the
// command is chosen.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/deadline.h"
#include "base/status.h"
#include "cli/command_line.h"

namespace xccl {

// The state that all commands share. The chosen command sets `work`, which runs once the whole command line
// is parsed.
struct Session {
  bool json = false;
  std::string version;                   // "0.1.0 (commit 0123456789ab)", the latter where it is known
  std::string command_line;              // as it was typed, for the pages that say how they were made
  std::string time_limit, memory_limit;  // as given; empty: none
  std::vector<std::string> to_become;    // exec: the words behind "--"
  bool limits_are_of_planning = false;   // exec: it keeps the limits itself, and its command has none
  Deadline deadline = Deadline();        // time limit of the whole command
  std::chrono::steady_clock::time_point began = std::chrono::steady_clock::now();
  mutable std::atomic<bool> has_rows = false;    // the result has begun to be printed
  mutable std::atomic<bool> is_writing = false;  // the result is there and goes to its file, to its end
  std::function<Status()> work = {};

  // Seconds since the program began.
  double TotalSeconds() const {
    return std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  }
};

// Adds a subcommand and its flags, which live as long as the command line. `run` is its work.
template <typename Flags>
std::pair<Command, Flags&> AddCommand(CommandLine& line, Session& session, const std::string& name,
                                      const std::string& summary,
                                      Status (*run)(const Flags& flags, const Session& session)) {
  Command command = line.AddCommand(name, summary);
  const auto flags = std::make_shared<Flags>();
  command.WhenChosen(
      [&session, flags, run] { session.work = [&session, flags, run] { return run(*flags, session); }; });
  return {command, *flags};
}

void AddTopoCommand(CommandLine& line, Session& session);
void AddBoundCommand(CommandLine& line, Session& session);
void AddPlanCommand(CommandLine& line, Session& session);
void AddVerifyCommand(CommandLine& line, Session& session);
void AddSimulateCommand(CommandLine& line, Session& session);
void AddCompareCommand(CommandLine& line, Session& session);
void AddSweepCommand(CommandLine& line, Session& session);
void AddEmitCommand(CommandLine& line, Session& session);
void AddImportCommand(CommandLine& line, Session& session);
void AddRunCommand(CommandLine& line, Session& session);
void AddTuneCommand(CommandLine& line, Session& session);
void AddBookCommand(CommandLine& line, Session& session);
void AddExecCommand(CommandLine& line, Session& session);
void AddViewCommand(CommandLine& line, Session& session);
void AddCompletionCommand(CommandLine& line, Session& session);

}  // namespace xccl
