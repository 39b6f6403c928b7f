// Rows and columns are padded to one sum, greedily. Then perfect matchings of what is left, each taken as
// long as its least entry allows; the next one keeps the pairs that are left and mends the others by
// augmenting paths. Stages do not tell padding from demands: a reader stops at the demand.
#include "synth/textbook/birkhoff.h"

#include <algorithm>
#include <limits>

#include "base/status.h"

namespace xccl {
namespace {

class Decomposition {
 public:
  Decomposition(std::vector<int64_t> left, int32_t n)
      : left_(std::move(left)),
        n_(n),
        to_(static_cast<size_t>(n), -1),
        from_(static_cast<size_t>(n), -1),
        seen_(static_cast<size_t>(n), 0) {}

  std::vector<BirkhoffStage> Run() {
    const int64_t sum = Pad();
    std::vector<BirkhoffStage> stages;
    for (int64_t done = 0; done < sum;) {
      for (int32_t row = 0; row < n_; ++row) {
        if (to_[row] >= 0) continue;
        std::fill(seen_.begin(), seen_.end(), 0);
        XCCL_CHECK(Augment(row));  // Hall: all rows and columns have the same sum
      }
      int64_t amount = std::numeric_limits<int64_t>::max();
      for (int32_t row = 0; row < n_; ++row) amount = std::min(amount, At(row, to_[row]));
      stages.push_back({to_, amount});
      done += amount;
      for (int32_t row = 0; row < n_; ++row) {
        int64_t& entry = At(row, to_[row]);
        entry -= amount;
        if (entry > 0) continue;
        from_[to_[row]] = -1;
        to_[row] = -1;
      }
    }
    return stages;
  }

 private:
  int64_t& At(int32_t row, int32_t column) {
    return left_[static_cast<size_t>(row) * static_cast<size_t>(n_) + static_cast<size_t>(column)];
  }

  // Returns the sum of every row and column from here on.
  int64_t Pad() {
    std::vector<int64_t> rows(static_cast<size_t>(n_), 0), columns(static_cast<size_t>(n_), 0);
    for (int32_t r = 0; r < n_; ++r)
      for (int32_t c = 0; c < n_; ++c) rows[r] += At(r, c), columns[c] += At(r, c);
    int64_t sum = 0;
    for (int64_t s : rows) sum = std::max(sum, s);
    for (int64_t s : columns) sum = std::max(sum, s);
    // Each step fills a row or a column.
    for (int32_t r = 0, c = 0; r < n_ && c < n_;) {
      const int64_t room = std::min(sum - rows[r], sum - columns[c]);
      At(r, c) += room;
      rows[r] += room;
      columns[c] += room;
      rows[r] == sum ? ++r : ++c;
    }
    return sum;
  }

  // A column for this row, others moving on (Kuhn 1955): depth first, with the rows of the path in an array.
  bool Augment(int32_t first_row) {
    path_.assign(1, {first_row, 0});
    while (!path_.empty()) {
      auto& [row, next] = path_.back();
      for (int32_t c = 0; next == 0 && c < n_; ++c)
        if (from_[c] < 0 && At(row, c) > 0) return MatchAlong(c);
      while (next < n_ && (seen_[next] != 0 || At(row, next) == 0)) ++next;
      if (next == n_) {
        path_.pop_back();
        continue;
      }
      seen_[next] = 1;
      path_.push_back({from_[next++], 0});
    }
    return false;
  }
  // The last row of the path gets the column, each before it the one that its successor had.
  bool MatchAlong(int32_t column) {
    while (true) {
      const int32_t row = path_.back().row;
      to_[row] = column;
      from_[column] = row;
      path_.pop_back();
      if (path_.empty()) return true;
      column = path_.back().next - 1;
    }
  }

  std::vector<int64_t> left_;
  int32_t n_;
  std::vector<int32_t> to_, from_;
  std::vector<char> seen_;  // columns
  struct Visited {
    int32_t row, next;  // the next column to try
  };
  std::vector<Visited> path_;
};

}  // namespace

std::vector<BirkhoffStage> BirkhoffStages(const std::vector<int64_t>& demands, int32_t n) {
  return Decomposition(demands, n).Run();
}

}  // namespace xccl
