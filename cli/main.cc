// xccl-synth: parses the command line, runs one command, maps its status to the exit code.
#include <algorithm>
#include <exception>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/exceptions.h"
#include "base/guarded.h"
#include "base/standard_streams.h"
#include "base/version.h"
#include "cli/command_line.h"
#include "cli/commands.h"
#include "cli/limits.h"
#include "cli/output.h"
#include "cli/say.h"

extern const char kCommit[];  // commit of the sources, "" or "0" where the build is not told (commit.cc)

namespace {

std::string VersionText() {
  const std::string commit = kCommit;
  return xccl::kVersion + (commit.empty() || commit == "0" ? "" : " (commit " + commit + ")");
}

int Report(const xccl::Status& status) {
  if (!status.ok()) xccl::SayError(status.message());
  return xccl::ExitCode(status.code());
}

// Writes over the values of --token, which would show in ps and in the pages that name the command.
void HideTokens(int argc, char** argv) {
  for (int i = 1; i < argc; ++i) {
    const std::string_view word = argv[i];
    char* value = nullptr;
    if (word == "--token" && i + 1 < argc) value = argv[++i];
    if (word.starts_with("--token=")) value = argv[i] + word.find('=') + 1;
    for (; value != nullptr && *value != '\0'; ++value) *value = 'x';
  }
}

// The command line as a shell takes it.
std::string TypedLine(int argc, char** argv) {
  std::string line = "xccl-synth";
  for (int i = 1; i < argc; ++i) line += " " + xccl::ShellWord(argv[i]);
  return line;
}

// The number of words that are for xccl-synth: those of the command that `exec` becomes follow a "--".
int OwnWords(int argc, char** argv) {
  if (argc < 2 || std::string_view(argv[1]) != "exec") return argc;
  return static_cast<int>(std::find(argv, argv + argc, std::string_view("--")) - argv);
}

int Run(int argc, char** argv) {
  xccl::CommandLine line(
      "xccl-synth plans collective communication for a machine's wiring: it reads a topology, searches for a "
      "chunk\n"
      "schedule, proves it right, predicts its time, lowers it and runs it.",
      "xccl-synth", "xccl-synth " + VersionText());
  xccl::Session session;
  session.version = VersionText();
  std::vector<std::string> words(argv, argv + argc);
  const int own_words = OwnWords(argc, argv);
  if (own_words < argc) session.to_become.assign(words.begin() + own_words + 1, words.end());
  std::vector<char*> given;
  for (std::string& word : words) given.push_back(word.data());
  HideTokens(argc, argv);
  session.command_line = TypedLine(argc, argv);
  xccl::AddTopoCommand(line, session);
  xccl::AddBoundCommand(line, session);
  xccl::AddPlanCommand(line, session);
  xccl::AddVerifyCommand(line, session);
  xccl::AddSimulateCommand(line, session);
  xccl::AddCompareCommand(line, session);
  xccl::AddSweepCommand(line, session);
  xccl::AddEmitCommand(line, session);
  xccl::AddImportCommand(line, session);
  xccl::AddRunCommand(line, session);
  xccl::AddTuneCommand(line, session);
  xccl::AddBookCommand(line, session);
  xccl::AddExecCommand(line, session);
  xccl::AddViewCommand(line, session);
  xccl::AddCompletionCommand(line, session);
  line.ForEachCommand([&](xccl::Command command) { xccl::AddLimitFlags(command, session); });
  if (const std::optional<int> ended = line.Parse(own_words, given.data())) return *ended;
  if (const xccl::Status limited = xccl::ApplyLimits(session); !limited.ok()) return Report(limited);
  const xccl::Watchdog watchdog(session);
  return Report(xccl::RunGuarded(session.work));
}

}  // namespace

int main(int argc, char** argv) {
  xccl::PrepareStandardStreams();
  try {
    return Run(argc, argv);
  } catch (const std::bad_alloc&) {
    return Report(xccl::LimitReached(xccl::OutOfMemoryText()));
  } catch (const std::exception& error) {
    return Report(xccl::StatusOf(error));
  }
}
