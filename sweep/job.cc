#include "sweep/job.h"

#include <fmt/core.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <string_view>
#include <utility>

#include "base/json/json_value.h"
#include "base/strings.h"

namespace xccl {
namespace {

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
  cells.push_back(wrong.ok() ? FailureOf("plan", output) : wrong.message());
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
  arguments.emplace_back("--json");
  XCCL_ASSIGN_OR_RETURN(ChildProcess child, ChildProcess::Start("a job", program, std::move(arguments)));
  return JobProcess(std::move(child));
}

SweepResult JobProcess::Finish() { return ResultOf(child_.Finish()); }

}  // namespace xccl
