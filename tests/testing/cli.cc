#include "tests/testing/cli.h"

#include <signal.h>

#include <algorithm>
#include <filesystem>
#include <fstream>

namespace xccl {

namespace fs = std::filesystem;

std::string SynthProgram() {
  static const std::string program = fs::current_path().string() + "/cli/xccl-synth";
  return program;
}

namespace {

// Drops the lines of progress: a command that takes long on a busy machine says one each ten seconds.
Said WithoutProgress(Said said) {
  static const std::string progress = "progress: ";
  for (size_t at = 0; at < said.err.size();) {
    const size_t end = said.err.find('\n', at) + 1;
    if (said.err.compare(at, progress.size(), progress) == 0)
      said.err.erase(at, end - at);
    else
      at = end == 0 ? said.err.size() : end;
  }
  return said;
}

}  // namespace

void Cli::SetUp() {
  folder_ = testing::TempDir() + "/" + testing::UnitTest::GetInstance()->current_test_info()->name();
  fs::remove_all(folder_);
  fs::create_directories(folder_);
}

Said Cli::Run(const Words& arguments) const {
  return WithoutProgress(Command(SynthProgram(), arguments, folder_).Wait());
}

Said Cli::Shell(const std::string& command) const {
  return WithoutProgress(Command("/bin/sh", {"-c", "X=" + SynthProgram() + "; " + command}, folder_).Wait());
}

std::string Cli::PrintedUntil(const std::string& line, const std::string& arguments) const {
  const Said ended = Shell("$X " + arguments + " >rows & running=$!; until grep -q '^" + line +
                           "' rows || ! kill -0 $running; do sleep 0.1; done; kill $running; wait $running");
  EXPECT_EQ(ended.code, 128 + SIGTERM) << ended.err;
  return Read("rows");
}

std::string Cli::Out(const Words& arguments) const {
  const Said said = Run(arguments);
  EXPECT_EQ(said.code, 0) << said.err;
  EXPECT_EQ(said.err, "");
  return said.out;
}

void Cli::Write(const std::string& name, const std::string& text) const {
  std::ofstream(folder_ + "/" + name, std::ios::binary) << text;
}

std::string Cli::Read(const std::string& name) const { return WholeFile(folder_ + "/" + name); }

Words Cli::Files() const {
  Words names;
  for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename());
  std::sort(names.begin(), names.end());
  return names;
}

void Cli::RingPlan(const std::string& file) const {
  Out({"plan", "torus:2x2", "-c", "allgather", "-e", "ring", "-s", "64KiB", "-o", file});
}

Words Keys(const Json& object) {
  Words keys;
  for (const auto& [key, value] : object.items()) keys.push_back(key);
  return keys;
}

namespace {

// Does a message say what was expected, or which flag would do, or give a system's or a verifier's reason?
bool SaysWhatIsExpected(const std::string& text) {
  constexpr const char* kWays[] = {"expected ",
                                   "hint: ",
                                   "did you mean ",
                                   "Try: ",
                                   " are 0..",
                                   "at most ",
                                   " is written like ",
                                   "not together with ",
                                   "only together with ",
                                   "only for ",
                                   "need",
                                   "this program reads ",
                                   " is never written",
                                   "takes no ",
                                   ": cannot ",
                                   ": no path ",
                                   ": ["};
  return std::ranges::any_of(kWays, [&](const char* way) { return text.find(way) != std::string::npos; });
}

}  // namespace

void ExpectWrong(const Wrong& wrong, const Said& said) {
  std::string line;
  for (const std::string& word : wrong.arguments) line += " " + word;
  SCOPED_TRACE(line);
  EXPECT_EQ(said.code, wrong.code);
  EXPECT_EQ(said.err, "xccl-synth: " + wrong.err + "\n");
  EXPECT_EQ(said.out, "");
  EXPECT_TRUE(wrong.code > 2 || SaysWhatIsExpected(said.err)) << said.err;
}

}  // namespace xccl
