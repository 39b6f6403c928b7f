// The elements of an MSCCL XML file, with all numbers in range. Private to the reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "ir/program.h"

namespace xccl::msccl {

struct FileStep {
  Opcode op = Opcode::kNop;
  Operand src, dst;
  int32_t count = 0;
  int32_t wait_block = -1, wait_step = -1;  // -1: it waits for nothing
  bool posts = false;
  int32_t line = 0;
};
struct FileBlock {
  int32_t send = -1, recv = -1, channel = 0;  // -1: no peer
  std::vector<FileStep> steps;
};
struct FileRank {
  int32_t input = 0, output = 0, scratch = 0;  // chunks
  std::vector<FileBlock> blocks;
};
struct File {
  std::string name, collective;
  int64_t min_bytes = 0, max_bytes = 0;  // sizes that it is selected for; 0: no upper limit
  int32_t chunks_per_loop = 0;
  bool in_place = false, out_of_place = false;
  Protocol protocol = Protocol::kSimple;
  std::vector<FileRank> ranks;
};

// Offsets are not compared with the sizes of buffers. Errors: kInvalidInput "file:line:column: ...".
StatusOr<File> ReadFile(std::string_view text, std::string_view name);

}  // namespace xccl::msccl
