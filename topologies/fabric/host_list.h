// Slurm's lists of host names, such as gpu[001-016,018],login[1-2]: in a file that describes a fabric, in a
// flag, in SLURM_JOB_NODELIST. The form is described at https://slurm.schedmd.com/scontrol.html (hostlist).
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/status.h"

namespace xccl {

// The names in the order of the list; a name that is given twice is there twice. Numbers keep the zeros that
// the first number of their range has. Of several brackets in a name, the last counts fastest. Blanks and
// empty entries between names are ignored.
// Errors: kInvalidInput "host list 'TEXT': ..." for a text without names, with brackets that do not pair,
// nest, or hold other things than numbers and ranges, and for more than 1,000,000 names or 64 MiB of names.
// Requires of a caller: it annotates the error with the place of the list.
StatusOr<std::vector<std::string>> ExpandHostList(std::string_view text);

// A short list that ExpandHostList turns into these names again. Requires: no name holds a bracket, a comma
// or a blank.
std::string CompressHostList(std::span<const std::string> names);

}  // namespace xccl
