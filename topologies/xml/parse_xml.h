// Parses a topology file as XML with one root element. The readers of both formats use it, so both say the
// same of text that is no XML, that ends early or that goes on after the root.
#pragma once

#include <pugixml.hpp>
#include <string_view>

#include "base/status.h"

namespace xccl {

// Fills `document`, whose offsets are those of `text`. `file` opens messages; `root` is the name of the
// expected root in them, but the caller checks the name. Errors: kInvalidInput "file:line:column: ...".
Status ParseXml(std::string_view text, std::string_view file, std::string_view root,
                pugi::xml_document& document);

}  // namespace xccl
