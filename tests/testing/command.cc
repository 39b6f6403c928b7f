#include "tests/testing/command.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <sstream>

namespace xccl {
namespace {

std::string TemporaryFile() {
  const char* folder = std::getenv("TEST_TMPDIR");
  std::string path = std::string(folder != nullptr ? folder : "/tmp") + "/said_XXXXXX";
  const int file = mkstemp(path.data());
  if (file >= 0) close(file);
  return path;
}

}  // namespace

Command::Command(const std::string& program, const std::vector<std::string>& arguments,
                 const std::string& directory)
    : out_(TemporaryFile()), err_(TemporaryFile()) {
  std::vector<char*> words = {const_cast<char*>(program.c_str())};
  for (const std::string& argument : arguments) words.push_back(const_cast<char*>(argument.c_str()));
  words.push_back(nullptr);
  pid_ = fork();
  if (pid_ != 0) return;
  dup2(open(out_.c_str(), O_WRONLY), STDOUT_FILENO);
  dup2(open(err_.c_str(), O_WRONLY), STDERR_FILENO);
  if (chdir(directory.c_str()) != 0) _exit(126);
  execv(program.c_str(), words.data());
  _exit(127);
}

Said Command::Wait() {
  int status = 0;
  waitpid(pid_, &status, 0);
  Said said{.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
            .out = WholeFile(out_),
            .err = WholeFile(err_)};
  std::remove(out_.c_str());
  std::remove(err_.c_str());
  return said;
}

std::string WholeFile(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace xccl
