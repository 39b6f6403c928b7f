// Runs the steps of an MSCCL XML file on symbolic values, which tells the value of every slot. Private to the
// reader.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "interchange/msccl/file.h"
#include "interchange/msccl/outline.h"
#include "ir/collective.h"
#include "ir/program.h"

namespace xccl::msccl {

// An instruction whose operands are known slot by slot.
struct Made {
  Opcode op = Opcode::kNop;
  std::vector<Operand> src, dst;
  std::vector<bool> first, final;
  bool after_copies = false;  // reads own input where Ran::copies put it
};

struct Ran {
  std::vector<std::vector<Made>>
      made;                  // by instruction of the outline: several where own input is copied first
  std::vector<Made> copies;  // by rank: own input that nothing else writes to the output
  // By rank and slot of scratch, as operands count them: the file's cell, the place in a part, and the chunk.
  std::vector<std::vector<std::array<int32_t, 3>>> scratch;
};

// In place, a cell that is read before anything has written it is the rank's input; every other cell is
// output or scratch. Errors: kInvalidInput with the step, or the (rank, chunk), that is wrong first.
StatusOr<Ran> RunFile(const File& file, std::string_view name, const Collective& collective,
                      const Outline& outline);

}  // namespace xccl::msccl
