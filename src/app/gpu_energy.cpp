#include "app/gpu_energy.h"

#include <algorithm>
#include <chrono>

#include <poll.h>

#include "base/log.h"
#include "base/thread_name.h"

namespace chasqui {

GpuEnergy::GpuEnergy(NvmlEnergy& energy, const CpuAccount& account)
    : energy_(energy), account_(account), inbox_(1, [&energy] { energy.wakeup().signal(); }) {
  thread_ = std::thread([this] { run(); });
}

GpuEnergy::~GpuEnergy() {
  inbox_.merge({.ends = true}, [](const Order&, const Order&) { return false; });
  thread_.join();
}

void GpuEnergy::use(const std::vector<std::string>& addresses) {
  for (const std::string& address : addresses) {
    inbox_.merge({.gpu = address},
                 [](const Order& waiting, const Order& later) { return waiting.gpu == later.gpu && !waiting.ends; });
  }
}

void GpuEnergy::run() {
  name_this_thread("gpu-energy");
  TimePoint next = clock_.now();
  while (wait(next), take_orders()) {
    if (clock_.now() < next) continue;  // an order came
    const bool in_use = needed() || energy_.used_by_requests();
    if (!in_use) {
      energy_.rest();  // before it looks, so that a worker that begins now wakes it
      if (!needed()) wait(kNever);
      energy_.resume();
      if (!take_orders()) break;
    }
    const TimePoint now = clock_.now();
    energy_.read(now, in_use);
    next = now + EnergyTally::kEvery;
  }
  energy_.close();
}

bool GpuEnergy::needed() const { return energy_.tells() && account_.busy(); }

// False: it ends.
bool GpuEnergy::take_orders() {
  std::vector<Order> orders;
  inbox_.drain(orders);
  for (const Order& order : orders) {
    if (order.ends) return false;
    if (const auto counts = energy_.count(order.gpu); !counts) {
      log_info("the energy of a GPU is not counted", {{"gpu", order.gpu}, {"why", counts.error().message}});
    }
  }
  return true;
}

void GpuEnergy::wait(TimePoint until) {
  constexpr int kWithoutDescriptor = 100;
  int most = -1;
  if (until != kNever) {
    const auto left = std::chrono::ceil<milliseconds>(until - clock_.now());
    most = static_cast<int>(std::max<milliseconds::rep>(left.count(), 0));
  }
  pollfd door{energy_.wakeup().fd(), POLLIN, 0};
  const bool deaf = door.fd < 0;
  if (deaf && most < 0) most = kWithoutDescriptor;
  ::poll(&door, deaf ? 0 : 1, most);
  energy_.wakeup().acknowledge();
}

}  // namespace chasqui
