// The child's output goes to files in memory, and a descriptor of the process tells its end. So the parent
// has nothing to read while jobs run, and no thread.
#include "sweep/job.h"

#include <fmt/core.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/json/json_value.h"
#include "base/strings.h"

namespace xccl {
namespace {

constexpr std::string_view kErrorStart = "xccl-synth: ";

std::string StatusName(int status) {
  if (WIFSIGNALED(status)) return "killed";
  for (const auto& [code, name] : {std::pair(StatusCode::kOk, "ok"),
                                   {StatusCode::kInvalidInput, "invalid"},
                                   {StatusCode::kUsage, "usage"},
                                   {StatusCode::kInfeasible, "infeasible"},
                                   {StatusCode::kBug, "bug"},
                                   {StatusCode::kLimit, "limit"}})
    if (WEXITSTATUS(status) == ExitCode(code)) return name;
  return "failed";
}

// The reason of a failure: the signal that ended the process; else the last line of stderr that begins with
// the program's name, without the name; else the exit code.
std::string ErrorOf(const ChildOutput& output) {
  if (WIFSIGNALED(output.status)) {
    const int signal = WTERMSIG(output.status);
    return fmt::format("plan: killed by signal {} ({})", signal, strsignal(signal));
  }
  std::string error;
  for (const std::string& line : Split(output.err, '\n')) {
    if (line.starts_with(kErrorStart)) error = line.substr(kErrorStart.size());
  }
  if (error.empty()) error = fmt::format("plan: exit code {} without a reason", WEXITSTATUS(output.status));
  return ReplaceBadUtf8(error);
}

// The value of a member as a cell; empty for null.
StatusOr<std::string> CellOf(const JsonValue& json, std::string_view key) {
  XCCL_ASSIGN_OR_RETURN(const JsonValue value, json.Get(key));
  if (value.IsNull()) return std::string();
  if (const StatusOr<bool> truth = value.Bool(); truth.ok()) return std::string(*truth ? "true" : "false");
  if (const StatusOr<std::string_view> text = value.String(); text.ok()) return std::string(*text);
  XCCL_ASSIGN_OR_RETURN(const double number, value.Number());
  return fmt::format("{}", number);
}

StatusOr<SweepResult> CellsOf(const std::string& json) {
  XCCL_ASSIGN_OR_RETURN(const JsonDocument document, JsonDocument::Parse(json, "plan --json"));
  SweepResult cells;
  for (const std::string_view name : ResultNames()) {
    if (name == "status") break;
    XCCL_ASSIGN_OR_RETURN(std::string cell, CellOf(document.root(), name == "made_by" ? "engine" : name));
    cells.push_back(std::move(cell));
  }
  cells.insert(cells.end(), {"ok", ""});
  return cells;
}

int MemoryFile() { return memfd_create("xccl-sweep-job", MFD_CLOEXEC); }

std::string Contents(int file) {
  std::string text;
  char block[1 << 14];
  ssize_t got = 0;
  while ((got = pread(file, block, sizeof block, static_cast<off_t>(text.size()))) > 0)
    text.append(block, static_cast<size_t>(got));
  return text;
}

// Only calls that are safe between fork and exec, whatever the parent's threads do.
[[noreturn]] void BecomeJob(char* const* words, int out, int err, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  setpgid(0, 0);  // Ctrl-C is for the sweep, which ends its jobs
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

SweepResult ResultOf(const ChildOutput& output) {
  Status wrong;
  if (WIFEXITED(output.status) && WEXITSTATUS(output.status) == 0) {
    StatusOr<SweepResult> cells = CellsOf(output.out);
    if (cells.ok()) return *std::move(cells);
    wrong = cells.status();
  }
  SweepResult cells(ResultNames().size() - 2);
  cells.push_back(wrong.ok() ? StatusName(output.status) : "failed");
  cells.push_back(wrong.ok() ? ErrorOf(output) : wrong.message());
  return cells;
}

StatusOr<std::string> FindSynth() {
  std::error_code ignored;
  const std::filesystem::path self = std::filesystem::read_symlink("/proc/self/exe", ignored);
  const char* const path = std::getenv("PATH");
  std::vector<std::string> folders = {self.parent_path().string()};
  for (const std::string& folder : Split(path != nullptr ? path : "", ':')) folders.push_back(folder);
  for (const std::string& folder : folders) {
    const std::string program = folder + "/xccl-synth";
    if (!folder.empty() && access(program.c_str(), X_OK) == 0) return program;
  }
  return InvalidInput("xccl-synth: neither beside " + self.filename().string() + " nor in a folder of PATH");
}

StatusOr<JobProcess> JobProcess::Start(const std::string& program, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), program);
  arguments.emplace_back("--json");
  std::vector<char*> words;
  for (std::string& word : arguments) words.push_back(word.data());
  words.push_back(nullptr);
  JobProcess job;
  job.out_ = MemoryFile();
  job.err_ = MemoryFile();
  if (job.out_ < 0 || job.err_ < 0)
    return SystemError(fmt::format("a job's output: {}", std::strerror(errno)));
  const pid_t parent = getpid();
  job.child_ = fork();
  if (job.child_ == 0) BecomeJob(words.data(), job.out_, job.err_, parent);
  if (job.child_ < 0) return SystemError(fmt::format("a job's process: {}", std::strerror(errno)));
  job.ended_ = static_cast<int>(syscall(SYS_pidfd_open, job.child_, 0));
  if (job.ended_ < 0) return SystemError(fmt::format("a job's process: {}", std::strerror(errno)));
  return job;
}

JobProcess::JobProcess(JobProcess&& other) noexcept { *this = std::move(other); }

JobProcess& JobProcess::operator=(JobProcess&& other) noexcept {
  std::swap(child_, other.child_);
  std::swap(ended_, other.ended_);
  std::swap(out_, other.out_);
  std::swap(err_, other.err_);
  return *this;
}

JobProcess::~JobProcess() {
  if (child_ > 0) {
    kill(child_, SIGKILL);
    waitpid(child_, nullptr, 0);
  }
  Close(ended_);
  Close(out_);
  Close(err_);
}

SweepResult JobProcess::Finish() {
  ChildOutput output;
  while (waitpid(child_, &output.status, 0) < 0 && errno == EINTR) continue;
  child_ = -1;
  output.out = Contents(out_);
  output.err = Contents(err_);
  return ResultOf(output);
}

}  // namespace xccl
