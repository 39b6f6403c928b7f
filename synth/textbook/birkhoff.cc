// Pads the matrix greedily until all rows and columns have the same sum. Then takes a perfect matching of the
// remaining entries for each stage. A stage lasts until the least entry of its matching is used up. The next
// matching starts from all other pairs, and augmenting paths add the rows that became free. Stages do not
// tell padding from demands: their reader stops when a pair's demand is met.
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
        XCCL_CHECK(Augment(row));  // holds by Hall's theorem: all rows and columns have one sum
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

  // Pads the matrix, and returns the sum that every row and column then has.
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

  // Matches `row` to a column along an augmenting path, depth first (Kuhn 1955). Rows on the path change
  // columns. Returns false if there is no path.
  bool Augment(int32_t row) {
    std::vector<int32_t> via(static_cast<size_t>(n_), -1);  // by column: the row that led to it; -1: none
    std::vector<std::pair<int32_t, int32_t>> open;  // columns to try, each with the row that led to it
    while (true) {
      for (int32_t c = 0; c < n_; ++c) {
        if (from_[c] >= 0 || At(row, c) == 0) continue;
        via[c] = row;
        for (int32_t at = c; at >= 0;) {  // each row on the path gives its column to the row before
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
