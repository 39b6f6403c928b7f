#include "pipeline/exec/variables.h"

#include <fmt/core.h>

#include <filesystem>
#include <system_error>

#include "base/files.h"
#include "base/strings.h"

namespace xccl {
namespace {

constexpr const char* kShim = "libxccl-nccl.so";
constexpr const char* kTuner = "libnccl-tuner-xccl.so";

// Folders of installed libraries, relative to PREFIX/bin, the folder of an installed program.
constexpr const char* kInstalled[] = {"../lib", "../lib64", "../lib/x86_64-linux-gnu",
                                      "../lib/aarch64-linux-gnu"};

std::optional<std::string> Find(const std::filesystem::path& folder, const char* name, const char* built) {
  std::vector<std::string> places(std::begin(kInstalled), std::end(kInstalled));
  places.push_back(built);
  for (const std::string& place : places) {
    std::string path = (folder / place / name).lexically_normal().string();
    if (PathExists(path)) return path;
  }
  return std::nullopt;
}

}  // namespace

StatusOr<Plugins> FindPlugins(const std::string& program) {
  const std::filesystem::path folder = std::filesystem::path(program).parent_path();
  Plugins plugins;
  for (const auto& [name, built, path] : {std::tuple(kShim, "../runtime/nccl/shim", &plugins.shim),
                                          std::tuple(kTuner, "../runtime/nccl/tuner", &plugins.tuner)}) {
    const std::optional<std::string> found = Find(folder, name, built);
    if (!found)
      return InvalidInput(fmt::format("{}: not in {}; expected it as tools/install leaves it", name,
                                      (folder / kInstalled[0]).lexically_normal().string()));
    // Colons and blanks separate the names in LD_PRELOAD, and nothing quotes them.
    if (found->find_first_of(": \t\n") != std::string::npos)
      return InvalidInput(*found + ": LD_PRELOAD names no file with a blank or a colon");
    *path = *found;
  }
  return plugins;
}

std::vector<std::pair<std::string, std::string>> VariablesOf(const BookUse& use,
                                                             const Environment& environment) {
  const auto is_set = [&](const char* name) { return !environment(name).value_or("").empty(); };
  std::vector<std::pair<std::string, std::string>> variables;
  const bool chosen =
      is_set("NCCL_TUNER_PLUGIN") || is_set("XCCL_TUNER_TABLE") || is_set("NCCL_TUNER_CONFIG_FILE");
  if (use.plugins && use.has_table && use.is_one_host && !chosen) {
    variables.emplace_back("NCCL_TUNER_PLUGIN", use.plugins->tuner);
    variables.emplace_back("XCCL_TUNER_TABLE", use.directory + "/nccl-tuner.table");
  }
  if (!use.has_plans) return variables;
  if (use.plugins) {
    const std::string others = environment("LD_PRELOAD").value_or("");
    const bool is_there = others.find(use.plugins->shim) != std::string::npos;
    const std::string all = others.empty() ? use.plugins->shim : use.plugins->shim + ":" + others;
    variables.emplace_back("LD_PRELOAD", is_there ? others : all);
  }
  variables.emplace_back("XCCL_BOOK", use.directory);
  return variables;
}

}  // namespace xccl
