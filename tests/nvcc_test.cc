// Inspects what nvcc makes of emitted CUDA: no spilled registers and no local memory (ptxas), 16-byte
// accesses, acquire loads and fences in the right places (PTX). Skipped without nvcc. XCCL_LONG=1 tries all
// types, and every plan and protocol on all architectures.
#include <fmt/core.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <regex>
#include <set>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "runtime/cuda/occupancy.h"
#include "tests/testing/command.h"

namespace xccl {
namespace {

namespace fs = std::filesystem;

std::string FindNvcc() {
  for (const char* home : {"CUDA_HOME", "CUDA_PATH"})
    if (const char* const at = std::getenv(home); at != nullptr && fs::exists(std::string(at) + "/bin/nvcc"))
      return std::string(at) + "/bin/nvcc";
  for (const char* at : {"/usr/local/cuda/bin/nvcc", "/usr/bin/nvcc"})
    if (fs::exists(at)) return at;
  return "";
}

struct Compiled {
  std::string ptxas;  // the output of ptxas -v
  std::string ptx, cubin;
};

constexpr const char* kInterpreter = "interpreter";
// In place of a plan: the receiving end of a one-shot allreduce with flags in its data.
struct Choice {
  std::string plan, arch, protocol, type = "float", op = "kSum";
  bool groups = false;  // whether the interpreter kernel's programs have groups
};

std::string ToString(const Choice& c) {
  return fmt::format("{} {} {} {} {}", c.plan, c.arch, c.protocol, c.type, c.op);
}

void Compile(const std::string& nvcc, const Choice& choice, Compiled& compiled) {
  const fs::path here = fs::current_path(), folder = fs::path(testing::TempDir()) / "nvcc";
  fs::remove_all(folder);
  fs::create_directories(folder);
  fs::copy_file(choice.plan == kInterpreter ? here / "device/interpret.cu"
                                            : here / "tests/golden" / (choice.plan + ".cu.txt"),
                folder / "kernel.cu");
  const Said said =
      Command(nvcc,
              {"-std=c++20", "-arch=" + choice.arch, "-I" + here.string(),
               "-DXCCL_PROTOCOL=" + choice.protocol, "-DXCCL_TYPE=" + choice.type,
               "-DXCCL_OPERATOR=" + choice.op, fmt::format("-DXCCL_GROUPS={}", choice.groups ? 1 : 0),
               "-Werror", "all-warnings", "-Xptxas", "-v", "-cubin", "--keep", "--keep-dir", folder.string(),
               "-o", (folder / "kernel.cubin").string(), (folder / "kernel.cu").string()},
              here.string())
          .Wait();
  ASSERT_EQ(said.code, 0) << said.out << said.err;
  compiled.ptxas = said.out + said.err;
  compiled.ptx = WholeFile((folder / "kernel.ptx").string());
  compiled.cubin = WholeFile((folder / "kernel.cubin").string());
  ASSERT_FALSE(compiled.ptx.empty());
}

void ExpectNoLocalMemory(const Compiled& compiled) {
  const std::regex line(R"((\d+) bytes stack frame, (\d+) bytes spill stores, (\d+) bytes spill loads)");
  int functions = 0;
  for (std::sregex_iterator it(compiled.ptxas.begin(), compiled.ptxas.end(), line), end; it != end;
       ++it, ++functions) {
    EXPECT_EQ((*it)[1], "0") << "stack frame\n" << compiled.ptxas;
    EXPECT_EQ((*it)[2], "0") << "spill stores";
    EXPECT_EQ((*it)[3], "0") << "spill loads";
  }
  EXPECT_GT(functions, 0);
  EXPECT_EQ(compiled.ptx.find(".local "), std::string::npos) << "local memory in the PTX";
}

// Checks the numbers that the fake driver reads from a cubin: registers and shared memory are as ptxas
// printed them, and at least one block fits a multiprocessor.
void ExpectFits(const Choice& choice, const Compiled& compiled) {
  const auto kernel = cuda::ReadCubin(compiled.cubin, "xccl_kernel");
  ASSERT_TRUE(kernel.ok()) << kernel.status().message();
  const auto number = [](const std::string& text, const char* pattern) {
    std::smatch found;
    return std::regex_search(text, found, std::regex(pattern)) ? std::stoi(found[1]) : 0;
  };
  EXPECT_EQ(kernel->registers, number(compiled.ptxas, R"(Used (\d+) registers)"));
  EXPECT_EQ(kernel->shared_bytes, number(compiled.ptxas, R"((\d+) bytes smem)"));
  const int32_t threads = number(compiled.ptx, R"(\.maxntid (\d+))");
  EXPECT_GE(cuda::BlocksOnMultiprocessor(*kernel, std::stoi(choice.arch.substr(3)), threads), 1);
}

// The text of every PTX function and entry whose head contains `part`, one after another. Braces of inline
// assembly lie within, some at the beginning of a line.
std::string FunctionsNamed(const std::string& ptx, const std::string& part) {
  std::string bodies;
  std::istringstream lines(ptx);
  std::string line, head;
  int64_t depth = 0;
  bool wanted = false;
  while (std::getline(lines, line)) {
    const int64_t opens = std::ranges::count(line, '{'), closes = std::ranges::count(line, '}');
    if (depth == 0) {
      if (line.starts_with(".func") || line.starts_with(".visible") || line.starts_with(".weak"))
        head.clear();
      head += line;
      wanted = head.find(part) != std::string::npos &&
               (head.find(".func") != std::string::npos || head.find(".entry") != std::string::npos);
    } else if (wanted) {
      bodies += line + "\n";
    }
    depth += opens - closes;
    if (depth == 0 && line.ends_with("}")) head.clear();
    if (depth == 0 && line.ends_with(";")) head.clear();
  }
  return bodies;
}

// A plain load must never read memory that others write: a compiler may keep its result in a register, and
// a multiprocessor in its cache.
void ExpectNoWeakLoads(const std::string& body, const std::string& what) {
  std::istringstream lines(body);
  for (std::string line; std::getline(lines, line);) {
    const size_t at = line.find("ld.");
    if (at == std::string::npos || line.find("ld.param") != std::string::npos) continue;
    EXPECT_TRUE(line.find("volatile") != std::string::npos || line.find("acquire") != std::string::npos ||
                line.find("relaxed") != std::string::npos)
        << what << ": " << line;
  }
}

// The kernel itself, without the functions that it calls.
std::string EntryOf(const std::string& ptx) { return FunctionsNamed(ptx, ".entry xccl_kernel"); }

// A GPU divides 64-bit numbers in about a hundred instructions, which small messages would wait for.
void ExpectNoLongDivision(const std::string& body) {
  static const std::regex division(R"((div|rem)\.[su]64)");
  EXPECT_FALSE(body.empty());
  EXPECT_FALSE(std::regex_search(body, division));
}

void ExpectGoodPtx(const Choice& choice, const std::string& ptx) {
  EXPECT_NE(ptx.find("ld.acquire.sys.global.u64"), std::string::npos) << "credits and messages are acquired";
  ExpectNoWeakLoads(FunctionsNamed(ptx, "AwaitSlowly"), "waiting");
  if (choice.protocol == "kSimple") {
    const std::string moves = FunctionsNamed(ptx, "MoveRange");
    EXPECT_NE(moves.find("ld.volatile.global.v4.u32"), std::string::npos);
    EXPECT_NE(moves.find("st.global.v4.u32"), std::string::npos);
    ExpectNoWeakLoads(moves, "MoveRange");
    const std::regex post(R"(fence\.acq_rel\.sys;[\s\S]{0,200}?st\.relaxed\.sys\.global\.u64)");
    EXPECT_TRUE(std::regex_search(ptx, post)) << "a fence stands before a counter is stored";
  } else if (choice.protocol == "kLl") {
    const std::string moves = FunctionsNamed(ptx, "MoveLl");
    EXPECT_NE(moves.find("ld.volatile.global.v4.u32"), std::string::npos);
    EXPECT_NE(moves.find("st.volatile.global.v4.u32"), std::string::npos);
    ExpectNoWeakLoads(moves, "MoveLl");
  } else {
    const std::string moves = FunctionsNamed(ptx, "MoveLl128");
    EXPECT_NE(moves.find("ld.volatile.global.v2.u64"), std::string::npos);
    EXPECT_NE(moves.find("st.volatile.global.v2.u64"), std::string::npos);
    ExpectNoWeakLoads(moves, "MoveLl128");
  }
}

void Check(const std::vector<Choice>& choices) {
  const std::string nvcc = FindNvcc();
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc: not in CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/bin";
  for (const Choice& choice : choices) {
    SCOPED_TRACE(ToString(choice));
    Compiled compiled;
    Compile(nvcc, choice, compiled);
    if (testing::Test::HasFatalFailure()) return;
    ExpectNoLocalMemory(compiled);
    ExpectGoodPtx(choice, compiled.ptx);
    ExpectFits(choice, compiled);
    // The interpreter divides by what stands in its table, and an integer avg divides elements.
    if (choice.protocol != "kSimple" && choice.plan != kInterpreter && choice.op != "kAvg") {
      ExpectNoLongDivision(EntryOf(compiled.ptx));
      ExpectNoLongDivision(FunctionsNamed(compiled.ptx, "MoveLl"));
    }
  }
}

const bool kAll = std::getenv("XCCL_LONG") != nullptr;
constexpr const char* kArchitectures[] = {"sm_80", "sm_90", "sm_100"};
constexpr const char* kProtocols[] = {"kSimple", "kLl", "kLl128"};
constexpr const char* kPlans[] = {"allgather-torus-ring", "allreduce-nvswitch-ring", "broadcast-dgx1-tree",
                                  "alltoall-full-mesh-direct", "allgather-fat-tree-greedy"};

// All on request; else one, in turn.
std::span<const char* const> ArchitecturesOf(size_t turn) {
  const std::span all(kArchitectures);
  return kAll ? all : all.subspan(turn % all.size(), 1);
}

TEST(Nvcc, GoldenPlansWithTheirProtocol) {
  std::vector<Choice> choices;
  for (const char* plan : kPlans)
    for (const char* arch : ArchitecturesOf(choices.size())) choices.push_back({plan, arch, "kSimple"});
  Check(choices);
}

TEST(Nvcc, EveryProtocol) {
  std::vector<Choice> choices;
  for (const char* protocol : {"kLl", "kLl128"})
    for (const char* arch : ArchitecturesOf(choices.size() + 1))
      choices.push_back({"allreduce-nvswitch-ring", arch, protocol});
  Check(choices);
}

// Loads that a kernel waits for after its last call of a function, in this pass: in all lines that can be
// reached from there without a jump back to before the call.
int32_t LoadsAfterCall(const std::string& entry, const std::string& function) {
  std::vector<std::string> lines;
  std::map<std::string, size_t> labels;
  size_t call = 0;
  std::istringstream text(entry);
  for (std::string line; std::getline(text, line); lines.push_back(line)) {
    if (line.starts_with("$") && line.ends_with(":")) labels[line.substr(0, line.size() - 1)] = lines.size();
    if (line.find(function) != std::string::npos) call = lines.size();
  }
  EXPECT_GT(call, 0U);
  const std::regex load(R"(\bld\.(?!param|shared|const))"), jump(R"(\bbra(\.uni)?\s+(\$\w+))");
  std::vector<size_t> next = {call};
  std::set<size_t> seen;
  int32_t loads = 0;
  while (!next.empty()) {
    const size_t at = next.back();
    next.pop_back();
    if (at >= lines.size() || !seen.insert(at).second) continue;
    const std::string& line = lines[at];
    loads += std::regex_search(line, load) ? 1 : 0;
    std::smatch to;
    const bool jumps = std::regex_search(line, to, jump);
    if (jumps && labels.at(to[2]) > call) next.push_back(labels.at(to[2]));
    const bool always = jumps && line.find('@') == std::string::npos;
    if (!always && line.find("ret;") == std::string::npos) next.push_back(at + 1);
  }
  return loads;
}

// One shot of 8 KiB. When the last flag was seen, in FanIn or in a call of it, one word is loaded: where the
// sender waits for its credit.
TEST(Nvcc, OneShotDividesSpillsAndLoadsNothingOnItsPath) {
  const std::string nvcc = FindNvcc();
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc: not in CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/bin";
  const std::string plan = "allreduce-nvswitch-one-shot";
  for (const Choice& choice : {Choice{plan, "sm_80", "kLl"}, Choice{plan, "sm_90", "kLl"},
                               Choice{plan, "sm_90", "kLl128"}, Choice{plan, "sm_100", "kLl", "Bfloat16"}}) {
    SCOPED_TRACE(ToString(choice));
    Compiled compiled;
    Compile(nvcc, choice, compiled);
    if (testing::Test::HasFatalFailure()) return;
    ExpectNoLocalMemory(compiled);
    ExpectNoLongDivision(EntryOf(compiled.ptx));
    ExpectNoLongDivision(FunctionsNamed(compiled.ptx, "FanInLl"));
    EXPECT_EQ(LoadsAfterCall(EntryOf(compiled.ptx), "FanInLl"), 1);
  }
}

TEST(Nvcc, TypesAndOperators) {
  std::vector<Choice> choices = {{"allreduce-nvswitch-ring", "sm_90", "kSimple", "Half", "kAvg"},
                                 {"allreduce-nvswitch-ring", "sm_80", "kSimple", "E4m3", "kMax"},
                                 {"allreduce-nvswitch-ring", "sm_90", "kSimple", "E4m3", "kAvg"},
                                 {"allreduce-nvswitch-ring", "sm_100", "kLl", "Bfloat16", "kSum"}};
  if (kAll) {
    for (const char* type : {"int8_t", "uint8_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "Half",
                             "float", "double", "Bfloat16", "E4m3", "E5m2"})
      for (const char* op : {"kSum", "kProd", "kMin", "kMax", "kAvg"})
        for (const char* protocol : kProtocols)
          choices.push_back(
              {"allreduce-nvswitch-ring", kArchitectures[choices.size() % 3], protocol, type, op});
  }
  Check(choices);
}

// Groups use the switch from sm_90 on; with and without it, fences are in place.
TEST(Nvcc, GroupsHaveMultimem) {
  const std::string nvcc = FindNvcc();
  if (nvcc.empty()) GTEST_SKIP() << "no nvcc: not in CUDA_HOME, CUDA_PATH, /usr/local/cuda, /usr/bin";
  struct Expected {
    Choice choice;
    std::vector<std::string> multimem;  // empty: none at all
  };
  const std::string store = "multimem.st.relaxed.sys.global.v4.f32",
                    load = "multimem.ld_reduce.relaxed.sys.global.";
  const std::string plan = "allreduce-nvls-multicast";
  const std::vector<Expected> all = {
      {{plan, "sm_80", "kSimple"}, {}},
      {{plan, "sm_90", "kSimple"}, {store, load + "add.v4.f32"}},
      {{plan, "sm_90", "kSimple", "Bfloat16", "kAvg"}, {store, load + "add.acc::f32.v4.bf16x2"}},
      {{plan, "sm_100", "kSimple", "int32_t", "kMin"}, {store, load + "min.s32"}},
      {{plan, "sm_100", "kSimple", "int8_t", "kMax"}, {store}}};
  for (const Expected& expected : all) {
    SCOPED_TRACE(ToString(expected.choice));
    Compiled compiled;
    Compile(nvcc, expected.choice, compiled);
    if (testing::Test::HasFatalFailure()) return;
    ExpectNoLocalMemory(compiled);
    const std::string moves = FunctionsNamed(compiled.ptx, "MoveGroupRange");
    EXPECT_NE(moves.find("ld.volatile.global.v4.u32"), std::string::npos);
    for (const std::string& instruction : expected.multimem)
      EXPECT_NE(moves.find(instruction), std::string::npos) << instruction;
    const bool reduces = moves.find("multimem.ld_reduce") != std::string::npos;
    EXPECT_EQ(reduces, expected.multimem.size() == 2);
    EXPECT_EQ(compiled.ptx.find("multimem") == std::string::npos, expected.multimem.empty());
    EXPECT_EQ(compiled.ptx.find("fence.proxy.alias") == std::string::npos, expected.multimem.empty());
    const std::regex post(
        R"(fence\.proxy\.alias;[\s\S]{0,900}?fence\.acq_rel\.sys;[\s\S]{0,200}?st\.relaxed\.sys\.global\.u64)");
    EXPECT_EQ(std::regex_search(compiled.ptx, post), !expected.multimem.empty());
  }
}

TEST(Nvcc, TheInterpreterKernel) {
  std::vector<Choice> choices = {{kInterpreter, "sm_80", "kSimple"},
                                 {kInterpreter, "sm_90", "kSimple", "int8_t", "kAvg"},
                                 {kInterpreter, "sm_100", "kSimple", "double", "kAvg"},
                                 {kInterpreter, "sm_90", "kSimple", "Half", "kAvg", true}};
  if (kAll) {
    choices.clear();
    for (const char* type : {"int8_t", "uint8_t", "int32_t", "uint32_t", "int64_t", "uint64_t", "Half",
                             "float", "double", "Bfloat16", "E4m3", "E5m2"})
      for (const char* op : {"kSum", "kProd", "kAvg"})
        for (const char* arch : kArchitectures)
          for (const char* protocol : kProtocols) choices.push_back({kInterpreter, arch, protocol, type, op});
  }
  Check(choices);
}

}  // namespace
}  // namespace xccl
