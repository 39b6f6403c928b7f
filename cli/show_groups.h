// How the plan of several groups looks: a line for each group, or for each kind of group where there are
// many, then the plan of all.
#pragma once

#include <string>

#include "pipeline/groups.h"

namespace xccl {

std::string GroupsText(const GroupsResult& groups, const std::string& file);
std::string GroupsJson(const GroupsResult& groups, const std::string& file);

}  // namespace xccl
