// Rows and columns are padded to one sum, greedily. Then perfect matchings of what is left, each taken as
// long as its least entry allows; the next one keeps the pairs that are left and mends the others by
// augmenting paths. Stages do not tell padding from demands: a reader stops at the demand.
#include "synth/textbook/birkhoff.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "base/status.h"

namespace xccl {
namespace {

class Decomposition {
 public:
  Decomposition(std::vector<int64_t> left, int32_t n)
      : left_(std::move(left)), n_(n), to_(static_cast<size_t>(n), -1), from_(static_cast<size_t>(n), -1) {}

  std::vector<BirkhoffStage> Run() {
    const int64_t sum = Pad();
    std::vector<BirkhoffStage> stages;
    for (int64_t done = 0; done < sum;) {
      for (int32_t row = 0; row < n_; ++row) {
        if (to_[row] >= 0) continue;
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

  // A column for this row, others moving on (Kuhn 1955): depth first.
  bool Augment(int32_t row) {
    std::vector<int32_t> via(static_cast<size_t>(n_), -1);  // by column: the row before it; -1: not seen
    std::vector<std::pair<int32_t, int32_t>> open;          // columns to try, with the row before them
    while (true) {
      for (int32_t c = 0; c < n_; ++c) {
        if (from_[c] >= 0 || At(row, c) == 0) continue;
        via[c] = row;
        for (int32_t at = c; at >= 0;) {  // each row of the path hands its column on to the one before
          from_[at] = via[at];
          std::swap(at, to_[via[at]]);
        }
        return true;
      }
      for (int32_t c = n_; c-- > 0;)
        if (via[c] < 0 && At(row, c) > 0) open.emplace_back(c, row);
      while (!open.empty() && via[open.back().first] >= 0) open.pop_back();
      if (open.empty()) return false;
      const auto [column, before] = open.back();
      via[column] = before;
      row = from_[column];
    }
  }

  std::vector<int64_t> left_;
  int32_t n_;
  std::vector<int32_t> to_, from_;
};

}  // namespace

std::vector<BirkhoffStage> BirkhoffStages(const std::vector<int64_t>& demands, int32_t n) {
  return Decomposition(demands, n).Run();
}

}  // namespace xccl
