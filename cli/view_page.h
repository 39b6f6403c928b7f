// The page of `view`, bundled from view/src: view/dist/view.html, with a mark where the data goes.
#pragma once

#include <string_view>

namespace xccl {

extern const std::string_view kViewPage;

}  // namespace xccl
