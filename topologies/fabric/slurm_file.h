// The contents of Slurm's two forms of a topology, before they are checked: internal to slurm.cc and the
// readers of the forms.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl {

struct SlurmSwitch {
  std::string name;
  std::vector<std::string> children, hosts;
  int32_t line = 0;
};

struct SlurmBlock {
  std::string name;
  std::vector<std::string> hosts;
  int32_t line = 0;
};

struct SlurmFile {
  std::vector<SlurmSwitch> switches;
  std::vector<SlurmBlock> blocks;
  std::vector<std::string> warnings;
};

// Expands the lists of names of one file, and counts the names.
class SlurmLists {
 public:
  explicit SlurmLists(std::string_view file) : file_(file) {}
  // Errors: those of ExpandHostList, as "FILE:LINE: WHAT: ..."; too many names in the file.
  StatusOr<std::vector<std::string>> Expand(std::string_view list, std::string_view what, int32_t line);
  // Errors: a name of a switch or block that is empty or holds a comma, bracket, blank or control.
  Status CheckName(std::string_view name, std::string_view what, int32_t line) const;
  // InvalidInput "FILE:LINE: TEXT".
  Status Error(int32_t line, std::string_view text) const;
  const std::string& file() const { return file_; }

 private:
  std::string file_;
  int64_t names_ = 0;
};

bool IsSlurmConf(std::string_view text);
bool IsSlurmYaml(std::string_view text);
StatusOr<SlurmFile> ReadSlurmConf(std::string_view text, std::string_view file);
StatusOr<SlurmFile> ReadSlurmYaml(std::string_view text, std::string_view file);

}  // namespace xccl
