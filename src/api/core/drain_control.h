// Taking the node out of service, and back into it, while the process goes on: for operators. Made by the application,
// outlives the loop. Loop thread only.
#pragma once

#include <cstddef>
#include <string_view>

#include "base/error.h"

namespace chasqui {

enum class Service {
  open,     // new requests are taken
  drained,  // an operator has said so: what runs goes on, new requests are refused
  leaving,  // the process ends
};

constexpr std::string_view name(Service service) {
  constexpr std::string_view names[] = {"open", "drained", "leaving"};
  return names[static_cast<std::size_t>(service)];
}

class DrainControl {
 public:
  virtual ~DrainControl() = default;

  virtual Service service() const = 0;
  // Of all models: submitted, and not ended yet.
  virtual std::size_t in_flight() const = 0;
  // Refuses new requests until reopen(). Nothing happens where that is so already.
  virtual void drain() = 0;
  // Error: conflict where the process ends.
  virtual Result<void> reopen() = 0;
};

}  // namespace chasqui
