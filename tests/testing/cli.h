// The fixture of tests that run xccl-synth from outside, in a folder of their own.
#pragma once

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/testing/command.h"

namespace xccl {

using Json = nlohmann::ordered_json;
using Words = std::vector<std::string>;

std::string SynthProgram();  // the path of xccl-synth

class Cli : public testing::Test {
 protected:
  void SetUp() override;
  Said Run(const Words& arguments) const;
  // Runs a command of the shell, in which $X is xccl-synth.
  Said Shell(const std::string& command) const;
  // Runs xccl-synth with these arguments until a line of its output begins so, and ends it then. Returns what
  // was printed until then; fails where the command ended by itself.
  std::string PrintedUntil(const std::string& line, const std::string& arguments) const;
  // Runs a command that must succeed without a word on standard error, and returns its output.
  std::string Out(const Words& arguments) const;
  void Write(const std::string& name, const std::string& text) const;
  std::string Read(const std::string& name) const;
  Words Files() const;
  // Writes a plan for allgather by ring on torus:2x2, 64 KiB.
  void RingPlan(const std::string& file = "a.json") const;

  std::string folder_;
};

Words Keys(const Json& object);

inline constexpr char kTry[] = "Try: xccl-synth ";

struct Wrong {
  Words arguments;
  int code;
  std::string err;  // without "xccl-synth: " and the last line break
};
void ExpectWrong(const Wrong& wrong, const Said& said);

}  // namespace xccl
