// Starts a program as a user would, and keeps what it said.
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

// A program that runs in `directory`, its outputs in two files of the temporary folder.
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

std::string WholeFile(const std::string& path);  // "" where there is none

}  // namespace xccl
