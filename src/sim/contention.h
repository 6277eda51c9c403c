// How evenly tenants are served while they compete: for each class, the service of each tenant by its weight, in the
// windows of time throughout which requests of it and of at least one other tenant wait. Who asks for less than a fair
// share never waits for long and does not count. Owned by the statistics; one thread.
#pragma once

#include <array>
#include <vector>

#include "core/batch.h"
#include "sim/progress_watch.h"
#include "sim/sim_request.h"

namespace chasqui {

class Contention {
 public:
  explicit Contention(std::size_t tenants) : tenants_(tenants), window_(tenants) {}

  // A step was computed; called while its requests still live.
  void step(const Batch& batch, Duration took, const ProgressWatch& watch, SimRequestTable& lives);

  // Of competing, summed over the classes.
  double seconds() const;
  // Service by weight for each second of competing: a row of a prompt is one, a sampled token two.
  double rate(std::size_t tenant) const;
  // Jain's index over the tenants that competed for at least a twentieth of the time: 1 is even; 1/n: one had it all.
  double jain(std::size_t service_class) const;
  // The mean over the classes, by time.
  double jain() const;

 private:
  struct Share {
    double service = 0;
    double seconds = 0;
    double rate() const { return seconds > 0 ? service / seconds : 0; }
  };
  using Shares = std::vector<std::array<Share, kServiceClasses>>;
  void close_window();

  Shares tenants_;
  Shares window_;  // waiting and service in the window that is open
  double window_seconds_ = 0;
  std::array<double, kServiceClasses> seconds_{};
};

}  // namespace chasqui
