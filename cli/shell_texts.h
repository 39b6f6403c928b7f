// Completion for shells and the manual page. All of it is generated from the help texts.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace xccl {

// The words that complete an option, beyond the values that its OptionText lists; empty: any file. It is
// called with an option's first name, "--engine", or a positional argument, "TOPOLOGY".
using Suggestions = std::function<std::vector<std::string>(const std::string& option)>;

std::string BashCompletion(const std::vector<CommandText>& commands, const Suggestions& suggestions);
std::string ZshCompletion(const std::vector<CommandText>& commands, const Suggestions& suggestions);
// In roff, for section 1. `version`: "xccl-synth 1.0".
std::string ManualPage(const std::vector<CommandText>& commands, const std::string& description,
                       const std::string& version);

}  // namespace xccl
