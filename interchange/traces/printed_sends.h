// The sends of an allgather as other synthesizers print them: who sends which chunk to whom. They name no
// links; with a topology they become a schedule (pipeline/import_sends.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/ids.h"
#include "base/status.h"

namespace xccl {

struct PrintedSend {
  Rank src, dst;
  ChunkId chunk;
  int32_t line = 0;  // line of the file
};
// Invariants: ranks and chunks are in range, no rank sends to itself, and no rank gets a chunk twice or gets
// its own. A chunk need not have reached its sender.
struct PrintedSends {
  std::string tool, format;  // "forestcoll", "ForestColl XML"; "tacos", "TACOS CSV"
  int32_t ranks = 0;
  std::vector<std::vector<int64_t>> weights;  // by rank: the relative sizes of the chunks that it begins
                                              // with; chunk ids run rank by rank
  std::vector<PrintedSend> sends;
  bool links_in_order = false;  // a link carries its sends one after another, in their order here
};

// Reads the output of one of the tools below; absent if the text begins like the output of neither.
std::optional<StatusOr<PrintedSends>> ReadPrintedSends(std::string_view text, std::string_view file);

// Trees as ForestColl's spanning_trees_to_xml prints them: an <Algo> of <tree root nchunks>, each of <send
// src dst>. Ranks are numbered in the order of their names, whose numbers count as numbers: (0, 'GPU', 2) is
// before (0, 'GPU', 10). Errors: kInvalidInput "file:line:column: ...".
StatusOr<PrintedSends> ReadForestCollXml(std::string_view text, std::string_view file);

// The lists of chunks a link that TACOS' CSV writer prints. Chunk c begins at rank c mod ranks. Errors:
// kInvalidInput "file:line: ...".
StatusOr<PrintedSends> ReadTacosCsv(std::string_view text, std::string_view file);

}  // namespace xccl
