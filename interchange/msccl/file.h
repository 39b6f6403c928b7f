// The elements of an MSCCL XML file, with all numbers in range. Private to the reader.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/ids.h"
#include "base/status.h"
#include "interchange/common/foreign.h"
#include "ir/program.h"

namespace xccl::msccl {

struct FileStep {
  Opcode op = Opcode::kNop;
  Operand src, dst;
  int32_t count = 0;
  int32_t wait_block = -1, wait_step = -1;  // -1: it waits for nothing
  bool posts = false;
  int32_t line = 0;
  int32_t number = 0;  // number that the file gives the step; nothing follows from it
  std::vector<std::pair<int32_t, int32_t>> more_waits = {};  // block and step; no step of MSCCL XML has any
  std::string place = {};  // place of a step of another format, in place of its line and number
};
struct FileBlock {
  int32_t send = -1, recv = -1, channel = 0;  // -1: no peer
  std::vector<FileStep> steps;
  // Ranks in place of a peer, ascending. A switch stores the block's message at all ranks of send_all, or
  // adds up the messages of all ranks of recv_all for the block. MSCCL XML has no blocks of this kind.
  std::vector<int32_t> send_all = {}, recv_all = {};
  // Hints: links of the machine that the file was made for. The path of the block's sends, and the path of
  // the messages that a switch adds up for it. Empty: not said.
  std::vector<LinkId> links = {}, recv_links = {};
};
struct FileRank {
  int32_t input = 0, output = 0, scratch = 0;  // chunks
  std::vector<FileBlock> blocks;
};
struct File {
  std::string name, collective;
  int64_t min_bytes = 0, max_bytes = 0;  // sizes that it is selected for; 0: no upper limit
  int32_t chunks_per_loop = 0, channels = 0;
  bool in_place = false, out_of_place = false;
  Protocol protocol = Protocol::kSimple;
  std::vector<FileRank> ranks;
  // Set where they differ from those of MSCCL XML's executors; 0 and -1: as the protocol gives them.
  int32_t slots = 0;
  int64_t segment_bytes = -1;
};

// Offsets are not compared with the sizes of buffers. Errors: kInvalidInput "file:line:column: ...".
StatusOr<File> ReadFile(std::string_view text, std::string_view name);

// Makes the program of a file's elements and proves it; see ReadMscclXml (interchange/msccl/read.h). Errors:
// kInvalidInput with the place that the proof finds wrong.
StatusOr<LoweredProgram> ProveFile(const File& file, const ImportOptions& options);

}  // namespace xccl::msccl
