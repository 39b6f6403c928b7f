// In the turned form Clp solves the dual program: each of our rows is a column there, and each of our
// variables a row. Rows added later are then columns outside the basis, so the primal simplex continues
// from the last solution.
#include "base/graph/lp.h"

#include <coin/Clp_C_Interface.h>

#include <vector>

#include "base/status.h"

namespace xccl {

// Added rows wait here until the next Solve.
struct LinearProgram::Model {
  Clp_Simplex* clp = nullptr;
  bool turned = false;
  std::vector<int> starts = {0}, variables;
  std::vector<double> elements, low, high;

  void AddWaitingRows() {
    const int rows = static_cast<int>(low.size());
    if (rows == 0) return;
    if (turned) {
      // The price of an equation is free; that of an inequality is >= 0.
      std::vector<double> least(low.size()), most(low.size(), kInfinity);
      for (size_t i = 0; i < low.size(); ++i) least[i] = low[i] == high[i] ? -kInfinity : 0;
      Clp_addColumns(clp, rows, least.data(), most.data(), high.data(), starts.data(), variables.data(),
                     elements.data());
    } else {
      Clp_addRows(clp, rows, low.data(), high.data(), starts.data(), variables.data(), elements.data());
    }
    starts.assign(1, 0);
    variables.clear();
    elements.clear();
    low.clear();
    high.clear();
  }
};

LinearProgram::LinearProgram(std::span<const double> costs, LinearProgramForm form)
    : model_(std::make_unique<Model>()) {
  const int variables = static_cast<int>(costs.size());
  model_->turned = form == LinearProgramForm::kTurned;
  model_->clp = Clp_newModel();
  Clp_setLogLevel(model_->clp, 0);
  Clp_setOptimizationDirection(model_->clp, model_->turned ? 1 : -1);
  Clp_resize(model_->clp, model_->turned ? variables : 0, model_->turned ? 0 : variables);
  double* lower = model_->turned ? Clp_rowLower(model_->clp) : Clp_columnLower(model_->clp);
  double* upper = model_->turned ? Clp_rowUpper(model_->clp) : Clp_columnUpper(model_->clp);
  for (size_t i = 0; i < costs.size(); ++i) {
    if (!model_->turned) Clp_objective(model_->clp)[i] = costs[i];
    lower[i] = model_->turned ? costs[i] : 0;
    upper[i] = kInfinity;
  }
}

LinearProgram::~LinearProgram() { Clp_deleteModel(model_->clp); }

void LinearProgram::AddRow(std::span<const std::pair<int32_t, double>> terms, double low, double high) {
  XCCL_CHECK(low == high || low == -kInfinity);
  for (const auto& [variable, value] : terms) {
    model_->variables.push_back(variable);
    model_->elements.push_back(value);
  }
  model_->starts.push_back(static_cast<int>(model_->variables.size()));
  model_->low.push_back(low);
  model_->high.push_back(high);
}

bool LinearProgram::Solve(int32_t iterations) {
  model_->AddWaitingRows();
  Clp_setMaximumIterations(model_->clp, Clp_numberIterations(model_->clp) + iterations);
  if (model_->turned) {
    Clp_primal(model_->clp, 0);
  } else {
    Clp_dual(model_->clp, 0);
  }
  return Clp_status(model_->clp) == 0;
}

double LinearProgram::Objective() const { return Clp_objectiveValue(model_->clp); }

std::span<const double> LinearProgram::Values() const {
  if (model_->turned) return {Clp_getRowPrice(model_->clp), static_cast<size_t>(Clp_numberRows(model_->clp))};
  return {Clp_getColSolution(model_->clp), static_cast<size_t>(Clp_numberColumns(model_->clp))};
}

std::span<const double> LinearProgram::RowSlacks() const {
  XCCL_CHECK(model_->turned);
  return {Clp_getReducedCost(model_->clp), static_cast<size_t>(Clp_numberColumns(model_->clp))};
}

void LinearProgram::DropRows(std::span<const int32_t> rows) {
  XCCL_CHECK(model_->turned);
  if (!rows.empty()) Clp_deleteColumns(model_->clp, static_cast<int>(rows.size()), rows.data());
}

std::span<const double> LinearProgram::RowPrices() const {
  if (model_->turned)
    return {Clp_getColSolution(model_->clp), static_cast<size_t>(Clp_numberColumns(model_->clp))};
  return {Clp_getRowPrice(model_->clp), static_cast<size_t>(Clp_numberRows(model_->clp))};
}

}  // namespace xccl
