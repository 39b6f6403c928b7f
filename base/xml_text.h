// Checks the raw text of an XML file for faults that an XML parser would let through. XML readers call it
// first.
#pragma once

#include <string_view>

#include "base/status.h"

namespace xccl {

// The text is UTF-8 without zero bytes, and its character references (&#233; or &#xE9;) name characters that
// UTF-8 can hold, other than the zero. Errors: "file:line:column: byte 0xe9; expected UTF-8 text".
Status CheckXmlText(std::string_view text, std::string_view file);

}  // namespace xccl
