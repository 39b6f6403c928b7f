// The first words with whoever listens at the addresses of a rendezvous: a challenge each way. All addresses
// are tried side by side, again and again, so one that is silent delays no other.
#pragma once

#include <chrono>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/address.h"
#include "runtime/bootstrap/proof.h"
#include "runtime/bootstrap/socket.h"

namespace xccl::bootstrap {

class Knocks {
 public:
  Knocks(const std::vector<Address>& addresses, const std::string& secret);

  // An address whose listener has answered with a challenge; none at `until`. Who knows the secret is shown
  // by what comes next.
  std::optional<size_t> Next(Clock::time_point until);
  const Address& At(size_t which) const { return doors_[which].address; }
  std::chrono::nanoseconds Took(size_t which) const { return doors_[which].took; }  // to answer
  // The connection to what Next gave.
  Connection Take(size_t which);
  // It led nowhere, and the address is tried again. `refused`: by who does not know the secret.
  void Failed(size_t which, const Status& why, bool refused = false);
  void CloseAll();

  bool AllRefused() const;  // each address when it was tried last
  // Each address with the reason of its last failure: "10.0.0.1:4000: Connection refused, 10.0.0.2:4000: no
  // answer".
  std::string Reasons() const;

 private:
  enum class Stage { kPause, kConnects, kKnocked, kTaken };
  struct Door {
    Address address;
    Stage stage = Stage::kPause;
    Connection connection;
    Digest mine = {};
    Clock::time_point began = {}, until = {};  // when the stage began, and its end
    std::chrono::nanoseconds took{};
    std::chrono::milliseconds pause{5};
    Status why = LimitReached("no answer");
    bool refused = false;
  };

  void Start(Door& door);
  Status Knock(Door& door);
  // True when the challenge is there.
  StatusOr<bool> Hear(Door& door);
  static void Fail(Door& door, const Status& why);
  bool GoOn(Door& door, bool ready);

  Digest key_;
  std::vector<Door> doors_;
};

}  // namespace xccl::bootstrap
