// Listening sockets (the door) and the connections that they have accepted (guests). A guest is a stranger
// until Keep is called for it. A stranger that is not kept within ten seconds, or sends garbage or too much,
// is disconnected and holds up nobody. There are at most 1024 strangers, and at most a quarter of the files
// that this process may open: the stranger that has been there longest makes room for the next. Cost: a
// system call per event, for any number of guests.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/status.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/bootstrap/wire.h"

namespace xccl::bootstrap {

class Lobby {
 public:
  struct Event {
    int guest = 0;
    std::optional<Message> message;  // none: a guest that is kept has ended
  };

  // Listens on the addresses, which have one port; 0: any that is free on all. An address that cannot be
  // used, such as one of IPv6 that is still tried for duplicates, is left out as long as another can. Errors:
  // kSystem; *in_use tells a port that another process has. Requires: some address.
  static StatusOr<std::unique_ptr<Lobby>> Open(const std::vector<Address>& addresses, bool* in_use = nullptr);
  uint16_t port() const { return port_; }
  const std::vector<Address>& addresses() const { return addresses_; }  // the addresses where it listens
  int file() const { return ready_.get(); }                             // can be read while there are events

  // The next event; none at `until`. Errors: kSystem "too many open files".
  StatusOr<std::optional<Event>> Wait(Clock::time_point until);
  std::string From(int guest) const;  // the guest's address: "10.0.0.3:51234"
  // The guest's seal, none before it is challenged; null where the guest has gone.
  std::optional<Seal>* SealOf(int guest);
  // Small messages: they fit what a fresh connection buffers.
  void Send(int guest, const std::string& message);
  void ShowOut(int guest);
  void Keep(int guest);  // the guest is no stranger from here on
  // The guest's connection, with what the reader holds of later messages.
  Connection Take(int guest);
  void CloseDoor();

 private:
  struct Guest {
    OwnedFile socket;
    MessageReader reader;
    std::optional<Seal> seal;
    Clock::time_point came;
  };

  Status OpenDoors(const std::vector<Address>& addresses, bool* taken);
  Status LetIn(const OwnedFile& door);
  void MakeRoom();
  void Hear(int guest);
  void ShowOutStrangers();

  OwnedFile ready_;
  std::vector<OwnedFile> doors_;  // named by their index
  std::vector<Address> addresses_;
  uint16_t port_ = 0;
  int next_guest_ = 0;  // names begin behind those of doors
  std::map<int, Guest> guests_;
  std::map<int, Clock::time_point> strangers_;  // guests that are not kept, in the order in which they came
  std::deque<Event> events_;
};

}  // namespace xccl::bootstrap
