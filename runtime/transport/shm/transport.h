// Transport between ranks of one host, over a SharedRegion: a put is a release store of the head and a ring
// of the receiver's doorbell. Where ranks are threads, a message may stay in its sender's buffer
// (DirectSource).
#pragma once

#include "runtime/transport/shared_region.h"
#include "runtime/transport/transport.h"

namespace xccl::shm {

class ShmTransport final : public Transport {
 public:
  explicit ShmTransport(const SharedRegion& region) : region_(region) {}  // which outlives it

  ConnectionEnd At(int32_t connection) override;
  void Put(int32_t connection, int64_t bytes) override;
  void Take(int32_t connection, bool together) override;
  StatusOr<bool> Progress() override { return false; }
  bool Flushed() const override { return true; }
  std::span<const int> files() const override { return {}; }  // the region's doorbell wakes
  bool PrepareToSleep() override { return true; }

 private:
  const SharedRegion& region_;
};

}  // namespace xccl::shm
