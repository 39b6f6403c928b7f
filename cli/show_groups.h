// How the plan of several groups looks: a line for each group, then the plan of all. Where there are many
// groups, there is a line for each kind.
#pragma once

#include <string>

#include "pipeline/groups.h"

namespace xccl {

std::string GroupsText(const GroupsResult& groups, const std::string& file);
std::string GroupsJson(const GroupsResult& groups, const std::string& file);

}  // namespace xccl
