// Linear programs that grow by rows: maximise costs · x, x >= 0, low <= row · x <= high. The one door to the
// LP library (Clp); dual simplex, which starts from the last solution when rows are added. Deterministic.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace xccl {

class LinearProgram {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  // One cost a variable.
  explicit LinearProgram(std::span<const double> costs);
  ~LinearProgram();
  LinearProgram(const LinearProgram&) = delete;
  LinearProgram& operator=(const LinearProgram&) = delete;

  void AddRow(std::span<const std::pair<int32_t, double>> terms, double low, double high);
  // Is an optimum found? False: infeasible, unbounded, or the solver's limit of `iterations`.
  bool Solve(int32_t iterations);
  double Objective() const;                   // Requires: Solve() was true
  std::span<const double> Values() const;     // likewise; one a variable
  std::span<const double> RowPrices() const;  // likewise; one a row, >= 0 where `high` holds the optimum back

 private:
  struct Model;
  std::unique_ptr<Model> model_;
};

}  // namespace xccl
