#include "base/units.h"

#include <gtest/gtest.h>

#include <limits>

namespace xccl {
namespace {

std::string Shown(const StatusOr<int64_t>& value) {
  return value.ok() ? std::to_string(*value) : value.status().message();
}

std::string Shown(const StatusOr<std::vector<int64_t>>& values) {
  if (!values.ok()) return values.status().message();
  std::string text;
  for (int64_t value : *values) text += std::to_string(value) + " ";
  return text;
}

struct Case {
  std::string text, expected;
};

TEST(Units, Sizes) {
  const Case cases[] = {
      {"0", "0"},
      {"4096", "4096"},
      {"1B", "1"},
      {"1K", "1024"},
      {"1KiB", "1024"},
      {"1KB", "1000"},
      {"64MiB", "67108864"},
      {"1.5MiB", "1572864"},
      {"2G", "2147483648"},
      {"1TB", "1000000000000"},
      {"8388607TiB", "9223370937343148032"},
      {"1PiB", "1125899906842624"},
      {"7EB", "7000000000000000000"},
      {"9999PiB", "'9999PiB': too large; a size is written like 64MiB"},
      {"8388608TiB", "'8388608TiB': too large; a size is written like 64MiB"},
      {"99999999999999999999", "'99999999999999999999': too many digits; a size is written like 64MiB"},
      {"0.3K", "'0.3K': not a whole number of the smallest unit; a size is written like 64MiB"},
      {"", "'': no number; a size is written like 64MiB"},
      {".", "'.': no number; a size is written like 64MiB"},
      {"-1", "'-1': no number; a size is written like 64MiB"},
      {"1mib", "'1mib': unknown unit 'mib'; did you mean 'MiB'?; a size is written like 64MiB"},
      {"1 MiB", "'1 MiB': unknown unit ' MiB'; did you mean 'MiB'?; a size is written like 64MiB"},
      {"64Mb", "'64Mb': b is bits; hint: 64MB, or 8MB if bits are meant"},
      {"4Mib", "'4Mib': b is bits; hint: 4MiB, or 0.5MiB if bits are meant"},
      {"1.2.3", "'1.2.3': unknown unit '.3'; a size is written like 64MiB"},
  };
  for (const Case& c : cases) EXPECT_EQ(Shown(ParseSize(c.text)), c.expected) << c.text;
}

TEST(Units, SizeLists) {
  const Case cases[] = {
      {"1K,1M", "1024 1048576 "},
      {"1M,1K", "1048576 1024 "},
      {"1K:8K", "1024 2048 4096 8192 "},
      {"1K:20K:x4", "1024 4096 16384 "},
      {"1K:1K", "1024 "},
      {"4000000TiB:8000000TiB", "4398046511104000000 8796093022208000000 "},
      {"1K:2K:4", "'1K:2K:4': a range is written like 1KiB:1GiB:x4"},
      {"1K:2K:x4:1", "'1K:2K:x4:1': a range is written like 1KiB:1GiB:x4"},
      {"1K:2K:x1", "'1': expected a whole number from 2 to 1048576"},
      {"0:1K", "'0:1K': expected a range from a size above zero up to a larger one"},
      {"2K:1K", "'2K:1K': expected a range from a size above zero up to a larger one"},
      {"1K,", "'': no number; a size is written like 64MiB"},
  };
  for (const Case& c : cases) EXPECT_EQ(Shown(ParseSizeList(c.text)), c.expected) << c.text;
}

TEST(Units, Durations) {
  const Case cases[] = {
      {"500ns", "500000"},
      {"0.7us", "700000"},
      {"1ms", "1000000000"},
      {"2s", "2000000000000"},
      {"30ps", "30"},
      {"0ns", "0"},
      {"5", "'5': no unit; a time is written like 500ns"},
      {"5US", "'5US': unknown unit 'US'; did you mean 'us'?; a time is written like 500ns"},
      {"0.1ps", "'0.1ps': not a whole number of the smallest unit; a time is written like 500ns"},
  };
  for (const Case& c : cases) EXPECT_EQ(Shown(ParseDuration(c.text)), c.expected) << c.text;
}

TEST(Units, Latencies) {
  EXPECT_EQ(Shown(ParseLatency("1s")), "1000000000000");
  EXPECT_EQ(Shown(ParseLatency("1001ms")), "'1001ms': a link takes at most 1000ms");
  EXPECT_EQ(Shown(ParseLatency("1")), "'1': no unit; a time is written like 500ns");
}

TEST(Units, Bandwidths) {
  const Case cases[] = {
      {"50GB/s", "50000000000"},
      {"50GiB/s", "53687091200"},
      {"400Gbit/s", "50000000000"},
      {"1Mbit/s", "125000"},
      {"1B/s", "1"},
      {"1000000GB/s", "1000000000000000"},
      {"1000000000000001B/s", "'1000000000000001B/s': a link has at most 1000000GB/s"},
      {"0GB/s", "'0GB/s': expected more than zero"},
      {"50", "'50': no unit; a bandwidth is written like 450GB/s"},
      {"50Gb/s", "'50Gb/s': b is bits; hint: 50Gbit/s (6.25GB/s)"},
      {"400Gbps", "'400Gbps': b is bits; hint: 400Gbit/s (50GB/s)"},
      {"100gb/s", "'100gb/s': b is bits; hint: 100Gbit/s (12.5GB/s)"},
      {"8Kb/s", "'8Kb/s': b is bits; hint: 1KB/s"},  // Kbit/s is no unit here
      {"8Gib/s", "'8Gib/s': b is bits; hint: 1GiB/s"},
      {"46.566128730773926GiB/s", "50000000000"},
      {"1.4B/s", "1"},
      {"1.5B/s", "2"},
      {"0.33333333333333333333333333333333GB/s", "333333333"},
      {"0.4B/s", "'0.4B/s': expected more than zero"},
  };
  for (const Case& c : cases) EXPECT_EQ(Shown(ParseBandwidth(c.text)), c.expected) << c.text;
}

TEST(Units, Integers) {
  EXPECT_EQ(Shown(ParseInteger("7", 0, 7)), "7");
  EXPECT_EQ(Shown(ParseInteger("-3", -5, 7)), "-3");
  for (const char* text : {"8", "-1", "", "x", "1x", " 1", "1.0", "99999999999999999999"})
    EXPECT_EQ(Shown(ParseInteger(text, 0, 7)),
              "'" + std::string(text) + "': expected a whole number from 0 to 7");
}

TEST(Units, FormatsReadBack) {
  const int64_t values[] = {1,
                            7,
                            999,
                            1000,
                            1024,
                            1500,
                            1 << 20,
                            50'000'000'000,
                            53'687'091'200,
                            123'456'789'012,
                            kMaxBandwidthBytesPerS};
  for (int64_t value : values) {
    EXPECT_EQ(Shown(ParseSize(FormatSize(value))), std::to_string(value)) << FormatSize(value);
    EXPECT_EQ(Shown(ParseDuration(FormatDuration(value))), std::to_string(value)) << FormatDuration(value);
    EXPECT_EQ(Shown(ParseBandwidth(FormatBandwidth(value))), std::to_string(value)) << FormatBandwidth(value);
  }
}

TEST(Units, Formats) {
  EXPECT_EQ(FormatSize(0), "0");
  EXPECT_EQ(FormatSize(64 << 20), "64MiB");
  EXPECT_EQ(FormatSize(1000), "1000");
  EXPECT_EQ(FormatDuration(0), "0ns");
  EXPECT_EQ(FormatDuration(500'000), "500ns");
  EXPECT_EQ(FormatDuration(1'250'000), "1.25us");
  EXPECT_EQ(FormatBandwidth(450'000'000'000), "450GB/s");
  EXPECT_EQ(FormatBandwidth(53'687'091'200), "50GiB/s");
  EXPECT_EQ(FormatDurationShort(12'857'000), "12.86us");
  EXPECT_EQ(FormatDurationShort(1'500'000'000), "1.5ms");
  EXPECT_EQ(FormatDurationShort(2'000'000'000'000), "2s");
  EXPECT_EQ(FormatBandwidthShort(346.74e9), "346.7GB/s");
  EXPECT_EQ(FormatBandwidthShort(47.82e6), "0.04782GB/s");
  EXPECT_EQ(FormatBandwidthShort(1e6), "0.001GB/s");
  EXPECT_EQ(FormatBandwidthShort(3), "3B/s");
}

TEST(Units, TransferTimesRoundUp) {
  EXPECT_EQ(TransferPs(0, 1), 0);
  EXPECT_EQ(TransferPs(1, 1'000'000'000'000), 1);
  EXPECT_EQ(TransferPs(1, 3'000'000'000'000), 1);
  EXPECT_EQ(TransferPs(int64_t{1} << 40, 1'000'000'000), 1'099'511'627'776'000);
  EXPECT_EQ(TransferPs(10, 1'000'000'000'000, 3), 4);
  EXPECT_EQ(TransferPs(std::numeric_limits<int64_t>::max(), 1), kForeverPs);
  EXPECT_EQ(TransferPs(1, std::numeric_limits<int64_t>::max(), std::numeric_limits<int64_t>::max()), 1);
}

}  // namespace
}  // namespace xccl
