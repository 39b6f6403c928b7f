// A door where connections come in, and the guests behind it. A stranger that says nothing, says garbage or
// says too much is shown out and holds up nobody. Cost: a system call per event, for any number of guests.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include "base/status.h"
#include "runtime/bootstrap/socket.h"
#include "runtime/bootstrap/wire.h"

namespace xccl::bootstrap {

class Lobby {
 public:
  struct Event {
    int guest = 0;
    std::optional<Message> message;  // none: a guest that had spoken has ended
  };

  // `port` 0: any. Errors: kSystem; *in_use tells a port that another process has.
  static StatusOr<std::unique_ptr<Lobby>> Open(uint16_t port, bool* in_use = nullptr);
  uint16_t port() const { return port_; }

  // The next event; none at `until`. Errors: kSystem "too many open files".
  StatusOr<std::optional<Event>> Wait(Clock::time_point until);
  std::string From(int guest) const;  // "10.0.0.3:51234"
  // Small messages: they fit what a fresh connection buffers.
  void Send(int guest, const std::string& message);
  void ShowOut(int guest);
  // The guest's socket, with what the reader holds of later messages.
  struct Connection {
    OwnedFile socket;
    MessageReader reader;
  };
  Connection Take(int guest);
  void CloseDoor();

 private:
  struct Guest {
    OwnedFile socket;
    MessageReader reader;
    Clock::time_point came;
    bool spoke = false;
  };

  Status LetIn();
  void Hear(int guest);
  void ShowOutSilent();

  OwnedFile door_, ready_;
  uint16_t port_ = 0;
  int next_guest_ = 1;  // the door is 0
  std::map<int, Guest> guests_;
  std::map<int, Clock::time_point> silent_;  // guests that have not spoken, in the order in which they came
  std::deque<Event> events_;
};

}  // namespace xccl::bootstrap
