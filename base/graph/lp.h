// Linear programs whose rows come and go: maximise costs · x where x >= 0 and each row · x is equal to, or at
// most, a bound. Only this file uses the LP library (Clp). Simplex restarts from the last solution when
// rows are added. Deterministic.
#pragma once

#include <cstdint>
#include <limits>
#include <memory>
#include <span>
#include <utility>
#include <vector>

namespace xccl {

// The form in which the solver gets the program. Both find an optimum; where there are several, they may
// differ.
enum class LinearProgramForm : uint8_t {
  kPlain,
  kTurned,  // the dual program: several times as fast when rows far outnumber variables
};

class LinearProgram {
 public:
  static constexpr double kInfinity = std::numeric_limits<double>::infinity();
  // A guard against cycling: programs of thousands of rows take fewer iterations.
  static constexpr int32_t kMostIterations = 100'000;

  // `costs` holds one entry per variable.
  explicit LinearProgram(std::span<const double> costs, LinearProgramForm form = LinearProgramForm::kPlain);
  ~LinearProgram();
  LinearProgram(const LinearProgram&) = delete;
  LinearProgram& operator=(const LinearProgram&) = delete;

  // Requires: low = high, or low = -kInfinity.
  void AddRow(std::span<const std::pair<int32_t, double>> terms, double low, double high);
  // True if an optimum was found; false if infeasible, unbounded, or stopped after `iterations`.
  bool Solve(int32_t iterations = kMostIterations);
  double Objective() const;                // Requires: Solve() returned true
  std::span<const double> Values() const;  // one per variable. Requires: as Objective
  // By how much each row is below its `high` at the optimum: 0 where that limits it. Requires: as Objective,
  // and the turned form.
  std::span<const double> RowSlacks() const;
  // Takes rows out; those behind them move up. The optimum stays, but all spans end. Requires: as RowSlacks;
  // distinct rows that Solve() had, without a price.
  void DropRows(std::span<const int32_t> rows);
  // One price per row that Solve() had and that is still there; an inequality's is >= 0, and positive only
  // where `high` limits the optimum. Requires: as Objective.
  std::span<const double> RowPrices() const;

 private:
  struct Model;
  std::unique_ptr<Model> model_;
};

}  // namespace xccl
