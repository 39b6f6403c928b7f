// What commands say on standard error, a line each. On a terminal the first word has a colour; not where
// NO_COLOR is set, or TERM is dumb.
#pragma once

#include <string_view>

namespace xccl {

void SayNote(std::string_view text);     // "note: TEXT"
void SayWarning(std::string_view text);  // "warning: TEXT"
void SayError(std::string_view text);    // "xccl-synth: TEXT"

}  // namespace xccl
