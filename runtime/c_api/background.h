// Runs a non-blocking communicator's work while its caller goes on: one body at a time, on a thread of its
// own.
#pragma once

#include <functional>
#include <memory>

#include "base/status.h"

namespace xccl::c_api {

// Safe from any thread. The thread may outlive this object.
class Background {
 public:
  Background();
  // Runs body() and returns at once. Errors: kInvalidInput while another runs; kSystem without a thread.
  Status Start(std::function<Status()> body);
  bool running() const;
  Status result() const;  // the result of the body that ended last
  void Wait() const;      // until none runs

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace xccl::c_api
