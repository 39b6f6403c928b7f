// Random fabrics, written as each tool prints them, are read back equal.
#include <gtest/gtest.h>

#include <string>

#include "base/random.h"
#include "topologies/fabric/iblinkinfo.h"
#include "topologies/fabric/ibnetdiscover.h"
#include "topologies/fabric/infiniband_for_tests.h"

namespace xccl::testing {
namespace {

constexpr int kFabrics = 1000;

void ReadBack(IbForm form, StatusOr<Fabric> (*read)(std::string_view, std::string_view)) {
  for (int seed = 1; seed <= kFabrics; ++seed) {
    Random random(seed);
    IbSample sample = RandomIbSample(random);
    const std::string text = WriteIb(form, sample, random);
    const bool links = form == IbForm::kLinks || form == IbForm::kLinksInLines;
    ASSERT_EQ(IsIbnetdiscover(text), !links) << text;
    ASSERT_EQ(IsIblinkinfo(text), links) << text;
    const StatusOr<Fabric> fabric = read(text, "random.txt");
    ASSERT_TRUE(fabric.ok()) << "seed " << seed << ": " << fabric.status().message() << "\n" << text;
    ASSERT_TRUE(Sorted(*fabric) == Sorted(sample.fabric)) << "seed " << seed << "\n" << text;
    for (const std::string& warning : fabric->warnings)
      ASSERT_EQ(warning.find("joined"), std::string::npos) << "seed " << seed << ": " << warning << "\n"
                                                           << text;
  }
}

TEST(RandomInfiniband, RecordsAreReadBack) { ReadBack(IbForm::kRecords, ReadIbnetdiscover); }
TEST(RandomInfiniband, RecordsWithAllAreReadBack) { ReadBack(IbForm::kRecordsWithAll, ReadIbnetdiscover); }
TEST(RandomInfiniband, PortListsAreReadBack) { ReadBack(IbForm::kPortList, ReadIbnetdiscover); }
TEST(RandomInfiniband, LinksAreReadBack) { ReadBack(IbForm::kLinks, ReadIblinkinfo); }
TEST(RandomInfiniband, LinksInLinesAreReadBack) { ReadBack(IbForm::kLinksInLines, ReadIblinkinfo); }

}  // namespace
}  // namespace xccl::testing
