// Parses a topology file as XML with one root element. The readers of both formats use it, so both say the
// same of text that is no XML, that ends early or that goes on after the root.
#pragma once

#include <pugixml.hpp>
#include <string_view>

#include "base/status.h"

namespace xccl {

// The name of the first element, without a namespace's prefix; "" if there is none. Comments, declarations, a
// DOCTYPE and text may stand before it. Reads no further than the name.
std::string_view RootName(std::string_view text);

// Fills `document`, whose offsets are those of `text`. Elements lose the prefixes of namespaces, and
// declarations of namespaces are dropped. `file` opens messages; `root` is the name of the expected root in
// them, but the caller checks the name. Errors: kInvalidInput "file:line:column: ...".
Status ParseXml(std::string_view text, std::string_view file, std::string_view root,
                pugi::xml_document& document);

}  // namespace xccl
