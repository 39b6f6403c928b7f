#include "runtime/testing/verbs/fake_verbs.h"

#include <arpa/inet.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <map>
#include <mutex>
#include <set>
#include <string>

#include "base/check.h"

namespace xccl::verbs {
namespace {

// The library's structs come first, so that their addresses are those of the objects.
struct Channel {
  ibv_comp_channel base = {};
  std::deque<ibv_cq*> events;
};
struct Queue {
  ibv_cq base = {};
  std::deque<ibv_wc> completions;
  Channel* channel = nullptr;
  bool armed = false, solicited_alone = false;
};
struct Request {
  ibv_send_wr wr = {};
  std::vector<ibv_sge> parts;
  std::string bytes;  // inline
};
struct Pair {
  ibv_qp base = {};
  Queue* queue = nullptr;
  ibv_qp_cap room = {};
  ibv_qp_state state = IBV_QPS_RESET;
  uint32_t peer = 0;
  std::deque<uint64_t> receives;
  std::deque<Request> wire;
  std::deque<std::pair<uint64_t, bool>> finished;  // requests whose room is still taken, and if signalled
  size_t Taken() const { return wire.size() + finished.size(); }
};

}  // namespace

struct FakeVerbs::State {
  mutable std::mutex mutex;
  std::vector<FakeDevice> devices;
  std::filesystem::path folder;  // sysfs
  std::vector<std::unique_ptr<ibv_device>> listed;
  Library library;
  std::map<std::string, std::pair<int, int>> failing;  // by call: good ones first, errno
  ibv_wc_status next_status = IBV_WC_SUCCESS;
  bool hold = false;
  std::string misuse;
  std::set<void*> objects;
  std::map<void*, int> children;  // by object
  std::map<void*, void*> parents;
  std::vector<ibv_mr*> memory;
  std::vector<Pair*> pairs;  // as made; null when destroyed
  int64_t queues = 0, most_queues = 0, waits = 0;
  uint32_t last_key = 100;
  std::vector<ibv_qp_attr> connects;
  std::vector<int> dmabufs;
  bool withholds = false;
  std::vector<std::pair<std::byte*, std::vector<std::byte>>> withheld;  // messages, and where they go

  void ShowAll() {
    for (const auto& [target, bytes] : withheld) std::ranges::copy(bytes, target);
    withheld.clear();
  }
  bool Fails(const std::string& call) {
    const auto found = failing.find(call);
    if (found == failing.end()) return false;
    if (found->second.first-- > 0) return false;
    errno = found->second.second;
    failing.erase(found);
    return true;
  }
  void Misuse(const std::string& what) { misuse += (misuse.empty() ? "" : "; ") + what; }
  template <typename T>
  T* Made(T* object, void* parent) {
    objects.insert(object);
    if (parent != nullptr) ++children[parent];
    parents[object] = parent;
    return object;
  }
  int Gone(void* object, const std::string& what) {
    if (objects.erase(object) == 0) Misuse(what + " is destroyed, but is not there");
    if (children[object] > 0) Misuse(what + " is destroyed before what uses it");
    if (parents[object] != nullptr) --children[parents[object]];
    return 0;
  }
  const FakeDevice& DeviceOf(const ibv_context* context) const {
    for (size_t d = 0; d < listed.size(); ++d)
      if (listed[d].get() == context->device) return devices[d];
    XCCL_CHECK(false);
  }
  const ibv_mr* MemoryAt(uint64_t key, uint64_t at, uint64_t bytes) const {
    for (const ibv_mr* one : memory)
      if (one->rkey == key && at >= reinterpret_cast<uint64_t>(one->addr) &&
          at + bytes <= reinterpret_cast<uint64_t>(one->addr) + one->length)
        return one;
    return nullptr;
  }

  void Push(Queue& queue, const ibv_wc& completion, bool solicited = false) {
    if (queue.completions.size() == static_cast<size_t>(queue.base.cqe))
      Misuse("a completion queue overflows");
    queue.completions.push_back(completion);
    const bool asks = solicited || completion.status != IBV_WC_SUCCESS || !queue.solicited_alone;
    if (!queue.armed || !asks || queue.channel == nullptr) return;
    queue.armed = false;
    queue.channel->events.push_back(&queue.base);
    const uint64_t one = 1;
    if (write(queue.channel->base.fd, &one, sizeof one) != sizeof one) Misuse("the channel is full");
  }
  void Finish(Pair& pair, const Request& request, ibv_wc_status status) {
    const bool signalled = (request.wr.send_flags & IBV_SEND_SIGNALED) != 0 || status != IBV_WC_SUCCESS;
    pair.finished.emplace_back(request.wr.wr_id, signalled);
    if (!signalled) return;
    ibv_wc completion = {};
    completion.wr_id = request.wr.wr_id;
    completion.status = status;
    completion.qp_num = pair.base.qp_num;
    Push(*pair.queue, completion);
  }
  void Break(Pair& pair) {
    pair.state = IBV_QPS_ERR;
    for (; !pair.wire.empty(); pair.wire.pop_front()) Finish(pair, pair.wire.front(), IBV_WC_WR_FLUSH_ERR);
    for (; !pair.receives.empty(); pair.receives.pop_front()) {
      ibv_wc completion = {};
      completion.wr_id = pair.receives.front();
      completion.status = IBV_WC_WR_FLUSH_ERR;
      Push(*pair.queue, completion);
    }
  }
  // Delivers a request to the peer and sets the status of its completion; false: it waits for a receive.
  bool Arrive(Pair& from, const Request& request, ibv_wc_status& status) {
    status = std::exchange(next_status, IBV_WC_SUCCESS);
    if (status != IBV_WC_SUCCESS) return true;
    Pair* to = nullptr;
    for (Pair* one : pairs)
      if (one != nullptr && one->base.qp_num == from.peer) to = one;
    if (to == nullptr || (to->state != IBV_QPS_RTR && to->state != IBV_QPS_RTS)) {
      status = IBV_WC_RETRY_EXC_ERR;
      return true;
    }
    const bool wakes = request.wr.opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
    const ibv_sge& part = request.parts[0];
    if (MemoryAt(request.wr.wr.rdma.rkey, request.wr.wr.rdma.remote_addr, part.length) == nullptr) {
      status = IBV_WC_REM_ACCESS_ERR;
      return true;
    }
    if (wakes && to->receives.empty()) {
      ++waits;
      return false;
    }
    auto* const target = std::bit_cast<std::byte*>(request.wr.wr.rdma.remote_addr);
    if (wakes && part.length == sizeof(uint64_t)) {
      uint64_t value = 0;
      std::memcpy(&value, request.bytes.data(), sizeof value);
      reinterpret_cast<std::atomic<uint64_t>*>(target)->store(value, std::memory_order_release);
    } else {
      const auto* const bytes = std::bit_cast<const std::byte*>(part.addr);
      withheld.emplace_back(target, std::vector(bytes, bytes + part.length));
      if (!withholds) ShowAll();
    }
    if (!wakes) return true;
    ibv_wc completion = {};
    completion.wr_id = to->receives.front();
    completion.opcode = IBV_WC_RECV_RDMA_WITH_IMM;
    completion.imm_data = request.wr.imm_data;
    completion.qp_num = to->base.qp_num;
    to->receives.pop_front();
    Push(*to->queue, completion, (request.wr.send_flags & IBV_SEND_SOLICITED) != 0);
    return true;
  }
  bool DeliverFrom(Pair& pair) {
    if (pair.wire.empty() || pair.state != IBV_QPS_RTS) return false;
    ibv_wc_status status = IBV_WC_SUCCESS;
    if (!Arrive(pair, pair.wire.front(), status)) return false;
    const Request request = std::move(pair.wire.front());
    pair.wire.pop_front();
    Finish(pair, request, status);
    if (status != IBV_WC_SUCCESS) Break(pair);
    return true;
  }
  void DeliverAll() {
    for (Pair* pair : pairs)
      while (!hold && pair != nullptr && DeliverFrom(*pair)) {
      }
  }
};

FakeVerbs::State* FakeVerbs::current = nullptr;

// The functions of the table.
struct FakeCalls {
  using State = FakeVerbs::State;
  static State& Here() { return *FakeVerbs::current; }

  static ibv_device** GetDeviceList(int* count) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("GetDeviceList")) return nullptr;
    auto** list = new ibv_device*[s.listed.size() + 1]();
    for (size_t d = 0; d < s.listed.size(); ++d) list[d] = s.listed[d].get();
    *count = static_cast<int>(s.listed.size());
    return s.Made(list, nullptr);
  }
  static void FreeDeviceList(ibv_device** list) {
    const std::lock_guard lock(Here().mutex);
    Here().Gone(list, "the device list");
    delete[] list;
  }
  static ibv_context* OpenDevice(ibv_device* device) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("OpenDevice")) return nullptr;
    auto* context = new ibv_context();
    context->device = device;
    context->ops.poll_cq = PollCq;
    context->ops.req_notify_cq = ReqNotifyCq;
    context->ops.post_send = PostSend;
    context->ops.post_recv = PostRecv;
    return s.Made(context, nullptr);
  }
  static int CloseDevice(ibv_context* context) {
    const std::lock_guard lock(Here().mutex);
    Here().Gone(context, "a device");
    delete context;
    return 0;
  }
  static int QueryDevice(ibv_context* context, ibv_device_attr* attributes) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("QueryDevice")) return errno;
    *attributes = {};
    attributes->max_qp_wr = s.DeviceOf(context).max_qp_wr;
    attributes->max_cqe = s.DeviceOf(context).max_cqe;
    attributes->phys_port_cnt = 1;
    return 0;
  }
  static int QueryPort(ibv_context* context, uint8_t, ibv_port_attr* attributes) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("QueryPort")) return errno;
    const FakeDevice& device = s.DeviceOf(context);
    attributes->state = device.active ? IBV_PORT_ACTIVE : IBV_PORT_DOWN;
    attributes->active_mtu = device.mtu;
    attributes->gid_tbl_len = 16;
    attributes->max_msg_sz = device.max_msg_sz;
    attributes->lid = device.lid;
    attributes->link_layer = device.ethernet ? IBV_LINK_LAYER_ETHERNET : IBV_LINK_LAYER_INFINIBAND;
    return 0;
  }
  static int QueryGid(ibv_context* context, uint8_t, int index, ibv_gid* gid) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("QueryGid")) return -1;
    const std::vector<GidBytes>& gids = s.DeviceOf(context).gids;
    *gid = {};
    if (static_cast<size_t>(index) < gids.size())
      std::memcpy(gid->raw, gids[static_cast<size_t>(index)].data(), sizeof gid->raw);
    return 0;
  }
  static ibv_pd* AllocPd(ibv_context* context) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("AllocPd")) return nullptr;
    auto* domain = new ibv_pd();
    domain->context = context;
    return s.Made(domain, context);
  }
  static int DeallocPd(ibv_pd* domain) {
    const std::lock_guard lock(Here().mutex);
    Here().Gone(domain, "a protection domain");
    delete domain;
    return 0;
  }
  static ibv_mr* Registered(State& s, ibv_pd* domain, void* at, size_t bytes, int access) {
    if ((access & IBV_ACCESS_REMOTE_WRITE) == 0 || (access & IBV_ACCESS_LOCAL_WRITE) == 0)
      s.Misuse("memory is registered without writes");
    if ((access & IBV_ACCESS_RELAXED_ORDERING) != 0) s.Misuse("writes of memory may be reordered");
    auto* memory = new ibv_mr();
    memory->pd = domain;
    memory->addr = at;
    memory->length = bytes;
    memory->lkey = memory->rkey = ++s.last_key;
    s.memory.push_back(memory);
    return s.Made(memory, domain);
  }
  static ibv_mr* RegMr(ibv_pd* domain, void* at, size_t bytes, int access) {
    const std::lock_guard lock(Here().mutex);
    return Here().Fails("RegMr") ? nullptr : Registered(Here(), domain, at, bytes, access);
  }
  static ibv_mr* RegDmabufMr(ibv_pd* domain, uint64_t offset, size_t bytes, uint64_t address, int file,
                             int access) {
    const std::lock_guard lock(Here().mutex);
    if (Here().Fails("RegDmabufMr")) return nullptr;
    Here().dmabufs.push_back(file);
    return Registered(Here(), domain, std::bit_cast<void*>(address + offset), bytes, access);
  }
  static int DeregMr(ibv_mr* memory) {
    const std::lock_guard lock(Here().mutex);
    Here().Gone(memory, "registered memory");
    std::erase(Here().memory, memory);
    delete memory;
    return 0;
  }
  static ibv_comp_channel* CreateCompChannel(ibv_context* context) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("CreateCompChannel")) return nullptr;
    auto* channel = new Channel();
    channel->base.context = context;
    channel->base.fd = eventfd(0, EFD_SEMAPHORE | EFD_CLOEXEC);
    s.Made(channel, context);
    return &channel->base;
  }
  static int DestroyCompChannel(ibv_comp_channel* base) {
    const std::lock_guard lock(Here().mutex);
    auto* channel = reinterpret_cast<Channel*>(base);
    Here().Gone(channel, "a channel");
    close(base->fd);
    delete channel;
    return 0;
  }
  static ibv_cq* CreateCq(ibv_context* context, int entries, void*, ibv_comp_channel* channel, int) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("CreateCq")) return nullptr;
    if (entries < 1 || entries > s.DeviceOf(context).max_cqe) {
      s.Misuse("a completion queue of too many entries is asked for");
      return nullptr;
    }
    auto* queue = new Queue();
    queue->base.context = context;
    queue->base.cqe = entries;
    queue->channel = reinterpret_cast<Channel*>(channel);
    if (queue->channel != nullptr) ++s.children[queue->channel];
    s.most_queues = std::max(s.most_queues, ++s.queues);
    s.Made(queue, context);
    return &queue->base;
  }
  static int DestroyCq(ibv_cq* base) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    auto* queue = reinterpret_cast<Queue*>(base);
    s.Gone(queue, "a completion queue");
    --s.queues;
    if (queue->channel != nullptr) {
      --s.children[queue->channel];
      std::erase(queue->channel->events, base);
    }
    delete queue;
    return 0;
  }
  static int GetCqEvent(ibv_comp_channel* base, ibv_cq** queue, void**) {
    uint64_t one = 0;
    if (read(base->fd, &one, sizeof one) != sizeof one) return -1;
    const std::lock_guard lock(Here().mutex);
    auto* channel = reinterpret_cast<Channel*>(base);
    *queue = channel->events.front();
    channel->events.pop_front();
    // A queue is not destroyed while an event of it is not acknowledged.
    ++Here().children[*queue];
    return 0;
  }
  static void AckCqEvents(ibv_cq* queue, unsigned count) {
    const std::lock_guard lock(Here().mutex);
    Here().children[queue] -= static_cast<int>(count);
  }
  static ibv_qp* CreateQp(ibv_pd* domain, ibv_qp_init_attr* wanted) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("CreateQp")) return nullptr;
    const FakeDevice& device = s.DeviceOf(domain->context);
    const auto most = static_cast<uint32_t>(device.max_qp_wr);
    if (wanted->qp_type != IBV_QPT_RC || wanted->cap.max_inline_data > device.max_inline ||
        wanted->cap.max_send_wr > most || wanted->cap.max_recv_wr > most) {
      errno = EINVAL;
      return nullptr;
    }
    auto* pair = new Pair();
    pair->base.context = domain->context;
    pair->base.pd = domain;
    pair->queue = reinterpret_cast<Queue*>(wanted->send_cq);
    pair->room = wanted->cap;
    s.pairs.push_back(pair);
    pair->base.qp_num = 0x1000 + static_cast<uint32_t>(s.pairs.size());
    ++s.children[pair->queue];
    s.Made(pair, domain);
    return &pair->base;
  }
  static int ModifyQp(ibv_qp* base, ibv_qp_attr* attributes, int mask) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("ModifyQp")) return errno;
    auto* pair = reinterpret_cast<Pair*>(base);
    const std::map<ibv_qp_state, std::pair<ibv_qp_state, int>> steps = {
        {IBV_QPS_INIT, {IBV_QPS_RESET, IBV_QP_PKEY_INDEX | IBV_QP_PORT | IBV_QP_ACCESS_FLAGS}},
        {IBV_QPS_RTR,
         {IBV_QPS_INIT, IBV_QP_AV | IBV_QP_PATH_MTU | IBV_QP_DEST_QPN | IBV_QP_RQ_PSN |
                            IBV_QP_MAX_DEST_RD_ATOMIC | IBV_QP_MIN_RNR_TIMER}},
        {IBV_QPS_RTS,
         {IBV_QPS_RTR,
          IBV_QP_TIMEOUT | IBV_QP_RETRY_CNT | IBV_QP_RNR_RETRY | IBV_QP_SQ_PSN | IBV_QP_MAX_QP_RD_ATOMIC}}};
    const auto step = steps.find(attributes->qp_state);
    if (step == steps.end() || pair->state != step->second.first ||
        mask != (step->second.second | IBV_QP_STATE))
      return EINVAL;
    pair->state = attributes->qp_state;
    if (pair->state == IBV_QPS_RTR) pair->peer = attributes->dest_qp_num;
    if (pair->state != IBV_QPS_INIT) s.connects.push_back(*attributes);
    s.DeliverAll();
    return 0;
  }
  static int DestroyQp(ibv_qp* base) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    auto* pair = reinterpret_cast<Pair*>(base);
    s.Gone(pair, "a queue pair");
    --s.children[pair->queue];
    std::ranges::replace(s.pairs, pair, nullptr);
    delete pair;
    return 0;
  }
  static const char* StatusText(ibv_wc_status status) {
    static const std::vector<std::string> texts = [] {
      std::vector<std::string> made;
      for (int i = 0; i <= IBV_WC_TM_RNDV_INCOMPLETE; ++i) made.push_back("status " + std::to_string(i));
      return made;
    }();
    return texts[static_cast<size_t>(status)].c_str();
  }

  static int PollCq(ibv_cq* base, int most, ibv_wc* completions) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    if (s.Fails("poll_cq")) return -1;
    auto* queue = reinterpret_cast<Queue*>(base);
    int count = 0;
    for (; count < most && !queue->completions.empty(); ++count) {
      completions[count] = queue->completions.front();
      queue->completions.pop_front();
      // Room of a request, and of those before it, is free when its completion has been read.
      for (Pair* pair : s.pairs) {
        if (pair == nullptr || pair->queue != queue) continue;
        const auto at = std::ranges::find(pair->finished, std::pair(completions[count].wr_id, true));
        if (at != pair->finished.end()) pair->finished.erase(pair->finished.begin(), at + 1);
      }
    }
    return count;
  }
  static int ReqNotifyCq(ibv_cq* base, int solicited_alone) {
    const std::lock_guard lock(Here().mutex);
    if (Here().Fails("req_notify_cq")) return errno;
    auto* queue = reinterpret_cast<Queue*>(base);
    // The wider of two requests holds until there is an event.
    queue->solicited_alone = solicited_alone != 0 && (!queue->armed || queue->solicited_alone);
    queue->armed = true;
    return 0;
  }
  static int PostSend(ibv_qp* base, ibv_send_wr* chain, ibv_send_wr** refused) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    auto* pair = reinterpret_cast<Pair*>(base);
    for (ibv_send_wr* one = chain; one != nullptr; one = one->next) {
      *refused = one;
      if (s.Fails("post_send")) return errno;
      if (pair->state != IBV_QPS_RTS && pair->state != IBV_QPS_ERR) return EINVAL;
      if (pair->Taken() == pair->room.max_send_wr) {
        s.Misuse("a queue of requests overflows");
        return ENOMEM;
      }
      Request request;
      request.wr = *one;
      request.parts.assign(one->sg_list, one->sg_list + one->num_sge);
      const ibv_sge& part = request.parts[0];
      if ((one->send_flags & IBV_SEND_INLINE) != 0) {
        request.bytes.assign(std::bit_cast<const char*>(part.addr), part.length);
      } else if (s.MemoryAt(part.lkey, part.addr, part.length) == nullptr) {
        s.Misuse("a message lies outside of registered memory");
      }
      pair->wire.push_back(std::move(request));
    }
    if (pair->state == IBV_QPS_ERR) s.Break(*pair);
    s.DeliverAll();
    return 0;
  }
  static int PostRecv(ibv_qp* base, ibv_recv_wr* chain, ibv_recv_wr** refused) {
    State& s = Here();
    const std::lock_guard lock(s.mutex);
    auto* pair = reinterpret_cast<Pair*>(base);
    for (ibv_recv_wr* one = chain; one != nullptr; one = one->next) {
      *refused = one;
      if (s.Fails("post_recv")) return errno;
      if (pair->receives.size() == pair->room.max_recv_wr) {
        s.Misuse("a queue of receives overflows");
        return ENOMEM;
      }
      pair->receives.push_back(one->wr_id);
    }
    s.DeliverAll();
    return 0;
  }

  static Library Table() {
    return {.GetDeviceList = GetDeviceList,
            .FreeDeviceList = FreeDeviceList,
            .OpenDevice = OpenDevice,
            .CloseDevice = CloseDevice,
            .QueryDevice = QueryDevice,
            .QueryPort = QueryPort,
            .QueryGid = QueryGid,
            .AllocPd = AllocPd,
            .DeallocPd = DeallocPd,
            .RegMr = RegMr,
            .RegDmabufMr = RegDmabufMr,
            .DeregMr = DeregMr,
            .CreateCompChannel = CreateCompChannel,
            .DestroyCompChannel = DestroyCompChannel,
            .CreateCq = CreateCq,
            .DestroyCq = DestroyCq,
            .GetCqEvent = GetCqEvent,
            .AckCqEvents = AckCqEvents,
            .CreateQp = CreateQp,
            .ModifyQp = ModifyQp,
            .DestroyQp = DestroyQp,
            .StatusText = StatusText};
  }
};

FakeVerbs::FakeVerbs(std::vector<FakeDevice> devices) : state_(std::make_unique<State>()) {
  XCCL_CHECK(current == nullptr);
  current = state_.get();
  state_->devices = std::move(devices);
  state_->library = FakeCalls::Table();
  std::string folder = (std::filesystem::temp_directory_path() / "fake_verbs_XXXXXX").string();
  XCCL_CHECK(mkdtemp(folder.data()) != nullptr);
  state_->folder = folder;
  for (const FakeDevice& device : state_->devices) {
    auto listed = std::make_unique<ibv_device>();
    const std::filesystem::path path = state_->folder / device.name;
    listed->transport_type = device.reliable ? IBV_TRANSPORT_IB : IBV_TRANSPORT_USNIC;
    device.name.copy(listed->name, sizeof listed->name - 1);
    path.string().copy(listed->ibdev_path, sizeof listed->ibdev_path - 1);
    std::filesystem::create_directories(path / "ports/1/gid_attrs/types");
    for (size_t i = 0; i < device.gids.size(); ++i)
      std::ofstream(path / "ports/1/gid_attrs/types" / std::to_string(i))
          << (i < device.gid_types.size() ? device.gid_types[i] : "RoCE v2") << "\n";
    state_->listed.push_back(std::move(listed));
  }
}

FakeVerbs::~FakeVerbs() {
  std::filesystem::remove_all(state_->folder);
  current = nullptr;
}

const Library& FakeVerbs::library() const { return state_->library; }

void FakeVerbs::FailCall(const std::string& call, int code, int after) {
  const std::lock_guard lock(state_->mutex);
  state_->failing[call] = {after, code};
}

void FakeVerbs::FailRequest(ibv_wc_status status) {
  const std::lock_guard lock(state_->mutex);
  state_->next_status = status;
}

void FakeVerbs::Hold(bool hold) {
  const std::lock_guard lock(state_->mutex);
  state_->hold = hold;
  state_->DeliverAll();
}

bool FakeVerbs::Deliver() {
  const std::lock_guard lock(state_->mutex);
  return std::ranges::any_of(state_->pairs,
                             [&](Pair* pair) { return pair != nullptr && state_->DeliverFrom(*pair); });
}

std::string FakeVerbs::misuse() const {
  const std::lock_guard lock(state_->mutex);
  return state_->misuse;
}

int64_t FakeVerbs::alive() const {
  const std::lock_guard lock(state_->mutex);
  return static_cast<int64_t>(state_->objects.size());
}

int64_t FakeVerbs::most_queues() const {
  const std::lock_guard lock(state_->mutex);
  return state_->most_queues;
}

void FakeVerbs::Withhold() {
  const std::lock_guard lock(state_->mutex);
  state_->withholds = true;
}

void FakeVerbs::Show() {
  const std::lock_guard lock(state_->mutex);
  state_->ShowAll();
}

int64_t FakeVerbs::waits_for_receives() const {
  const std::lock_guard lock(state_->mutex);
  return state_->waits;
}

std::vector<ibv_qp_attr> FakeVerbs::connects() const {
  const std::lock_guard lock(state_->mutex);
  return state_->connects;
}

std::vector<int> FakeVerbs::dmabufs() const {
  const std::lock_guard lock(state_->mutex);
  return state_->dmabufs;
}

GidBytes GidBytesOf(const std::string& address) {
  GidBytes gid = {};
  if (inet_pton(AF_INET6, address.c_str(), gid.data()) == 1) return gid;
  gid[10] = gid[11] = 0xff;
  XCCL_CHECK(inet_pton(AF_INET, address.c_str(), gid.data() + 12) == 1);
  return gid;
}

}  // namespace xccl::verbs
