#include "tests/testing/sweep.h"

#include <fmt/core.h>
#include <gtest/gtest.h>

#include "base/strings.h"
#include "sweep/table.h"

namespace xccl {

std::string SweepList() {
  return "torus:2x2 ring:4@bandwidth=50GB/s,latency=500ns dgx1 -c allreduce alltoall -s 1KiB 64KiB -e auto "
         "ring "
         "--program  # alltoall is not for ring\n"
         "torus:2x3 full-mesh:4 -c allgather broadcast -s 1KiB:1MiB:x32 --seed 1 --model blocking\n";
}

std::string WithoutSeconds(const std::string& table) {
  auto rows = ParseCsv(table);
  EXPECT_TRUE(rows.ok()) << rows.status().message();
  std::string text;
  for (auto& row : *rows) {
    EXPECT_EQ(row.size(), 22U) << row.front();
    row.erase(row.end() - 3);
    text += CsvLine(row);
  }
  return text;
}

std::string WaitForLines(const std::string& table, int lines) {
  return fmt::format("until [ -e {0} ] && [ $(wc -l <{0}) -ge {1} ]; do sleep 0.01; done; ", table, lines);
}

}  // namespace xccl
