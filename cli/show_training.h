// How a planned training step looks: a line for each kind of group.
#pragma once

#include <string>

#include "pipeline/training.h"

namespace xccl {

std::string TrainingText(const TrainingPlan& plan, const std::string& book);
std::string TrainingJson(const TrainingPlan& plan);

}  // namespace xccl
