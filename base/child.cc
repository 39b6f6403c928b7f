// The child's output goes to files in memory, and a descriptor of the process tells its end. So the parent
// has nothing to read while children run, and no thread.
#include "base/child.h"

#include <fmt/core.h>
#include <poll.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/strings.h"

namespace xccl {
namespace {

int MemoryFile() { return memfd_create("xccl-child", MFD_CLOEXEC); }

std::string Contents(int file) {
  std::string text;
  char block[1 << 14];
  ssize_t got = 0;
  while ((got = pread(file, block, sizeof block, static_cast<off_t>(text.size()))) > 0)
    text.append(block, static_cast<size_t>(got));
  return text;
}

// Only calls that are safe between fork and exec, whatever the parent's threads do.
[[noreturn]] void Become(char* const* words, int out, int err, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);
  dup2(out, STDOUT_FILENO);
  dup2(err, STDERR_FILENO);
  execv(words[0], words);
  _exit(127);
}

void Close(int& file) {
  if (file >= 0) close(file);
  file = -1;
}

}  // namespace

StatusOr<ChildProcess> ChildProcess::Start(const std::string& what, const std::string& program,
                                           std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  const auto failed = [&](const char* part) {
    return SystemError(fmt::format("{}'s {}: {}", what, part, std::strerror(errno)));
  };
  ChildProcess made;
  made.out_ = MemoryFile();
  made.err_ = MemoryFile();
  if (made.out_ < 0 || made.err_ < 0) return failed("output");
  const pid_t parent = getpid();
  made.child_ = fork();
  if (made.child_ == 0) Become(words.data(), made.out_, made.err_, parent);
  if (made.child_ < 0) return failed("process");
  made.ended_ = static_cast<int>(syscall(SYS_pidfd_open, made.child_, 0));
  if (made.ended_ < 0) return failed("process");
  return made;
}

ChildProcess::ChildProcess(ChildProcess&& other) noexcept { *this = std::move(other); }

ChildProcess& ChildProcess::operator=(ChildProcess&& other) noexcept {
  std::swap(child_, other.child_);
  std::swap(ended_, other.ended_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  return *this;
}

ChildProcess::~ChildProcess() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Close(ended_);
  Close(out_);
  Close(err_);
}

ChildOutput ChildProcess::Finish() {
  ChildOutput output;
  while (waitpid(child_, &output.status, 0) < 0 && errno == EINTR) continue;
  child_ = -1;
  output.out = Contents(out_);
  output.err = Contents(err_);
  return output;
}

std::optional<ChildOutput> ChildProcess::FinishWithin(double seconds) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  while (true) {
    const std::chrono::duration<double, std::milli> left = end - std::chrono::steady_clock::now();
    pollfd ended = {ended_, POLLIN, 0};
    const int ready = poll(&ended, 1, static_cast<int>(std::clamp(left.count(), 0.0, 1e9)));
    if (ready > 0) return Finish();
    if (ready < 0 && errno == EINTR) continue;
    if (left.count() > 0) continue;
    kill(child_, SIGKILL);
    Finish();
    return std::nullopt;
  }
}

std::string FailureOf(const std::string& what, const ChildOutput& output) {
  if (WIFSIGNALED(output.status)) {
    const int signal = WTERMSIG(output.status);
    return fmt::format("{}: killed by signal {} ({})", what, signal, strsignal(signal));
  }
  constexpr std::string_view kStart = "xccl-synth: ";
  std::string error;
  for (const std::string& line : Split(output.err, '\n'))
    if (line.starts_with(kStart)) error = line.substr(kStart.size());
  if (error.empty())
    return fmt::format("{}: exit code {} without a reason", what, WEXITSTATUS(output.status));
  return ReplaceBadUtf8(error);
}

}  // namespace xccl
