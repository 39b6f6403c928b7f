// The pages of `view` and `compare --html`, bundled from view/src: view/dist/NAME.html, with a mark where the
// data goes.
#pragma once

#include <string_view>

namespace xccl {

extern const std::string_view kComparePage;
extern const std::string_view kFailuresPage;
extern const std::string_view kViewPage;

}  // namespace xccl
