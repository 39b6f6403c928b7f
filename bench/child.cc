// The child sends its text back through a pipe. CPU time and memory are limited by the kernel.
#include "bench/child.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cmath>
#include <csignal>

namespace xccl {
namespace {

[[noreturn]] void RunChild(const ChildLimits& limits, const std::function<std::string()>& work,
                           int pipe_end) {
  const auto cpu = static_cast<rlim_t>(std::ceil(limits.cpu_seconds));
  const auto memory = static_cast<rlim_t>(limits.memory_mib) << 20;
  const rlimit most_cpu{cpu, cpu}, most_memory{memory, memory}, no_core{0, 0};
  setrlimit(RLIMIT_CPU, &most_cpu);
  setrlimit(RLIMIT_AS, &most_memory);
  setrlimit(RLIMIT_CORE, &no_core);
  const std::string text = work();
  const bool sent = write(pipe_end, text.data(), text.size()) == static_cast<ssize_t>(text.size());
  _exit(sent ? 0 : 1);
}

}  // namespace

ChildResult RunInChild(const ChildLimits& limits, const std::function<std::string()>& work) {
  ChildResult result;
  int ends[2];
  if (pipe(ends) != 0) {
    result.problem = "no pipe";
    return result;
  }
  const pid_t child = fork();
  if (child == 0) {
    close(ends[0]);
    RunChild(limits, work, ends[1]);
  }
  close(ends[1]);
  std::array<char, 4096> buffer;
  for (ssize_t n = 0; child > 0 && (n = read(ends[0], buffer.data(), buffer.size())) > 0;)
    result.text.append(buffer.data(), static_cast<size_t>(n));
  close(ends[0]);
  int status = 0;
  rusage usage{};
  if (child < 0 || wait4(child, &status, 0, &usage) != child) {
    result.problem = "no child process";
    return result;
  }
  result.peak_mib = usage.ru_maxrss >> 10;
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return result;
  result.text.clear();
  const double used = static_cast<double>(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec);
  if (WIFSIGNALED(status) && used >= limits.cpu_seconds - 2)
    result.problem = fmt::format("stopped after {:.0f} CPU seconds", limits.cpu_seconds);
  else if (WIFSIGNALED(status))
    result.problem = fmt::format("died of signal {} ({} MiB)", WTERMSIG(status), result.peak_mib);
  else
    result.problem = "died";
  return result;
}

}  // namespace xccl
