// Messages of commands on standard error, one line each. On a terminal the first word has a colour, unless
// NO_COLOR is set or TERM is dumb. Control characters, which files and names may contain, are shown as \x1b.
// A line that cannot be written is dropped (base/standard_streams.h).
#pragma once

#include <string>
#include <string_view>

namespace xccl {

void SayNote(std::string_view text) noexcept;     // "note: TEXT"
void SayWarning(std::string_view text) noexcept;  // "warning: TEXT"
void SayError(std::string_view text) noexcept;    // "xccl-synth: TEXT"

// The text as a terminal may show it: control characters but line ends and tabs are written as \xNN.
std::string Visible(std::string_view text);

}  // namespace xccl
