#include "ir/lp.h"

#include <coin/Clp_C_Interface.h>

namespace xccl {

struct LinearProgram::Model {
  Clp_Simplex* clp = nullptr;
  std::vector<int> columns;
  std::vector<double> elements;
};

LinearProgram::LinearProgram(std::span<const double> costs) : model_(std::make_unique<Model>()) {
  model_->clp = Clp_newModel();
  Clp_setLogLevel(model_->clp, 0);
  Clp_setOptimizationDirection(model_->clp, -1);
  Clp_resize(model_->clp, 0, static_cast<int>(costs.size()));
  double* objective = Clp_objective(model_->clp);
  double* lower = Clp_columnLower(model_->clp);
  double* upper = Clp_columnUpper(model_->clp);
  for (size_t i = 0; i < costs.size(); ++i) {
    objective[i] = costs[i];
    lower[i] = 0;
    upper[i] = kInfinity;
  }
}

LinearProgram::~LinearProgram() { Clp_deleteModel(model_->clp); }

void LinearProgram::AddRow(std::span<const std::pair<int32_t, double>> terms, double low, double high) {
  model_->columns.clear();
  model_->elements.clear();
  for (const auto& [column, value] : terms) {
    model_->columns.push_back(column);
    model_->elements.push_back(value);
  }
  const int starts[2] = {0, static_cast<int>(terms.size())};
  Clp_addRows(model_->clp, 1, &low, &high, starts, model_->columns.data(), model_->elements.data());
}

bool LinearProgram::Solve(int32_t iterations) {
  Clp_setMaximumIterations(model_->clp, Clp_numberIterations(model_->clp) + iterations);
  Clp_dual(model_->clp, 0);
  return Clp_status(model_->clp) == 0;
}

double LinearProgram::Objective() const { return Clp_objectiveValue(model_->clp); }

std::span<const double> LinearProgram::Values() const {
  return {Clp_getColSolution(model_->clp), static_cast<size_t>(Clp_numberColumns(model_->clp))};
}

std::span<const double> LinearProgram::RowPrices() const {
  return {Clp_getRowPrice(model_->clp), static_cast<size_t>(Clp_numberRows(model_->clp))};
}

}  // namespace xccl
