// Drives one rank's part of an operation over an Endpoint until it is done: rounds, each as far as it goes. A
// round in which nothing moved ends in a wait on the endpoint. Between two rounds nothing is missed: the
// ticket is taken before the round.
#pragma once

#include <fmt/core.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <exception>
#include <optional>

#include "base/exceptions.h"
#include "base/status.h"
#include "runtime/endpoint.h"

namespace xccl {

// A Part has
//   bool Round();           moves what can be moved; false: nothing
//   bool MovedAll() const;  only other ranks have something to do
//   bool Done() const;      and they have done it
//   void LookAround();      nothing has moved for a while: fails the endpoint where that has a reason
//   Status Stuck() const;   what it waits for, when no rank has moved for the time limit
template <typename Part>
Status DriveRounds(Part& part, Endpoint& endpoint, std::chrono::nanoseconds limit) {
  using Clock = std::chrono::steady_clock;
  constexpr std::chrono::milliseconds kLongestSleep(20);
  constexpr std::chrono::seconds kGrace(1);
  constexpr std::chrono::hours kForever(24 * 365 * 50);
  limit = std::min<std::chrono::nanoseconds>(limit, kForever);
  Clock::time_point idle_since = Clock::now();
  Stillness stillness(endpoint);
  bool idle = false;
  while (true) {
    const uint32_t ticket = endpoint.Ticket();
    endpoint.Progress();
    if (part.Round()) {
      idle = false;
      endpoint.NoteProgress();
      if (std::optional<Status> failure = endpoint.Failure()) return *failure;
      continue;
    }
    if (part.Done()) return OkStatus();
    if (!idle) {
      idle = true;
      idle_since = Clock::now();
      stillness = Stillness(endpoint);
    }
    endpoint.Wait(ticket, std::min<std::chrono::nanoseconds>(kLongestSleep, limit));
    if (Clock::now() - idle_since >= kLongestSleep / 2) {
      endpoint.GiveBack();  // a rank that is about to leave may wait for it
      part.LookAround();
    }
    if (std::optional<Status> failure = endpoint.Failure()) return *failure;
    // A rank that only waits for others gives stuck ranks the time to say why.
    if (stillness.Lasts() < (part.MovedAll() ? limit + kGrace : limit)) continue;
    endpoint.Fail(part.Stuck());
    return *endpoint.Failure();
  }
}

// Drives a whole operation: enters it, makes the Part with `make`, drives its rounds, and leaves the
// operation, also where an exception ends it.
template <typename Make>
Status Drive(Endpoint& endpoint, std::chrono::nanoseconds limit, const Make& make) {
  endpoint.Enter();
  Status status = OkStatus();
  try {
    if (std::optional<Status> failure = endpoint.Failure()) {
      status = *failure;
    } else {
      auto part = make();
      status = DriveRounds(part, endpoint, limit);
    }
  } catch (const std::exception& error) {  // others wait until this rank has left
    status = Annotate(StatusOf(error), fmt::format("rank {}", endpoint.rank().value));
    endpoint.Fail(status);
  }
  endpoint.Leave();
  return status;
}

}  // namespace xccl
