// Linear programs that grow by rows: maximise costs · x, x >= 0, row · x = or <= a bound. The one door to the
// LP library (Clp); simplex, which starts from the last solution when rows are added. Deterministic.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace xccl {

// How it is given to the solver. Answers are as good, but where several are optimal they may differ.
enum class LinearProgramForm : uint8_t {
  kPlain,
  kTurned,  // the dual program: several times as fast where rows come to be many more than variables
};

class LinearProgram {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();

  // One cost a variable.
  explicit LinearProgram(std::span<const double> costs, LinearProgramForm form = LinearProgramForm::kPlain);
  ~LinearProgram();
  LinearProgram(const LinearProgram&) = delete;
  LinearProgram& operator=(const LinearProgram&) = delete;

  // Requires: low = high, or low = -kInfinity.
  void AddRow(std::span<const std::pair<int32_t, double>> terms, double low, double high);
  // Is an optimum found? False: infeasible, unbounded, or the solver's limit of `iterations`.
  bool Solve(int32_t iterations);
  double Objective() const;                // Requires: Solve() was true
  std::span<const double> Values() const;  // likewise; one a variable
  // Likewise; one for each row that Solve() knew, >= 0 where `high` holds the optimum back.
  std::span<const double> RowPrices() const;

 private:
  struct Model;
  std::unique_ptr<Model> model_;
};

}  // namespace xccl
