// One line on the terminal for work that takes longer than a second: what is being done and for how long.
// Prints nothing where standard error is no terminal, or no thread can be had. The line is removed when the
// object goes.
#pragma once

#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>

namespace xccl {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // What it is about just now, shown behind the rest.
  void Say(std::string detail);

 private:
  void Show();

  const std::string what_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool done_ = false;
  std::string detail_;
  std::thread thread_;
};

}  // namespace xccl
