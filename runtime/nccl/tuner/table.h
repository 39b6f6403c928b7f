// The table that tells NCCL which algorithm to run: rows of a text file, each a collective with conditions
// and a choice. Two formats are read; docs/nccl.md describes both.
//
//   xccl-tuner 1                                          (the first line names our own format)
//   allreduce max_bytes=65536 nodes=1 algorithm=tree protocol=ll channels=4     # a comment
//   allreduce algorithm=nvls protocol=simple
//
// Any other file is a list as NVIDIA's example plugin reads it: eight to ten fields, -1 where anything will
// do:
//
//   collective,min_bytes,max_bytes,algorithm,protocol,channels,nodes,ranks[,pipe_ops[,registered]]
//
// Rows are tried in the order of the file, and the first one that applies decides. Nothing else enters:
// neither time nor rank nor address, so all ranks that read the same file decide alike.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"
#include "runtime/nccl/tuner/abi.h"

namespace xccl::nccl_tuner {

inline constexpr size_t kMaxRows = 4096;  // a communicator keeps them, with their index up to 2 MB
inline constexpr int kMaxChannels = 64;   // NCCL's MAXCHANNELS
// NCCL's own chunks are multiples of this one, from 16 KiB to 4 MiB.
inline constexpr int64_t kChunkUnitBytes = 4096;
inline constexpr int64_t kMaxChunkBytes = 64 << 20;

// Where a condition or a choice is absent, anything matches, or NCCL's own value stays.
struct Row {
  Collective collective = Collective::kAllreduce;
  int64_t min_bytes = 0;                                    // inclusive
  int64_t max_bytes = std::numeric_limits<int64_t>::max();  // inclusive
  std::optional<int64_t> nodes, ranks;                      // the communicator's
  std::optional<int64_t> pipe_ops;                          // operations that NCCL runs in one pipeline
  std::optional<bool> registered;                           // both buffers are registered

  Algorithm algorithm = Algorithm::kRing;
  Protocol protocol = Protocol::kSimple;
  std::optional<int> channels;         // 1 to kMaxChannels
  std::optional<int64_t> chunk_bytes;  // a multiple of kChunkUnitBytes; with kSimple only, and without
                                       // pipe_ops and registered, which NCCL does not say when it asks

  bool operator==(const Row&) const = default;
};

// A call as NCCL describes it to the plugin. A field is absent where the release of NCCL does not state it.
struct Call {
  int collective = 0;
  int64_t bytes = 0;
  std::optional<int64_t> pipe_ops;
  std::optional<bool> registered;
};

std::string_view ToString(Algorithm algorithm);  // "nvls_tree"
std::string_view ToString(Protocol protocol);    // "ll128"

// The rows of a file. Errors: kInvalidInput "file:line:column: what was seen; what was expected". Rows of
// a list that NCCL has no kernels for are left out, and `notes` gets a line for each; in our own format a row
// without kernels is an error.
StatusOr<std::vector<Row>> ReadTable(std::string_view text, const std::string& file,
                                     std::vector<std::string>* notes = nullptr);
// The rows in our own format; ReadTable gives them back.
std::string WriteTable(std::span<const Row> rows);

// Whether the row is for a communicator of this many nodes and ranks. A row with a condition on what is
// unknown is not.
bool IsFor(const Row& row, std::optional<int64_t> nodes, std::optional<int64_t> ranks);

// Whether some NCCL up to 2.30 has kernels for the combination (NCCL's generate.py, 2.28.9).
bool HasKernels(Collective collective, Algorithm algorithm, Protocol protocol);

}  // namespace xccl::nccl_tuner
