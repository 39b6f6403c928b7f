#include "cli/interrupt.h"

#include <unistd.h>

#include <atomic>
#include <csignal>
#include <string_view>

#include "base/standard_streams.h"

namespace xccl {
namespace {

Interrupt interrupted;

extern "C" void EndSearch(int) {
  constexpr std::string_view kText =
      "\nxccl-synth: interrupted: the best so far follows; again to end at once\n";
  interrupted.Set();
  std::signal(SIGINT, SIG_DFL);
  PrintError(kText);
}

// The handler reads these alone.
std::atomic<const char*> text_of_end = "";
std::atomic<const char*> directory_of_end = nullptr;
std::atomic<pid_t> process_of_end = 0;
std::atomic<bool> is_ending = false;

extern "C" void EndProcess(int signal) {
  if (getpid() == process_of_end) {
    // `timeout` sends two signals, and a second thread may get the second one: the first thread ends the
    // process.
    if (is_ending.exchange(true)) return;
    PrintError(text_of_end.load());
    if (const char* const directory = directory_of_end) rmdir(directory);
  }
  std::signal(signal, SIG_DFL);
  std::raise(signal);
}

}  // namespace

Deadline CatchInterrupt(const Deadline& deadline) {
  if (std::signal(SIGINT, EndSearch) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
  return deadline.With(interrupted);
}

void EndOnInterrupt(const char* text, const char* directory) {
  text_of_end = text;
  directory_of_end = directory;
  process_of_end = getpid();
  if (std::signal(SIGINT, EndProcess) == SIG_IGN) std::signal(SIGINT, SIG_IGN);
}

}  // namespace xccl
