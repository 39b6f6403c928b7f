// Kernels on the host: a threadblock is a thread. In: a HostKernel, which generated source defines, and the
// same LaunchArgs as on a GPU. Type, operator and protocol are chosen at run time, and what moves elements is
// compiled once (host.cc), so that generated source compiles quickly.
#pragma once

#include "device/block.h"

namespace xccl::device {

struct HostNumbers {
  static constexpr bool kScales = true, kFinishes = true;
  Type type = Type::kFloat;
  Operator the_op = Operator::kSum;
  int32_t members = 1;
  int64_t bytes() const;
  bool scales() const;
  bool finishes() const;
};

template <int kSources, int kDestinations>
void MoveRange(HostNumbers numbers, const char* source0, const char* source1, char* destination0,
               char* destination1, int64_t bytes, uint32_t marks);
template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl(HostNumbers numbers, LlArgs args, Waiter who);
template <bool kLocal, bool kReceive, bool kStore, bool kSend>
bool MoveLl128(HostNumbers numbers, LlArgs args, Waiter who);

struct HostKernel {
  KernelInfo info;
  // By protocol: runs one block to its end.
  void (*run[3])(const LaunchArgs& args, HostNumbers numbers, int32_t block);
};

// All blocks of a launch, one thread each; returns when all are done.
void RunOnHost(const HostKernel& kernel, const LaunchArgs& args, Type type, Operator op, Protocol protocol);

}  // namespace xccl::device
