// Control groups: a line "0::/PATH" of /proc/self/cgroup names the group of version 2, whose folder is below
// /sys/fs/cgroup, and "N:memory:/PATH" that of version 1, below /sys/fs/cgroup/memory. The limits of all
// groups above hold as well. In a container the path may be one of the host, whose folder is not there; the
// group's own files are then at the top.
#include "base/memory.h"

#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <sstream>
#include <vector>

#include "base/units.h"

namespace xccl {
namespace {

constexpr int64_t kMiB = int64_t{1} << 20, kGiB = int64_t{1} << 30;

std::optional<int64_t> Number(std::string_view text) {
  int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  return error == std::errc() && end == text.data() + text.size() ? std::optional(value) : std::nullopt;
}

// Returns the number in the file's first line, or behind `key` in its line that starts with the key. Groups
// without a limit say "max", which is no number.
std::optional<int64_t> NumberIn(const std::string& path, const std::string& key = "") {
  std::ifstream file(path);
  for (std::string line; std::getline(file, line);) {
    std::istringstream words(line);
    std::string word;
    words >> word;
    if (key.empty()) return Number(word);
    if (word == key && words >> word) return Number(word);
  }
  return std::nullopt;
}

struct GroupFiles {
  std::string folder, limit, used, cache;
};

std::optional<int64_t> LeftInGroup(const std::string& folder, const GroupFiles& files) {
  const std::optional<int64_t> limit = NumberIn(folder + files.limit);
  const std::optional<int64_t> used = NumberIn(folder + files.used);
  if (!limit || !used) return std::nullopt;
  const int64_t cache = NumberIn(folder + "/memory.stat", files.cache).value_or(0);
  return std::max<int64_t>(0, *limit - *used + cache);
}

void TakeLess(std::optional<int64_t>& least, const std::optional<int64_t>& other) {
  if (other && (!least || *other < *least)) least = other;
}

}  // namespace

std::optional<int64_t> FreeMemory(const std::string& root) {
  std::optional<int64_t> free = NumberIn(root + "/proc/meminfo", "MemAvailable:");
  if (free) *free *= 1024;
  std::ifstream groups(root + "/proc/self/cgroup");
  for (std::string line; std::getline(groups, line);) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controller = line.substr(first + 1, second - first - 1);
    GroupFiles files{root + "/sys/fs/cgroup", "/memory.max", "/memory.current", "file"};
    if (controller == "memory")
      files = {root + "/sys/fs/cgroup/memory", "/memory.limit_in_bytes", "/memory.usage_in_bytes",
               "total_cache"};
    else if (!controller.empty())
      continue;
    std::string path = line.substr(second + 1);
    while (true) {
      TakeLess(free, LeftInGroup(files.folder + path, files));
      if (path.empty()) break;
      path.resize(path.find_last_of('/') == std::string::npos ? 0 : path.find_last_of('/'));
    }
  }
  return free;
}

std::optional<MemoryLeft> LeftOfMemory() {
  // The first number of statm is the size of the address space in pages, the sixth that of private memory.
  std::ifstream file("/proc/self/statm");
  std::vector<int64_t> pages(6, 0);
  for (int64_t& number : pages) file >> number;
  const int64_t page = sysconf(_SC_PAGESIZE);
  std::optional<MemoryLeft> least;
  for (const auto& [resource, used] : {std::pair{RLIMIT_AS, pages[0]}, std::pair{RLIMIT_DATA, pages[5]}}) {
    rlimit limit = {};
    if (getrlimit(resource, &limit) != 0 || limit.rlim_cur >= rlim_t{1} << 62) continue;
    const auto bytes = static_cast<int64_t>(limit.rlim_cur);
    const int64_t left = std::max<int64_t>(0, bytes - used * page);
    if (!least || left < least->left_bytes) least = MemoryLeft{bytes, left};
  }
  return least;
}

Status CheckMemory(std::string_view place, std::string_view what, double needed_bytes,
                   const std::optional<MemoryLeft>& memory) {
  if (!memory || needed_bytes <= static_cast<double>(memory->left_bytes)) return OkStatus();
  const auto text = [](double bytes) {
    return bytes < static_cast<double>(kGiB) ? fmt::format("{:.0f}MiB", bytes / static_cast<double>(kMiB))
                                             : fmt::format("{:.1f}GiB", bytes / static_cast<double>(kGiB));
  };
  const double all = needed_bytes + static_cast<double>(memory->limit_bytes - memory->left_bytes);
  return LimitReached(
      fmt::format("{}: needs about {} more for {}; expected at most {}, which is left of {}; hint: "
                  "--memory-limit={:.0f}GiB "
                  "or fewer ranks",
                  place, text(needed_bytes), what, text(static_cast<double>(memory->left_bytes)),
                  FormatSize(memory->limit_bytes / kMiB * kMiB), std::ceil(all / static_cast<double>(kGiB))));
}

}  // namespace xccl
