// Runs a program as a user would, and captures its output.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace xccl {

struct Said {
  int code = -1;  // the exit code, or 128 and the signal that ended it
  std::string out;
  std::string err;
};

// A program that runs in `directory`; its outputs go to two files in the temporary folder.
class Command {
 public:
  Command(const std::string& program, const std::vector<std::string>& arguments,
          const std::string& directory);
  pid_t pid() const { return pid_; }
  Said Wait();

 private:
  pid_t pid_ = -1;
  std::string out_;
  std::string err_;
};

std::string WholeFile(const std::string& path);  // "" if there is none

}  // namespace xccl
