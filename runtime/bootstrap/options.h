// How long ranks wait for each other, and over which network they meet.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <string>

namespace xccl {

struct BootstrapOptions {
  static constexpr std::chrono::nanoseconds kForever = std::chrono::nanoseconds::max();
  std::chrono::nanoseconds time_limit = std::chrono::seconds(30);  // for joining; kForever: none
  // A rank that shows no sign of life for so long has failed; kForever: none, but a link that is dead, which
  // TCP finds within ten seconds.
  std::chrono::nanoseconds silence_limit = std::chrono::seconds(10);
  // Names of network interfaces by their starts, with commas: "eth,ib"; "=eth1": exactly; "^docker,lo": all
  // but these. "": chosen.
  std::string interface;
  const std::atomic<bool>* stop = nullptr;  // set: joining ends; looked at ten times a second
};

// With this time limit, and a silence limit by which a silent rank is found, and named, before the others
// give up because nothing moves. Without a time limit a process may be stopped for as long as it likes.
inline BootstrapOptions WithTimeLimit(std::chrono::nanoseconds limit) {
  BootstrapOptions options;
  options.silence_limit =
      limit == BootstrapOptions::kForever
          ? limit
          : std::clamp<std::chrono::nanoseconds>(limit / 2, std::chrono::seconds(1), options.silence_limit);
  options.time_limit = limit;
  return options;
}

}  // namespace xccl
