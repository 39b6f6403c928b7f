#include "topologies/nccl/this_machine.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <thread>

namespace xccl {
namespace {

// A PATH of one folder, which holds a script named nvidia-smi or nothing.
class ThisMachine : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = std::filesystem::path(testing::TempDir()) /
              testing::UnitTest::GetInstance()->current_test_info()->name();
    std::filesystem::create_directories(folder_);
    setenv("PATH", folder_.c_str(), 1);
  }
  void WriteScript(const std::string& body) {
    const std::filesystem::path path = folder_ / "nvidia-smi";
    std::ofstream(path) << "#!/bin/sh\n" << body;
    std::filesystem::permissions(path, std::filesystem::perms::owner_all);
  }
  static std::string Error() {
    const StatusOr<Topology> t = ReadThisMachine({}, false);
    return t.ok() ? "ok" : t.status().message();
  }

  std::filesystem::path folder_;
};

TEST_F(ThisMachine, NoDriver) {
  EXPECT_EQ(Error(),
            "this machine: no nvidia-smi on PATH; expected an NVIDIA GPU and its driver; hint: any NCCL "
            "program run "
            "with NCCL_TOPO_DUMP_FILE=topo.xml writes a file that topo reads");
}

TEST_F(ThisMachine, DriverFails) {
  WriteScript("echo 'Failed to initialize NVML: Driver/library version mismatch.'\nexit 18\n");
  EXPECT_EQ(
      Error(),
      "this machine: nvidia-smi -L: Failed to initialize NVML: Driver/library version mismatch; expected an "
      "NVIDIA GPU and its driver");
}

TEST_F(ThisMachine, NoGpu) {
  WriteScript("echo 'No devices found.'\n");
  EXPECT_EQ(Error(), "this machine: nvidia-smi -L: No devices found; expected at least one GPU");
}

TEST_F(ThisMachine, TwoGpus) {
  WriteScript(
      "case \"$1\" in\n"
      "-L) echo 'GPU 0: A'; echo 'GPU 1: A';;\n"
      "topo) printf '\\tGPU0\\tGPU1\\tCPU Affinity\\nGPU0\\t X \\tNV12\\t0-7\\nGPU1\\tNV12\\t X "
      "\\t0-7\\n';;\n"
      "*) echo '0, 8.0, 4, 16'; echo '1, 8.0, 4, 16';;\n"
      "esac\n");
  LoadOptions options;
  options.without_links = {"gpu:0->cpu0"};
  const StatusOr<Topology> t = ReadThisMachine(options, false);
  ASSERT_TRUE(t.ok()) << t.status().message();
  EXPECT_EQ(t->num_ranks(), 2);
  EXPECT_EQ(t->LinkName(LinkId(0)), "0->1");
  EXPECT_EQ(t->link(LinkId(0)).bandwidth_bytes_per_s, 240'000'000'000);
  EXPECT_EQ(t->num_links(), 5);  // two for NVLink; four for PCIe, one of them missing
}

// A tool that hangs, of a reader that is killed.
TEST_F(ThisMachine, ToolsEndWithTheirReader) {
  const std::string told = (folder_ / "told").string();
  std::filesystem::remove(told);
  WriteScript("echo $$ >" + told + ".new\n/bin/mv " + told + ".new " + told + "\nexec /bin/sleep 1000\n");
  const pid_t reader = fork();
  if (reader == 0) _exit(Error() == "ok" ? 0 : 1);
  const auto wait_until = [](const auto& happened) {
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    while (!happened() && std::chrono::steady_clock::now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
    return happened();
  };
  EXPECT_TRUE(wait_until([&] { return std::filesystem::exists(told); }));
  kill(reader, SIGKILL);
  waitpid(reader, nullptr, 0);
  pid_t tool = 0;
  std::ifstream(told) >> tool;
  ASSERT_GT(tool, 0);
  // Whoever inherits it may not have waited for it yet.
  const auto ended = [&] {
    std::ifstream file("/proc/" + std::to_string(tool) + "/stat");
    std::string number, name, state;
    return !(file >> number >> name >> state) || state == "Z" || state == "X";
  };
  EXPECT_TRUE(wait_until(ended));
}

TEST_F(ThisMachine, ATemporaryDirectoryThatIsNotThereIsAWarningAndNoCrash) {
  WriteScript(
      "case \"$1\" in\n"
      "-L) echo 'GPU 0: A';;\n"
      "topo) printf '\\tGPU0\\tCPU Affinity\\nGPU0\\t X \\t0-7\\n';;\n"
      "*) echo '0, 8.0, 4, 16';;\n"
      "esac\n");
  setenv("TMPDIR", "/nowhere", 1);
  const StatusOr<Topology> t = ReadThisMachine({});
  unsetenv("TMPDIR");
  ASSERT_TRUE(t.ok()) << t.status().message();
  ASSERT_FALSE(t->spec().warnings.empty());
  EXPECT_EQ(t->spec().warnings.back(),
            "this machine: NCCL gave no dump: no temporary directory: No such file or directory; nvidia-smi "
            "topo -m was "
            "read instead");
}

}  // namespace
}  // namespace xccl
