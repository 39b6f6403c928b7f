// The end of a dispatch at one rank: its rows, where they come from, and which experts they are for. It is
// the handle of all calls that take the same ways again: combine, and the backward passes of both.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace xccl::dispatch {

// Tokens that one rank's dispatch saw: those it needs, and those it only passes on. They are in the order of
// (home, token), so the same choices give the same order at every run. A rank sees all its own tokens.
struct Seen {
  std::vector<int32_t> homes, tokens;
  std::vector<int32_t> experts;  // by token seen and position, as in Routing
  std::vector<float> weights;    // likewise
  std::vector<int32_t> rows;     // by token seen: its row in Received::rows, or -1 where it is passed on

  size_t size() const { return homes.size(); }
  // The place of a token, or -1. Cost: logarithmic.
  int64_t Find(int32_t home, int32_t token) const {
    size_t low = 0, high = size();
    while (low < high) {
      const size_t middle = (low + high) / 2;
      if (homes[middle] < home || (homes[middle] == home && tokens[middle] < token))
        low = middle + 1;
      else
        high = middle;
    }
    return low < size() && homes[low] == home && tokens[low] == token ? static_cast<int64_t>(low) : -1;
  }
};

// One rank's end of a dispatch.
struct Received {
  std::vector<std::byte> rows;           // a row for each token needed, by (home, token); own tokens too
  std::vector<int32_t> rows_of_home;     // by rank
  std::vector<int32_t> rows_of_expert;   // by local expert
  std::vector<int32_t> first_of_expert;  // sums of rows_of_expert before each; one more at the end
  // Entries by local expert, then row: where the input of each expert's computation is.
  std::vector<int32_t> row_of_entry;
  std::vector<float> weight_of_entry;
  Seen seen;
  int32_t num_rows = 0;
  int32_t own_tokens = 0;
  uint64_t number = 0;  // of the dispatch, equal on all ranks: the calls that take its ways again say it
};

// Rows of one rank, one after another.
using Rows = std::vector<std::byte>;

}  // namespace xccl::dispatch
