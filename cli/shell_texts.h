// The command line as other programs want it: completion for shells, and a page of the manual. All follow
// from what help says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "cli/command_line.h"

namespace xccl {

// What the words of an option are, beyond those that its text lists; empty: any file. Called with an option's
// first name, "--engine", or a positional argument, "TOPOLOGY".
using Suggestions = std::function<std::vector<std::string>(const std::string& option)>;

std::string BashCompletion(const std::vector<CommandText>& commands, const Suggestions& suggestions);
std::string ZshCompletion(const std::vector<CommandText>& commands, const Suggestions& suggestions);
// In roff, for section 1. `version`: "xccl-synth 1.0".
std::string ManualPage(const std::vector<CommandText>& commands, const std::string& description,
                       const std::string& version);

}  // namespace xccl
