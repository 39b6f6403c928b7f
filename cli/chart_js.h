// Chart.js, as Debian's libjs-chart.js has it.
#pragma once

#include <string_view>

namespace xccl {

extern const std::string_view kChartJs;

}  // namespace xccl
