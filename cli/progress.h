// One line on the terminal for work that takes longer than a second: what is being done, for how long, and,
// where the work counts its parts, how long it is likely to take still. Where standard error is no terminal,
// it is a line each ten seconds instead, which stays. It prints nothing where no thread can be had. The
// destructor removes the line from the terminal.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <functional>
#include <mutex>
#include <string>
#include <thread>
#include <utility>

#include "base/status.h"

namespace xccl {

class Progress {
 public:
  explicit Progress(std::string what);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;
  // The current step, shown behind the rest.
  void Say(std::string detail);
  // So many parts of all are done. Parts are taken to last equally long.
  void Done(size_t parts, size_t of_all);
  // Prints with the line out of the way.
  Status Above(const std::function<Status()>& print);

 private:
  void Show();

  const std::string what_;
  const bool is_terminal_;
  std::mutex mutex_;  // guards what follows
  std::condition_variable wake_;
  bool done_ = false;
  std::string detail_;
  double part_done_ = 0;  // 0: nobody counts
  std::thread thread_;
};

// Does `work` while the line is shown.
template <typename Work>
auto WithProgress(std::string what, Work work) {
  Progress progress(std::move(what));
  return work(progress);
}

}  // namespace xccl
