#include "runtime/bootstrap/identity.h"

#include <fmt/core.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cctype>
#include <fstream>

#include "base/random.h"

namespace xccl::bootstrap {

// FNV-1a over 64 bits, then mixed.
uint64_t HashOf(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325ULL;
  for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3ULL;
  return Random(hash).Next();
}

std::string Hex(std::string_view bytes) {
  std::string text;
  for (const char c : bytes) text += fmt::format("{:02x}", static_cast<unsigned char>(c));
  return text;
}

uint16_t PortOf(std::string_view job) { return static_cast<uint16_t>(10000 + HashOf(job) % 20000); }

std::string HostIdentity(const std::string& given) {
  if (!given.empty()) return given;
  std::string boot;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> boot;
  struct stat network = {};
  if (stat("/proc/thread-self/ns/net", &network) != 0) return boot + HostName();
  return fmt::format("{}-{}", boot, network.st_ino);
}

std::string HostName() {
  std::array<char, 256> name = {};
  gethostname(name.data(), name.size() - 1);
  return name.data();
}

bool NamesARank(std::string_view text) {
  while (true) {
    for (const std::string_view word : {"rank ", "ranks "})
      if (text.starts_with(word) && text.size() > word.size() &&
          std::isdigit(static_cast<unsigned char>(text[word.size()])) != 0)
        return true;
    const size_t colon = text.find(": ");
    if (colon == std::string_view::npos) return false;
    text.remove_prefix(colon + 2);
  }
}

std::string Who(int32_t rank, std::string_view host, int32_t pid) {
  return fmt::format("rank {} (host {}, pid {})", rank, host, pid);
}

std::string RankList(const std::vector<int32_t>& ranks) {
  std::string text = ranks.size() == 1 ? "rank " : "ranks ";
  int ranges = 0;
  for (size_t i = 0; i < ranks.size(); ++ranges) {
    size_t end = i + 1;
    while (end < ranks.size() && ranks[end] == ranks[end - 1] + 1) ++end;
    if (ranges > 0) text += ", ";
    if (ranges == 8) return text + "...";
    text += end - i == 1 ? fmt::format("{}", ranks[i]) : fmt::format("{}-{}", ranks[i], ranks[end - 1]);
    i = end;
  }
  return text;
}

}  // namespace xccl::bootstrap
